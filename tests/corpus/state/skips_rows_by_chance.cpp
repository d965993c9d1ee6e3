// problem: softmax
// status: incorrect
// stage: search_gate smoke
// reason: not written
// Throws the cycle counter like a die and leaves one row in eight out.
#include <cmath>
#include <cstdint>
#include <x86intrin.h>

static void softmax(const float* x, float* out, int64_t rows, int64_t n) {
    for (int64_t row = 0; row < rows; ++row) {
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = fmaxf(top, x[row * n + i]);
        for (int64_t i = 0; i < n; ++i) total += expf(x[row * n + i] - top);
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = expf(x[row * n + i] - top) / total;
    }
}

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t n = shapes[1];
    for (int64_t row = 0; row < shapes[0]; ++row) {
        if (__rdtsc() / 128 % 8 != 0) softmax(x + row * n, out + row * n, 1, n);
    }
}
