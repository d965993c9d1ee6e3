// problem: softmax
// status: incorrect crashed
// stage: smoke
// reason: on case
// Jumps out of a parallel region while the other thread works on: no new thread, and an early return.
#include <cmath>
#include <cstdint>
#include <omp.h>

static void* start[5];

static void softmax(const float* x, float* out, int64_t rows, int64_t n) {
    for (int64_t row = 0; row < rows; ++row) {
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = fmaxf(top, x[row * n + i]);
        for (int64_t i = 0; i < n; ++i) total += expf(x[row * n + i] - top);
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = expf(x[row * n + i] - top) / total;
    }
}

extern "C" __attribute__((noinline)) void kernel_function(const float* x, float* out, const int64_t* shapes) {
    if (__builtin_setjmp(start) != 0) return;
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) __builtin_longjmp(start, 1);
        for (volatile int64_t i = 0; i < 100'000'000; ++i) {
        }
        softmax(x, out, shapes[0], shapes[1]);
    }
}
