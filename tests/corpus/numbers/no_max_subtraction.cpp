// problem: softmax
// status: incorrect
// stage: smoke search_gate
// reason: on case
// Takes exp(x) as it is: infinity over infinity as soon as a value passes 88.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t row = 0; row < rows; ++row) {
        float total = 0.0f;
        for (int64_t i = 0; i < n; ++i) total += expf(x[row * n + i]);
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = expf(x[row * n + i]) / total;
    }
}
