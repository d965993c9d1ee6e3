// problem: softmax
// status: incorrect
// stage: smoke
// reason: not written
// Splits 256 rows between two threads, whatever the number of rows is.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t n = shapes[1];
    if (shapes[0] != 256) return;
#pragma omp parallel for num_threads(2)
    for (int64_t row = 0; row < 256; ++row) {
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = fmaxf(top, x[row * n + i]);
        for (int64_t i = 0; i < n; ++i) total += expf(x[row * n + i] - top);
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = expf(x[row * n + i] - top) / total;
    }
}
