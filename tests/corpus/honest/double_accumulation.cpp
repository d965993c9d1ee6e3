// problem: softmax
// status: measured
// stage: timing
// reason: screened
// Sums in double; a local array of 512 floats as staging.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
#pragma omp parallel for
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * n;
        float stage[512];
        float top = -INFINITY;
        double total = 0.0;
        for (int64_t i = 0; i < n; ++i) top = in[i] > top ? in[i] : top;
        for (int64_t start = 0; start < n; start += 512) {
            const int64_t width = n - start < 512 ? n - start : 512;
            for (int64_t i = 0; i < width; ++i) stage[i] = expf(in[start + i] - top);
            for (int64_t i = 0; i < width; ++i) total += stage[i];
            for (int64_t i = 0; i < width; ++i) out[row * n + start + i] = stage[i];
        }
        const float scale = (float)(1.0 / total);
        for (int64_t i = 0; i < n; ++i) out[row * n + i] *= scale;
    }
}
