"""The build sandbox: what a command in it can see, write and leave behind, which is next to nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fitness import machine, native
from fitness.target import DeviceError


def sandbox(scratch: Path, *command: str, wall: float = 10, cpu: int = 5) -> subprocess.CompletedProcess[str]:
    limits = ["--wall", str(wall), "--cpu", str(cpu), "--memory", str(1 << 30)]
    return subprocess.run(
        [native.tool("sandbox"), "--scratch", scratch, *limits, "--", *command],
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
    )


def test_this_system_has_all_that_the_sandbox_needs_or_says_what_lacks() -> None:
    features = native.features()
    assert all(isinstance(name, str) for name in features.missing)
    weak = native.Features(True, False, True, 0, True)
    assert weak.missing == ("network namespaces", "Landlock")


def test_a_command_ends_with_its_own_status_and_output(tmp_path: Path) -> None:
    done = sandbox(tmp_path, "/bin/sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\nerr\n", "")


def test_the_environment_holds_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "hush")
    done = sandbox(tmp_path, "/usr/bin/env")
    assert sorted(line.partition("=")[0] for line in done.stdout.splitlines()) == [
        "HOME",
        "LANG",
        "PATH",
        "TMPDIR",
    ]
    assert str(tmp_path) in done.stdout


@pytest.mark.parametrize("path", ["/etc/passwd", "/proc/1/environ", "/proc/self/environ", "/proc/cpuinfo"])
def test_files_of_the_system_and_of_users_cannot_be_read(tmp_path: Path, path: str) -> None:
    done = sandbox(tmp_path, "/bin/cat", path)
    assert done.returncode != 0
    assert "Permission denied" in done.stdout


def test_a_users_file_cannot_be_read_nor_changed(tmp_path: Path) -> None:
    scratch, secret = tmp_path / "scratch", tmp_path / "secret"
    scratch.mkdir()
    secret.write_text("hush")
    done = sandbox(
        scratch, "/bin/sh", "-c", f"cat {secret}; echo x > {secret}; rm {secret}; echo x > {tmp_path}/new"
    )
    assert "hush" not in done.stdout
    assert secret.read_text() == "hush"
    assert not (tmp_path / "new").exists()


def test_the_scratch_folder_can_be_written_but_nothing_in_it_run(tmp_path: Path) -> None:
    script = "echo made > made; cp /bin/true ./mine; ./mine"
    done = sandbox(tmp_path, "/bin/sh", "-c", script)
    assert (tmp_path / "made").read_text() == "made\n"
    assert done.returncode == 126


def test_there_is_no_network_and_no_other_process(tmp_path: Path) -> None:
    reach = "import socket\ntry:\n socket.socket()\nexcept OSError as e:\n print(e.errno)"
    python = Path("/usr/bin/python3")
    if python.exists():
        assert sandbox(tmp_path, str(python), "-S", "-c", reach).stdout == "1\n"
    assert sandbox(tmp_path, "/bin/sh", "-c", f"kill -9 {os.getpid()}; echo alive").stdout.endswith("alive\n")


def test_a_command_that_takes_too_long_is_ended_with_all_its_children(tmp_path: Path) -> None:
    mark = f"31{os.getpid()}"
    done = sandbox(
        tmp_path, "/bin/sh", "-c", f"sleep {mark} & (setsid sleep {mark} &) ; sleep {mark}", wall=0.3
    )
    assert done.returncode == 124
    assert not running(mark)


def test_without_namespaces_children_are_still_ended(tmp_path: Path) -> None:
    mark = f"34{os.getpid()}"
    command = ["/bin/sh", "-c", f"sleep {mark} & (setsid sleep {mark} &) ; sleep {mark}"]
    order = ["--scratch", tmp_path, "--wall", "0.3", "--unsandboxed", "--", *command]
    no_namespaces = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    inside = ["unshare", "-Ur", "/bin/sh", "-c", no_namespaces, "sh", native.tool("sandbox"), *order]
    assert subprocess.run(list(map(str, inside))).returncode == 124
    assert not running(mark)


def test_children_that_a_command_leaves_behind_end_with_it(tmp_path: Path) -> None:
    mark = f"32{os.getpid()}"
    assert sandbox(tmp_path, "/bin/sh", "-c", f"(setsid sleep {mark} &); exit 3").returncode == 3
    assert not running(mark)


def test_processor_time_memory_and_file_size_are_limited(tmp_path: Path) -> None:
    assert sandbox(tmp_path, "/bin/sh", "-c", "while :; do :; done", cpu=1).returncode == 128 + signal.SIGXCPU
    assert sandbox(tmp_path, "/bin/sh", "-c", "x=a; while :; do x=$x$x; done").returncode not in (0, 124)
    done = sandbox(tmp_path, "/bin/sh", "-c", "yes > large")
    assert done.returncode == 128 + signal.SIGXFSZ
    assert (tmp_path / "large").stat().st_size == 64 << 20


def test_output_is_cut_at_64_kib(tmp_path: Path) -> None:
    done = sandbox(tmp_path, "/bin/sh", "-c", "yes | head -c 10000000")
    assert done.returncode == 0
    assert len(done.stdout) == 64 << 10


STARTING = """
import os, subprocess, sys
from fitness import native
order = ["--scratch", sys.argv[1], "--wall", "60", "--cpu", "60", "--memory", str(1 << 30)]
command = ["/bin/sh", "-c", f"(setsid sleep {sys.argv[2]} &); echo up; sleep {sys.argv[2]}"]
subprocess.run([native.tool("sandbox"), *order, "--parent", str(os.getpid()), "--", *command])
"""


def test_nothing_of_a_build_survives_when_its_starter_is_killed(tmp_path: Path) -> None:
    mark = f"33{os.getpid()}"
    command = [sys.executable, "-c", STARTING, str(tmp_path), mark]
    root = Path(native.__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"up\n"
        starter.kill()
    end = time.monotonic() + 5
    while running(mark) and time.monotonic() < end:
        time.sleep(0.01)
    assert not running(mark)


def test_a_starter_that_is_already_dead_gets_nothing_run(tmp_path: Path) -> None:
    order = [
        native.tool("sandbox"),
        "--scratch",
        tmp_path,
        "--parent",
        "1",
        "--",
        "/bin/sh",
        "-c",
        "echo > made",
    ]
    assert os.getpid() != 1
    assert subprocess.run(list(map(str, order))).returncode == 1
    assert not (tmp_path / "made").exists()


def test_an_unusable_order_says_how_it_is_used() -> None:
    done = subprocess.run([native.tool("sandbox"), "--colour", "red"], capture_output=True, text=True)
    assert done.returncode == 125
    assert done.stderr.startswith("usage: sandbox")


def test_tools_are_compiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    native.tool.cache_clear()
    try:
        first = native.tool("sandbox")
        made = first.stat().st_mtime_ns
        native.tool.cache_clear()
        assert native.tool("sandbox") == first
        assert first.stat().st_mtime_ns == made
        assert first.is_relative_to(tmp_path)
    finally:
        native.tool.cache_clear()


def test_without_gcc_one_line_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    native._gcc_version.cache_clear()
    native.tool.cache_clear()
    try:
        with pytest.raises(DeviceError, match=r"gcc does not run .*install it"):
            native.tool("sandbox")
    finally:
        native._gcc_version.cache_clear()
        native.tool.cache_clear()


def test_a_machine_tells_what_results_depend_on() -> None:
    facts = machine.facts()
    assert set(facts) >= {"cpu", "cores", "cache_bytes", "kernel", "compiler", "isolation"}
    assert machine.cores() == len(os.sched_getaffinity(0))
    assert machine.cache_bytes() >= 1 << 20


HOLDING = """
import sys
from fitness import machine
with machine.lease("test-device"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_device_is_leased_to_one_process_and_free_when_that_one_dies() -> None:
    root = Path(native.__file__).parents[2]
    command = [sys.executable, "-c", HOLDING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(DeviceError, match=f"another judge holds the test-device .process {holder.pid}"):
            machine.lease("test-device").__enter__()
        holder.kill()
    with machine.lease("test-device"):
        pass


def running(mark: str) -> list[int]:
    """Processes whose command line holds ``mark`` and that nobody has yet ended."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            command, status = (process / "cmdline").read_bytes(), (process / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError, NotADirectoryError):
            continue
        if f"sleep\0{mark}".encode() in command and status.rsplit(")", 1)[1].split()[0] not in "ZX":
            found.append(int(process.name))
    return found
