// problem: softmax
// status: rejected
// stage: load
// reason: static initialiser
// A global object with a constructor that computes something: the table that it wants must be constexpr.
#include <cmath>
#include <cstdint>

struct Table {
    float values[256];
    Table() {
        for (int i = 0; i < 256; ++i) values[i] = expf(-(float)i);
    }
};

static const Table table;

extern "C" void kernel_function(const float* x, float* out, const int64_t* shapes) {
    for (int64_t i = 0; i < shapes[0] * shapes[1]; ++i) out[i] = table.values[(int64_t)fabsf(x[i]) & 255];
}
