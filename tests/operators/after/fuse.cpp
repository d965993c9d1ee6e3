#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, const float* w, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    const int64_t count = rows * n;
    // first the product ...
    #pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; ++i) {
        out[i] = x[i] * w[i % n];
        out[i] = out[i] * out[i];
    }
}
