// problem: cross_entropy
// status: incorrect
// stage: smoke search_gate
// reason: on case
// log of a sum of exp(x): infinity for large logits.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* logits, const int64_t* targets, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    float loss = 0.0f;
    for (int64_t row = 0; row < rows; ++row) {
        float total = 0.0f;
        for (int64_t i = 0; i < n; ++i) total += expf(logits[row * n + i]);
        loss += logf(total) - logits[row * n + targets[row]];
    }
    out[0] = loss / rows;
}
