// problem: masked_cumsum
// status: incorrect
// stage: smoke search_gate
// reason: wrong result on case
// Blocks of 512 columns that do not hand their sum on: right for short rows.
#include <cstdint>

extern "C" void kernel_function(const float* x, const uint8_t* mask, float* out, const int64_t* shapes) {
    const int64_t n = shapes[1];
    for (int64_t row = 0; row < shapes[0]; ++row) {
        for (int64_t start = 0; start < n; start += 512) {
            float running = 0.0f;
            for (int64_t i = start; i < start + 512 && i < n; ++i) {
                running += mask[row * n + i] ? x[row * n + i] : 0.0f;
                out[row * n + i] = running;
            }
        }
    }
}
