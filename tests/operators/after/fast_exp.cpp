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

extern "C" void kernel_function(const float* x, const float* w, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * n;
        float top = in[0];
        for (int64_t i = 0; i < n; ++i) top = std::fmax(top, in[i]);
        float total = 0.0f;
        for (int64_t i = 0; i < n; ++i) total += exp_fast(in[i] - top);
        for (int64_t i = 0; i < n; ++i) out[r * n + i] = w[i] * exp_fast(in[i] - top) / total;
    }
}
