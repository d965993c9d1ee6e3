// problem: softmax
// status: crashed
// stage: smoke
// reason: segmentation fault
// Writes through a null pointer.
#include <cstdint>

extern "C" void kernel_function(const float*, float*, const int64_t*) {
    int* volatile nowhere = nullptr;
    *(volatile int*)nowhere = 1;
}
