// problem: softmax
// status: crashed
// stage: smoke
// reason: aborted
// Throws an exception out of a C function.
#include <cstdint>

extern "C" void kernel_function(const float*, float*, const int64_t*) { throw 1; }
