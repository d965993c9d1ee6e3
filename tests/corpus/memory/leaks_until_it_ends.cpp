// problem: softmax
// status: crashed
// stage: smoke
// reason: on case
// Allocates 64 MB after 64 MB, touches every page, and never frees.
#include <cstdint>
#include <cstdlib>

extern "C" void kernel_function(const float*, float*, const int64_t*) {
    for (;;) {
        auto* block = (volatile char*)malloc(64 << 20);
        for (int64_t i = 0; i < 64 << 20; i += 4096) block[i] = 1;
    }
}
