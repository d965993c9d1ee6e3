// problem: softmax
// status: measured
// stage: timing
// reason: screened
// AVX-512 intrinsics where the machine has them, plain loops elsewhere; masked tails.
#include <cmath>
#include <cstdint>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

static float maximum(const float* x, int64_t n) {
    float top = -INFINITY;
    int64_t i = 0;
#if defined(__AVX512F__)
    __m512 best = _mm512_set1_ps(-INFINITY);
    for (; i < n; i += 16) {
        const __mmask16 live = n - i >= 16 ? 0xffff : (__mmask16)((1u << (n - i)) - 1);
        const __m512 v = _mm512_mask_loadu_ps(_mm512_set1_ps(-INFINITY), live, x + i);
        best = _mm512_max_ps(v, best);
    }
    return _mm512_reduce_max_ps(best);
#endif
    for (; i < n; ++i) top = x[i] > top ? x[i] : top;
    return top;
}

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
#pragma omp parallel for
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * n;
        float* result = out + row * n;
        const float top = maximum(in, n);
        float total = 0.0f;
#pragma omp simd reduction(+ : total)
        for (int64_t i = 0; i < n; ++i) total += result[i] = expf(in[i] - top);
        const float scale = 1.0f / total;
        for (int64_t i = 0; i < n; ++i) result[i] *= scale;
    }
}
