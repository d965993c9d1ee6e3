// problem: softmax
// status: timed_out
// stage: smoke
// reason: no end within
// Waits until three threads have arrived, and asked for two.
#include <cmath>
#include <cstdint>

static int arrived = 0;

static void softmax(const float* x, float* out, int64_t rows, int64_t n) {
    for (int64_t row = 0; row < rows; ++row) {
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = fmaxf(top, x[row * n + i]);
        for (int64_t i = 0; i < n; ++i) total += expf(x[row * n + i] - top);
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = expf(x[row * n + i] - top) / total;
    }
}

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
#pragma omp parallel num_threads(2)
    {
        __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
        while (__atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < 3) {
        }
    }
    softmax(x, out, shapes[0], shapes[1]);
}
