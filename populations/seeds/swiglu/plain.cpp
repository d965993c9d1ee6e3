// SwiGLU on a packed input [gate | up]: out = gate / (1 + exp(-gate)) * up.
// Written for kernel-evo from the definition. One pass over memory. Accuracy: libm's expf.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0];
    const int64_t n = shapes[1] / 2;
#pragma omp parallel for
    for (int64_t row = 0; row < rows; ++row) {
        const float* gate = x + row * 2 * n;
        const float* up = gate + n;
        for (int64_t i = 0; i < n; ++i) {
            const float sigmoid = 1.0f / (1.0f + expf(-gate[i]));
            out[row * n + i] = gate[i] * sigmoid * up[i];
        }
    }
}
