// problem: softmax
// status: crashed
// stage: smoke
// reason: segmentation fault
// Casts const away and works in place; the input is mapped read-only.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    float* scratch = (float*)x;
    for (int64_t row = 0; row < rows; ++row) {
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = fmaxf(top, x[row * n + i]);
        for (int64_t i = 0; i < n; ++i) total += scratch[row * n + i] = expf(x[row * n + i] - top);
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = scratch[row * n + i] / total;
    }
}
