#include <cmath>
#include <cstdint>

constexpr int TILE = 1024;  // tune: 256 512 1024 2048 4096

extern "C" void kernel_function(const float* x, const float* w, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * n;
        float* y = out + r * n;
        float top = -INFINITY;
        for (int64_t i_block = 0; i_block < n; i_block += TILE) {
            const int64_t i_end = i_block + TILE < n ? i_block + TILE : n;
            for (int64_t i = i_block; i < i_end; ++i) {
                top = in[i] > top ? in[i] : top;
            }
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
