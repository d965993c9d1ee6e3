// Tanh-GELU, element by element: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
// Written for kernel-evo from the definition. One pass over memory. Accuracy: libm's tanhf.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t count = shapes[0] * shapes[1];
#pragma omp parallel for
    for (int64_t i = 0; i < count; ++i) {
        const float inner = 0.7978845608f * (x[i] + 0.044715f * x[i] * x[i] * x[i]);
        out[i] = 0.5f * x[i] * (1.0f + tanhf(inner));
    }
}
