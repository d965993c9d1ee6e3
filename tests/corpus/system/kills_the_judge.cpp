// problem: softmax
// status: crashed
// stage: smoke
// reason: system call outside the allow-list
// Sends SIGKILL to whoever started it.
#include <cstdint>

extern "C" int parent() __asm__("getppid");
extern "C" int send(int, int) __asm__("kill");

extern "C" void kernel_function(const float*, float*, const int64_t*) { send(parent(), 9); }
