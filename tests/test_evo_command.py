"""The command line as its users meet it, on the device that answers at once."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import chdir, closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from evo.command import run_command_line
from populations import EventLog, check
from populations.events import Stopped

ROOT = Path(__file__).parent.parent
INSTANT = ["--target", "fitness.testing:InstantTarget"]


@dataclass(frozen=True)
class Answer:
    returncode: int
    stdout: str
    stderr: str


def kernel_evo(*arguments: str | Path, cwd: Path = ROOT) -> Answer:
    """What a process of its own would answer, without its start."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), chdir(cwd):
        code = run_command_line([str(argument) for argument in arguments])
    return Answer(code, out.getvalue(), err.getvalue())


def process(*arguments: str | Path, cwd: Path = ROOT) -> Answer:
    """A process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "evo", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return Answer(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    """A finished run, and what ``run --json`` said."""
    path = tmp_path_factory.mktemp("runs") / "softmax"
    done = process("run", "softmax", *INSTANT, "--evaluations", "40", "--run-dir", path, "--json")
    assert done.returncode == 0, done.stderr
    return path, json.loads(done.stdout)


def refused(done: Answer, *words: str) -> None:
    """One line that holds these words, exit code 2, nothing on standard output."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("kernel-evo: ")
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rum"], ["rum", "'run'"]),
        (["run", "softmax", "--evalutions", "5"], ["--evalutions", "--evaluations"]),
        (["run", "softmax", *INSTANT, "--evaluations", "0"], ["evaluations = 0", "greater than 0"]),
        (["run", "softmax", *INSTANT, "--minutes", "-1"], ["minutes = -1", "greater than 0"]),
        (["run", "softmax", *INSTANT, "--evaluations", "many"], ["--evaluations", "integer"]),
        (["run", "softmax", "--target", "gpu9"], ["gpu9", "cpu"]),
        (["run", "softmax", "--target", "no.such:Thing"], ["no.such:Thing"]),
        (["run", "softmax", "--target", ":"], ["--target :", "package.module:Name"]),
        (["run", "softmax", "--target", "os:getcwd"], ["os:getcwd", "is no target"]),
        (["run", "softmax", *INSTANT, "--seeds", "/dev/zero"], ["/dev/zero", "too large"]),
        (["run", "softmax", *INSTANT, "--config", "/dev/zero"], ["/dev/zero", "too large"]),
        (["run", "softmax", *INSTANT, "--run-dir", "x" * 300], ["File name too long"]),
        (["run", "x" * 300, *INSTANT], ["File name too long"]),
        (["verify", "/dev/zero", "softmax", *INSTANT], ["/dev/zero", "too large"]),
        (["run", "softmax", *INSTANT, "--seeds", "nowhere.cpp"], ["nowhere.cpp", "No such file"]),
        (["run", "softmax", *INSTANT, "--seeds", "README.md"], ["README.md", "entry"]),
        (["run", "softmax", *INSTANT, "--config", "nowhere.toml"], ["nowhere.toml", "No such file"]),
        (["run", "softmax", *INSTANT, "--run-dir", "/dev/null/run"], ["/dev/null/run", "Not a directory"]),
        (["run", "softmax", *INSTANT, "--entry", "mine"], ["--entry mine", "kernel_function"]),
        (["run", "nothing-has-this-name", *INSTANT], ["nothing-has-this-name", "--seeds"]),
        (["verify", "nowhere.cpp", "softmax", *INSTANT], ["nowhere.cpp", "No such file"]),
        (["status", "nowhere"], ["nowhere", "no run"]),
        (["resume", "nowhere"], ["nowhere", "no run"]),
        (["seeds", "sotfmax"], ["sotfmax", "'softmax'"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) and "--" not in value else "",
)
def test_bad_input_ends_with_one_line_and_exit_code_2(
    arguments: list[str], words: list[str], tmp_path: Path
) -> None:
    (tmp_path / "README.md").write_text("# not a kernel\n")
    refused(kernel_evo(*arguments, cwd=tmp_path), *words)
    assert not list(tmp_path.glob("runs/*")), "nothing is left behind"


@pytest.mark.parametrize(
    "arguments", [["rum"], ["status", "nowhere"], ["run", "softmax", "--target", "gpu9"]]
)
def test_a_process_that_refuses_shows_no_traceback(arguments: list[str], tmp_path: Path) -> None:
    refused(process(*arguments, cwd=tmp_path), arguments[-1])


def test_output_that_a_full_disk_refuses_ends_in_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "evo", "problems", "--json"],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, cwd=ROOT,
        )  # fmt: skip
    refused(Answer(done.returncode, "", done.stderr), "No space left on device", "free some space")


def test_a_file_named_like_a_module_of_python_breaks_nothing(tmp_path: Path) -> None:
    (tmp_path / "random.py").write_text("raise SystemExit('not the random you think')\n")
    done = process_from_elsewhere("problems", "random.py", cwd=tmp_path)
    refused(done, "random.py", "not the random you think")


def process_from_elsewhere(*arguments: str, cwd: Path) -> Answer:
    """As the installed command: the current folder is not on Python's path."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "evo", *arguments],
        capture_output=True, text=True, timeout=120, cwd=cwd, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return Answer(done.returncode, done.stdout, done.stderr)


def test_a_judge_that_dies_leaves_the_log_it_speaks_of(tmp_path: Path) -> None:
    (tmp_path / "dies.py").write_text("import os\nprint('last words', flush=True)\nos._exit(3)\n")
    done = process_from_elsewhere("problems", "dies.py", cwd=tmp_path)
    refused(done, "last words", "judge.log", "dies.py ends the process")
    log = Path(done.stderr.partition("its log: ")[2].rstrip(")\n"))
    assert "last words" in log.read_text()
    shutil.rmtree(log.parent)


@pytest.mark.parametrize(
    "arguments", [["status", "runs/\udcff"], ["run", "\udcff.py"], ["run", "softmax", "--run-dir", "\udcff"]]
)
def test_a_name_that_is_not_utf_8_is_refused_in_one_line(arguments: list[str]) -> None:
    refused(kernel_evo(*arguments), "\\udcff", "not UTF-8")


def test_a_folder_that_is_not_utf_8_is_refused_in_one_line(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"\xff")
    odd.mkdir()
    (odd / "mine.py").write_text("x = 1\n")
    refused(process_from_elsewhere("run", "mine.py", *INSTANT, "--evaluations", "2", cwd=odd), "not UTF-8")


def test_a_terminal_that_lacks_a_letter_still_shows_the_rest(made: tuple[Path, dict[str, object]]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "evo", "top", str(made[0] / "\N{LATIN SMALL LETTER E WITH ACUTE}")],
        capture_output=True, text=True, timeout=60, cwd=ROOT, env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    refused(Answer(done.returncode, done.stdout, done.stderr), "\\xe9", "no run")


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE individuals SET status = 'weird'",
        "UPDATE individuals SET parents = 'x'",
        "UPDATE sources SET text = CAST(x'ff00' AS TEXT)",
        "DROP TABLE asks",
        "DROP TABLE individuals",
        "DROP TABLE events",
    ],
)
def test_a_damaged_log_is_told_in_one_line_and_found_by_check(
    damage: str, made: tuple[Path, dict[str, object]], tmp_path: Path
) -> None:
    path = tmp_path / "run"
    shutil.copytree(made[0], path)
    with closing(sqlite3.connect(path / "run.db")) as db:
        db.execute(damage)
        db.commit()
    for command in (
        ["status"],
        ["top"],
        ["show", "best"],
        ["lineage", "best"],
        ["diff", "1", "2"],
        ["replay"],
    ):
        done = kernel_evo(command[0], path, *command[1:])
        if done.returncode != 0:
            refused(done, str(path))
    found = kernel_evo("check", path)
    assert found.returncode == 1
    assert "Traceback" not in found.stderr


def test_a_run_goes_on_where_nobody_reads_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "run"
    command = f"run softmax {' '.join(INSTANT)} --evaluations 40 --run-dir {path}"
    for redirection in ("2>/dev/full", "2>&1 >/dev/null | true", "<&- >&- 2>&-"):
        subprocess.run(
            ["bash", "-c", f"{sys.executable} -m evo {command} {redirection}"],
            timeout=120,
            cwd=ROOT,
            check=False,
        )
        with EventLog.open(path, readonly=True) as log:
            assert isinstance(list(log.records())[-1].event, Stopped), redirection
        assert check(path) == []
        assert (path / "best.cpp").exists()
        shutil.rmtree(path)


def test_an_unknown_settings_key_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text("evalutions = 5\n")
    done = kernel_evo("run", "softmax", *INSTANT, "--config", tmp_path / "my.toml")
    refused(done, "my.toml", "'evalutions'", "'evaluations'")


def test_a_weight_for_an_unknown_operator_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text("[weights]\nno-such-operator = 2.0\n")
    refused(kernel_evo("run", "softmax", *INSTANT, "--config", tmp_path / "my.toml"), "no-such-operator")


def test_a_second_process_on_the_same_run_is_refused(made: tuple[Path, dict[str, object]]) -> None:
    with EventLog.open(made[0]):
        refused(kernel_evo("resume", made[0]), str(made[0]), "in use by process")


def test_a_folder_that_holds_a_run_is_not_overwritten(made: tuple[Path, dict[str, object]]) -> None:
    refused(kernel_evo("run", "softmax", *INSTANT, "--run-dir", made[0]), str(made[0]), "resume")


def test_a_run_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "newer"
    done = kernel_evo("run", "softmax", *INSTANT, "--evaluations", "3", "--run-dir", path, "--json")
    assert done.returncode == 0, done.stderr
    db = sqlite3.connect(path / "run.db")
    db.execute("PRAGMA user_version = 99")
    db.close()
    refused(kernel_evo("resume", path), "newer")


def test_run_json_has_what_the_manual_promises(made: tuple[Path, dict[str, object]]) -> None:
    path, told = made
    promised = "run_dir problem target evaluations best seed_best baselines ledger stopped"
    assert set(promised.split()) <= set(told)
    assert told["evaluations"] == 40
    assert told["run_dir"] == str(path)
    assert isinstance(best := told["best"], dict)
    assert {"id", "speedup", "fitness", "operator"} <= set(best)
    assert isinstance(ledger := told["ledger"], dict)
    assert set(ledger) == {"evaluations", "wall_s", "device_s", "tokens", "usd"}
    assert (path / "best.cpp").read_text().startswith("// Evolved by kernel-evo")


def test_resume_json_says_the_same_of_a_finished_run(made: tuple[Path, dict[str, object]]) -> None:
    told = json.loads(kernel_evo("resume", made[0], "--json").stdout)
    assert told["best"] == made[1]["best"]
    assert told["evaluations"] == 40


@pytest.mark.parametrize(
    "command",
    [["status"], ["top"], ["top", "-n", "2"], ["show", "best"], ["lineage", "best"], ["check"], ["replay"]],
    ids=" ".join,
)
def test_json_is_one_document_and_nothing_else(
    command: list[str], made: tuple[Path, dict[str, object]]
) -> None:
    name, *rest = command
    done = kernel_evo(name, made[0], *rest, "--json")
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)
    assert done.stderr == ""


def test_text_for_people_goes_to_standard_error(made: tuple[Path, dict[str, object]]) -> None:
    done = kernel_evo("top", made[0])
    assert done.stdout == ""
    assert "speed-up" in done.stderr


def test_show_prints_the_source_on_standard_output(made: tuple[Path, dict[str, object]]) -> None:
    assert 'extern "C"' in kernel_evo("show", made[0], "1").stdout


def test_diff_prints_what_changed(made: tuple[Path, dict[str, object]]) -> None:
    done = kernel_evo("diff", made[0], "1", "2")
    assert done.stdout.startswith("--- kernel 1\n+++ kernel 2\n")


@pytest.mark.parametrize("command", [["show", "9" * 30], ["lineage", "9" * 30], ["top", "-n", "9" * 30]])
def test_a_number_beyond_64_bits_is_refused_in_one_line(
    command: list[str], made: tuple[Path, dict[str, object]]
) -> None:
    name, *rest = command
    refused(kernel_evo(name, made[0], *rest), "64 bits")


def test_verify_json_has_what_the_manual_promises(
    tmp_path: Path, made: tuple[Path, dict[str, object]]
) -> None:
    kernel = tmp_path / "kernel.cpp"
    kernel.write_text(kernel_evo("show", made[0], "best").stdout)
    done = kernel_evo("verify", kernel, "softmax", *INSTANT, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    promised = (
        "status stage reason language target source_sha general timed numerics isolation cases baselines "
        "speedup fitness verifier"
    )
    assert set(promised.split()) <= set(told)
    timed = "name held_out derived status max_error median_us ci95_us speedup fitness gbps tflops"
    assert set(timed.split()) <= set(told["cases"][0])
    assert (told["status"], told["timed"]) == ("measured", True)


def test_verify_of_a_kernel_that_is_refused_exits_1(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.cpp"
    kernel.write_text("int main() { return 0; }\n")
    done = kernel_evo("verify", kernel, "softmax", *INSTANT, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["status"] == "rejected"


def test_the_doctor_reports_a_missing_compiler_as_a_finding(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "evo", "doctor", "--json"], capture_output=True, text=True, timeout=120,
        cwd=ROOT, env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    lacking = {f["name"]: f["cure"] for f in json.loads(done.stdout)["findings"] if not f["ok"]}
    assert "install g++" in lacking["g++"]
    assert "install gcc" in lacking["sandbox"]


def test_an_error_of_ours_is_not_disguised_as_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evo.catalogue.problems", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        kernel_evo("problems")


def test_help_loads_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "evo", "--help"],
        capture_output=True, text=True, timeout=60, cwd=ROOT,
    )  # fmt: skip
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert done.returncode == 0
    assert not loaded & {"torch", "pydantic", "rich", "deap", "sqlite3", "numpy", "tree_sitter"}


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_ending_a_run_saves_it_and_says_how_to_go_on(how: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "run"
    command = ["run", "softmax", *INSTANT, "--evaluations", "5000", "--run-dir", str(path)]
    with subprocess.Popen(
        [sys.executable, "-m", "evo", *command],
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        preexec_fn=lambda: signal.signal(how, signal.SIG_DFL),  # nohup may have started these tests
    ) as running:
        assert running.stderr is not None
        while "new best" not in running.stderr.readline():
            pass
        running.send_signal(how)
        last = running.stderr.read().splitlines()[-1]
        assert running.wait(60) == 130
    assert f"go on with: kernel-evo resume {path}" in last
    assert check(path) == []
    assert json.loads(kernel_evo("status", path, "--json").stdout)["stopped"] == "interrupted"
