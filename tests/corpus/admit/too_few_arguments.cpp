// problem: softmax
// status: rejected
// stage: admit
// reason: takes 2 arguments, this problem passes 3
// Forgets the shapes.
#include <cstdint>

extern "C" void kernel_function(const float* x, float* out) { out[0] = x[0]; }
