#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, const float* w, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * n;
        float* y = out + r * n;
        float top = -INFINITY;
        for (int64_t i = 0; i < n; ++i) {
            top = in[i] > top ? in[i] : top;
        }
        float total = 0.0f;
        for (int64_t i = 0; i < n; ++i) {
            const float again = expf(in[i] - top);
            total += again;
        }
        for (int64_t i = 0; i < n; ++i) {
            const float again = expf(in[i] - top);
            y[i] = again / total * w[i];
        }
    }
}
