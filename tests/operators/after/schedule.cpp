#include <cmath>
#include <cstdint>

constexpr int CHUNK = 4;  // tune: 1 2 4 8 16 32

extern "C" void kernel_function(const float* x, const float* w, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
#pragma omp parallel for schedule(dynamic, CHUNK)
    for (int64_t r = 0; r < rows; ++r) {
        const int64_t start = r * n;
        for (int64_t i = 0; i < n; ++i) {
            out[start + i] = x[start + i] * w[i];
        }
    }
}
