// problem: quantize_int8
// status: incorrect
// stage: smoke search_gate
// reason: on case
// Forgets that a row of zeros has no scale: zero over zero.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, int8_t* out, float* scales, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t row = 0; row < rows; ++row) {
        float largest = 0.0f;
        for (int64_t i = 0; i < n; ++i) largest = fmaxf(largest, fabsf(x[row * n + i]));
        scales[row] = largest / 127.0f;
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = (int8_t)rintf(x[row * n + i] / scales[row]);
    }
}
