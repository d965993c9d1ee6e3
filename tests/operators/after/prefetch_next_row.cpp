#include <cmath>
#include <cstdint>

constexpr int PREFETCH_LINES = 8;  // tune: 1 2 4 8 16 32

extern "C" void kernel_function(const float* x, const float* w, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * n;
        for (int line = 0; line < PREFETCH_LINES; ++line) __builtin_prefetch(x + (r + 1) * n + line * 16);
        float* y = out + r * n;
        float top = -INFINITY;
        for (int64_t i = 0; i < n; ++i) {
            top = in[i] > top ? in[i] : top;
        }
        float total = 0.0f;
        for (int64_t i = 0; i < n; ++i) {
            y[i] = expf(in[i] - top);
            total += y[i];
        }
        for (int64_t i = 0; i < n; ++i) {
            y[i] = y[i] / total * w[i];
        }
    }
}
