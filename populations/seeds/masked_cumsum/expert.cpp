// Running sum of x where the mask is set, along the last dimension: a prefix sum of 16 values in a register by
// four shifted additions, plus the carry of everything before.
// Written for kernel-evo from the definition. One pass over memory. Accuracy: tree sum in a vector, the
// carries added one after the other in float.
#include <cstdint>
#include <cstring>

constexpr int ROW_CHUNK = 8;  // tune: 1 4 8 32

typedef float Vector __attribute__((vector_size(64)));
typedef uint8_t Flags __attribute__((vector_size(16)));

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
#pragma omp parallel for schedule(static, ROW_CHUNK)
    for (int64_t row = 0; row < rows; ++row) {
        const float* in = x + row * n;
        const uint8_t* kept = mask + row * n;
        float* result = out + row * n;
        Vector carry = {};
        int64_t i = 0;
        for (; i + 16 <= n; i += 16) {
            Vector v;
            Flags flags;
            memcpy(&v, in + i, sizeof v);
            memcpy(&flags, kept + i, sizeof flags);
            v *= __builtin_convertvector(flags, Vector);
            scan(v);
            const Vector sums = v + carry;
            memcpy(result + i, &sums, sizeof sums);
            carry += __builtin_shufflevector(v, v, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15);
        }
        float running = carry[0];
        for (; i < n; ++i) {
            running += in[i] * (float)kept[i];
            result[i] = running;
        }
    }
}
