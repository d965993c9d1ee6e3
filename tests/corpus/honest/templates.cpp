// problem: softmax
// status: measured
// stage: timing
// reason: screened
// Passes over a row as templates over what they do, unrolled by a constant.
#include <algorithm>
#include <cmath>
#include <cstdint>

constexpr int UNROLL = 8;  // tune: 4 8 16

template <typename Each> static void along(int64_t n, Each each) {
    int64_t i = 0;
    for (; i + UNROLL <= n; i += UNROLL) {
        for (int k = 0; k < UNROLL; ++k) each(i + k, k);
    }
    for (; i < n; ++i) each(i, (int)(i % UNROLL));
}

template <typename T> struct Row {
    const T* in;
    T* out;
    int64_t n;

    void softmax() const {
        T tops[UNROLL], totals[UNROLL] = {};
        std::fill(tops, tops + UNROLL, -INFINITY);
        along(n, [&](int64_t i, int k) { tops[k] = in[i] > tops[k] ? in[i] : tops[k]; });
        const T top = *std::max_element(tops, tops + UNROLL);
        along(n, [&](int64_t i, int k) { totals[k] += out[i] = std::exp(in[i] - top); });
        T total = 0;
        for (T part : totals) total += part;
        along(n, [&](int64_t i, int) { out[i] /= total; });
    }
};

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    const int64_t rows = shapes[0], n = shapes[1];
#pragma omp parallel for
    for (int64_t row = 0; row < rows; ++row) Row<float>{x + row * n, out + row * n, n}.softmax();
}
