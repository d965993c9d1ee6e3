// problem: softmax
// status: measured
// stage: timing
// reason: screened
// Keeps scratch memory, not results, from call to call: a thread_local buffer that is written before it is read.
#include <cmath>
#include <cstdint>
#include <cstdlib>

static thread_local float* scratch = nullptr;
static thread_local int64_t room = 0;

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    const auto one = [n](const float* in, float* result) {
        if (room < n) {
            free(scratch);
            scratch = (float*)malloc(n * sizeof(float));
            room = n;
        }
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = in[i] > top ? in[i] : top;
        for (int64_t i = 0; i < n; ++i) total += scratch[i] = expf(in[i] - top);
        for (int64_t i = 0; i < n; ++i) result[i] = scratch[i] / total;
    };
#pragma omp parallel for
    for (int64_t row = 0; row < rows; ++row) one(x + row * n, out + row * n);
}
