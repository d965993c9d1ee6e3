// problem: softmax
// status: crashed
// stage: smoke
// reason: on case
// Asks for 100 GB of scratch and uses it without looking whether it came.
#include <cmath>
#include <cstdint>
#include <cstdlib>

static void softmax(const float* x, float* out, int64_t rows, int64_t n) {
    for (int64_t row = 0; row < rows; ++row) {
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = fmaxf(top, x[row * n + i]);
        for (int64_t i = 0; i < n; ++i) total += expf(x[row * n + i] - top);
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = expf(x[row * n + i] - top) / total;
    }
}

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    constexpr int64_t count = 25'000'000'000;
    auto* scratch = (volatile float*)malloc(count * sizeof(float));
    for (int64_t i = 0; i < count; i += 1024) scratch[i] = 1.0f;
    softmax(x, out, shapes[0], shapes[1]);
    free((void*)scratch);
}
