"""What a hostile or broken device function costs: one candidate, one line, and nothing else."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from interpreting import Written, kernel, launch, view

from fitness.interpreter.client import Interpreter
from fitness.judge.rig import KernelDied
from populations.verdict import Outcome

pytest.importorskip("triton")

X = torch.arange(1024, dtype=torch.float32)
HEALTHY = "tl.store(y + at, tl.load(x + at) * 2)"


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interpreter]:
    with Interpreter(tmp_path_factory.mktemp("interpreter")) as started:
        yield started


def written(folder: Path, body: str, head: str = "") -> Written:
    lines = "".join(f"    {line}\n" for line in ["at = tl.arange(0, N)", *body.strip().splitlines()])
    source = f"{head}\n@triton.jit\ndef k(x, y, N: tl.constexpr):\n{lines}"
    steps = [launch(0, (1,), view(0, X), view(1, X), 1024)]
    return Written(folder, source, [X], [X], [kernel("k", x=X, y=X, N=1024)], steps)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("tl.store(y + at + 1000000, tl.load(x + at))", "outside its arguments"),
        ("tl.store(x + at, tl.load(x + at))", "wrote to an input"),
        ("tl.store(y + at, tl.load(x + at + 1024 * 8))", "outside its arguments"),
        ("tl.store(y + at, tl.load(x + at - 1024 * 8))", "outside its arguments"),
        ("tl.store(y + at, tl.load(x + at).nothing)", "no attribute 'nothing', at: tl.store"),
        ("1 // 0", "ZeroDivisionError"),
        ("tl.static_assert(N == 5, 'too large')", "too large"),
        ("k.nothing()", "raised"),
        ("raise SystemExit(0)", "raised SystemExit"),
        ("(lambda f: f(f))(lambda f: f(f))", "RecursionError"),
        ("np.zeros(1 << 40, dtype=np.int8) + 1", "MemoryError"),
        ("import os\nos._exit(0)", "exited with status 0 before it replied"),
        ("import os\nos.abort()", "segmentation fault|aborted"),
        ("import os\nos.fork()\nos.fork()\nos._exit(3)", "PermissionError"),
    ],
)
def test_a_broken_kernel_crashes_alone_and_its_reason_is_one_line(
    interpreter: Interpreter, tmp_path: Path, body: str, says: str
) -> None:
    with pytest.raises(KernelDied, match=says) as died:
        written(tmp_path, body).outputs(interpreter)
    assert died.value.outcome is Outcome.CRASHED
    assert "\n" not in died.value.reason
    assert torch.equal(written(tmp_path, HEALTHY).outputs(interpreter)[0], X * 2)


def test_a_module_that_raises_is_a_crash(interpreter: Interpreter, tmp_path: Path) -> None:
    with pytest.raises(KernelDied, match="ZeroDivisionError"):
        written(tmp_path, HEALTHY, head="1 / 0").outputs(interpreter)


def test_an_endless_kernel_is_timed_out_and_nothing_of_it_is_left(
    interpreter: Interpreter, tmp_path: Path
) -> None:
    mark = f"endless-{os.getpid()}"
    body = f"import time\nwhile True:\n    time.sleep(0.001)  # {mark}"
    with written(tmp_path, body).running(interpreter) as (_, launcher):
        with pytest.raises(KernelDied) as died:
            launcher.block(0, 1, 0.05)
        assert died.value.outcome is Outcome.TIMED_OUT
    children = Path(f"/proc/{interpreter.pid}/task/{interpreter.pid}/children")
    deadline = time.monotonic() + 10
    while children.read_text().strip() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert children.read_text().strip() == ""


@pytest.mark.parametrize(
    "attempt",
    [
        "open('/etc/passwd').read()",
        "open('/proc/self/environ').read()",
        f"open({str(Path(__file__).absolute())!r}).read()",
        "open('/tmp/planted', 'w').write('x')",
        "__import__('socket').create_connection(('127.0.0.1', 80), 1)",
        "__import__('socket').socket()",
        "__import__('os').kill(__import__('os').getppid(), 9) or 1 / 0",
        "__import__('ctypes').CDLL(None, use_errno=True).ptrace(16, 1, 0, 0) == 0 or 1 / 0",
    ],
)
def test_a_kernel_can_neither_look_nor_reach_outside(
    interpreter: Interpreter, tmp_path: Path, attempt: str
) -> None:
    with pytest.raises(KernelDied) as died:
        written(tmp_path, attempt).outputs(interpreter)
    assert died.value.outcome is Outcome.CRASHED
    assert torch.equal(written(tmp_path, HEALTHY).outputs(interpreter)[0], X * 2)


def test_a_kernel_sees_no_secret(interpreter: Interpreter, tmp_path: Path) -> None:
    body = "if 'KEY' in ' '.join(__import__('os').environ): raise ValueError('a key')\n" + HEALTHY
    assert torch.equal(written(tmp_path, body).outputs(interpreter)[0], X * 2)


@pytest.mark.parametrize(
    "packet", [b"nonsense", b"[]", b'{"set": 0, "outcome": "measured"}', b'{"ended": {}}']
)
def test_what_a_kernel_writes_to_the_reply_channel_is_not_believed(
    interpreter: Interpreter, tmp_path: Path, packet: bytes
) -> None:
    body = f"""
import os
for descriptor in range(3, 20):
    try:
        os.write(descriptor, {packet!r})
    except OSError:
        pass
"""
    with pytest.raises(KernelDied) as died:
        written(tmp_path, body).outputs(interpreter)
    assert died.value.outcome is Outcome.CRASHED


def test_a_forged_reply_leaves_the_poison_where_it_was(interpreter: Interpreter, tmp_path: Path) -> None:
    reply = json.dumps({"set": 0}).encode()
    body = f"""
import os
for descriptor in range(3, 20):
    try:
        os.write(descriptor, {reply!r})
    except OSError:
        pass
"""
    with written(tmp_path, body).running(interpreter) as (sets, launcher):
        launcher.block(0, 1, 5.0)
        assert sets.poison_left(0) == "a1"


def test_what_a_kernel_does_to_triton_ends_with_it(interpreter: Interpreter, tmp_path: Path) -> None:
    vandal = written(tmp_path, HEALTHY + "\ntl.load = None\ntl.store = None\ntl.tensor.__mul__ = None")
    assert torch.equal(vandal.outputs(interpreter)[0], X * 2)
    assert torch.equal(written(tmp_path, HEALTHY).outputs(interpreter)[0], X * 2)


def test_what_a_kernel_prints_goes_nowhere(
    interpreter: Interpreter, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    body = "tl.device_print('noise', N)\nprint('more noise')\n" + HEALTHY
    assert torch.equal(written(tmp_path, body).outputs(interpreter)[0], X * 2)
    assert capfd.readouterr().out == ""


def test_memory_beside_an_output_that_was_written_is_found(interpreter: Interpreter, tmp_path: Path) -> None:
    short = X[:1000]
    source = """
    @triton.jit
    def k(x, y, N: tl.constexpr):
        tl.store(y - 4 + tl.arange(0, N), 1.0)
    """
    steps: list[dict[str, Any]] = [launch(0, (1,), view(0, short), view(1, short), 16)]
    plan = Written(tmp_path, source, [short], [short], [kernel("k", x=short, y=short, N=16)], steps)
    with pytest.raises(KernelDied, match="memory beside output 0 was overwritten") as died:
        plan.outputs(interpreter)
    assert died.value.outcome is Outcome.INCORRECT
