#include <cmath>
#include <cstdint>

// exp(x) in float as 2^n * p(f): relative error below (3 + 1.3 |x|) * 2^-24 where the result is a normal
// number, below that off by less than 2^-126; infinity from 128 ln 2 up, exp(-inf) is 0, NaN stays NaN.
static inline float exp_fast(float x) {
    const float t = x * 1.44269504f;
    const float above = t < -127.0f ? -127.0f : t;
    const float within = above > 128.0f ? 128.0f : above;
    const float whole = __builtin_rintf(within);
    const float r = within - whole;
    float p = 1.32647273e-3f;
    p = __builtin_fmaf(p, r, 9.67151299e-3f);
    p = __builtin_fmaf(p, r, 5.55073359e-2f);
    p = __builtin_fmaf(p, r, 2.40222424e-1f);
    p = __builtin_fmaf(p, r, 6.93147004e-1f);
    p = __builtin_fmaf(p, r, 1.0f);
    uint32_t bits;
    __builtin_memcpy(&bits, &p, sizeof bits);
    bits += static_cast<uint32_t>(static_cast<int32_t>(whole)) << 23;
    __builtin_memcpy(&p, &bits, sizeof p);
    return p;
}

// tanh(x) in float, within a few ulp: an odd polynomial below 0.625, else 1 - 2 / (exp(2|x|) + 1), signed.
static inline float tanh_fast(float x) {
    const float size = __builtin_fabsf(x);
    const float large = 1.0f - 2.0f / (exp_fast(2.0f * size) + 1.0f);
    const float s = x * x;
    float p = -5.70498872745e-3f;
    p = __builtin_fmaf(p, s, 2.06390887954e-2f);
    p = __builtin_fmaf(p, s, -5.37397155531e-2f);
    p = __builtin_fmaf(p, s, 1.33314422036e-1f);
    p = __builtin_fmaf(p, s, -3.33332819422e-1f);
    const float small = __builtin_fmaf(p * s, x, x);
    return size < 0.625f ? small : __builtin_copysignf(large, x);
}

extern "C" void kernel_function(const float* x, const float* w, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < n; ++i) {
            const float v = x[r * n + i] + w[i];
            out[r * n + i] = 0.5f * v * (1.0f + tanh_fast(0.79788456f * (v + 0.044715f * v * v * v)));
        }
    }
}
