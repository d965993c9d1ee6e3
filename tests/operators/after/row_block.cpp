#include <cmath>
#include <cstdint>

constexpr int ROW_BLOCK = 2;  // tune: 1 2 4 8

extern "C" void kernel_function(const float* x, const float* w, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    #pragma omp parallel for
    for (int64_t r_block = 0; r_block < rows; r_block += ROW_BLOCK) {
        if (r_block + ROW_BLOCK <= rows) {
            const float* in[ROW_BLOCK];
            for (int k = 0; k < ROW_BLOCK; ++k) in[k] = x + (r_block + k) * n;
            float* y[ROW_BLOCK];
            for (int k = 0; k < ROW_BLOCK; ++k) y[k] = out + (r_block + k) * n;
            float top[ROW_BLOCK];
            for (int k = 0; k < ROW_BLOCK; ++k) top[k] = -INFINITY;
            for (int64_t i = 0; i < n; ++i) {
                for (int k = 0; k < ROW_BLOCK; ++k) {
                    top[k] = in[k][i] > top[k] ? in[k][i] : top[k];
                }
            }
            float total[ROW_BLOCK];
            for (int k = 0; k < ROW_BLOCK; ++k) total[k] = 0.0f;
            for (int64_t i = 0; i < n; ++i) {
                for (int k = 0; k < ROW_BLOCK; ++k) {
                    y[k][i] = expf(in[k][i] - top[k]);
                    total[k] += y[k][i];
                }
            }
            for (int64_t i = 0; i < n; ++i) {
                for (int k = 0; k < ROW_BLOCK; ++k) {
                    y[k][i] = y[k][i] / total[k] * w[i];
                }
            }
        } else {
            for (int64_t r = r_block; r < rows; ++r) {
                const float* in = x + r * n;
                float* y = out + r * n;
                float top = -INFINITY;
                for (int64_t i = 0; i < n; ++i) {
                    top = in[i] > top ? in[i] : top;
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
    }
}
