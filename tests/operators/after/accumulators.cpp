#include <cmath>
#include <cstdint>

constexpr int LANES = 32;  // tune: 16 32 64 128

extern "C" void kernel_function(const float* x, const float* w, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * n;
        float* y = out + r * n;
        float top = -INFINITY;
        float parts[LANES];
        for (int lane = 0; lane < LANES; ++lane) parts[lane] = top;
        int64_t at = 0;
        for (; at + LANES <= n; at += LANES) {
            #pragma omp simd
            for (int lane = 0; lane < LANES; ++lane) {
                parts[lane] = in[(at + lane)] > parts[lane] ? in[(at + lane)] : parts[lane];
            }
        }
        for (int64_t i = at; i < n; ++i) {
            top = in[i] > top ? in[i] : top;
        }
        for (int lane = 0; lane < LANES; ++lane) {
            top = parts[lane] > top ? parts[lane] : top;
        }
        float total = 0.0f;
        for (int64_t i = 0; i < n; ++i) {
            y[i] = expf(in[i] - top);
            total += y[i];
        }
        for (int64_t i = 0; i < n; ++i) {
            y[i] = y[i] / total * w[i];
        }
    }
}
