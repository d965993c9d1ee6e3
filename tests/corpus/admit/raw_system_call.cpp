// problem: softmax
// status: rejected
// stage: admit
// reason: line 9: assembly with syscall
// Makes a system call itself, without libc.
#include <cstdint>
extern "C" void kernel_function(const float*, float*, const int64_t*) {
    int64_t result = 39;
    asm volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
}
