"""Argument sets and blocks with honest kernels: what is computed, what is measured, what poison does."""

from __future__ import annotations

import mmap
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from fitness import native
from fitness.card import TensorSpec
from fitness.judge.buffers import ArgumentSets
from fitness.judge.runner import KernelDied, Runner
from fitness.target import DeviceError

Build = Callable[[str], Path]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    def compiled(source: str) -> Path:
        text, made = tmp_path / "kernel.cpp", tmp_path / "kernel.so"
        text.write_text("#include <cstdint>\n" + source)
        flags = ["-O2", "-fopenmp", "-nostartfiles", "-shared", "-fPIC", "-std=c++17"]
        subprocess.run(["g++", *flags, "-o", made, text], check=True)
        return made

    return compiled


DOUBLE = """
extern "C" void kernel_function(const float* x, float* y, const int64_t* shapes) {
    #pragma omp parallel for
    for (int64_t i = 0; i < shapes[0] * shapes[1]; i++) y[i] = 2 * x[i];
}
"""


def vectors(count: int, *shape: int) -> list[TensorSpec]:
    return [TensorSpec(f"a{i}", shape, "float32") for i in range(count)]


def test_a_block_runs_its_sets_and_no_other(build: Build) -> None:
    with ArgumentSets(vectors(2, 50, 41), 1, 4) as sets:
        for k in range(4):
            sets.inputs(k)[0].normal_()
        with Runner(build(DOUBLE), sets, cores=2, sandboxed=True) as runner:
            block = runner.block(1, 2, 5.0)
        for k in (1, 2):
            assert torch.equal(sets.outputs(k)[0], 2 * sets.inputs(k)[0])
            assert sets.redzone_damage(k) is None
        assert [sets.poison_left(k) for k in range(4)] == ["a1", None, None, "a1"]
        assert block.cpu_seconds > 0
        assert block.seconds > 0
        assert block.involuntary_switches >= 0


def test_an_empty_block_launches_nothing(build: Build) -> None:
    with (
        ArgumentSets(vectors(2, 1, 1), 1, 1) as sets,
        Runner(build(DOUBLE), sets, cores=1, sandboxed=True) as runner,
    ):
        assert runner.block(0, 0, 5.0).seconds > 0
        assert sets.poison_left(0) == "a1"


def test_each_set_is_launched_exactly_once_a_block(build: Build) -> None:
    counting = build("""
        static float launches = 0;
        extern "C" void kernel_function(float* y, const int64_t* shapes) { y[0] = ++launches; }
    """)
    with ArgumentSets(vectors(1, 1), 0, 3) as sets, Runner(counting, sets, cores=1, sandboxed=True) as runner:
        for expected in ([1, 2, 3], [4, 5, 6]):
            runner.block(0, 3, 5.0)
            assert [sets.outputs(k)[0].item() for k in range(3)] == expected


def test_the_unsandboxed_runner_computes_the_same(build: Build) -> None:
    with ArgumentSets(vectors(2, 7, 3), 1, 1) as sets:
        sets.inputs(0)[0].normal_()
        with Runner(build(DOUBLE), sets, cores=2, sandboxed=False) as runner:
            runner.block(0, 1, 5.0)
        assert torch.equal(sets.outputs(0)[0], 2 * sets.inputs(0)[0])


@pytest.mark.parametrize("count", [1, 8, 9, 33, 64])
def test_a_kernel_gets_up_to_64_arguments_and_then_the_shapes(build: Build, count: int) -> None:
    names = [f"a{i}" for i in range(count)]
    reads = "".join(f"const float* {name}, " for name in names[:-1])
    total = " + ".join([f"{name}[0]" for name in names[:-1]] or ["0"])
    source = f'extern "C" void kernel_function({reads}float* out, const int64_t* shapes) '
    source += f"{{ out[0] = {total} + shapes[{count - 1}]; }}"
    with ArgumentSets(vectors(count, 1), count - 1, 1) as sets:
        for tensor in sets.inputs(0):
            tensor.fill_(3)
        with Runner(build(source), sets, cores=1, sandboxed=True) as runner:
            runner.block(0, 1, 5.0)
        assert sets.outputs(0)[0].item() == 3 * (count - 1) + 1


def test_more_threads_than_cores_and_heap_memory_are_no_crime(build: Build) -> None:
    generous = build("""
        #include <omp.h>
        #include <vector>
        extern "C" void kernel_function(float* y, const int64_t*) {
            std::vector<float> scratch(1 << 24, 1.0f);
            float sum = 0;
            #pragma omp parallel num_threads(64) reduction(+ : sum)
            {
                std::vector<float> own(1 << 20, 1.0f);
                sum += own[omp_get_thread_num()] / omp_get_num_threads();
            }
            y[0] = sum + scratch[5] + (omp_get_num_procs() > 0);
        }
    """)
    with ArgumentSets(vectors(1, 1), 0, 1) as sets, Runner(generous, sets, cores=2, sandboxed=True) as runner:
        for _ in range(3):
            runner.block(0, 1, 5.0)
        assert sets.outputs(0)[0].item() == 3


def test_a_library_that_misses_a_symbol_does_not_load(build: Build) -> None:
    missing = build('void nowhere(); extern "C" void kernel_function(float*, const int64_t*) { nowhere(); }')
    with ArgumentSets(vectors(1, 1), 0, 1) as sets, pytest.raises(KernelDied, match="undefined symbol"):
        Runner(missing, sets, cores=1, sandboxed=True)


def test_a_library_without_the_entry_does_not_load(build: Build) -> None:
    with ArgumentSets(vectors(1, 1), 0, 1) as sets, pytest.raises(KernelDied, match="has no entry"):
        Runner(build("int nothing;"), sets, cores=1, sandboxed=True)


def test_even_code_that_runs_at_load_time_cannot_read_a_users_file(build: Build, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    nosy = build(f"""
        #include <fcntl.h>
        static int got = -2;
        __attribute__((constructor)) static void early() {{ got = open("{secret}", O_RDONLY); }}
        extern "C" void kernel_function(float* y, const int64_t*) {{ y[0] = (float)got; }}
    """)
    with ArgumentSets(vectors(1, 1), 0, 1) as sets, Runner(nosy, sets, cores=1, sandboxed=True) as runner:
        runner.block(0, 1, 5.0)
        assert sets.outputs(0)[0].item() == -1


def test_the_runner_holds_no_secret_and_no_file_of_the_judge(
    build: Build, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SECRET_KEY", "hush")
    with (
        (tmp_path / "open").open("w") as file,
        ArgumentSets(vectors(2, 1, 1), 1, 1) as sets,
        Runner(build(DOUBLE), sets, cores=1, sandboxed=True) as runner,
    ):
        os.set_inheritable(file.fileno(), True)
        process = Path(f"/proc/{runner.pid}")
        assert b"hush" not in (process / "environ").read_bytes()
        assert {fd.name for fd in (process / "fd").iterdir()} == {"0", "1", "2", "3", "4"}
        status = (process / "status").read_text()
        assert "NoNewPrivs:\t1" in status
        assert "Seccomp:\t2" in status
        assert "CapEff:\t0000000000000000" in status


@pytest.mark.parametrize(
    "dtype",
    ["float32", "float64", "bfloat16", "float16", "int8", "uint8", "int16", "int32", "int64", "bool"],
)
def test_every_dtype_has_views_of_its_shape_and_poison(dtype: str) -> None:
    spec = TensorSpec("a", (33, 129), dtype)
    with ArgumentSets([spec, spec], 1, 2) as sets:
        for tensor in (*sets.inputs(1), *sets.outputs(1)):
            assert tensor.shape == spec.shape
            assert tensor.dtype == getattr(torch, dtype)
            assert tensor.data_ptr() % 64 == 0
        out = sets.outputs(1)[0]
        if out.is_floating_point():
            assert bool(out.isnan().all())
        sets.poison(1, 1)
        first = out.view(torch.uint8).clone()
        sets.poison(1, 2)
        assert not torch.equal(first, out.view(torch.uint8))
        out.fill_(1)
        assert sets.poison_left(1) is None


def test_one_element_left_as_poison_is_found_in_a_large_output() -> None:
    with ArgumentSets(vectors(1, 3 << 20), 0, 1) as sets:
        out = sets.outputs(0)[0]
        last = out[-1].clone()
        out[:-1] = 0
        assert sets.poison_left(0) == "a0"
        out[-1] = 0
        assert sets.poison_left(0) is None
        assert bool(last.isnan())


def test_a_buffer_ends_where_its_last_page_ends_up_to_alignment() -> None:
    with ArgumentSets(vectors(3, 1003), 1, 2) as sets:
        for slot in sets.slots:
            assert slot.start % 64 == 0
            assert 0 <= slot.length - slot.end < 64
            assert slot.length % mmap.PAGESIZE == 0


def test_scalars_and_empty_tensors_are_arguments_too(build: Build) -> None:
    kernel = build("""
        extern "C" void kernel_function(const float* none, const float* x, float* y, const int64_t* shapes) {
            y[0] = x[0] + shapes[0] + shapes[1];
        }
    """)
    specs = [
        TensorSpec("none", (0, 5), "float32"),
        TensorSpec("x", (), "float32"),
        TensorSpec("y", (), "float32"),
    ]
    with ArgumentSets(specs, 2, 1) as sets, Runner(kernel, sets, cores=1, sandboxed=True) as runner:
        none, x = sets.inputs(0)
        x.fill_(2)
        runner.block(0, 1, 5.0)
        assert none.shape == (0, 5)
        assert sets.outputs(0)[0].item() == 7


def test_too_many_arguments_are_refused_in_words() -> None:
    with (
        ArgumentSets(vectors(65, 1), 64, 1) as sets,
        pytest.raises(DeviceError, match="at most 64 arguments, not 65"),
    ):
        Runner(Path("/nowhere.so"), sets, cores=1, sandboxed=True)


AS_NOBODY = """
import ctypes, os, sys
import numpy.random
from pathlib import Path
from fitness import native
from fitness.judge.buffers import ArgumentSets
from fitness.judge.runner import Runner
from fitness.card import TensorSpec
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE: /proc/self is ours again
assert not native.features().missing, native.features()
specs = [TensorSpec("x", (5, 5), "float32"), TensorSpec("y", (5, 5), "float32")]
with ArgumentSets(specs, 1, 1) as sets:
    sets.inputs(0)[0].fill_(4)
    with Runner(Path(sys.argv[1]), sets, cores=2, sandboxed=True) as runner:
        runner.block(0, 1, 5.0)
        print(sets.outputs(0)[0][4, 4].item())
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_a_user_without_rights_gets_the_same_runner(build: Build) -> None:
    root = Path(native.__file__).parents[2]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        library = shutil.copy(build(DOUBLE), folder)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, library],
            cwd=root,
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], "XDG_CACHE_HOME": folder},
        )
    assert done.stdout.strip() == "8.0", done.stderr


def test_a_kernel_that_the_machine_kept_waiting_is_not_timed_out(build: Build) -> None:
    busy = build("""
extern "C" void kernel_function(const float* x, float* y, const int64_t* shapes) {
    volatile float sum = 0;
    for (int64_t i = 0; i < 20000000; i++) sum = sum + x[0];
    y[0] = x[0];
}
""")
    with (
        ArgumentSets(vectors(2, 1, 1), 1, 1) as sets,
        Runner(busy, sets, cores=1, sandboxed=True) as runner,
    ):
        halt = threading.Timer(0.01, os.kill, (runner.pid, signal.SIGSTOP))
        onward = threading.Timer(2.5, os.kill, (runner.pid, signal.SIGCONT))
        for timer in (halt, onward):
            timer.start()
        runner.block(0, 1, 2.0)
        for timer in (halt, onward):
            timer.join()


def test_a_kernel_that_shares_its_core_with_others_is_not_timed_out(build: Build) -> None:
    busy = build("""
extern "C" void kernel_function(const float* x, float* y, const int64_t* shapes) {
    volatile float sum = 0;
    for (int64_t i = 0; i < 200000000; i++) sum = sum + x[0];
    y[0] = x[0];
}
""")
    core = min(os.sched_getaffinity(0))
    spinning = [sys.executable, "-c", f"import os\nos.sched_setaffinity(0, [{core}])\nwhile True: pass"]
    with (
        ArgumentSets(vectors(2, 1, 1), 1, 1) as sets,
        Runner(busy, sets, cores=1, sandboxed=True) as runner,
    ):
        os.sched_setaffinity(runner.pid, [core])
        alone = runner.block(0, 1, 60.0).cpu_seconds
        others = [subprocess.Popen(spinning) for _ in range(2)]
        try:
            runner.block(0, 1, alone)
        finally:
            for other in others:
                other.kill()
                other.wait()
