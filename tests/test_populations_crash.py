"""Kills, full disks and read-only folders, with real processes and real file systems."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from populations import check
from populations.events import Resumed, Stillborn
from populations.log import EventLog
from populations.testing import STARTED

ROOT = Path(__file__).parent.parent
WRITER = """
import sys
from populations.log import EventLog
from populations.events import Judged
from populations.folder import RunError
from populations.testing import a_failure, a_kernel, a_measurement, a_proposal

def go_on(log):
    id = log.query("SELECT coalesce(max(id), 0) FROM individuals")[0][0]
    for (waiting,) in log.query("SELECT id FROM individuals WHERE judged_seq IS NULL"):
        log.append(Judged(waiting, a_failure()))
    while True:
        id += 1
        log.append(a_proposal(id), kernels=[a_kernel(id)])
        seq = log.append(Judged(id, a_measurement(0.1, rounds=40) if id % 3 else a_failure()))
        print(seq, flush=True)
"""


def in_own_mounts(script: str) -> str:
    """Output of a shell script that may mount things only it can see; skips where the system forbids that."""
    unshare = ["unshare", "--user", "--map-root-user", "--mount"]
    try:
        able = subprocess.run([*unshare, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True)
    except FileNotFoundError:
        pytest.skip("this system has no unshare")
    if able.returncode:
        pytest.skip("this system forbids user namespaces")
    told = subprocess.run([*unshare, "sh", "-ec", script], capture_output=True, text=True, cwd=ROOT)
    assert told.returncode == 0, told.stderr
    return told.stdout


def test_twenty_kills_lose_nothing_that_was_acknowledged(tmp_path):
    run = tmp_path / "run"
    EventLog.create(run, STARTED).close()
    chance = random.Random(20)
    script = WRITER + f"\nwith EventLog.open({str(run)!r}) as log:\n    go_on(log)"
    acknowledged = 1
    for _ in range(20):
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT) as child:
            for _ in range(chance.randrange(40)):
                acknowledged = int(child.stdout.readline())
            time.sleep(chance.random() * 0.003)
            child.kill()
            acknowledged = max([acknowledged, *map(int, child.stdout.read().split(b"\n")[:-1])])
        with EventLog.open(run, readonly=True) as log:
            assert [seq for seq, *_ in log.rows()][acknowledged - 1] == acknowledged
    assert check(run) == []
    assert acknowledged > 100


def test_an_interrupt_between_any_two_steps_leaves_the_log_usable(tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    chance = random.Random(100)
    before = signal.signal(signal.SIGPROF, interrupt)
    try:
        with EventLog.create(tmp_path / "run", STARTED) as log:
            ask = interrupts = 0
            for _ in range(100):
                with contextlib.suppress(KeyboardInterrupt):
                    signal.setitimer(signal.ITIMER_PROF, 1e-5 + chance.random() * 1e-3)
                    while True:
                        ask = log.query("SELECT coalesce(max(ask), 0) FROM asks")[0][0] + 1
                        log.append(Stillborn(ask, "unroll", (), "no loop"), Resumed(0))
                interrupts += 1
                ask = log.query("SELECT coalesce(max(ask), 0) FROM asks")[0][0] + 1
                log.append(Stillborn(ask, "unroll", (), "no loop"))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    assert interrupts == 100
    assert check(tmp_path / "run") == []


FILL = """
try:
    go_on(log)
except RunError as why:
    print(why, flush=True)
log.close()
"""


def test_a_full_disk_ends_in_one_line_and_a_valid_log():
    script = f"""{WRITER}
from populations import check
from populations.testing import STARTED
log = EventLog.create('/mnt/run', STARTED)
{FILL}
print(check('/mnt/run'))"""
    out = in_own_mounts(f'mount -t tmpfs -o size=2m none /mnt\n"{sys.executable}" - <<"END"\n{script}\nEND')
    *_, last, error, faults = out.splitlines()
    assert error.startswith("/mnt/run/run.db: database or disk is full; free some space, then")
    assert "kernel-evo resume /mnt/run" in error
    assert int(last) > 50
    assert faults == "[]"


def test_a_file_that_may_not_grow_ends_in_one_line_and_a_valid_log(tmp_path):
    run = tmp_path / "run"
    EventLog.create(run, STARTED).close()
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (900_000, 900_000))"
    script = f"{limit}\n{WRITER}\nlog = EventLog.open({str(run)!r})\n{FILL}"
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    *_, last, error = out.splitlines()
    assert error.startswith(f"{run / 'run.db'}: disk I/O error; the disk may be full")
    assert check(run) == []
    with EventLog.open(run) as log:
        assert log.append() >= int(last)


def test_a_run_on_a_read_only_disk_can_be_read_and_refuses_a_writer(tmp_path):
    run = tmp_path / "run"
    with EventLog.create(run, STARTED):
        pass
    script = f"""
from pathlib import Path
import populations
with populations.open({str(run)!r}) as run:
    print(run.problem)
print(populations.check({str(run)!r}))
for attempt in (populations.EventLog.open, lambda run: populations.make_folder(Path(run) / "new")):
    try:
        attempt({str(run)!r})
    except populations.RunError as why:
        print(why)
"""
    mount = f'mount --bind "{run}" "{run}"\nmount -o remount,bind,ro "{run}"'
    out = in_own_mounts(f'{mount}\n"{sys.executable}" - <<"END"\n{script}\nEND')
    assert out.splitlines() == [
        "softmax",
        "[]",
        f"cannot write to run {run}: Read-only file system; make the folder writable, or copy it",
        f"cannot make the run folder {run}/new: Read-only file system; "
        "name a folder you can write to (--run-dir)",
    ]
