"""From C++ text to a checked library: admission, the sandboxed compiler, and what a library may contain."""

from __future__ import annotations

import hashlib
import subprocess
import threading
from pathlib import Path

import pytest

from fitness import cpp
from fitness.card import Case, ProblemCard, TensorSpec
from fitness.target import Admission, Built
from populations.kernel import Kernel
from populations.verdict import Outcome, Stage, Verdict

X, Y = TensorSpec("x", (4, 8), "float32"), TensorSpec("y", (4, 8), "float32")
CASE = Case("4x8", {}, None, False, False, True, (X,), (), (Y,), bytes=256)
CARD = ProblemCard("double", "double.py", "0" * 64, "", "", "warm", (CASE,))

GOOD = """\
#include <cmath>
#include <cstdint>

// doubles; syscall(1) and fork() in a comment harm nobody
extern "C" void kernel_function(const float* x, float* y, const int64_t* shapes) {
    constexpr int TILE = 64;  // tune: 16 32 64
    #pragma omp parallel for schedule(static, TILE)
    for (int64_t i = 0; i < shapes[0] * shapes[1]; i++) y[i] = 2 * x[i];
}
"""


def admit(source: str) -> Admission | Verdict:
    return cpp.admit(Kernel(source, "cpp"), CARD)


def past_admission(source: str) -> Admission:
    return Admission(Kernel(source, "cpp"), hashlib.sha256(source.encode(errors="replace")).hexdigest())


def refusal(source: str) -> str:
    verdict = admit(source)
    assert isinstance(verdict, Verdict)
    assert (verdict.status, verdict.stage) == (Outcome.REJECTED, Stage.ADMIT)
    return verdict.reason


def test_a_plain_kernel_is_admitted() -> None:
    assert isinstance(admit(GOOD), Admission)


def test_a_kernel_in_an_extern_block_is_admitted() -> None:
    block = GOOD.replace('extern "C" void', 'extern "C" {\nvoid') + "}\n"
    assert isinstance(admit(block), Admission)


BODY = "    constexpr int TILE"
REFUSED = [
    ("x" * (256 * 1024 + 1), "at most 262144 (256 KiB)"),
    ("int a;\n\0", "line 2: contains a NUL"),
    ("int a;\n\n\udc80", "line 3: is not UTF-8"),
    ("", 'defines no entry; a kernel defines extern "C" void kernel_function(...)'),
    (GOOD.replace('extern "C" ', ""), "defines no entry"),
    (GOOD.replace("kernel_function", "kernel"), "defines no entry"),
    (
        GOOD.replace("const float* x, ", ""),
        "line 5: kernel_function takes 2 arguments, this problem passes 3",
    ),
    (GOOD.replace(BODY, "    syscall(1);\n" + BODY), "line 6: syscall(...)"),
    (GOOD.replace(BODY, "    std::system(0);\n" + BODY), "line 6: system(...)"),
    (GOOD.replace(BODY, "    if (fork ()) {}\n" + BODY), "line 6: fork(...)"),
    (GOOD.replace(BODY, "    dlopen(0, 0);\n" + BODY), "line 6: dlopen(...)"),
    (GOOD.replace(BODY, '    asm volatile("syscall");\n' + BODY), "line 6: assembly with syscall"),
    (GOOD.replace(BODY, '    __asm__("int $0x80");\n' + BODY), "line 6: assembly with int $0x80"),
    (GOOD.replace(BODY, '    asm(".incbin \\"/etc/passwd\\"");\n' + BODY), "line 6: assembly with .incbin"),
    ("__attribute__((constructor)) void f() {}\n" + GOOD, "line 1: attribute constructor"),
    ('__attribute__ (( used, ifunc("g") )) void f();\n' + GOOD, "line 1: attribute ifunc"),
    ("[[gnu::constructor]] void f() {}\n" + GOOD, "line 1: attribute constructor"),
    ('#include "/etc/passwd"\n' + GOOD, 'line 1: include "/etc/passwd"'),
    ("#  include <unistd.h>\n" + GOOD, "line 1: include <unistd.h>"),
    ("#include <sys/mman.h>\n" + GOOD, "line 1: include <sys/mman.h>"),
    ("#include <thread>\n" + GOOD, "line 1: include <thread>"),
    ("#include <fstream>\n" + GOOD, "line 1: include <fstream>"),
    ("#define H <x>\n#include H\n" + GOOD, "line 2: include H"),
]


@pytest.mark.parametrize(("source", "reason"), REFUSED, ids=[reason[:40] for _, reason in REFUSED])
def test_what_no_kernel_needs_is_refused_with_its_line(source: str, reason: str) -> None:
    assert reason in refusal(source)


def test_another_language_is_refused() -> None:
    verdict = cpp.admit(Kernel(GOOD, "triton"), CARD)
    assert isinstance(verdict, Verdict)
    assert "triton" in verdict.reason


@pytest.mark.parametrize(
    "fine",
    [
        'const char* s = "fork() // system(1)";',
        "template <class A> void f(A a, A* b) { a.exit(); b->signal(); }",
        "int forks(int); int my_system(int); constexpr long big = 1'000'000;",
        'const char* r = R"x(syscall( " )x";',
        "#include <immintrin.h>",
        "#include <vector>",
        "[[maybe_unused]] static char c = '\"';",
    ],
)
def test_innocent_text_is_admitted(fine: str) -> None:
    assert isinstance(admit(fine + "\n" + GOOD), Admission)


def test_layout_and_comments_do_not_change_the_normal_form() -> None:
    same = GOOD.replace("    ", "\t").replace("y[i] = 2 * x[i]", "y[ i ]=2*x[i] /* twice\n over */")
    same = same.replace("// tune: 16 32 64", "").replace(
        "schedule(static, TILE)", "schedule(static, \\\n  TILE)"
    )
    assert cpp.normalise(same) == cpp.normalise(GOOD)
    first, second = admit(GOOD), admit(same)
    assert isinstance(first, Admission)
    assert isinstance(second, Admission)
    assert first.normal_sha == second.normal_sha


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a + +b", "a ++b"),
        ("int a", "inta"),
        ('"a  b"', '"a b"'),
        ("'a'", "'b'"),
        ("#define F (x)", "#define F(x)"),
        ("#define A\nB", "#define A B"),
        ("a - -1", "a-1"),
        ('"//"', '""'),
        ("1'000", "1000"),
    ],
)
def test_different_programs_have_different_normal_forms(one: str, other: str) -> None:
    assert cpp.normalise(one) != cpp.normalise(other)


def test_the_normal_form_is_its_own_normal_form() -> None:
    assert cpp.normalise(cpp.normalise(GOOD)) == cpp.normalise(GOOD)


def test_a_good_kernel_builds_and_the_second_time_is_found(tmp_path: Path) -> None:
    admission = past_admission(GOOD)
    built = cpp.build(admission, tmp_path, sandboxed=True)
    assert isinstance(built, Built)
    assert built.traits["text_bytes"] > 0
    made = built.artifact.stat().st_mtime_ns
    again = cpp.build(admission, tmp_path, sandboxed=True)
    assert again == built
    assert built.artifact.stat().st_mtime_ns == made
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".so"]


def test_builds_may_run_side_by_side(tmp_path: Path) -> None:
    results: list[object] = []
    admission = past_admission(GOOD)
    threads = [
        threading.Thread(target=lambda: results.append(cpp.build(admission, tmp_path, sandboxed=True)))
        for _ in "ab"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results[0] == results[1]
    assert isinstance(results[0], Built)


def test_the_same_machine_code_has_the_same_hash_and_other_code_another(tmp_path: Path) -> None:
    sources = [GOOD, GOOD.replace("TILE", "GRAIN"), GOOD.replace("2 * x[i]", "std::exp(x[i])")]
    sources.append(sources[-1].replace("std::exp", "std::log"))
    built = [cpp.build(past_admission(source), tmp_path, sandboxed=True) for source in sources]
    shas = [b.artifact_sha for b in built if isinstance(b, Built)]
    assert len(shas) == 4
    assert shas[0] == shas[1]
    assert len(set(shas)) == 3


def failure(source: str, folder: Path) -> Verdict:
    verdict = cpp.build(past_admission(source), folder, sandboxed=True)
    assert isinstance(verdict, Verdict)
    assert not list(folder.glob("*.so"))
    return verdict


def test_a_syntax_error_is_told_with_its_line(tmp_path: Path) -> None:
    verdict = failure(GOOD.replace("y[i] = 2", "z[i] = 2"), tmp_path)
    assert (verdict.status, verdict.stage) == (Outcome.UNCOMPILABLE, Stage.BUILD)
    assert verdict.reason.startswith("line 8: ")
    assert "z" in verdict.reason
    assert verdict.evidence is not None
    assert verdict.evidence.log is not None


def test_an_undefined_function_is_told_by_name(tmp_path: Path) -> None:
    verdict = failure("void nowhere();\n" + GOOD.replace(BODY, "    nowhere();\n" + BODY), tmp_path)
    assert verdict.status is Outcome.UNCOMPILABLE
    assert "nowhere" in verdict.reason


@pytest.mark.parametrize(
    "theft",
    [
        '#include "/etc/passwd"\n',
        '#include "/proc/self/environ"\n',
        'asm(".incbin \\"/etc/passwd\\"");\n',
        'asm(".include \\"/etc/passwd\\"");\n',
    ],
)
def test_the_compiler_cannot_be_made_to_read_a_file(tmp_path: Path, theft: str) -> None:
    verdict = failure(theft + GOOD, tmp_path)
    assert verdict.status is Outcome.UNCOMPILABLE
    assert "root:" not in repr(verdict)
    assert "PATH=" not in repr(verdict)


def test_a_compile_bomb_is_ended_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpp, "WALL_S", 1)
    bomb = "template <int N> struct A { A<N - 1> a; A<N - 2> b; char c[sizeof(a) % 7 + 1]; };\n" + "".join(
        f"#define M{i} M{i - 1} M{i - 1} M{i - 1} M{i - 1}\n" for i in range(1, 16)
    )
    verdict = failure(
        "#define M0 int f(int); f(1) +\n" + bomb + GOOD.replace("shapes[0] *", "M15 0 *"), tmp_path
    )
    assert verdict.status is Outcome.UNCOMPILABLE
    assert verdict.reason == "compiling took longer than 1 s"


def library(source: str, folder: Path, *flags: str) -> Path:
    text, made = folder / "evil.cpp", folder / "evil.so"
    text.write_text(source)
    subprocess.run(["g++", "-shared", "-fPIC", "-nostartfiles", *flags, "-o", made, text], check=True)
    return made


ENTRY = 'extern "C" void kernel_function(const float*, float*, const long*) {}\n'
HIDDEN_IFUNC = 'static void* g() { return 0; } static int f() __attribute__((ifunc("g")));'
EVIL = [
    ('__attribute__((constructor)) static void f() { asm volatile(""); }', (), "static initialiser"),
    ('__attribute__((destructor)) static void f() { asm volatile(""); }', (), "runs at the end"),
    ('asm(".section .init_array,\\"aw\\"; .quad kernel_function; .text");', (), "static initialiser"),
    ('extern "C" void f() {}', ("-Wl,-init,f",), "an init function"),
    ('extern "C" { void* g() { return 0; } int f() __attribute__((ifunc("g"))); }', (), "IFUNC"),
    (f'extern "C" {{ {HIDDEN_IFUNC} int (*h)() = f; }}', (), "IFUNC"),
    ("", ("-Wl,-z,execstack",), "executable stack"),
    ("", ("-Wl,-rpath,/tmp",), "elsewhere"),
]


@pytest.mark.parametrize(("evil", "flags", "reason"), EVIL)
def test_a_library_that_runs_or_looks_before_its_entry_is_refused(
    tmp_path: Path, evil: str, flags: tuple[str, ...], reason: str
) -> None:
    fault = cpp.check_library(library(ENTRY + evil, tmp_path, *flags))
    assert fault is not None
    assert reason in fault


def test_a_library_that_needs_a_foreign_library_is_refused(tmp_path: Path) -> None:
    library("int other;", tmp_path).rename(tmp_path / "libother.so")
    fault = cpp.check_library(library(ENTRY, tmp_path, f"-L{tmp_path}", "-Wl,--no-as-needed", "-lother"))
    assert fault is not None
    assert "needs the library libother.so" in fault


def test_a_library_without_entry_is_refused(tmp_path: Path) -> None:
    fault = cpp.check_library(library("int nothing = 1;", tmp_path))
    assert fault is not None
    assert "exports no kernel_function" in fault


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF\x02\x01\x01" + bytes(200), b"#!/bin/sh\n"])
def test_a_file_that_is_no_library_is_refused(tmp_path: Path, content: bytes) -> None:
    made = tmp_path / "x.so"
    made.write_bytes(content)
    assert cpp.check_library(made) is not None


def test_a_damaged_library_never_raises(tmp_path: Path) -> None:
    whole = library(ENTRY, tmp_path).read_bytes()
    damaged = tmp_path / "damaged.so"
    for at in range(0, 400, 3):
        damaged.write_bytes(whole[:at] + b"\xff" * 8 + whole[at + 8 :])
        cpp.check_library(damaged)


def test_a_global_object_with_a_constructor_is_rejected_at_load(tmp_path: Path) -> None:
    source = "struct S { S(); int a; }; int seed = 3; S::S() { a = seed; seed++; } S s;\n" + GOOD
    verdict = failure(source, tmp_path)
    assert (verdict.status, verdict.stage) == (Outcome.REJECTED, Stage.LOAD)
    assert "static initialiser" in verdict.reason
