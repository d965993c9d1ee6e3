#include <cmath>
#include <cstdint>

constexpr int PREFETCH_BLOCK = 256;  // tune: 64 256 1024
constexpr int PREFETCH_AHEAD = 512;  // tune: 128 256 512 1024 2048

extern "C" void kernel_function(const float* x, const float* w, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
    for (int64_t r = 0; r < rows; ++r) {
        float total = 0.0f;
        for (int64_t i_block = 0; i_block < n; i_block += PREFETCH_BLOCK) {
            for (int64_t line = i_block; line < i_block + PREFETCH_BLOCK; line += 16) __builtin_prefetch(w + line + PREFETCH_AHEAD);
            const int64_t i_end = i_block + PREFETCH_BLOCK < n ? i_block + PREFETCH_BLOCK : n;
            for (int64_t i = i_block; i < i_end; ++i) {
                const float v = x[r * n + i] * w[i];  // may be masked
                total += v;
                out[r * n + i] = total;
            }
        }
    }
}
