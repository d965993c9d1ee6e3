// problem: masked_cumsum
// status: incorrect
// stage: smoke
// reason: wrong result on case
// The sum before each element instead of up to it.
#include <cstdint>

extern "C" void kernel_function(const float* x, const uint8_t* mask, float* out, const int64_t* shapes) {
    for (int64_t row = 0; row < shapes[0]; ++row) {
        float running = 0.0f;
        for (int64_t i = row * shapes[1]; i < (row + 1) * shapes[1]; ++i) {
            out[i] = running;
            running += mask[i] ? x[i] : 0.0f;
        }
    }
}
