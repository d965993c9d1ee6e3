// Symmetric int8 quantisation per row: largest magnitude, then multiply by the reciprocal scale and round.
// Written for kernel-evo from the definition. Passes over memory: input once, output once (the second pass
// finds the row in the first-level cache). Accuracy: the product is within 1.5 ulp of the true quotient, so
// only a value that close to a tie can round the other way. The scale is 1 where a row is all zero.
#include <cmath>
#include <cstdint>
#include <cstring>

constexpr int LANES = 64;  // tune: 16 32 64

extern "C" void kernel_function(const float* __restrict x, int8_t* __restrict out, float* __restrict scales,
                                const int64_t* shapes) {
    const int64_t rows = shapes[0];
    const int64_t n = shapes[1];
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * n;
        int8_t* result = out + row * n;
        // Magnitudes compare like their bits, and a NaN is the largest of all.
        int32_t top = 0;
#pragma omp simd simdlen(16) reduction(max : top)
        for (int64_t i = 0; i < n; ++i) {
            int32_t bits;
            memcpy(&bits, in + i, sizeof bits);
            bits &= 0x7fffffff;
            top = bits > top ? bits : top;
        }
        float largest;
        memcpy(&largest, &top, sizeof largest);
        const float scale = top == 0 ? 1.0f : (float)(largest / 127.0);
        scales[row] = scale;
        if (scale < 1e-37f) {  // its reciprocal may overflow in float
            const double inverse = 1.0 / scale;
            for (int64_t i = 0; i < n; ++i) {
                result[i] = (int8_t)(int32_t)rint(in[i] * inverse);
            }
            continue;
        }
        const float inverse = 1.0f / scale;
#pragma omp simd simdlen(LANES)
        for (int64_t i = 0; i < n; ++i) {
            result[i] = (int8_t)__builtin_irintf(in[i] * inverse);
        }
    }
}
