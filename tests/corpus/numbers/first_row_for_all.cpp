// problem: softmax
// status: incorrect
// stage: smoke
// reason: wrong result on case
// Computes row 0 and writes it into every row.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    float top = -INFINITY, total = 0.0f;
    for (int64_t i = 0; i < n; ++i) top = fmaxf(top, x[i]);
    for (int64_t i = 0; i < n; ++i) total += expf(x[i] - top);
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = expf(x[i] - top) / total;
    }
}
