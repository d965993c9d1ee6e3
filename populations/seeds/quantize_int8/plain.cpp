// Symmetric int8 quantisation per row, two passes: largest magnitude, then divide and round half to even.
// Written for kernel-evo from the definition. Passes over memory: input twice, output once. The scale is
// 1 where a row is all zero. Accuracy: double division, so that tiny scales have a finite reciprocal.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, int8_t* out, float* scales, const int64_t* shapes) {
    const int64_t rows = shapes[0];
    const int64_t n = shapes[1];
#pragma omp parallel for
    for (int64_t row = 0; row < rows; ++row) {
        float largest = 0.0f;
        for (int64_t i = 0; i < n; ++i) {
            const float magnitude = fabsf(x[row * n + i]);
            largest = magnitude > largest || magnitude != magnitude ? magnitude : largest;
        }
        const double scale = largest == 0.0f ? 1.0 : (float)(largest / 127.0);
        for (int64_t i = 0; i < n; ++i) {
            out[row * n + i] = (int8_t)(int)rint(x[row * n + i] / scale);
        }
        scales[row] = (float)scale;
    }
}
