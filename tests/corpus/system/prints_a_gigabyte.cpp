// problem: softmax
// status: crashed
// stage: smoke
// reason: system call outside the allow-list
// Fills the log: 1 GB on standard output.
#include <cstdint>

extern "C" int say(const char*) __asm__("puts");

extern "C" void kernel_function(const float*, float*, const int64_t*) {
    for (int64_t i = 0; i < 1 << 24; ++i) say("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde");
}
