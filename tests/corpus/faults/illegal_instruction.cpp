// problem: softmax
// status: crashed
// stage: smoke
// reason: illegal instruction
// __builtin_trap, as an assertion that failed.
#include <cstdint>

extern "C" void kernel_function(const float*, float*, const int64_t*) { __builtin_trap(); }
