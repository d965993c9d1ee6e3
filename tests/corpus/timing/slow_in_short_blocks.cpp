// problem: softmax
// status: correct measured
// stage: timing
// reason:
// Finds out which timed blocks are the short ones of a pair, and works nearly twice as long in them: the difference
// between a long block and a short one then says little. It must not come out faster than its plain twin, own_clock.
#include <cmath>
#include <cstdint>

static const float* first = nullptr;
static int64_t launches = 0, least = 0, most = 0;
static bool is_short = false;

static void softmax(const float* x, float* out, int64_t rows, int64_t n) {
    for (int64_t row = 0; row < rows; ++row) {
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < n; ++i) top = fmaxf(top, x[row * n + i]);
        for (int64_t i = 0; i < n; ++i) total += expf(x[row * n + i] - top);
        for (int64_t i = 0; i < n; ++i) out[row * n + i] = expf(x[row * n + i] - top) / total;
    }
}

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    if (first == nullptr) first = x;
    if (x == first && launches > 0) {
        least = least == 0 || launches < least ? launches : least;
        most = launches > most ? launches : most;
        is_short = least < most && launches == most;
        launches = 0;
    }
    ++launches;
    softmax(x, out, shapes[0], shapes[1]);
    if (is_short) softmax(x, out, shapes[0] * 4 / 5, shapes[1]);
}
