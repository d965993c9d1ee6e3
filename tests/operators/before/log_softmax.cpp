#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, const float* w, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * n;
        float top = in[0];
        for (int64_t i = 0; i < n; ++i) top = std::fmax(top, in[i]);
        float total = 0.0f;
        for (int64_t i = 0; i < n; ++i) total += std::exp(in[i] - top);
        for (int64_t i = 0; i < n; ++i) out[r * n + i] = w[i] * std::exp(in[i] - top) / total;
    }
}
