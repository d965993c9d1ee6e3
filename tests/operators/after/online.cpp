#include <cmath>
#include <cstdint>

constexpr int ONLINE_BLOCK = 2048;  // tune: 512 1024 2048 4096 8192

extern "C" void kernel_function(const float* x, const float* w, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * n;
        float top = in[0];
        float total = 0.0f;
        for (int64_t block = 0; block < n; block += ONLINE_BLOCK) {
            const int64_t block_end = block + ONLINE_BLOCK < n ? block + ONLINE_BLOCK : n;
            const auto before = top;
            for (int64_t i = block; i < block_end; ++i) {
                top = std::fmax(top, in[i]);
            }
            if (top == -INFINITY) continue;
            if (top != before) total *= std::exp(before - top);
            for (int64_t i = block; i < block_end; ++i) {
                total += std::exp(in[i] - top);
            }
        }
        for (int64_t i = 0; i < n; ++i) out[r * n + i] = w[i] * std::exp(in[i] - top) / total;
    }
}
