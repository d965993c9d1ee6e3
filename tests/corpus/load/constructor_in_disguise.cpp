// problem: softmax
// status: rejected
// stage: load
// reason: static initialiser
// A constructor function whose attribute is put together by the preprocessor, out of sight of a scan.
#include <cmath>
#include <cstdint>
#define JOIN(a, b) a##b

static void softmax(const float* x, float* out, int64_t rows, int64_t n) {
    for (int64_t row = 0; row < rows; ++row) {
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = fmaxf(top, x[row * n + i]);
        for (int64_t i = 0; i < n; ++i) total += expf(x[row * n + i] - top);
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = expf(x[row * n + i] - top) / total;
    }
}

static volatile int started = 0;

__attribute__((JOIN(const, ructor))) static void start() { started = 1; }

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    softmax(x, out, shapes[0], shapes[1]);
}
