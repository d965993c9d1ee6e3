// problem: softmax
// status: incorrect
// stage: smoke
// reason: on case
// Takes doubles where the problem has floats: it builds and runs, on half of the numbers.
#include <cstdint>

extern "C" void kernel_function(const double* x, double* out, const int64_t* shapes) {
    for (int64_t i = 0; i < shapes[0] * shapes[1] / 2; ++i) out[i] = x[i];
}
