// problem: softmax
// status: rejected
// stage: admit
// reason: extern "C"
// The entry is a C++ function, so that its symbol has another name.
#include <cstdint>

void kernel_function(const float* x, float* out, const int64_t* shapes) { out[0] = x[0] + shapes[0]; }
