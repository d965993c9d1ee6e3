// problem: softmax
// status: incorrect
// stage: smoke search_gate
// reason: wrong result on case
// One parallel region with nowait: a thread divides before the other has finished its part of the sum.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * n;
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = fmaxf(top, in[i]);
#pragma omp parallel num_threads(2)
        {
            float part = 0.0f;
#pragma omp for nowait schedule(static)
            for (int64_t i = 0; i < n; ++i) part += expf(in[i] - top);
#pragma omp atomic
            total += part;
#pragma omp for nowait schedule(static)
            for (int64_t i = 0; i < n; ++i) out[row * n + i] = expf(in[i] - top) / total;
        }
    }
}
