"""No line of a candidate runs in the judge, seen from outside: an audit hook ends a judge that tries.

The hook comes to the judge in a ``sitecustomize`` on PYTHONPATH, before any of its code. It ends the process
where text, code or a module of the candidate is compiled, executed or imported, or a library is loaded from
the folder of what was built. Children that are there to run candidates come with other arguments and go
without it. That it would notice is shown with problem files, which the judge does execute.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import fitness
from fitness.lowered import LoweredTarget
from fitness.target import Admission, Built, DeviceError, Target
from populations.kernel import Kernel
from populations.verdict import Outcome, Verdict

pytestmark = [pytest.mark.judge, pytest.mark.timeout(600)]

MARK = "mark_of_the_candidate"
HOOK = '''
import os
import sys

MARK, FOLDER, REPORT = {mark!r}, {folder!r}, {report!r}


def end(what):
    os.write(2, ("the judge would run a candidate: " + what + "\\n").encode())
    os._exit(66)


def text(given):
    return bytes(given).decode(errors="replace") if isinstance(given, (bytes, bytearray)) else str(given)


def marked(code):
    words = [*code.co_names, *code.co_varnames, *code.co_freevars, code.co_name, code.co_filename]
    words += [each for each in code.co_consts if isinstance(each, (str, bytes))]
    inside = [each for each in code.co_consts if hasattr(each, "co_code")]
    return any(MARK in text(word) for word in words) or any(map(marked, inside))


def below(path):
    return text(path).startswith(FOLDER)


def imports():
    frame = sys._getframe()
    while frame is not None:
        if "importlib" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def hook(event, arguments):
    if event == "compile":
        source, name = arguments
        if (source is not None and MARK in text(source)) or below(name):
            end("compile " + text(name))
    elif event == "exec":
        code = arguments[0]
        if "fitness/judge/" in code.co_filename:
            report(code.co_filename)
        if marked(code) or below(code.co_filename):
            end("exec " + code.co_filename)
    elif event == "import":
        if below(arguments[1]) or MARK in text(arguments[0]):
            end("import " + text(arguments[0]))
    elif event == "open":
        if below(arguments[0]) and imports():
            end("import of " + text(arguments[0]))
    elif event == "ctypes.dlopen":
        if below(arguments[0]):
            end("dlopen " + text(arguments[0]))


def report(line):
    descriptor = os.open(REPORT, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, (line + "\\n").encode())
    os.close(descriptor)


if "fitness.judge" in sys.orig_argv:
    sys.addaudithook(hook)
    report("armed")
'''
TRITON = f"""
import torch
import triton
import triton.language as tl


@triton.jit
def {MARK}_kernel(x, y, count, BLOCK: tl.constexpr):
    {MARK} = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + {MARK}, mask={MARK} < count)
    tl.store(y + {MARK}, tl.minimum(tl.maximum(v, -1.0), 1.0), mask={MARK} < count)


def kernel_function(x, {MARK}=None):
    y = torch.empty_like(x)
    {MARK}_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
"""
CPP = f"""#include <cstdint>
extern "C" void kernel_function(const float *x, float *y, const int64_t *shapes) {{
    const int64_t {MARK} = shapes[0] * shapes[1];
    for (int64_t i = 0; i < {MARK}; i++) y[i] = x[i] < -1 ? -1 : x[i];
}}
"""
PROBLEM = Path(__file__).parent / "problems" / "hard_tanh.py"
ATTEMPTS = {  # what a judge could do wrong, done by the problem's file; {folder} is that of the artifacts
    "compile": "compile('pass  # ' + mark, 'text', 'exec')",
    "exec": "exec(compile('pass', mark, 'exec'))",
    "import": "sys.path.insert(0, {folder!r}); import planted",
    "dlopen": "ctypes.CDLL({folder!r} + '/library.so')",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where targets put what they build; from now on judges come with the hook."""
    hooked, built = tmp_path / "hooked", tmp_path / "built"
    hooked.mkdir()
    built.mkdir()
    hook = HOOK.format(mark=MARK, folder=str(built), report=str(tmp_path / "report"))
    (hooked / "sitecustomize.py").write_text(hook)
    paths = [str(hooked), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    return built


def saw(folder: Path) -> list[str]:
    return (folder.parent / "report").read_text().splitlines()


def judged(target: Target, kernel: Kernel, ask: Callable[[Built], Verdict]) -> Verdict:
    admission = target.admit(kernel)
    assert isinstance(admission, Admission), admission
    built = target.build(admission)
    assert isinstance(built, Built), built
    return ask(built)


def test_a_triton_kernel_is_judged_without_running_in_the_judge(folder: Path) -> None:
    pytest.importorskip("triton")
    target = LoweredTarget(str(PROBLEM), folder=folder)
    try:
        verdict = judged(target, Kernel(TRITON, "triton"), target.promote)
    finally:
        target.close()
    assert (verdict.status, verdict.reason) == (Outcome.CORRECT, "correct, not timed")
    assert len(verdict.cases) > 3
    assert saw(folder).count("armed") == 1  # the judge alone: neither lowering nor the interpreter
    assert any(line.endswith("fitness/judge/interpreted.py") for line in saw(folder))


def test_a_library_is_judged_without_being_loaded_by_the_judge(folder: Path) -> None:
    target = fitness.open_target("cpu", str(PROBLEM), folder=folder)
    try:
        verdict = judged(target, Kernel(CPP, "cpp"), target.screen)
    finally:
        target.close()
    assert verdict.status is Outcome.INCORRECT, verdict  # nothing is clipped from above
    assert verdict.reason.startswith("wrong result on case")
    assert saw(folder).count("armed") == 1
    assert any(line.endswith("fitness/judge/runner.py") for line in saw(folder))


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_judge_that_ran_a_candidate_would_be_ended(folder: Path, attempt: str) -> None:
    (folder / "planted.py").write_text("pass\n")
    (folder / "empty.c").write_text("")
    compiler = shutil.which("gcc") or "cc"
    library = [compiler, "-shared", "-o", str(folder / "library.so"), str(folder / "empty.c")]
    subprocess.run(library, check=True, timeout=60)
    action = ATTEMPTS[attempt].format(folder=str(folder))
    spelled = f"bytes.fromhex({MARK.encode().hex()!r}).decode()"  # the mark itself stays out of this file
    file = folder.parent / "problem.py"
    file.write_text(f"{PROBLEM.read_text()}\nimport ctypes, sys\nmark = {spelled}\n{action}\n")
    with pytest.raises(DeviceError, match=f"status 66: the judge would run a candidate: {attempt}"):
        fitness.open_target("cpu", str(file), folder=folder)


def test_without_such_an_attempt_the_same_problem_opens(folder: Path) -> None:
    file = folder.parent / "problem.py"
    file.write_text(f"{PROBLEM.read_text()}\nimport ctypes, sys\n")
    fitness.open_target("cpu", str(file), folder=folder).close()
    assert saw(folder).count("armed") == 1
