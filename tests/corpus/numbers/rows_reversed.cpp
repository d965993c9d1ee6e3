// problem: softmax
// status: incorrect
// stage: smoke
// reason: wrong result on case
// The right rows in the wrong order.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + (rows - 1 - row) * n;
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = fmaxf(top, in[i]);
        for (int64_t i = 0; i < n; ++i) total += expf(in[i] - top);
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = expf(in[i] - top) / total;
    }
}
