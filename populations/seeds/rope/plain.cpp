// Rotary position embedding (rotate-half form): out = x cos + concat(-x2, x1) sin, the same for every head.
// Written for kernel-evo from the definition. Two passes over each row of the head: first half, second half.
#include <cstdint>

extern "C" void kernel_function(const float* x, const float* cosine, const float* sine, float* out,
                                const int64_t* shapes) {
    const int64_t heads = shapes[0] * shapes[1];
    const int64_t positions = shapes[2];
    const int64_t dim = shapes[3];
    const int64_t half = dim / 2;
#pragma omp parallel for
    for (int64_t head = 0; head < heads; ++head) {
        for (int64_t position = 0; position < positions; ++position) {
            const int64_t start = (head * positions + position) * dim;
            const int64_t angle = position * dim;
            for (int64_t i = 0; i < half; ++i) {
                out[start + i] = x[start + i] * cosine[angle + i] - x[start + i + half] * sine[angle + i];
            }
            for (int64_t i = half; i < dim; ++i) {
                out[start + i] = x[start + i] * cosine[angle + i] + x[start + i - half] * sine[angle + i];
            }
        }
    }
}
