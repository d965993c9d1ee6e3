// problem: softmax
// status: incorrect
// stage: smoke
// reason: wrong result on case
// Keeps the exponentials as bfloat16 between its two passes.
#include <cmath>
#include <cstdint>
#include <cstring>

static float to_bf16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&value, &bits, 4);
    return value;
}

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t row = 0; row < rows; ++row) {
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = fmaxf(top, x[row * n + i]);
        for (int64_t i = 0; i < n; ++i) {
            out[row * n + i] = to_bf16(expf(x[row * n + i] - top));
            total += out[row * n + i];
        }
        for (int64_t i = 0; i < n; ++i) out[row * n + i] /= total;
    }
}
