// problem: rms_norm
// status: incorrect
// stage: smoke
// reason: not written
// The normalised rows are right; the sum, which is wanted too, is never written.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, const float* residual, const float* weight, float* out, float*,
                                const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t row = 0; row < rows; ++row) {
        float squares = 0.0f;
        for (int64_t i = row * n; i < (row + 1) * n; ++i) squares += (x[i] + residual[i]) * (x[i] + residual[i]);
        const float scale = 1.0f / sqrtf(squares / n + 1e-6f);
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = (x[row * n + i] + residual[row * n + i]) * scale * weight[i];
    }
}
