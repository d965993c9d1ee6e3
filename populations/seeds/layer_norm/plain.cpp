// Layer norm with gain and bias over the last dimension, three passes a row: mean, variance, normalise.
// Written for kernel-evo from the definition. Passes over memory: input three times, output once.
// Accuracy: two-pass variance, one float accumulator a row.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, const float* weight, const float* bias, float* out,
                                const int64_t* shapes) {
    const int64_t rows = shapes[0];
    const int64_t n = shapes[1];
#pragma omp parallel for
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * n;
        float* result = out + row * n;
        float total = 0.0f;
        for (int64_t i = 0; i < n; ++i) {
            total += in[i];
        }
        const float mean = total / n;
        float squares = 0.0f;
        for (int64_t i = 0; i < n; ++i) {
            squares += (in[i] - mean) * (in[i] - mean);
        }
        const float deviation = sqrtf(squares / n + 1e-5f);
        for (int64_t i = 0; i < n; ++i) {
            result[i] = (in[i] - mean) / deviation * weight[i] + bias[i];
        }
    }
}
