#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, const float* w, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    #pragma omp parallel for
    for (int64_t r_block = 0; r_block < rows; r_block += 2) {
        if (r_block + 2 <= rows) {
            const float* in_0 = x + r_block * n;
            const float* in_1 = x + (r_block + 1) * n;
            float* y_0 = out + r_block * n;
            float* y_1 = out + (r_block + 1) * n;
            float top_0 = -INFINITY;
            float top_1 = -INFINITY;
            for (int64_t i = 0; i < n; ++i) {
                top_0 = in_0[i] > top_0 ? in_0[i] : top_0;
                top_1 = in_1[i] > top_1 ? in_1[i] : top_1;
            }
            float total_0 = 0.0f;
            float total_1 = 0.0f;
            for (int64_t i = 0; i < n; ++i) {
                y_0[i] = expf(in_0[i] - top_0);
                total_0 += y_0[i];
                y_1[i] = expf(in_1[i] - top_1);
                total_1 += y_1[i];
            }
            for (int64_t i = 0; i < n; ++i) {
                y_0[i] = y_0[i] / total_0 * w[i];
                y_1[i] = y_1[i] / total_1 * w[i];
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
