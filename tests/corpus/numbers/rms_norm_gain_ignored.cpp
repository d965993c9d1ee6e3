// problem: rms_norm
// status: incorrect
// stage: smoke
// reason: wrong result on case
// Leaves the gain out, which a gain of ones would hide.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, const float* residual, const float*, float* out, float* sum,
                                const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t row = 0; row < rows; ++row) {
        float squares = 0.0f;
        for (int64_t i = row * n; i < (row + 1) * n; ++i) sum[i] = x[i] + residual[i];
        for (int64_t i = row * n; i < (row + 1) * n; ++i) squares += sum[i] * sum[i];
        const float scale = 1.0f / sqrtf(squares / n + 1e-6f);
        for (int64_t i = row * n; i < (row + 1) * n; ++i) out[i] = sum[i] * scale;
    }
}
