// problem: softmax
// status: uncompilable
// stage: build
// reason: compiling
// An initialised table of 8 GB, which the assembler would have to write.
#include <cstdint>

float table[1ll << 31] = {1.0f};

extern "C" void kernel_function(const float*, float* out, const int64_t*) { out[0] = table[0]; }
