// problem: softmax
// status: timed_out
// stage: smoke
// reason: on case
// A loop without an end.
#include <cstdint>

extern "C" void kernel_function(const float*, float* out, const int64_t*) {
    for (volatile int64_t i = 0;; ++i) out[0] = 0.0f;
}
