// problem: softmax
// status: crashed
// stage: smoke
// reason: segmentation fault
// Recursion without an end.
#include <cstdint>

static volatile int64_t depth = 0;

__attribute__((noinline)) static int64_t deeper(int64_t level) {
    volatile char frame[4096];
    frame[level & 4095] = 1;
    depth = level;
    return deeper(level + 1) + frame[0];
}

extern "C" void kernel_function(const float*, float* out, const int64_t*) { out[0] = (float)deeper(0); }
