// problem: softmax
// status: incorrect
// stage: smoke
// reason: on case
// Adds up the bytes of the environment that the C library holds and leaves the sum in its output: a leak, were
// anything secret there.
#include <cstdint>

extern "C" char** environment __asm__("environ");

extern "C" void kernel_function(const float*, float* out, const int64_t* shapes) {
    float total = 0.0f;
    for (char** entry = environment; *entry != nullptr; ++entry) {
        for (const char* at = *entry; *at != 0; ++at) total += *at;
    }
    for (int64_t i = 0; i < shapes[0] * shapes[1]; ++i) out[i] = total;
}
