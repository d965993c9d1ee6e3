// problem: gelu_tanh
// status: incorrect
// stage: smoke
// reason: wrong result on case
// The exact GELU by erf: another function, 3e-4 away.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    for (int64_t i = 0; i < shapes[0] * shapes[1]; ++i) out[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
}
