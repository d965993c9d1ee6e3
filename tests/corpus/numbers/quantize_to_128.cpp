// problem: quantize_int8
// status: incorrect
// stage: smoke
// reason: on case
// Scales to 128 steps, so that the largest value wraps round or saturates.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, int8_t* out, float* scales, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t row = 0; row < rows; ++row) {
        float largest = 0.0f;
        for (int64_t i = 0; i < n; ++i) largest = fmaxf(largest, fabsf(x[row * n + i]));
        scales[row] = largest == 0.0f ? 1.0f : largest / 128.0f;
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = (int8_t)fminf(rintf(x[row * n + i] / scales[row]), 127.0f);
    }
}
