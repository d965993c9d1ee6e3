#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, const float* w, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    const int64_t count = rows * n;
    // first the product ...
    #pragma omp parallel
    {
        #pragma omp for schedule(static)
        for (int64_t i = 0; i < count; ++i) {
            out[i] = x[i] * w[i % n];
        }
        // ... then its square
        #pragma omp for schedule(static)
        for (int64_t j = 0; j < count; ++j) {
            out[j] = out[j] * out[j];
        }
    }
}
