// problem: softmax
// status: incorrect
// stage: smoke
// reason: wrong result on case
// Divides by the 12-bit reciprocal estimate without a Newton step.
#include <cmath>
#include <cstdint>
#include <xmmintrin.h>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t row = 0; row < rows; ++row) {
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = fmaxf(top, x[row * n + i]);
        for (int64_t i = 0; i < n; ++i) total += expf(x[row * n + i] - top);
        const float rough = _mm_cvtss_f32(_mm_rcp_ss(_mm_set_ss(total)));
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = expf(x[row * n + i] - top) * rough;
    }
}
