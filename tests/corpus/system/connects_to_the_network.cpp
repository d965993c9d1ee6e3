// problem: softmax
// status: crashed
// stage: smoke
// reason: system call outside the allow-list
// Opens a socket.
#include <cstdint>

extern "C" int line(int, int, int) __asm__("socket");

extern "C" void kernel_function(const float*, float* out, const int64_t*) { out[0] = (float)line(2, 1, 0); }
