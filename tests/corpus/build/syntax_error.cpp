// problem: softmax
// status: uncompilable
// stage: build
// reason: line 9: expected ')'
// A bracket that nobody closed.
#include <cstdint>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    for (int64_t i = 0; i < shapes[0] * shapes[1]; ++i { out[i] = x[i]; }
}
