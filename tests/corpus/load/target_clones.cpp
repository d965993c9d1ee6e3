// problem: softmax
// status: rejected
// stage: load
// reason: nothing may run before
// target_clones: the compiler makes an indirect function of it, though nobody meant harm.
#include <cmath>
#include <cstdint>

extern "C" __attribute__((target_clones("avx2", "default"))) void kernel_function(const float* x, float* out,
                                                                                   const int64_t* shapes) {
    for (int64_t row = 0; row < shapes[0]; ++row) {
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < shapes[1]; ++i) top = fmaxf(top, x[row * shapes[1] + i]);
        for (int64_t i = 0; i < shapes[1]; ++i) total += expf(x[row * shapes[1] + i] - top);
        for (int64_t i = 0; i < shapes[1]; ++i) out[row * shapes[1] + i] = expf(x[row * shapes[1] + i] - top) / total;
    }
}
