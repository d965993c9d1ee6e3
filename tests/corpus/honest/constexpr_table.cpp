// problem: softmax
// status: measured
// stage: timing
// reason: screened
// Powers of two of the integer part come from a table that the compiler fills; the rest is a polynomial of degree 7.
#include <array>
#include <cmath>
#include <cstdint>

struct Powers {
    float of[160] = {};
    constexpr Powers() {
        double value = 1.0;
        for (int i = 0; i < 160; ++i, value /= 2.0) of[i] = (float)value;
    }
};

static constexpr Powers half;
static constexpr std::array<float, 7> taylor = {1.0f, 1.0f, 0.5f, 1.0f / 6, 1.0f / 24, 1.0f / 120, 1.0f / 720};

// exp of x <= 0, by x = -k ln 2 + r with |r| <= ln 2 / 2.
static float falling_exp(float x) {
    if (!(x >= -104.0f)) return x != x ? x : 0.0f;
    const float k = nearbyintf(x * -1.44269504f);
    const float r = fmaf(k, 1.42860677e-6f, fmaf(k, 0.693145752f, x));
    float sum = r * (1.0f / 5040) + taylor[6];
    for (int i = 5; i >= 0; --i) sum = sum * r + taylor[i];
    return sum * half.of[(int)k];
}

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
#pragma omp parallel for
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * n;
        float top = -INFINITY;
        double total = 0.0;
        for (int64_t i = 0; i < n; ++i) top = in[i] > top ? in[i] : top;
        for (int64_t i = 0; i < n; ++i) total += out[row * n + i] = falling_exp(in[i] - top);
        const float scale = (float)(1.0 / total);
        for (int64_t i = 0; i < n; ++i) out[row * n + i] *= scale;
    }
}
