// problem: cross_entropy
// status: incorrect
// stage: smoke
// reason: wrong result on case
// A static accumulator that goes on from call to call: right the first time.
#include <cmath>
#include <cstdint>

static float loss = 0.0f;

extern "C" void kernel_function(const float* logits, const int64_t* targets, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = logits + row * n;
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = fmaxf(top, in[i]);
        for (int64_t i = 0; i < n; ++i) total += expf(in[i] - top);
        loss += logf(total) + top - in[targets[row]];
    }
    out[0] = loss / rows;
}
