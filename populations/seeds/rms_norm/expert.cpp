// Residual add and RMS norm with gain over the last dimension: add, store and square in one pass, then scale.
// Written for kernel-evo from the definition. Passes over memory: each input once, each output once (the
// second pass finds the sum in the first-level cache). Accuracy: one sum of squares a lane.
#include <cmath>
#include <cstdint>

constexpr int LANES = 16;  // tune: 8 16 32 64

extern "C" void kernel_function(const float* __restrict x, const float* __restrict residual,
                                const float* __restrict weight, float* __restrict out,
                                float* __restrict sum, const int64_t* shapes) {
    const int64_t rows = shapes[0];
    const int64_t n = shapes[1];
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
        const float* left = x + row * n;
        const float* right = residual + row * n;
        float* added = sum + row * n;
        float* result = out + row * n;
        float squares = 0.0f;
#pragma omp simd simdlen(LANES) reduction(+ : squares)
        for (int64_t i = 0; i < n; ++i) {
            const float value = left[i] + right[i];
            added[i] = value;
            squares += value * value;
        }
        const float inverse = 1.0f / sqrtf(squares / n + 1e-6f);
#pragma omp simd simdlen(LANES)
        for (int64_t i = 0; i < n; ++i) {
            result[i] = added[i] * inverse * weight[i];
        }
    }
}
