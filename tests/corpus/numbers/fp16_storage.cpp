// problem: softmax
// status: incorrect
// stage: smoke
// reason: wrong result on case
// Rounds x - max to half precision before the exponential.
#include <cmath>
#include <cstdint>
#include <immintrin.h>

static float to_fp16(float value) {
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT)));
}

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t row = 0; row < rows; ++row) {
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = fmaxf(top, x[row * n + i]);
        for (int64_t i = 0; i < n; ++i) total += expf(to_fp16(x[row * n + i] - top));
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = expf(to_fp16(x[row * n + i] - top)) / total;
    }
}
