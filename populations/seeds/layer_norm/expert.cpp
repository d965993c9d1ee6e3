// Layer norm with gain and bias over the last dimension, a row at a time in cache: mean, variance, normalise.
// Written for kernel-evo from the definition. Passes over memory: input once and output once (the two other
// passes find the row in the first-level cache). Accuracy: two-pass variance, one sum a lane.
#include <cmath>
#include <cstdint>

constexpr int LANES = 16;     // tune: 8 16 32 64
constexpr int ROW_CHUNK = 8;  // tune: 1 4 8 32

extern "C" void kernel_function(const float* __restrict x, const float* __restrict weight,
                                const float* __restrict bias, float* __restrict out, const int64_t* shapes) {
    const int64_t rows = shapes[0];
    const int64_t n = shapes[1];
#pragma omp parallel for schedule(static, ROW_CHUNK)
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * n;
        float* result = out + row * n;
        float total = 0.0f;
#pragma omp simd simdlen(LANES) reduction(+ : total)
        for (int64_t i = 0; i < n; ++i) {
            total += in[i];
        }
        const float mean = total / n;
        float squares = 0.0f;
#pragma omp simd simdlen(LANES) reduction(+ : squares)
        for (int64_t i = 0; i < n; ++i) {
            const float centred = in[i] - mean;
            squares += centred * centred;
        }
        const float inverse = 1.0f / sqrtf(squares / n + 1e-5f);
#pragma omp simd simdlen(LANES)
        for (int64_t i = 0; i < n; ++i) {
            result[i] = (in[i] - mean) * inverse * weight[i] + bias[i];
        }
    }
}
