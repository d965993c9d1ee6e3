// SwiGLU on a packed input [gate | up]: out = gate / (1 + exp(-gate)) * up, in column blocks of all rows.
// Written for kernel-evo from the definition. One pass over memory. Accuracy: exp is a degree-5 polynomial in
// base 2 with relative error below (2 + |gate|) * 2^-24.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

constexpr int LANES = 16;  // tune: 8 16 32
constexpr int64_t BLOCK = 4096;  // tune: 1024 2048 4096 16384

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
    const int64_t rows = shapes[0];
    const int64_t n = shapes[1] / 2;
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t first = 0; first < n; first += BLOCK) {
            const int64_t last = std::min(first + BLOCK, n);
            const float* gate = x + row * 2 * n;
            const float* up = gate + n;
            float* result = out + row * n;
#pragma omp simd simdlen(LANES)
            for (int64_t i = first; i < last; ++i) {
                const float opened = gate[i] / (1.0f + exp2_fast(gate[i] * -1.44269504f));
                result[i] = opened * up[i];
            }
        }
    }
}
