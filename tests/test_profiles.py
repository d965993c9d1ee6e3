"""What a binary is made of: instructions by class, and how many blocks fit a multiprocessor."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from fitness import outlines
from fitness.lowering import Lowered, Lowering
from fitness.lowering.disassembly import UNKNOWN, Disassembly, disassembler
from fitness.lowering.instructions import PREFIXES, class_of
from fitness.lowering.occupancy import Occupancy, occupancy
from populations.kernel import Kernel
from populations.profile import CLASSES, LIMITERS, KernelProfile
from populations.seeds import seeds
from populations.verdict import Outcome, Stage, Verdict

Made = tuple[Lowered, tuple[KernelProfile, ...]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lowering")


@pytest.fixture(scope="module")
def lowering(folder: Path) -> Iterator[Lowering]:
    made = Lowering(folder)
    yield made
    made.close()


def made(lowering: Lowering, problem: str, seed: str) -> Made:
    (card,) = outlines([problem], "cuda", whole=False)
    cases = [case for case in card.cases if case.timed][:1]
    source = next(one.source for one in seeds(problem, "triton") if one.name == seed)
    lowered = lowering.lower(Kernel(source, "triton"), cases)
    assert isinstance(lowered, Lowered), lowered
    return lowered, lowering.built(lowered, cases).profile


@pytest.fixture(scope="module")
def softmax(lowering: Lowering) -> Made:
    return made(lowering, "softmax", "whole_row")


@pytest.fixture(scope="module")
def matmul(lowering: Lowering) -> Made:
    return made(lowering, "matmul", "persistent")


def cubin(lowered: Lowered) -> bytes:
    return (lowered.folder / lowered.plan.binaries[0].files["cubin"]).read_bytes()


def test_a_softmax_loads_widely_and_takes_exponentials(softmax: Made) -> None:
    (kernel,) = softmax[1]
    assert kernel.mix is not None and kernel.load_bits is not None
    assert min(kernel.mix[kind] for kind in ("global_load", "global_store", "special", "fma")) > 0
    assert not {"tensor", "local", "other"} & kernel.mix.keys()
    assert max(kernel.load_bits) == 128


def test_a_matrix_product_uses_tensor_cores_and_copies_asynchronously(matmul: Made) -> None:
    (kernel,) = matmul[1]
    assert kernel.mix is not None
    assert min(kernel.mix[kind] for kind in ("tensor", "async_copy", "barrier", "shared")) > 0


@pytest.mark.parametrize("arch", ["sm_80", "sm_100"])
def test_the_table_holds_for_other_architectures(arch: str, tmp_path: Path) -> None:
    opened = Lowering(tmp_path, arch=arch)
    try:
        (kernel,) = made(opened, "matmul", "pointers")[1]
    finally:
        opened.close()
    assert kernel.mix is not None
    assert min(kernel.mix[kind] for kind in ("tensor", "async_copy", "shared", "integer")) > 0
    assert "other" not in kernel.mix


def test_shares_are_of_all_instructions(softmax: Made, matmul: Made) -> None:
    for kernel in (*softmax[1], *matmul[1]):
        assert kernel.mix is not None
        assert sum(kernel.mix.values()) == pytest.approx(1.0)
        assert kernel.mix.keys() <= CLASSES.keys()


def test_resources_and_their_bound_are_told(matmul: Made) -> None:
    (kernel,) = matmul[1]
    assert (kernel.launches, kernel.warps, kernel.spill_bytes) == (1, 8, 0)
    assert kernel.registers is not None and kernel.registers > 100
    assert (kernel.blocks, kernel.occupancy) == (1, 0.125)
    assert kernel.limiter in LIMITERS


def test_counts_are_those_of_the_whole_disassembly(softmax: Made, matmul: Made, tmp_path: Path) -> None:
    for lowered, _ in (softmax, matmul):
        (tmp_path / "a.cubin").write_bytes(cubin(lowered))
        tool = disassembler()
        assert tool is not None
        said = subprocess.run([tool, "-c", tmp_path / "a.cubin"], capture_output=True, text=True, check=True)
        names = re.findall(r"^\s+/\*[0-9a-f]+\*/\s+(?:@\S+\s+)?([A-Z]\w*)", said.stdout, re.MULTILINE)
        counted: Counter[str] = Counter()
        for (name, _bits), number in (Disassembly("sm_90").count(cubin(lowered)) or Counter()).items():
            counted[name] += number
        assert counted == Counter(names)


def test_nobody_is_asked_about_instructions_that_are_known(
    softmax: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Disassembly("sm_90").count(cubin(softmax[0]))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("asked again"))
    assert Disassembly("sm_90").count(cubin(softmax[0])) == before


@pytest.mark.parametrize("text", [b"", b"\x7fELF", b"\x7fELF\x02\x01\x01" + bytes(200)])
def test_what_is_no_binary_has_no_counts(text: bytes) -> None:
    assert Disassembly("sm_90").count(text) is None


def test_a_damaged_binary_harms_nobody(softmax: Made) -> None:
    whole = cubin(softmax[0])
    for at in range(0, len(whole), 97):
        Disassembly("sm_90").count(whole[:at])


def test_what_the_disassembler_refuses_is_other_and_not_remembered(
    softmax: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    whole = bytearray(cubin(softmax[0]))
    code = next(one for one in ELFFile(BytesIO(whole)).iter_sections() if one.name.startswith(".text."))
    whole[code["sh_offset"] : code["sh_offset"] + 16] = b"\xff" * 16
    fresh, knowing = Disassembly("sm_90"), Disassembly("sm_90")
    knowing.count(cubin(softmax[0]))
    found = fresh.count(bytes(whole))
    assert found is not None
    assert found[UNKNOWN] == 1
    assert knowing.count(bytes(whole)) == found
    assert class_of(UNKNOWN[0]) == "other"
    (kept,) = (tmp_path / "kernel-evo" / "instructions").iterdir()
    assert "?" not in kept.read_text()


def test_an_unknown_architecture_has_no_mix() -> None:
    assert Disassembly("gfx942").count(b"") is None
    assert occupancy("gfx942", registers=32, shared=0, warps=4) is None


@pytest.mark.parametrize(
    ("arch", "name", "kind"),
    [
        ("sm_80", "LDG", "global_load"),
        ("sm_80", "STG", "global_store"),
        ("sm_80", "LDGSTS", "async_copy"),
        ("sm_80", "LDGDEPBAR", "barrier"),
        ("sm_80", "LDSM", "shared"),
        ("sm_80", "HMMA", "tensor"),
        ("sm_80", "STL", "local"),
        ("sm_80", "ULDC", "move"),
        ("sm_80", "UIADD3", "integer"),
        ("sm_80", "REDUX", "exchange"),
        ("sm_80", "RED", "atomic"),
        ("sm_90", "UTMALDG", "async_copy"),
        ("sm_90", "HGMMA", "tensor"),
        ("sm_90", "QGMMA", "tensor"),
        ("sm_90", "WARPGROUP", "barrier"),
        ("sm_90", "WARPSYNC", "control"),
        ("sm_90", "SYNCS", "barrier"),
        ("sm_90", "VIADDMNMX", "integer"),
        ("sm_90", "F2FP", "conversion"),
        ("sm_90", "HFMA2", "half"),
        ("sm_90", "VHMNMX", "comparison"),
        ("sm_100", "UTCHMMA", "tensor"),
        ("sm_100", "UTCBAR", "barrier"),
        ("sm_100", "LDTM", "shared"),
        ("sm_100", "FFMA2", "fma"),
        ("sm_100", "FMNMX3", "comparison"),
        ("sm_100", "LDCU", "move"),
        ("sm_100", "UFLO", "integer"),
        ("sm_100", "MUFU", "special"),
        ("sm_100", "TEX", "other"),
    ],
)
def test_an_instruction_has_a_class(arch: str, name: str, kind: str) -> None:
    assert class_of(name) == kind, arch


def test_every_class_of_the_table_has_its_words() -> None:
    assert set(PREFIXES.values()) | {"other"} == set(CLASSES)


# By hand. sm_90: 65536 registers, so 16384 a quarter; 233472 bytes of shared memory, of which a block's first
# 1024 are the system's; 64 warps; 32 blocks.
@pytest.mark.parametrize(
    ("arch", "registers", "shared", "warps", "blocks", "share", "limiter"),
    [
        # 32 x 32 = 1024 a warp: 16 in a quarter, 64 warps: all
        ("sm_90", 32, 0, 4, 16, 1.0, "warps"),
        # 33 x 32 = 1056, in units of 256: 1280 a warp: 12 in a quarter, 48 warps: 12 blocks of 4
        ("sm_90", 33, 0, 4, 12, 0.75, "registers"),
        # 255 x 32 = 8160: 8192 a warp: 2 in a quarter, 8 warps
        ("sm_90", 255, 0, 4, 2, 0.125, "registers"),
        # 8 warps of 168 registers: 5376 a warp: 3 in a quarter, 12 warps: one block
        ("sm_90", 168, 0, 8, 1, 0.125, "registers"),
        # one warp a block: 32 blocks, half of all warps
        ("sm_90", 16, 0, 1, 32, 0.5, "blocks"),
        # 65536 + 1024 bytes: 3 fit 233472
        ("sm_90", 32, 65536, 4, 3, 3 * 4 / 64, "shared memory"),
        # 227 KiB, the most that a block may have
        ("sm_90", 64, 232448, 8, 1, 0.125, "shared memory"),
        # 1000 + 1024 bytes are 2048 in units of 128: 114 would fit
        ("sm_90", 32, 1000, 2, 32, 1.0, "warps"),
        # sm_80: 167936 bytes: 48 KiB + 1 KiB are 50176: 3
        ("sm_80", 40, 49152, 8, 3, 0.375, "shared memory"),
        # 40 x 32 = 1280: 12 in a quarter: 48 warps: 6 blocks of 8
        ("sm_80", 40, 0, 8, 6, 0.75, "registers"),
        # sm_86: 48 warps and 16 blocks
        ("sm_86", 32, 0, 4, 12, 1.0, "warps"),
        ("sm_86", 32, 0, 2, 16, 32 / 48, "blocks"),
        ("sm_89", 32, 0, 2, 24, 1.0, "warps"),
        # 1024 threads of 65 registers: 2304 a warp: 7 in a quarter, 28 warps: no block of 32 fits
        ("sm_90", 65, 0, 32, 0, 0.0, "registers"),
        ("sm_100", 128, 0, 4, 4, 0.25, "registers"),
    ],
)
def test_occupancy_is_what_the_calculator_says(
    arch: str, registers: int, shared: int, warps: int, blocks: int, share: float, limiter: str
) -> None:
    found = occupancy(arch, registers=registers, shared=shared, warps=warps)
    assert found == Occupancy(blocks, share, limiter)


def test_a_profile_survives_the_log(matmul: Made) -> None:
    verdict = Verdict(Outcome.CORRECT, Stage.PROMOTION_GATE, "right", profile=matmul[1])
    assert Verdict.from_json(verdict.to_json()) == verdict


@pytest.mark.parametrize("kind", CLASSES)
def test_the_docs_tell_the_table(kind: str) -> None:
    names = " ".join(prefix for prefix, found in PREFIXES.items() if found == kind)
    row = f"| {kind} | {CLASSES[kind]} | {f'`{names}`' if names else ''} |"
    assert row in (Path(__file__).parent.parent / "docs" / "profiles.md").read_text().splitlines()
