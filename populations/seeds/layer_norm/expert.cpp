// Layer norm with gain and bias over the last dimension: moments row by row, then ROW_BLOCK rows normalised
// together, so that gain and bias are read once for all of them.
// Written for kernel-evo from the definition. Passes over memory: input once and output once (the two other
// passes find the rows in cache). Accuracy: the second pass corrects the mean and the variance for what the
// first one rounded away; one sum a lane.
#include <cmath>
#include <cstdint>

constexpr int LANES = 64;  // tune: 8 16 32 64
constexpr int ROW_BLOCK = 4;  // tune: 1 2 4 8

struct Moments {
    float mean;
    float inverse;
};

static inline Moments moments(const float* in, int64_t n) {
    float total = 0.0f;
#pragma omp simd simdlen(LANES) reduction(+ : total)
    for (int64_t i = 0; i < n; ++i) {
        total += in[i];
    }
    const float rough = total / n;
    float rest = 0.0f;
    float squares = 0.0f;
#pragma omp simd simdlen(LANES) reduction(+ : rest, squares)
    for (int64_t i = 0; i < n; ++i) {
        const float centred = in[i] - rough;
        rest += centred;
        squares += centred * centred;
    }
    const float correction = rest / n;
    const float variance = squares / n - correction * correction;
    return {rough + correction, 1.0f / sqrtf(variance + 1e-5f)};
}

template <int ROWS>
static inline void normalise(const float* __restrict in, const float* __restrict weight,
                             const float* __restrict bias, float* __restrict out, int64_t n) {
    Moments row[ROWS];
    for (int r = 0; r < ROWS; ++r) {
        row[r] = moments(in + r * n, n);
    }
#pragma omp simd simdlen(16)
    for (int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; ++r) {
            out[r * n + i] = (in[r * n + i] - row[r].mean) * row[r].inverse * weight[i] + bias[i];
        }
    }
}

extern "C" void kernel_function(const float* __restrict x, const float* __restrict weight,
                                const float* __restrict bias, float* __restrict out, const int64_t* shapes) {
    const int64_t rows = shapes[0];
    const int64_t n = shapes[1];
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < rows; first += ROW_BLOCK) {
        if (first + ROW_BLOCK <= rows) {
            normalise<ROW_BLOCK>(x + first * n, weight, bias, out + first * n, n);
            continue;
        }
        for (int64_t row = first; row < rows; ++row) {
            normalise<1>(x + row * n, weight, bias, out + row * n, n);
        }
    }
}
