// problem: rms_norm
// status: rejected
// stage: admit
// reason: takes 7 arguments, this problem passes 6
// Wants an argument that nobody passes.
#include <cstdint>

extern "C" void kernel_function(const float* x, const float* residual, const float* weight, float* out, float* sum,
                                const int64_t* shapes, float epsilon) {
    out[0] = x[0] + residual[0] + weight[0] + sum[0] + shapes[0] + epsilon;
}
