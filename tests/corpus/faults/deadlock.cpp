// problem: softmax
// status: timed_out
// stage: smoke
// reason: on case
// Takes the same lock twice.
#include <cstdint>
#include <omp.h>

extern "C" void kernel_function(const float*, float* out, const int64_t*) {
    omp_lock_t lock;
    omp_init_lock(&lock);
    omp_set_lock(&lock);
    omp_set_lock(&lock);
    out[0] = 0.0f;
}
