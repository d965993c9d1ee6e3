// problem: quantize_int8
// status: incorrect
// stage: smoke
// reason: on case
// One scale for the whole matrix instead of one a row.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, int8_t* out, float* scales, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    float largest = 0.0f;
    for (int64_t i = 0; i < rows * n; ++i) largest = fmaxf(largest, fabsf(x[i]));
    const float scale = largest == 0.0f ? 1.0f : largest / 127.0f;
    for (int64_t i = 0; i < rows * n; ++i) out[i] = (int8_t)rintf(x[i] / scale);
    for (int64_t row = 0; row < rows; ++row) scales[row] = scale;
}
