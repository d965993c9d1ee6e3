// problem: softmax
// status: crashed
// stage: smoke
// reason: segmentation fault
// A scratch array of 1 GB on the stack.
#include <cstdint>

extern "C" void kernel_function(const float* x, float* out, const int64_t*) {
    volatile float scratch[1 << 28];
    for (int64_t i = 0; i < 1 << 28; i += 1024) scratch[i] = x[0];
    out[0] = scratch[1 << 20];
}
