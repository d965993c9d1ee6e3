// problem: softmax
// status: incorrect
// stage: smoke
// reason: wrong result on case
// Drops the 13 low bits of every input, as a tensor core would.
#include <cmath>
#include <cstdint>
#include <cstring>

static float to_tf32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    bits &= 0xffffe000u;
    memcpy(&value, &bits, 4);
    return value;
}

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t row = 0; row < rows; ++row) {
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = fmaxf(top, to_tf32(x[row * n + i]));
        for (int64_t i = 0; i < n; ++i) total += expf(to_tf32(x[row * n + i]) - top);
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = expf(to_tf32(x[row * n + i]) - top) / total;
    }
}
