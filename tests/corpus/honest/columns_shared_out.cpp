// problem: softmax
// status: measured
// stage: timing
// reason: screened
// Threads share the columns of each row instead of the rows, with reductions for maximum and sum.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * n;
        float top = -INFINITY, total = 0.0f;
#pragma omp parallel for reduction(max : top)
        for (int64_t i = 0; i < n; ++i) top = in[i] > top ? in[i] : top;
#pragma omp parallel for reduction(+ : total)
        for (int64_t i = 0; i < n; ++i) total += out[row * n + i] = expf(in[i] - top);
#pragma omp parallel for
        for (int64_t i = 0; i < n; ++i) out[row * n + i] /= total;
    }
}
