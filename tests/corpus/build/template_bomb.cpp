// problem: softmax
// status: uncompilable
// stage: build
// reason: template instantiation depth
// A template that needs itself, without an end.
#include <cstdint>

template <int64_t N> struct Bomb {
    static constexpr int64_t value = Bomb<N + 1>::value + 1;
};

extern "C" void kernel_function(const float*, float* out, const int64_t*) { out[0] = (float)Bomb<0>::value; }
