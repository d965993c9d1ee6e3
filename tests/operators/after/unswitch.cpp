#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, const float* w, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    const float scale = 3.0f + rows;
    for (int64_t r = 0; r < rows; ++r) {
        if (rows > 4) {
            for (int64_t i = 0; i < n; ++i) {
                float v = std::pow(x[r * n + i], 3.0f) / std::sqrt(scale) * w[i];
                v = v * 2.0f;
                out[r * n + i] = v;
            }
        } else {
            for (int64_t i = 0; i < n; ++i) {
                float v = std::pow(x[r * n + i], 3.0f) / std::sqrt(scale) * w[i];
                v = v - 1.0f;
                out[r * n + i] = v;
            }
        }
    }
}
