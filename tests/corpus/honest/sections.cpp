// problem: softmax
// status: measured
// stage: timing
// reason: screened
// Two sections, one for each half of the rows.
#include <cmath>
#include <cstdint>

static void rows_between(const float* x, float* out, int64_t n, int64_t first, int64_t end) {
    for (int64_t row = first; row < end; ++row) {
        const float* in = x + row * n;
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = in[i] > top ? in[i] : top;
        for (int64_t i = 0; i < n; ++i) total += out[row * n + i] = expf(in[i] - top);
        for (int64_t i = 0; i < n; ++i) out[row * n + i] /= total;
    }
}

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
#pragma omp parallel sections
    {
#pragma omp section
        rows_between(x, out, n, 0, rows / 2);
#pragma omp section
        rows_between(x, out, n, rows / 2, rows);
    }
}
