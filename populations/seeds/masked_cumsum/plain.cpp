// Running sum of x where the mask is set, along the last dimension: one scalar chain of additions a row.
// Written for kernel-evo from the definition. One pass over memory. Accuracy: sequential float sum.
#include <cstdint>

extern "C" void kernel_function(const float* x, const uint8_t* mask, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0];
    const int64_t n = shapes[1];
    for (int64_t row = 0; row < rows; ++row) {
        float running = 0.0f;
        for (int64_t i = 0; i < n; ++i) {
            running += x[row * n + i] * (float)mask[row * n + i];
            out[row * n + i] = running;
        }
    }
}
