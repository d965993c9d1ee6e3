// problem: softmax
// status: measured
// stage: timing
// reason: screened
// OpenMP tasks of eight rows each, made by one thread and waited for.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
#pragma omp parallel
#pragma omp single
#pragma omp taskloop grainsize(8)
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * n;
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = in[i] > top ? in[i] : top;
        for (int64_t i = 0; i < n; ++i) total += out[row * n + i] = expf(in[i] - top);
        for (int64_t i = 0; i < n; ++i) out[row * n + i] /= total;
    }
}
