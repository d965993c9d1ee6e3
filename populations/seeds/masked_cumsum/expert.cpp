// Running sum of x where the mask is set, along the last dimension, block by block: the masked products, then
// a prefix sum of 16 of them in a register by four shifted additions, plus the carry of everything before.
// Written for kernel-evo from the definition. One pass over memory (the products stay in the first-level
// cache). Accuracy: tree sum in a vector, the carries added one after the other in float.
#include <algorithm>
#include <cstdint>
#include <cstring>

constexpr int64_t BLOCK = 1024;  // tune: 64 256 1024 4096

typedef float Vector __attribute__((vector_size(64)));

// Inclusive prefix sum: after step k each lane holds the sum of the 2^k lanes that end at it.
static inline void scan(Vector& v) {
    const Vector zero = {};
    v += __builtin_shufflevector(zero, v, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30);
    v += __builtin_shufflevector(zero, v, 0, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29);
    v += __builtin_shufflevector(zero, v, 0, 0, 0, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27);
    v += __builtin_shufflevector(zero, v, 0, 0, 0, 0, 0, 0, 0, 0, 16, 17, 18, 19, 20, 21, 22, 23);
}

extern "C" void kernel_function(const float* __restrict x, const uint8_t* __restrict mask,
                                float* __restrict out, const int64_t* shapes) {
    const int64_t rows = shapes[0];
    const int64_t n = shapes[1];
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * n;
        const uint8_t* kept = mask + row * n;
        float* result = out + row * n;
        Vector carry = {};
        for (int64_t first = 0; first < n; first += BLOCK) {
            const int64_t count = std::min(BLOCK, n - first);
            alignas(64) float products[BLOCK];
#pragma omp simd simdlen(16)
            for (int64_t i = 0; i < count; ++i) {
                products[i] = in[first + i] * (float)kept[first + i];
            }
            int64_t i = 0;
            for (; i + 16 <= count; i += 16) {
                Vector v;
                memcpy(&v, products + i, sizeof v);
                scan(v);
                const Vector sums = v + carry;
                memcpy(result + first + i, &sums, sizeof sums);
                carry += v[15];
            }
            float running = carry[0];
            for (; i < count; ++i) {
                running += products[i];
                result[first + i] = running;
            }
            carry = Vector{} + running;
        }
    }
}
