// problem: softmax
// status: incorrect
// stage: smoke
// reason: wrong result on case
// Copies the input.
#include <cstdint>
#include <cstring>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    memcpy(out, x, shapes[0] * shapes[1] * sizeof(float));
}
