// problem: masked_cumsum
// status: incorrect
// stage: smoke
// reason: wrong result on case
// Never resets the sum at the start of a row.
#include <cstdint>

extern "C" void kernel_function(const float* x, const uint8_t* mask, float* out, const int64_t* shapes) {
    float running = 0.0f;
    for (int64_t i = 0; i < shapes[0] * shapes[1]; ++i) out[i] = running += mask[i] ? x[i] : 0.0f;
}
