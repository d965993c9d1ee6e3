"""What a host function and its kernels must not do, and how the user is told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import lower_idioms
import pytest

from fitness import plan
from fitness.lowering import Lowered, Lowering
from fitness.lowering.confinement import Limits
from populations.kernel import Kernel
from populations.verdict import Verdict

CASE = lower_idioms.case("x=float32[64,1000] -> float32[64,1000]")
DOUBLE = """import torch
import triton
import triton.language as tl
FACTOR = tl.constexpr(2.0)
@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * FACTOR, mask=at < n)
"""
CALL = """def kernel_function(x):
    y = torch.empty_like(x)
    pass
    double[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), 256)
    return y
"""
HONEST = DOUBLE + CALL
CACHE = (
    DOUBLE
    + """kept = {}
def kernel_function(x):
    y = kept.setdefault("y", torch.empty_like(x))
    double[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), 256)
    return y
"""
)

HOST = {  # a line of the host function (line 11) → status and what the reason says
    "y = x @ x.t()": "rejected: line 11: matmul computes with the framework (operation aten.mm.default)",
    "y = torch.softmax(x, 1)": "rejected: line 11: softmax computes with the framework",
    "n = x[0, 0].item()": "rejected: line 11: .item() reads numbers from the device",
    "n = x.tolist()": "rejected: line 11: .tolist() reads numbers from the device",
    "y = x.cpu()": "rejected: line 11: .cpu() reads numbers from the device",
    "n = 1 if x[0, 0] else 2": "rejected: line 11: .__bool__() reads numbers from the device",
    "s = torch.cuda.Stream()": "rejected: line 11: Stream is not allowed",
    "g = torch.cuda.CUDAGraph()": "rejected: line 11: CUDAGraph is not allowed",
    "e = torch.cuda.Event(enable_timing=True)": "rejected: line 11: Event is not allowed",
    "x.zero_()": "rejected: line 11: writes into an input",
    "raise ValueError('no')": "rejected: line 11: the host code raised ValueError: no",
    "raise SystemExit(0)": "rejected: line 11: the host code raised SystemExit: 0",
    "y = torch.empty(64, 1000)": "rejected: line 12: a CPU tensor is used",
    "s = torch.zeros(1 << 28, device='cuda')": "rejected: case",
    "y = torch.randn_like(x)": "rejected: line 11: randn_like computes with the framework",
    "[double[(1,)](x, y, 5, 256) for i in range(100)]": "rejected: line 11: launches more than 64 kernels",
    "double[(1,)](x, y, 5, 256, ir_override='a.ptx')": "rejected: line 11: launch option ir_override",
    "double[(1.5,)](x, y, 5, 256)": "rejected: line 11: the grid is (1.5, 1, 1)",
    "double[(1,)](x, y, x.data_ptr(), 256)": "rejected: case",
    "return y[:, :5]": f"incorrect: case {CASE.name}: returns float32[64, 5]; expected",
    "return y.half()": f"incorrect: case {CASE.name}: returns float16[64, 1000]; expected float32[64, 1000]",
    "return None": f"incorrect: case {CASE.name}: returns None",
    "return x": "rejected: output out0 is (a view of) an input",
    "return y": f"rejected: case {CASE.name}: the host function launches no kernel",
    "import subprocess": "rejected: line 11: import of subprocess is not allowed",
    "from torch.utils.cpp_extension import load": "rejected: line 11: import from torch.utils.cpp_extension",
    "open('/etc/passwd')": "rejected: line 11: open is not allowed",
    "torch.compile(x.add)": "rejected: line 11: torch.compile is not allowed",
    "torch.Tensor.data_ptr = None": "rejected: line 11: assigns to torch.Tensor.data_ptr",
    "setattr(torch.cuda, 'synchronize', None)": "rejected: line 11: assigns to torch.cuda",
    "x.grad_fn.f_back": "rejected: line 11: .f_back is not allowed",
    "torch._C._cuda_init()": "rejected: line 11: torch._C._cuda_init is not allowed",
}
DEVICE = {  # what stands in the kernel for FACTOR (line 8)
    "nonsense": "rejected: line 8: nonsense is neither device code nor a constant of this file",
    "tl.nothing(2)": "uncompilable: line 8: this Triton has no triton.language.nothing",
    "at.__class__": "rejected: line 8: the attribute .__class__ cannot be used in a kernel",
    "tl.core.builtins.open('/etc/passwd')": "uncompilable: line 8: ",
    "getattr(tl, 'exp')(x)": "rejected: line 8: getattr",
    "tl.arange(0, 100)": "uncompilable: line 8: arange's range must be a power of 2",
    "tl.core.extern_elementwise": "uncompilable: line 8: triton.language.core.extern_elementwise is not part",
}
WHOLE = {
    "syntax": ("def f(:", "rejected: line 1: invalid syntax"),
    "no kernel": ("import torch\ndef kernel_function(x):\n    return x", "rejected: there is no @triton.jit"),
    "no entry": (DOUBLE, "rejected: there is no function kernel_function, and no class ModelNew"),
    "too long": (HONEST + "#" * (1 << 18), "rejected: the source has"),
    "cache": (CACHE, "rejected: line 12: uses a tensor that was made outside this call"),
    "module level": (
        HONEST.replace("y = torch", "y = Y") + "Y = torch.empty(64, 1000, device='cuda')\n",
        "rejected: line 10: ",
    ),
    "state": (
        HONEST.replace("pass", "CALLS.append(1); n = y.fill_(0) if len(CALLS) < 2 else 0") + "CALLS = []\n",
        f"rejected: case {CASE.name}: two calls of the host function do different work",
    ),
    "computed constant": (
        HONEST.replace("tl.constexpr(2.0)", "tl.constexpr(len(dir(torch)))"),
        "rejected: line 8: FACTOR (line 4) is not a constant that can be read",
    ),
    "environment": ("import os\nos.environ['A'] = 'b'\n" + HONEST, "rejected: line 2: setting environment"),
}


@pytest.fixture(scope="module")
def lowering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lowering]:
    made = Lowering(tmp_path_factory.mktemp("lowering"))
    yield made
    made.close()


def said(lowering: Lowering, source: str) -> str:
    verdict = lowering.lower(Kernel(source, "triton"), [CASE])
    assert isinstance(verdict, Verdict)
    return f"{verdict.status}: {verdict.reason}"


@pytest.mark.parametrize("line", HOST)
def test_a_host_function_that_breaks_a_rule_is_told_the_line(lowering: Lowering, line: str) -> None:
    assert said(lowering, HONEST.replace("pass", line)).startswith(HOST[line])


@pytest.mark.parametrize("expression", DEVICE)
def test_a_kernel_that_is_not_device_code_is_told_the_line(lowering: Lowering, expression: str) -> None:
    source = HONEST.replace("* FACTOR", f"* {expression}")
    assert said(lowering, source).startswith(DEVICE[expression])


@pytest.mark.parametrize("name", WHOLE)
def test_a_source_that_breaks_a_rule_is_told_why(lowering: Lowering, name: str) -> None:
    source, reason = WHOLE[name]
    assert said(lowering, source).startswith(reason)


def test_no_traceback_reaches_the_user(lowering: Lowering) -> None:
    assert "Traceback" not in said(lowering, HONEST.replace("pass", "raise RuntimeError('a\\nb')"))


def test_comments_and_layout_change_nothing(lowering: Lowering) -> None:
    one = lowering.lower(Kernel(HONEST, "triton"), [CASE])
    other = lowering.lower(
        Kernel("# a comment\n\n" + HONEST.replace("pass", "pass  # another"), "triton"), [CASE]
    )
    assert isinstance(one, Lowered) and isinstance(other, Lowered)
    assert one.sha == other.sha


def test_a_plan_on_disk_is_the_plan_and_names_files_that_are_there(lowering: Lowering) -> None:
    made = lowering.lower(Kernel(HONEST, "triton"), [CASE])
    assert isinstance(made, Lowered)
    assert plan.read((made.folder / "plan.json").read_bytes()) == made.plan
    files = {name for binary in made.plan.binaries for name in binary.files.values()}
    assert {path.name for path in made.folder.iterdir()} == files | {"plan.json", made.plan.module}
    assert made.traits["registers"] > 0


def test_one_specialisation_is_compiled_once_for_all_cases(lowering: Lowering) -> None:
    cases = [lower_idioms.case(f"x=float32[{rows},1024] -> float32[{rows},1024]") for rows in (16, 32, 48)]
    made = lowering.lower(Kernel(HONEST, "triton"), cases)
    assert isinstance(made, Lowered)
    assert (len(made.plan.cases), len(made.plan.kernels)) == (3, 1)


def test_several_threads_may_lower_at_once(lowering: Lowering) -> None:
    sources = [HONEST.replace("2.0", f"{factor}.0") for factor in range(3, 7)]
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda source: lowering.lower(Kernel(source, "triton"), [CASE]), sources))
    assert len({one.sha for one in made if isinstance(one, Lowered)}) == len(sources)


def test_host_code_that_never_ends_is_stopped(tmp_path: Path) -> None:
    lowering = Lowering(tmp_path, limits=Limits(wall=3))
    try:
        reason = said(lowering, HONEST.replace("pass", "while True: pass"))
    finally:
        lowering.close()
    assert reason == "timed_out: tracing the host function took longer than 3 s"


def test_the_client_loads_no_torch() -> None:
    check = "import sys, fitness, fitness.lowering; sys.exit(bool({'torch', 'triton'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", check], timeout=60, check=False).returncode == 0


MODEL = (
    DOUBLE.replace("FACTOR, mask", "tl.load(w) + b, mask").replace("n, BLOCK", "n, w, b, BLOCK")
    + """
class ModelNew(torch.nn.Module):
    def __init__(self, features, shift):
        super().__init__()
        self.{name} = torch.nn.Linear(features, 1, bias=False)
        torch.nn.init.kaiming_uniform_(self.{name}.weight)
        self.shift = shift
    def forward(self, x):
        y = torch.empty_like(x)
        w = self.{name}.weight
        double[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), w, self.shift, 256)
        return y
"""
)


@pytest.mark.parametrize("name", ["scale", "another_name"])
def test_parameters_of_a_model_are_the_problems_by_name_or_by_order(lowering: Lowering, name: str) -> None:
    case = lower_idioms.case("x=float32[64,1000]; weight=float32[1,8] -> float32[64,1000]")
    (weight,) = case.parameters
    case = replace(case, init=(8, 1.5), parameters=(replace(weight, name="scale.weight"),))
    made = lowering.lower(Kernel(MODEL.format(name=name), "triton"), [case])
    assert isinstance(made, Lowered), made
    (launch,) = made.plan.cases[0].steps
    assert isinstance(launch, plan.Launch)
    assert launch.arguments[3] == plan.Pointer("pointer", plan.View(1, 0, (1, 8), (8, 1), "float32"))
    assert launch.arguments[4] == plan.Scalar("scalar", 1.5)


def test_host_code_is_told_the_multiprocessors_of_the_card_at_hand(tmp_path: Path) -> None:
    kernel, cases, entry = lower_idioms.read(lower_idioms.FOLDER / "device_shims.py")
    lowering = Lowering(tmp_path, multiprocessors=57)
    try:
        made = lowering.lower(kernel, cases, entry)
    finally:
        lowering.close()
    assert isinstance(made, Lowered), made
    (step,) = made.plan.cases[0].steps
    assert isinstance(step, plan.Launch)
    assert step.grid == (2 * 57, 1, 1)
