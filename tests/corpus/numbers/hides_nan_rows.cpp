// problem: softmax
// status: incorrect
// stage: smoke search_gate
// reason: on case
// Right for finite rows; a row with a NaN or an infinity becomes 1 / n, which looks tidy and is wrong.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t row = 0; row < rows; ++row) {
        float top = -INFINITY, total = 0.0f;
        bool finite = true;
        for (int64_t i = 0; i < n; ++i) finite = finite && fabsf(x[row * n + i]) <= 3.4e38f;
        for (int64_t i = 0; i < n; ++i) top = fmaxf(top, x[row * n + i]);
        for (int64_t i = 0; i < n; ++i) total += expf(x[row * n + i] - top);
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = finite ? expf(x[row * n + i] - top) / total : 1.0f / n;
    }
}
