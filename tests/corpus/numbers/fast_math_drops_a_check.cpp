// problem: softmax
// status: incorrect
// stage: smoke search_gate
// reason: a NaN was expected
// An exponential of its own with a check that keeps NaN alive, under a pragma that lets the compiler drop the check.
#pragma GCC optimize("fast-math")
#include <cmath>
#include <cstdint>
#include <cstring>

// exp of x <= 0 by 2^whole times a polynomial; clamped, which turns NaN into a number.
static float falling_exp(float x) {
    if (x != x) return x;
    const float t = (x > -87.0f ? x : -87.0f) * 1.44269504f, whole = floorf(t + 0.5f);
    const float r = (t - whole) * 0.693147181f;
    const float sum = 1 + r * (1 + r * (1.0f / 2 + r * (1.0f / 6 + r * (1.0f / 24 + r * (1.0f / 120 + r / 720)))));
    const int32_t bits = ((int32_t)whole + 127) << 23;
    float scale;
    memcpy(&scale, &bits, 4);
    return sum * scale;
}

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t row = 0; row < rows; ++row) {
        float top = -3.4e38f, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = x[row * n + i] > top ? x[row * n + i] : top;
        for (int64_t i = 0; i < n; ++i) total += falling_exp(x[row * n + i] - top);
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = falling_exp(x[row * n + i] - top) / total;
    }
}
