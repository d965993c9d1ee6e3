// problem: softmax
// status: incorrect
// stage: smoke search_gate
// reason: wrong result on case
// Both threads add to one sum without any synchronisation; updates get lost.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * n;
        float top = -INFINITY;
        volatile float total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = fmaxf(top, in[i]);
#pragma omp parallel for num_threads(2) schedule(static, 1)
        for (int64_t i = 0; i < n; ++i) total = total + expf(in[i] - top);
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = expf(in[i] - top) / total;
    }
}
