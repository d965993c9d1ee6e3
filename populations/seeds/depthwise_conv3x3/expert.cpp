// Depthwise 3x3 convolution (one filter a channel), stride 1, no padding: a column of vectors holds ROW_BLOCK
// output rows in registers while the input rows below it are read once each, shifted by 0, 1 and 2.
// Written for kernel-evo from the definition. One pass over memory; (ROW_BLOCK + 2) / ROW_BLOCK reads from
// cache. The last vector of a row overlaps the one before it. Accuracy: nine products summed in float.
#include <algorithm>
#include <cstdint>

constexpr int LANES = 16;  // tune: 8 16
constexpr int ROW_BLOCK = 4;  // tune: 1 2 3 4 6

typedef float Vector __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

template <int ROWS>
static inline void convolve_rows(const float* in, const float* taps, float* out, int64_t width) {
    const int64_t out_width = width - 2;
    if (out_width < LANES) {
        for (int64_t i = 0; i < ROWS; ++i) {
            for (int64_t j = 0; j < out_width; ++j) {
                float total = 0.0f;
                for (int64_t tap = 0; tap < 9; ++tap) {
                    total += in[(i + tap / 3) * width + j + tap % 3] * taps[tap];
                }
                out[i * out_width + j] = total;
            }
        }
        return;
    }
    for (int64_t start = 0; start < out_width; start += LANES) {
        const int64_t j = std::min(start, out_width - LANES);
        Vector totals[ROWS] = {};
#pragma GCC unroll 8
        for (int r = 0; r < ROWS + 2; ++r) {
            const float* line = in + r * width + j;
            const Vector left = *(const Vector*)line;
            const Vector middle = *(const Vector*)(line + 1);
            const Vector right = *(const Vector*)(line + 2);
#pragma GCC unroll 3
            for (int a = 0; a < 3; ++a) {
                if (r - a >= 0 && r - a < ROWS) {
                    totals[r - a] += left * taps[a * 3] + middle * taps[a * 3 + 1] + right * taps[a * 3 + 2];
                }
            }
        }
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; ++i) {
            *(Vector*)(out + i * out_width + j) = totals[i];
        }
    }
}

extern "C" void kernel_function(const float* __restrict x, const float* __restrict weight,
                                float* __restrict out, const int64_t* shapes) {
    const int64_t planes = shapes[0] * shapes[1];
    const int64_t channels = shapes[1];
    const int64_t height = shapes[2];
    const int64_t width = shapes[3];
    const int64_t out_height = height - 2;
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t plane = 0; plane < planes; ++plane) {
        for (int64_t first = 0; first < out_height; first += ROW_BLOCK) {
            const float* in = x + plane * height * width;
            float* result = out + plane * out_height * (width - 2);
            const float* taps = weight + plane % channels * 9;
            if (first + ROW_BLOCK <= out_height) {
                convolve_rows<ROW_BLOCK>(in + first * width, taps, result + first * (width - 2), width);
                continue;
            }
            for (int64_t i = first; i < out_height; ++i) {
                convolve_rows<1>(in + i * width, taps, result + i * (width - 2), width);
            }
        }
    }
}
