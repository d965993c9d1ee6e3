// problem: softmax
// status: rejected
// stage: admit
// reason: defines no entry
// The entry has another name.
#include <cstdint>

extern "C" void softmax(const float* x, float* out, const int64_t* shapes) { out[0] = x[0] + shapes[0]; }
