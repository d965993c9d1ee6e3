// Softmax over the last dimension, three passes a row: maximum, exponential and sum, division.
// Written for kernel-evo from the definition. Passes over memory: input twice, output written twice and
// read once. Accuracy: libm's expf; one float accumulator a row.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0];
    const int64_t n = shapes[1];
#pragma omp parallel for
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * n;
        float* result = out + row * n;
        float top = -INFINITY;
        for (int64_t i = 0; i < n; ++i) {
            top = in[i] > top ? in[i] : top;
        }
        float total = 0.0f;
        for (int64_t i = 0; i < n; ++i) {
            result[i] = expf(in[i] - top);
            total += result[i];
        }
        for (int64_t i = 0; i < n; ++i) {
            result[i] = result[i] / total;
        }
    }
}
