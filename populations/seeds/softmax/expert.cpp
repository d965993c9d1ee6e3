// Softmax over the last dimension, a row at a time in cache: maximum, then exponential and sum, then scale.
// Written for kernel-evo from the definition. Passes over memory: input once and output once (the two other
// passes find the row in the first-level cache). Accuracy: exp is a degree-5 polynomial in base 2, relative
// error below (3 + |x - max| / 4) * 2^-24 down to subnormal results, and 0 for exp(-inf).
#include <cmath>
#include <cstdint>
#include <cstring>

constexpr int LANES = 16;  // tune: 8 16 32

// The exponential is carried times 2^64, so that its last rounding is the one of the result.
constexpr float BIAS = 0x1p64f;

// exp(x) * BIAS for x <= 0; NaN for NaN.
static inline float biased_exp(float x) {
    const float bounded = x < -105.0f ? -105.0f : x;  // exp(-105) becomes 0 in the last rounding
    const float whole = rintf(bounded * 1.44269504f);
    const float r = __builtin_fmaf(bounded, 1.44269504f, -whole);
    float p = 1.32647273e-3f * BIAS;
    p = __builtin_fmaf(p, r, 9.67151299e-3f * BIAS);
    p = __builtin_fmaf(p, r, 5.55073359e-2f * BIAS);
    p = __builtin_fmaf(p, r, 2.40222424e-1f * BIAS);
    p = __builtin_fmaf(p, r, 6.93147004e-1f * BIAS);
    p = __builtin_fmaf(p, r, BIAS);
    int32_t bits;
    memcpy(&bits, &p, sizeof bits);
    bits += (int32_t)whole * (1 << 23);
    memcpy(&p, &bits, sizeof p);
    return p;
}

extern "C" void kernel_function(const float* __restrict x, float* __restrict out, const int64_t* shapes) {
    const int64_t rows = shapes[0];
    const int64_t n = shapes[1];
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * n;
        float* result = out + row * n;
        float top = -INFINITY;
#pragma omp simd simdlen(LANES) reduction(max : top)
        for (int64_t i = 0; i < n; ++i) {
            top = in[i] > top ? in[i] : top;
        }
        float total = 0.0f;
#pragma omp simd simdlen(LANES) reduction(+ : total)
        for (int64_t i = 0; i < n; ++i) {
            const float value = biased_exp(in[i] - top);
            result[i] = value;
            total += value;
        }
        const float scale = 1.0f / total;
#pragma omp simd simdlen(LANES)
        for (int64_t i = 0; i < n; ++i) {
            result[i] *= scale;
        }
    }
}
