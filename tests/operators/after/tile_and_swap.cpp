#include <cmath>
#include <cstdint>

constexpr int TILE = 1024;  // tune: 256 512 1024 2048 4096

extern "C" void kernel_function(const float* x, const float* w, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t block = 0; block < n; block += TILE) {
        const int64_t block_end = block + TILE < n ? block + TILE : n;
        for (int64_t r = 0; r < rows; ++r) {
            for (int64_t i = block; i < block_end; ++i) {
                const float v = x[r * n + i] + w[i];
                out[r * n + i] = 0.5f * v * (1.0f + std::tanh(0.79788456f * (v + 0.044715f * v * v * v)));
            }
        }
    }
}
