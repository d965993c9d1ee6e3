// Residual add, then RMS norm with gain over the last dimension: add, mean square, normalise.
// Written for kernel-evo from the definition. Passes over memory: both inputs once, the sum written once
// and read twice, the result written once. Accuracy: one float accumulator a row.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, const float* residual, const float* weight, float* out,
                                float* sum, const int64_t* shapes) {
    const int64_t rows = shapes[0];
    const int64_t n = shapes[1];
#pragma omp parallel for
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t start = row * n;
        for (int64_t i = 0; i < n; ++i) {
            sum[start + i] = x[start + i] + residual[start + i];
        }
        float squares = 0.0f;
        for (int64_t i = 0; i < n; ++i) {
            squares += sum[start + i] * sum[start + i];
        }
        const float rms = sqrtf(squares / n + 1e-6f);
        for (int64_t i = 0; i < n; ++i) {
            out[start + i] = sum[start + i] / rms * weight[i];
        }
    }
}
