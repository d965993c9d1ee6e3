// problem: softmax
// status: crashed
// stage: smoke
// reason: aborted
// abort(), the way a failed assertion ends.
#include <cstdint>

extern "C" void give_up() __asm__("abort");

extern "C" void kernel_function(const float*, float*, const int64_t*) { give_up(); }
