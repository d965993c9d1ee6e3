// problem: softmax
// status: incorrect
// stage: smoke
// reason: not written
// Two rows at a time, and a last odd row is forgotten.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0] / 2 * 2, n = shapes[1];
    for (int64_t row = 0; row < rows; ++row) {
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = fmaxf(top, x[row * n + i]);
        for (int64_t i = 0; i < n; ++i) total += expf(x[row * n + i] - top);
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = expf(x[row * n + i] - top) / total;
    }
}
