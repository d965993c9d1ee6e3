"""An exported file must do what its plan did; without a GPU its kernels are compiled, its launches seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import lower_idioms
import pytest
from test_lowering_rules import HONEST

from fitness.card import Case, ProblemCard
from fitness.exported import process
from fitness.exported.client import ExportRun, Subject
from fitness.exported.jobs import Compiled, Look, Report, Seen
from fitness.judging import passed_on
from fitness.lowering import Lowered, Lowering
from populations.export_check import Agreement, ExportCheck
from populations.kernel import Kernel

pytestmark = pytest.mark.timeout(600)

CASES = tuple(
    replace(lower_idioms.case("x=float32[64,1000] -> float32[64,1000]"), name=name, timed=name == "given")
    for name in ("small", "given")
)
SYSTEM = "import warnings\nsystem = warnings.sys.modules['os']\n"
SECRET = "KERNEL_EVO_TEST_SECRET"
HIGH = "n = x.numel() if x.data_ptr() >> 44 == 0 else 1"  # addresses are never that high while tracing


@pytest.fixture(scope="module")
def lowering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lowering]:
    made = Lowering(tmp_path_factory.mktemp("exported"))
    yield made
    made.close()


class Beside:
    """An exported text, and the plan of a kernel that it lies beside."""

    def __init__(self, lowering: Lowering, folder: Path) -> None:
        self._lowering, self._folder = lowering, folder

    def run(
        self, text: str, kernel: str = HONEST, cases: tuple[Case, ...] = CASES, entry: str | None = None
    ) -> ExportRun:
        lowered = self._lowering.lower(Kernel(kernel, "triton"), cases, entry)
        assert isinstance(lowered, Lowered), lowered
        card = ProblemCard("double", "", "", "", "", "cold", cases)
        passed = frozenset(case.name for case in cases)
        subject = Subject(text, entry, lowered.folder / "plan.json", card, passed)
        return ExportRun(subject, _nobody, self._folder, passed_on(), pretended=True)

    def check(self, text: str, kernel: str = HONEST) -> ExportCheck:
        return self.run(text, kernel).check()


def _nobody(request: dict[str, object]) -> object:
    raise AssertionError(f"no judge is needed for {request}")


@pytest.fixture
def beside(lowering: Lowering, tmp_path: Path) -> Beside:
    return Beside(lowering, tmp_path)


def test_an_honest_file_compiles_the_same_binaries_and_launches_them_alike(beside: Beside) -> None:
    check = beside.check(HONEST)
    assert (check.agreement, check.launches_equal) == (Agreement.EQUAL, True), check.reason
    assert check.wall_us is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["autotuned", "model_new", "host_descriptor", "fills_and_copies"])
def test_files_as_people_write_them_do_what_their_plans_did(beside: Beside, name: str) -> None:
    kernel, cases, entry = lower_idioms.read(lower_idioms.FOLDER / f"{name}.py")
    check = beside.run(kernel.source, kernel.source, tuple(cases), entry).check()
    assert check.agreement is Agreement.EQUAL, check.reason


OTHERWISE = {  # what is said of it → what stands in the exported file, and what in the kernel
    "launches double over [125, 1, 1] programs, that of the plan over [250, 1, 1]": (
        "x.numel(), 256),)]", "x.numel(), 512),)]"
    ),
    "gives double as argument 3 the number 63984, that of the plan the number 64000": (
        "x.numel(), 256)\n", "x.numel() - 16, 256)\n"
    ),
    "launches another binary of double": ("tl.constexpr(2.0)", "tl.constexpr(3.0)"),
    "does 2 steps with 2 launches, the plan 1 steps with 1 launches": (
        "return y", "double[(1,)](x, y, 1, 256)\n    return y"
    ),
    "does 2 steps with 1 launches, the plan 1 steps with 1 launches": ("return y", "return y.clone()"),
    "softmax computes with the framework": ("pass", "y = torch.softmax(x, 1)"),
    "line 11: the exported file raised ValueError: untraced": ("pass", "raise ValueError('untraced')"),
}  # fmt: skip


@pytest.mark.parametrize("reason", OTHERWISE)
def test_what_a_file_does_otherwise_is_said(beside: Beside, reason: str) -> None:
    old, new = OTHERWISE[reason]
    assert old in HONEST
    check = beside.check(HONEST.replace(old, new))
    assert check.agreement is Agreement.DIFFERENT
    assert reason in check.reason, check.reason


def test_what_is_allocated_in_another_shape_and_comes_out_alike_is_no_difference(beside: Beside) -> None:
    text = HONEST.replace("pass", "y = torch.empty(1, 64, 1000, device=x.device)[0]")
    assert beside.check(text).agreement is Agreement.EQUAL


def test_host_code_that_works_less_once_addresses_are_real_is_found(beside: Beside) -> None:
    forged = HONEST.replace("pass", HIGH).replace("y, x.numel(), 256)", "y, n, 256)")
    check = beside.check(forged, forged)  # lowering does not see it
    assert check.agreement is Agreement.DIFFERENT
    assert "launches double" in check.reason or "binary of double" in check.reason


def test_a_constant_that_triton_refuses_is_found_when_the_file_itself_runs(beside: Beside) -> None:
    annotated = HONEST.replace("FACTOR = tl.constexpr(2.0)", "FACTOR: tl.constexpr = 2.0")
    check = beside.check(annotated, annotated)
    assert check.agreement is Agreement.DIFFERENT
    assert "Cannot access global variable FACTOR" in check.reason


def test_a_file_that_is_not_admitted_is_not_run(beside: Beside) -> None:
    check = beside.check("import socket\n" + HONEST)
    assert check.reason.startswith("the exported file is refused: ")


ATTEMPTS = [
    "system.listdir('/root')",
    "system.listdir('/home')",
    "system.open('/etc/passwd', system.O_RDONLY)",
    "system.open('/dev/tty', system.O_RDWR)",
    "system.mkdir('/tmp/kernel-evo-was-here')",
    "system.mkdir('../beside')",
    "warnings.sys.modules['socket'].socket(2, 1)",
    "warnings.sys.modules['socket'].socketpair(2)",
    "system.kill(system.getppid() or 999999, 0)",
    "system.environ['KERNEL_EVO_TEST_SECRET']",
    "system.open('/proc/sys/kernel/core_pattern', system.O_WRONLY)",
    "system.open(f'/proc/self/task/{system.getpid()}/comm', system.O_WRONLY | system.O_TRUNC)",  # CUDA does
]
TRY = f"""found = []
    for attempt in {ATTEMPTS!r}:
        try:
            run = warnings.sys.modules['builtins'].__dict__['ev' + 'al']
            run(attempt, {{'system': system, 'warnings': warnings}})
            found.append('done')
        except Exception as why:
            found.append(type(why).__name__)
    raise ValueError(' '.join(found))"""


def test_a_file_reaches_nothing_outside_its_folder(beside: Beside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET, "shh")
    check = beside.check(SYSTEM + HONEST.replace("pass", TRY))
    said = check.reason.partition("ValueError: ")[2].split()
    assert dict(zip(ATTEMPTS, said, strict=True)) == {
        attempt: "KeyError"
        if "environ" in attempt
        else "ProcessLookupError"
        if "kill" in attempt
        else "done"
        if "comm" in attempt
        else "PermissionError"
        for attempt in ATTEMPTS
    }, check.reason
    assert not Path("/tmp/kernel-evo-was-here").exists()


LEAVE = "getattr(system, '_' + 'exit')(0)"
FORGED = "system.write(system.open('answer.json', 65), b'{\"kernels\": [], \"seen\": []}')"


@pytest.mark.parametrize(
    "line, reason",
    [
        (LEAVE, "left no report"),
        (f"system.symlink('/etc/passwd', 'answer.json'); {LEAVE}", "left no report"),
        (f"{FORGED}; {LEAVE}", "left a report on other cases"),
        ("warnings.sys.modules['ctypes'].string_at(0)", "the process that ran the exported file ended"),
    ],
)
def test_a_file_that_ends_its_process_costs_itself_alone(beside: Beside, line: str, reason: str) -> None:
    check = beside.check(SYSTEM + HONEST.replace("pass", line))
    assert check.agreement is Agreement.DIFFERENT
    assert reason in check.reason, check.reason


def test_an_endless_file_is_ended(beside: Beside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "WALL_S", 40.0)
    monkeypatch.setattr(process, "CPU_S", 300)
    check = beside.check(HONEST.replace("pass", "while True: pass"))
    assert check.reason == "the exported file does not end within 40 s"


# ---- bytes, without a device that makes them ---------------------------------------------------------------


def compared(beside: Beside, folder: Path, made: bytes, *, alike: bool) -> ExportCheck:
    """What is said of a file that launches as planned and leaves these bytes; the plan's are zeros."""
    run = beside.run(HONEST)
    plan = run._plan
    kernels = tuple(Compiled(binary.name, binary.sha) for binary in plan.binaries)
    report = Report(kernels, (Seen("small", (plan.case("small"),), 12.5),))
    (folder / "scratch").mkdir()
    (folder / "wanted").mkdir()
    (folder / "scratch" / "out").write_bytes(made)
    (folder / "wanted" / "out").write_bytes(bytes(4096))
    run._ask = lambda request: {"reason": None if made[0] == 1 else f"wrong result, asked to {request['do']}"}
    looks = (Look(CASES[0], (None,), ("out",)),)
    return run._compared(report, looks, folder / "scratch", folder / "wanted", alike)


def test_equal_bytes_are_equal(beside: Beside, tmp_path: Path) -> None:
    check = compared(beside, tmp_path, bytes(4096), alike=True)
    assert (check.agreement, check.bytes_equal, check.case, check.wall_us) == (
        Agreement.EQUAL,
        True,
        "small",
        12.5,
    )


@pytest.mark.parametrize("made", [b"\1" + bytes(4095), bytes(4095), bytes(4097)])
def test_one_byte_more_less_or_other_is_different_where_the_plan_repeats_itself(
    beside: Beside, tmp_path: Path, made: bytes
) -> None:
    check = compared(beside, tmp_path, made, alike=True)
    assert (check.agreement, check.launches_equal, check.bytes_equal) == (Agreement.DIFFERENT, True, False)


def test_where_the_plan_does_not_repeat_itself_the_bound_decides(beside: Beside, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    right = compared(beside, tmp_path / "a", b"\1" + bytes(4095), alike=False)
    assert (right.agreement, right.bytes_equal, right.within_bound) == (Agreement.EQUAL, False, True)
    wrong = compared(beside, tmp_path / "b", b"\2" + bytes(4095), alike=False)
    assert (wrong.agreement, wrong.within_bound) == (Agreement.DIFFERENT, False)
    assert wrong.reason == "the exported file gives a wrong result, asked to hold"


# ---- a machine that is at fault ----------------------------------------------------------------------------


def test_a_sandbox_without_a_gpu_is_the_machines_fault(
    beside: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    if any(Path("/dev").glob("nvidia[0-9]*")):
        pytest.skip("there is one")
    run = beside.run(HONEST)
    looks = run._looks(Path(), Path())
    monkeypatch.setattr(run, "_looks", lambda *_: looks)
    monkeypatch.setattr(run, "_pretended", False)
    check = run.check()
    assert check.agreement is Agreement.UNCHECKED
    assert check.reason.startswith("the sandbox does not reach the GPU: ")


def test_a_child_that_dies_before_it_meets_the_file_is_the_machines_fault(
    beside: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "WALL_S", 0.05)
    check = beside.check(HONEST)
    assert check.agreement is Agreement.UNCHECKED
    assert check.reason.startswith("the sandbox did not come as far as the exported file")
