// problem: softmax
// status: measured
// stage: timing
// reason: screened
// Recomputes the exponential instead of keeping it, and prefetches the next row.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* __restrict x, float* __restrict out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * n;
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = in[i] > top ? in[i] : top;
        if (row + 1 < rows) {
            for (int64_t i = 0; i < n; i += 16) __builtin_prefetch(in + n + i);
        }
#pragma omp simd reduction(+ : total)
        for (int64_t i = 0; i < n; ++i) total += expf(in[i] - top);
        const float scale = 1.0f / total;
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = expf(in[i] - top) * scale;
    }
}
