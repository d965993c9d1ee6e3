"""What is exported is what was measured, and says where it comes from."""

from __future__ import annotations

import resource
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import evo
import populations
from evo.export import export
from fitness import cpp, native
from fitness.target import Admission, Built
from fitness.testing import InstantTarget
from populations import Kernel, Outcome, RunError, Stage, Verdict, check

SEED = """#include <cstdint>
constexpr int TILE = 64;  // tune: 16 32 64 128
extern "C" void kernel_function(const float* x, float* out0, const int64_t* shapes) {
    for (int64_t i = 0; i < shapes[0] * shapes[1]; ++i) out0[i] = x[i];
}
"""


class General(InstantTarget):
    """Every kernel is measured; seeds are general, nothing is wrong."""

    general = True
    status = Outcome.MEASURED

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__(failures=0.0)

    def promote(self, built: Built) -> Verdict:
        verdict = super().promote(built)
        name = None if self.general else "257x4096"
        return Verdict(**{**vars(verdict), "general": self.general, "not_general": name})


class NotGeneral(General):
    """Right on the given shape alone."""

    general = False


class Wrong(General):
    """Nothing passes the gate."""

    def screen(self, built: Built) -> Verdict:
        return Verdict(Outcome.INCORRECT, Stage.SMOKE, f"wrong: {built.artifact_sha[:8]}")


def run_of(target: str, folder: Path) -> populations.Run:
    seed = folder / "seed.cpp"
    seed.write_text(SEED)
    return evo.search("instant", f"{__name__}:{target}", evaluations=1, seeds=[seed], run_dir=folder / "run")


def test_an_exported_kernel_is_its_source_under_a_comment_that_says_where_it_is_from(tmp_path: Path) -> None:
    with run_of("General", tmp_path) as run:
        export(run, "best", tmp_path / "best.cpp")
    text = (tmp_path / "best.cpp").read_text()
    header, _, source = text.partition("\n\n")
    assert source == SEED
    for word in (
        "kernel 1 of run run",
        "problem   instant",
        "speed-up",
        "verifier  instant",
        "sha256",
        "1 seed",
    ):
        assert word in header


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_a_kernel_that_is_not_general_refuses_other_shapes_when_it_runs(tmp_path: Path) -> None:
    with run_of("NotGeneral", tmp_path) as run:
        export(run, "best", tmp_path / "best.cpp")
    (tmp_path / "main.cpp").write_text(
        '#include "best.cpp"\n#include <vector>\n'
        "int main(int n, char**) {\n"
        "    int64_t rows = n > 1 ? 257 : 256, shapes[] = {rows, 4096, rows, 4096};\n"
        "    std::vector<float> x(rows * 4096), out(rows * 4096);\n"
        "    kernel_function(x.data(), out.data(), shapes);\n}\n"
    )
    program = tmp_path / "main"
    subprocess.run(["g++", "-std=c++17", "-o", program, tmp_path / "main.cpp"], check=True, timeout=60)
    assert subprocess.run([program], timeout=10).returncode == 0
    other = subprocess.run([program, "other"], timeout=10)
    assert other.returncode in (-signal.SIGILL, -signal.SIGTRAP)
    assert "verified for 1 shape(s) of instant only" in (tmp_path / "best.cpp").read_text()


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("target", ["General", "NotGeneral"])
def test_an_exported_kernel_is_admitted_and_built_as_any_other(target: str, tmp_path: Path) -> None:
    with run_of(target, tmp_path) as run:
        export(run, "best", tmp_path / "best.cpp")
    exported = Kernel((tmp_path / "best.cpp").read_text(), "cpp")
    admission = cpp.admit(exported, InstantTarget().card)
    assert isinstance(admission, Admission), admission
    built = cpp.build(admission, tmp_path / "artifacts", sandboxed=not native.features().missing)
    assert isinstance(built, Built), built


def test_a_wrong_kernel_is_not_exported(tmp_path: Path) -> None:
    with run_of("Wrong", tmp_path) as run, pytest.raises(RunError, match=r"kernel 1 of run .* is incorrect"):
        export(run, 1, tmp_path / "best.cpp")
    assert not (tmp_path / "best.cpp").exists()


def test_a_run_in_which_nothing_was_measured_has_no_best(tmp_path: Path) -> None:
    with run_of("Wrong", tmp_path) as run:
        assert run.best is None


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with run_of("General", tmp_path) as run, pytest.raises(RunError, match="Not a directory"):
        export(run, "best", Path("/dev/null/best.cpp"))


def test_an_export_never_replaces_a_file_of_the_run_itself(tmp_path: Path) -> None:
    with run_of("General", tmp_path) as run:
        (tmp_path / "link").symlink_to(run.path / "run.db")
        for file in (run.path / "run.db", run.path / "run.db-wal", tmp_path / "link", run.path / "run.toml"):
            with pytest.raises(RunError, match="a file of the run itself"):
                export(run, "best", file)
        assert check(run.path) == []


def test_an_export_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    with run_of("General", tmp_path) as run:
        kept = tmp_path / "kept.cpp"
        kept.write_text("the old export")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
            with pytest.raises(RunError, match="cannot be written"):
                export(run, "best", kept)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, ignored)
    assert kept.read_text() == "the old export"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["kept.cpp", "run", "seed.cpp"]


def test_an_export_may_go_to_a_device_or_through_a_link(tmp_path: Path) -> None:
    with run_of("General", tmp_path) as run:
        export(run, "best", Path("/dev/null"))
        (tmp_path / "link.cpp").symlink_to(tmp_path / "real.cpp")
        export(run, "best", tmp_path / "link.cpp")
    assert (tmp_path / "link.cpp").is_symlink()
    assert "Evolved by kernel-evo" in (tmp_path / "real.cpp").read_text()
