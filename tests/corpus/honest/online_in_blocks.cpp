// problem: softmax
// status: measured
// stage: timing
// reason: screened
// One pass for maximum and sum together: blocks of 256 columns, the sum rescaled when the maximum moves.
#include <cmath>
#include <cstdint>

constexpr int64_t BLOCK = 256;

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * n;
        float top = -INFINITY, total = 0.0f;
        for (int64_t start = 0; start < n; start += BLOCK) {
            const int64_t end = start + BLOCK < n ? start + BLOCK : n;
            float block_top = top, part = 0.0f;
            for (int64_t i = start; i < end; ++i) block_top = in[i] > block_top ? in[i] : block_top;
            for (int64_t i = start; i < end; ++i) part += expf(in[i] - block_top);
            total = total * (top == block_top ? 1.0f : expf(top - block_top)) + part;
            top = block_top;
        }
        const float scale = 1.0f / total;
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = expf(in[i] - top) * scale;
    }
}
