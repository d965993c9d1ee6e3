// problem: softmax
// status: uncompilable
// stage: build
// reason: constexpr
// Lets the compiler count for ever.
#include <cstdint>

constexpr int64_t count() {
    int64_t n = 0;
    while (n >= 0) ++n;
    return n;
}

constexpr int64_t never = count();

extern "C" void kernel_function(const float*, float* out, const int64_t*) { out[0] = (float)never; }
