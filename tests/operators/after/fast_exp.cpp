#include <cmath>
#include <cstdint>

// exp(x) in float as 2^n * p(f): within 2 ulp of the true value where that is a normal number, results below
// 2^-126 are off by less than 2^-126; overflows to infinity, exp(-inf) is 0, and NaN stays NaN.
static inline float exp_fast(float x) {
    const float capped = x > 89.0f ? 89.0f : x;
    const float low = capped < -104.0f ? -104.0f : capped;
    const float whole = __builtin_rintf(low * 1.44269504f);
    const float r = __builtin_fmaf(whole, -1.42860677e-6f, __builtin_fmaf(whole, -0.693145752f, low));
    float p = 1.9875691500e-4f;
    p = __builtin_fmaf(p, r, 1.3981999507e-3f);
    p = __builtin_fmaf(p, r, 8.3334519073e-3f);
    p = __builtin_fmaf(p, r, 4.1665795894e-2f);
    p = __builtin_fmaf(p, r, 1.6666665459e-1f);
    p = __builtin_fmaf(p, r, 5.0000001201e-1f);
    p = __builtin_fmaf(p, r * r, r) + 1.0f;
    const int32_t n = static_cast<int32_t>(whole);
    const int32_t half = n >> 1;
    uint32_t bits, rest = static_cast<uint32_t>(n - half + 127) << 23;
    __builtin_memcpy(&bits, &p, sizeof bits);
    bits += static_cast<uint32_t>(half) << 23;
    float scale;
    __builtin_memcpy(&p, &bits, sizeof p);
    __builtin_memcpy(&scale, &rest, sizeof scale);
    return p * scale;
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
