// Depthwise 3x3 convolution (one filter a channel), stride 1, no padding: the loops of the definition.
// Written for kernel-evo from the definition. Each input is read nine times (from cache), the output
// written once. Accuracy: nine products summed in float.
#include <cstdint>

extern "C" void kernel_function(const float* x, const float* weight, float* out, const int64_t* shapes) {
    const int64_t planes = shapes[0] * shapes[1];
    const int64_t channels = shapes[1];
    const int64_t height = shapes[2];
    const int64_t width = shapes[3];
#pragma omp parallel for
    for (int64_t plane = 0; plane < planes; ++plane) {
        for (int64_t i = 0; i < height - 2; ++i) {
            for (int64_t j = 0; j < width - 2; ++j) {
                float total = 0.0f;
                for (int64_t a = 0; a < 3; ++a) {
                    for (int64_t b = 0; b < 3; ++b) {
                        total += x[(plane * height + i + a) * width + j + b] * weight[plane % channels * 9 + a * 3 + b];
                    }
                }
                out[(plane * (height - 2) + i) * (width - 2) + j] = total;
            }
        }
    }
}
