"""The hardware floor: below it a claimed time is not believed.

Compulsory bytes at the best bandwidth that trusted probes (copy, read, write) reach at the same size, under
the same policy, through the same runner and clock, and half as much again; or FLOPs at the rate of fused
multiply-adds.
"""

from __future__ import annotations

from fitness.card import Case, TensorSpec
from populations.calibration import Floor

ENTRY = 'extern "C" void kernel_function(const float* a, float* out, const int64_t* shapes)'
# name → (body, share of a set's bytes that is input)
PROBES = {
    "copy": (
        "#pragma omp parallel for simd schedule(static)\n"
        "    for (int64_t i = 0; i < shapes[0]; ++i) out[i] = a[i];",
        0.5,
    ),
    "read": (
        "float total = 0;\n"
        "#pragma omp parallel for simd schedule(static) reduction(+ : total)\n"
        "    for (int64_t i = 0; i < shapes[0]; ++i) total += a[i];\n"
        "    out[0] = total;",
        1.0,
    ),
    "write": (
        "const float value = a[0];\n"
        "#pragma omp parallel for simd schedule(static)\n"
        "    for (int64_t i = 0; i < shapes[1]; ++i) out[i] = value;",
        0.0,
    ),
    "stream": (  # stores past the caches, which need not read what they overwrite
        "const int64_t whole = shapes[1] / 4 * 4;\n"
        "#ifdef __SSE__\n"
        "    const __m128 value = _mm_set1_ps(a[0]);\n"
        "#pragma omp parallel for schedule(static)\n"
        "    for (int64_t i = 0; i < whole; i += 4) _mm_stream_ps(out + i, value);\n"
        "#pragma omp parallel\n"
        "    _mm_sfence();\n"
        "#else\n"
        "    for (int64_t i = 0; i < whole; ++i) out[i] = a[0];\n"
        "#endif",
        0.0,
    ),
}
ROOM = 1.5  # memory shared with other machines was seen a quarter faster than when the probes ran
FMA_STEPS, FMA_LANES = 1 << 12, 256
FMA_FLOPS = 2 * FMA_STEPS * FMA_LANES  # of one thread in one call
FMA_PROBE = f"""#include <cstdint>
{ENTRY} {{
    float seed = a[0];
    #pragma omp parallel
    {{
        float acc[{FMA_LANES}];
        for (int l = 0; l < {FMA_LANES}; ++l) acc[l] = seed + l;
        for (int64_t i = 0; i < {FMA_STEPS}; ++i) {{
            #pragma omp simd
            for (int l = 0; l < {FMA_LANES}; ++l) acc[l] = acc[l] * 0.999f + seed;
        }}
        float total = 0;
        for (int l = 0; l < {FMA_LANES}; ++l) total += acc[l];
        #pragma omp atomic
        out[0] += total;
    }}
}}
"""


def probe_source(name: str) -> str:
    """C++ source of a bandwidth probe, or of the "fma" probe."""
    if name == "fma":
        return FMA_PROBE
    head = "#include <cstdint>\n#ifdef __SSE__\n#include <immintrin.h>\n#endif\n"
    return f"{head}{ENTRY} {{\n    {PROBES[name][0]}\n}}\n"


def probe_arguments(name: str, nbytes: int) -> tuple[TensorSpec, TensorSpec]:
    """Input and output of a probe that moves ``nbytes`` in all."""
    share = PROBES[name][1] if name in PROBES else 0.5
    read = max(int(nbytes * share) // 4, 1)
    written = max(int(nbytes * (1 - share)) // 4, 1)
    return TensorSpec("a", (read,), "float32"), TensorSpec("out", (written,), "float32")


def floor(case: Case, policy: str, probe_seconds: dict[str, float], flops_per_s: float) -> Floor:
    """The floor of one case under one policy.

    Args:
        case: gives compulsory bytes and FLOPs.
        policy: "warm" or "cold".
        probe_seconds: time of each of ``PROBES`` at the size of the case's argument set.
        flops_per_s: measured peak of all cores.
    """
    set_bytes = sum(spec.nbytes for spec in case.arguments)
    bandwidth = max(set_bytes / seconds for seconds in probe_seconds.values())
    seconds = max(case.bytes / (ROOM * bandwidth), (case.flops or 0) / flops_per_s)
    return Floor(case.name, policy, seconds, bandwidth / 1e9)
