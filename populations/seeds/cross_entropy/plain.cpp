// Cross-entropy, mean over rows of log(sum(exp(logits))) - logit[target], two passes a row: maximum, sum.
// Written for kernel-evo from the definition. Passes over memory: logits twice. Accuracy: libm's expf, one
// float accumulator a row.
#include <cmath>
#include <cstdint>

extern "C" void kernel_function(const float* logits, const int64_t* targets, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0];
    const int64_t classes = shapes[1];
    float loss = 0.0f;
#pragma omp parallel for reduction(+ : loss)
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = logits + row * classes;
        float top = -INFINITY;
        for (int64_t i = 0; i < classes; ++i) {
            top = in[i] > top ? in[i] : top;
        }
        float total = 0.0f;
        for (int64_t i = 0; i < classes; ++i) {
            total += expf(in[i] - top);
        }
        loss += logf(total) + top - in[targets[row]];
    }
    out[0] = loss / rows;
}
