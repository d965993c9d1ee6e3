// problem: softmax
// status: uncompilable
// stage: build
// reason: undefined reference to `softmax_of_somebody_else
// Calls a function that exists nowhere.
#include <cstdint>

extern "C" void softmax_of_somebody_else(const float*, float*, const int64_t*);

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    softmax_of_somebody_else(x, out, shapes);
}
