// problem: softmax
// status: incorrect
// stage: smoke
// reason: wrong result on case
// Normalises along the other dimension.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t i = 0; i < n; ++i) {
        float top = -INFINITY, total = 0.0f;
        for (int64_t row = 0; row < rows; ++row) top = fmaxf(top, x[row * n + i]);
        for (int64_t row = 0; row < rows; ++row) total += expf(x[row * n + i] - top);
        for (int64_t row = 0; row < rows; ++row) out[row * n + i] = expf(x[row * n + i] - top) / total;
    }
}
