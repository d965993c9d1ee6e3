"""What rewrites for Triton must leave alone; adopting foreign kernels; crossovers and the tuner."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from operators import (
    CrossFunctions,
    CrossNumbers,
    Tuner,
    builtin,
    configuration,
    neighbours,
    space,
    with_values,
)
from operators.testing import BRIEF
from operators.triton import STRUCTURAL, adopt
from operators.triton.cross import CROSSINGS
from operators.triton.syntax import well_formed
from populations.kernel import Kernel

EXAMPLES = Path(__file__).parent / "operators" / "triton" / "before"
REWRITES = {rewrite.name: rewrite for rewrite in STRUCTURAL}
CROSS = {crossing.name: crossing for crossing in CROSSINGS}
HEAD = "import torch\nimport triton\nimport triton.language as tl\n"
HOST = """

def kernel_function(x):
    out = torch.empty_like(x)
    rows, n = x.shape
    kernel[(rows,)](x, out, n, BLOCK=1024)
    return out
"""


def text(name: str) -> str:
    return (EXAMPLES / f"{name}.py").read_text()


def written(body: str) -> str:
    """A source whose kernel has these lines."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{HEAD}\n\n@triton.jit\ndef kernel(x, out, n, BLOCK: tl.constexpr):\n{lines}{HOST}"


@pytest.mark.parametrize(
    ("name", "body"),
    [
        # what iterations hand on is no plain sum
        ("reverse_pass", "c = 0.0\nfor i in range(0, n, BLOCK):\n    c += 1.0\nfor i in range(0, n, BLOCK):\n"
         "    c = c * 0.5 + tl.sum(tl.load(x + i + tl.arange(0, BLOCK)), axis=0)\ntl.store(out, c)"),
        # the second loop needs the first one's result
        ("fuse_loops", "a = 0.0\nb = 0.0\nfor i in range(0, n):\n    a += tl.load(x + i)\n"
         "for i in range(0, n):\n    b += tl.load(x + i) * a\ntl.store(out, b)"),
        # x is no longer what was loaded
        ("fuse_loops", "a = 0.0\nb = 0.0\nfor i in range(0, n):\n    v = tl.load(x + i)\n    v = v * 2.0\n"
         "    a += v\nfor i in range(0, n):\n    v = tl.load(x + i)\n    b += v\ntl.store(out, a + b)"),
        # the store may change what is read again
        ("keep_value", "v = tl.load(x)\ntl.store(x, v + 1.0)\nw = tl.load(x)\ntl.store(out, v + w)"),
        ("hoist_load", "v = tl.load(x + tl.arange(0, BLOCK))\ns = tl.sum(v, axis=0)\ntl.store(x + n, s)\n"
         "w = tl.load(x + n)\ntl.store(out, w)"),
        # the loop's halves need each other
        ("split_loop", "a = 0.0\nb = 0.0\nfor i in range(0, n):\n    a += tl.load(x + i)\n    b += a\n"
         "tl.store(out, b)"),
        # tiles that overlap, or that do not begin at zero
        ("even_mask", "i = tl.program_id(0) * BLOCK + 1 + tl.arange(0, BLOCK)\n"
         "tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)"),
        ("peel_last", "for s in range(1, n, BLOCK):\n    i = s + tl.arange(0, BLOCK)\n"
         "    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)"),
        # an early return would leave the loop over tiles
        ("persistent", "row = tl.program_id(0)\nif row > n:\n    return\ntl.store(out + row, 1.0)"),
        # the loop's sum is read inside of it
        ("vector_accumulator", "s = 0.0\nfor i in range(0, n, BLOCK):\n"
         "    s += tl.sum(tl.load(x + i + tl.arange(0, BLOCK)), axis=0)\n    tl.store(out + i, s)"),
        ("empty_output", "tl.atomic_add(out, tl.load(x))"),
        ("online_softmax", "m = 0.0\ns = 0.0\nfor i in range(0, n, BLOCK):\n    v = tl.load(x + i)\n"
         "    m = tl.maximum(m, tl.max(v, axis=0))\nfor i in range(0, n, BLOCK):\n    v = tl.load(out + i)\n"
         "    s += tl.sum(tl.exp(v - m), axis=0)\ntl.store(out, s)"),
        ("reverse_programs", "for i in range(0, n):\n    tl.store(out + i, tl.load(x + i))"),
    ],
)  # fmt: skip
def test_a_rewrite_that_would_change_the_meaning_has_no_child(name: str, body: str) -> None:
    source = written(body)
    assert well_formed(source)
    assert not list(REWRITES[name].children(source, BRIEF))


def test_a_sum_of_a_mask_that_other_code_uses_stays_right_without_it() -> None:
    source = written(
        "i = tl.arange(0, BLOCK)\ninside = i < n\nv = tl.load(x + i, mask=inside, other=0.0)\n"
        "tl.store(out + i, tl.where(inside, v, 1.0), mask=inside)"
    )
    child = next(REWRITES["even_mask"].children(source, BRIEF))
    assert "inside = (i < n) | EVEN" in child
    assert "EVEN=n == 1024" in child


def test_an_access_never_gets_two_hints_to_the_caches_which_the_hardware_refuses() -> None:
    source = text("softmax").replace("mask=mask)", 'mask=mask, cache_modifier=".cs")')
    source = source.replace('other=float("-inf"))', 'other=float("-inf"), eviction_policy="evict_first")')
    for name in ("evict_first", "evict_last", "cache_loads", "stream_stores"):
        for child in REWRITES[name].children(source, BRIEF):
            assert child.count("eviction_policy") + child.count("cache_modifier") == 2


def test_autotune_becomes_config_and_space() -> None:
    child = adopt(text("autotuned"))
    assert space(child, "triton") == {"BLOCK": (64, (64, 128)), "num_warps": (4, (4, 8))}
    assert "autotune" not in child
    assert 'twice_kernel[grid](x, out, size, BLOCK=CONFIG["BLOCK"], num_warps=CONFIG["num_warps"])' in child


def test_configurations_written_as_comprehensions_are_read() -> None:
    start, end = text("autotuned").index("    configs="), text("autotuned").index("    key=")
    listed = "    configs=[triton.Config({'BLOCK': b * 2}, num_warps=w) for b in [32, 64] for w in WARPS],\n"
    source = text("autotuned")[:start] + listed + text("autotuned")[end:]
    source = source.replace("\n\n\n@triton.autotune", "\n\nWARPS = (2, 4)\n\n\n@triton.autotune")
    assert space(adopt(source), "triton") == {"BLOCK": (64, (64, 128)), "num_warps": (2, (2, 4))}


@pytest.mark.parametrize("configs", ["make_configs()", "[c for c in ALL if fits(c)]", "[]"])
def test_what_cannot_be_read_off_is_left_as_it_is(configs: str) -> None:
    start, end = text("autotuned").index("    configs="), text("autotuned").index("    key=")
    source = f"{text('autotuned')[:start]}    configs={configs},\n{text('autotuned')[end:]}"
    assert adopt(source) == source


def test_adopting_what_is_no_python_gives_it_back() -> None:
    assert adopt("def (:\n") == "def (:\n"


def test_the_numbers_of_config_are_read_and_set_in_place() -> None:
    source = text("softmax_long")
    assert space(source, "triton") == {"BLOCK": (32, (16, 32, 64)), "num_warps": (4, (2, 4, 8))}
    child = with_values(source, {"BLOCK": 64, "num_warps": 8}, "triton")
    assert configuration(child, "triton") == (64, 8)
    assert child.replace('"BLOCK": 64', '"BLOCK": 32').replace('"num_warps": 8', '"num_warps": 4') == source


def test_a_value_without_a_list_in_space_is_no_tuning_constant() -> None:
    assert space('CONFIG = {"A": 1, "B": 2, "C": "x"}\nSPACE = {"A": [1, 2], "C": ["x"]}\n', "triton") == {
        "A": (1, (1, 2))
    }
    assert space("CONFIG = {\n", "triton") == {}


def test_neighbours_are_one_step_away() -> None:
    found = {configuration(child, "triton") for child in neighbours(text("softmax_long"), "triton")}
    assert found == {(16, 4), (64, 4), (32, 2), (32, 8)}


def test_the_tuner_climbs_to_the_best_configuration_and_stops() -> None:
    tuner, results = (
        Tuner(text("softmax_long"), limit=12, language="triton"),
        dict[tuple[int, ...], float | None](),
    )
    while (source := tuner.next(results)) is not None:
        block, warps = configuration(source, "triton")
        results[block, warps] = float(block) if warps != 8 else None
    assert tuner.best(results) == (64, 2)
    assert len(results) < 9


def test_numbers_of_another_parent_are_taken_where_they_are_allowed() -> None:
    first = Kernel(text("softmax_long"), "triton")
    second = Kernel(first.source.replace('"BLOCK": 32', '"BLOCK": 64'), "triton")
    child = CrossNumbers()([first, second], BRIEF, Random(0))
    assert child is not None and child.kernel.source == second.source


def test_a_body_takes_the_whole_launch_of_another_kernel() -> None:
    first = text("pool")
    (child,) = CROSS["cross_launch"].children(
        first, text("softmax_long").replace('"num_warps": 4', '"num_warps": 8')
    )
    assert space(child, "triton")["num_warps"] == (8, (2, 4, 8))
    assert child.count('num_warps=CONFIG["num_warps"]') == 2


def test_a_function_comes_with_the_helper_and_the_constant_that_it_needs() -> None:
    first = Kernel(text("gelu"), "triton")
    source = first.source.replace("return 0.5 * x *", "return half(x) *")
    helper = "HALF = tl.constexpr(0.5)\n\n\n@triton.jit\ndef half(x):\n    return HALF * x\n"
    helper += "\n\n@triton.jit\ndef gelu(x)"
    source = source.replace('"BLOCK": 64,', '"BLOCK": 128,')
    second = Kernel(source.replace("@triton.jit\ndef gelu(x)", helper, 1), "triton")
    child = CrossFunctions()([first, second], BRIEF, Random(0))
    assert child is not None
    assert "def half(x):" in child.kernel.source and "HALF = " in child.kernel.source
    assert child.kernel.source.index("HALF = ") < child.kernel.source.index("def half(x):")


def test_a_function_that_calls_another_one_with_other_parameters_is_not_taken() -> None:
    first = Kernel(text("gelu"), "triton")
    source = first.source.replace("def gelu(x)", "def gelu(v)").replace("pid * BLOCK", "BLOCK * pid")
    assert CrossFunctions()([first, Kernel(source, "triton")], BRIEF, Random(0)) is None


def test_a_host_launches_the_kernel_of_another_source_by_its_own_name() -> None:
    second = (
        text("softmax_long").replace("softmax_kernel", "other_kernel").replace("tl.exp(", "tl.exp2(LOG2E * ")
    )
    second = second.replace(
        "\n\n\n@triton.jit", "\nLOG2E = tl.constexpr(1.4426950408889634)\n\n\n@triton.jit", 1
    )
    (child,) = CROSS["cross_halves"].children(text("softmax_long"), second)
    assert "other_kernel" not in child and "tl.exp2(LOG2E * " in child and "LOG2E = " in child


def test_a_loop_takes_the_keywords_of_the_same_loop_and_their_number() -> None:
    piped = next(REWRITES["pipeline_loop"].children(text("softmax_long"), BRIEF))
    children = list(CROSS["cross_loops"].children(text("softmax_long"), piped))
    assert any("num_stages=LOOP_STAGES" in child for child in children)
    assert all(space(child, "triton")["LOOP_STAGES"] == (2, (1, 2, 3, 4)) for child in children)


def test_an_argument_takes_the_cache_policies_of_another_kernel() -> None:
    second = text("softmax").replace("mask=mask)", 'mask=mask, cache_modifier=".cs")')
    children = list(CROSS["cross_policies"].children(text("softmax_long"), second))
    assert len(children) == 1
    assert 'tl.exp(x - top) / total, mask=mask, cache_modifier=".cs")' in children[0]


def test_every_operator_says_what_it_needs_and_why_in_the_docs() -> None:
    docs = (Path(__file__).parents[1] / "docs" / "operators.md").read_text()
    for operator in (*STRUCTURAL, *CROSSINGS):
        assert f"| `{operator.name}` | {operator.needs} | {operator.reason} |" in docs, operator.name
    assert all(f"`{operator.name}`" in docs for operator in builtin("triton"))
