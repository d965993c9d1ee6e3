// problem: softmax
// status: measured
// stage: timing
// reason: screened
// Dynamic schedule; exponentials wait in a vector of the thread's own, which grows as rows do.
#include <cmath>
#include <cstdint>
#include <vector>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
#pragma omp parallel
    {
        std::vector<float> scratch(n);
#pragma omp for schedule(dynamic, 4)
        for (int64_t row = 0; row < rows; ++row) {
            const float* in = x + row * n;
            float top = -INFINITY, total = 0.0f;
            for (int64_t i = 0; i < n; ++i) top = in[i] > top ? in[i] : top;
            for (int64_t i = 0; i < n; ++i) total += scratch[i] = expf(in[i] - top);
            for (int64_t i = 0; i < n; ++i) out[row * n + i] = scratch[i] / total;
        }
    }
}
