// Tanh-GELU as one exponential and one division: (1 + tanh(z)) / 2 = 1 / (1 + exp(-2 z)).
// Written for kernel-evo from the definition. One pass over memory. Accuracy: exp is a degree-5 polynomial
// in base 2 with relative error below 2^-23 times (1 + |z|); out is within 2^-23 |x| of the exact value.
#include <cmath>
#include <cstdint>
#include <cstring>

constexpr int LANES = 16;  // tune: 8 16 32
constexpr int64_t CHUNK = 4096;  // tune: 1024 4096 16384 65536

// 2^t: exactly 0 from -127 down, exactly infinity from 128 up, NaN for NaN.
static inline float exp2_fast(float t) {
    const float above = t < -127.0f ? -127.0f : t;
    const float bounded = above > 128.0f ? 128.0f : above;
    const float whole = rintf(bounded);
    const float r = bounded - whole;
    float p = 1.32647273e-3f;
    p = __builtin_fmaf(p, r, 9.67151299e-3f);
    p = __builtin_fmaf(p, r, 5.55073359e-2f);
    p = __builtin_fmaf(p, r, 2.40222424e-1f);
    p = __builtin_fmaf(p, r, 6.93147004e-1f);
    p = __builtin_fmaf(p, r, 1.0f);
    int32_t bits;
    memcpy(&bits, &p, sizeof bits);
    bits += (int32_t)whole * (1 << 23);
    memcpy(&p, &bits, sizeof p);
    return p;
}

extern "C" void kernel_function(const float* __restrict x, float* __restrict out, const int64_t* shapes) {
    const int64_t count = shapes[0] * shapes[1];
#pragma omp parallel for simd schedule(static, CHUNK) simdlen(LANES)
    for (int64_t i = 0; i < count; ++i) {
        const float value = x[i];
        // -2 z log2(e), with z = sqrt(2 / pi) (x + 0.044715 x^3)
        const float t = value * (-2.30220819f - 0.102943242f * value * value);
        out[i] = value / (1.0f + exp2_fast(t));
    }
}
