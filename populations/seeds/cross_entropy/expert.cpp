// Cross-entropy, mean over rows of log(sum(exp(logits))) - logit[target], online over blocks of a row: the
// running sum is rescaled when a block raises the maximum.
// Written for kernel-evo from the definition. Passes over memory: logits once (the second look at a block
// finds it in the first-level cache). Accuracy: exp is a degree-5 polynomial in base 2, relative error below
// (3 + |x - max| / 4) * 2^-24, never below 2^-126; one sum a lane, losses added in double.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

constexpr int LANES = 16;  // tune: 8 16 32
constexpr int64_t BLOCK = 4096;  // tune: 1024 2048 4096 8192

// exp(x) for x <= 0; NaN for NaN.
static inline float exp_nonpositive(float x) {
    const float bounded = x < -87.0f ? -87.0f : x;
    const float whole = rintf(bounded * 1.44269504f);
    const float r = __builtin_fmaf(bounded, 1.44269504f, -whole);
    float p = 1.32647273e-3f;
    p = __builtin_fmaf(p, r, 9.67151299e-3f);
    p = __builtin_fmaf(p, r, 5.55073359e-2f);
    p = __builtin_fmaf(p, r, 2.40222424e-1f);
    p = __builtin_fmaf(p, r, 6.93147004e-1f);
    p = __builtin_fmaf(p, r, 1.0f);
    int32_t bits;
    memcpy(&bits, &p, sizeof bits);
    bits += (int32_t)whole * (1 << 23);
    memcpy(&p, &bits, sizeof p);
    return p;
}

extern "C" void kernel_function(const float* __restrict logits, const int64_t* __restrict targets,
                                float* __restrict out, const int64_t* shapes) {
    const int64_t rows = shapes[0];
    const int64_t classes = shapes[1];
    double loss = 0.0;
#pragma omp parallel for schedule(static) reduction(+ : loss)
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = logits + row * classes;
        float top = -INFINITY;
        float total = 0.0f;
        for (int64_t first = 0; first < classes; first += BLOCK) {
            const int64_t last = std::min(first + BLOCK, classes);
            float raised = top;
#pragma omp simd simdlen(LANES) reduction(max : raised)
            for (int64_t i = first; i < last; ++i) {
                raised = in[i] > raised ? in[i] : raised;
            }
            const float shift = raised == -INFINITY ? 0.0f : raised;
            float added = 0.0f;
#pragma omp simd simdlen(LANES) reduction(+ : added)
            for (int64_t i = first; i < last; ++i) {
                added += exp_nonpositive(in[i] - shift);
            }
            total = total * exp_nonpositive(top - shift) + added;
            top = raised;
        }
        loss += log((double)total) + ((double)top - in[targets[row]]);
    }
    out[0] = (float)(loss / rows);
}
