// problem: softmax
// status: rejected
// stage: load
// reason: static initialiser
// Puts a pointer into .init_array by hand.
#include <cmath>
#include <cstdint>

static void softmax(const float* x, float* out, int64_t rows, int64_t n) {
    for (int64_t row = 0; row < rows; ++row) {
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = fmaxf(top, x[row * n + i]);
        for (int64_t i = 0; i < n; ++i) total += expf(x[row * n + i] - top);
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = expf(x[row * n + i] - top) / total;
    }
}

static void start() {}

__attribute__((section(".init_array"), used)) static void (*entry)() = start;

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    softmax(x, out, shapes[0], shapes[1]);
}
