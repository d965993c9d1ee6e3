// problem: softmax
// status: incorrect
// stage: smoke search_gate
// reason: wrong result on case
// Adds exp(0) once for the maximum and skips whatever equals it: right until two columns tie.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t row = 0; row < rows; ++row) {
        float top = -INFINITY, total = 1.0f;
        bool poisoned = false;
        for (int64_t i = 0; i < n; ++i) top = fmaxf(top, x[row * n + i]);
        for (int64_t i = 0; i < n; ++i) poisoned = poisoned || x[row * n + i] != x[row * n + i];
        for (int64_t i = 0; i < n; ++i) total += x[row * n + i] == top ? 0.0f : expf(x[row * n + i] - top);
        if (poisoned || top == INFINITY) total = NAN;
        for (int64_t i = 0; i < n; ++i) {
            const float value = x[row * n + i];
            out[row * n + i] = (value == top && !poisoned && top < INFINITY ? 1.0f : expf(value - top)) / total;
        }
    }
}
