// problem: softmax
// status: measured
// stage: timing
// reason: screened
// A bare parallel region; each thread works out its own rows.
#include <cmath>
#include <cstdint>
#include <omp.h>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
#pragma omp parallel
    {
        const int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
        for (int64_t row = rows * me / threads; row < rows * (me + 1) / threads; ++row) {
            const float* in = x + row * n;
            float* result = out + row * n;
            float top = -INFINITY, total = 0.0f;
            for (int64_t i = 0; i < n; ++i) top = in[i] > top ? in[i] : top;
            for (int64_t i = 0; i < n; ++i) total += result[i] = expf(in[i] - top);
            for (int64_t i = 0; i < n; ++i) result[i] /= total;
        }
    }
}
