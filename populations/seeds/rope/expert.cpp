// Rotary position embedding (rotate-half form): both halves of a row at once, a block of positions for all
// heads, so that its cosines and sines stay in the first-level cache.
// Written for kernel-evo from the definition. One pass over memory.
#include <algorithm>
#include <cstdint>

constexpr int LANES = 16;  // tune: 8 16 32
constexpr int64_t POSITIONS = 16;  // tune: 4 8 16 32 64

extern "C" void kernel_function(const float* __restrict x, const float* __restrict cosine,
                                const float* __restrict sine, float* __restrict out, const int64_t* shapes) {
    const int64_t heads = shapes[0] * shapes[1];
    const int64_t positions = shapes[2];
    const int64_t dim = shapes[3];
    const int64_t half = dim / 2;
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < positions; first += POSITIONS) {
        const int64_t last = std::min(first + POSITIONS, positions);
        for (int64_t head = 0; head < heads; ++head) {
            for (int64_t position = first; position < last; ++position) {
                const float* in = x + (head * positions + position) * dim;
                float* result = out + (head * positions + position) * dim;
                const float* c = cosine + position * dim;
                const float* s = sine + position * dim;
#pragma omp simd simdlen(LANES)
                for (int64_t i = 0; i < half; ++i) {
                    const float low = in[i];
                    const float high = in[i + half];
                    result[i] = low * c[i] - high * s[i];
                    result[i + half] = high * c[i + half] + low * s[i + half];
                }
            }
        }
    }
}
