"""Which kernels a run starts from, and who has to mend one that is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from evo import session, starting
from evo.settings import SettingsError
from evo.starting import Origin, Start, admitted
from fitness.testing import InstantTarget
from operators import space
from operators.proposal import Proposal
from populations import Kernel

GOOD = 'extern "C" void kernel_function(const float* x, float* out0, const long* shapes) {}\n'
BAD = "int main() {}\n"


def start(origin: Origin, source: str, words: str = "it") -> Start:
    return Start(origin, words, Proposal(Kernel(source, "cpp"), "seed", words))


@pytest.fixture
def bad_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drafts that no target admits."""
    monkeypatch.setattr(starting, "drafted", lambda _card: ([start(Origin.DRAFTED, BAD)], ""))


@pytest.mark.usefixtures("bad_draft")
def test_a_refused_draft_does_not_stand_in_the_way_of_the_users_kernel() -> None:
    (proposal,) = admitted(InstantTarget(failures=0.0), [start(Origin.GIVEN, GOOD)], "plain.py")
    assert proposal.kernel.source == GOOD


@pytest.mark.usefixtures("bad_draft")
def test_where_the_draft_is_all_there_is_its_refusal_is_said_with_the_cure() -> None:
    with pytest.raises(SettingsError, match=r"the draft of the reference was refused \(.*entry\); give one"):
        admitted(InstantTarget(failures=0.0), [], "plain.py")


@pytest.mark.usefixtures("bad_draft")
def test_a_refused_kernel_of_the_users_is_named_whatever_its_file_is_called(tmp_path: Path) -> None:
    file = tmp_path / "seed naive.cpp"
    file.write_text(BAD)
    with pytest.raises(SettingsError, match=r"seed naive\.cpp: the source has no"):
        admitted(InstantTarget(failures=0.0), starting.given([file], "cpp"), "plain.py")


def test_where_there_is_a_built_in_kernel_nothing_is_drafted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "drafted", lambda _card: pytest.fail("drafted"))
    assert len(admitted(InstantTarget(failures=0.0), [start(Origin.BUILT_IN, GOOD)], "softmax")) == 1


def test_a_triton_seed_without_a_gpu_names_the_target_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.py"
    file.write_text("import triton\n")
    monkeypatch.setattr(session, "resolved", lambda target, _language: "cpu" if target == "auto" else target)
    with pytest.raises(SettingsError, match="needs a GPU"):
        session._chosen("auto", [file])
    assert session._chosen("cuda", [file]) == "cuda"
    assert session._chosen("auto", [tmp_path / "mine.cpp"]) == "cpu"


def test_an_autotuned_triton_seed_starts_with_numbers_that_can_be_tuned(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(AUTOTUNED)
    (found,) = starting.given([file], "triton")
    assert "CONFIG" in found.proposal.kernel.source
    assert set(space(found.proposal.kernel.source, "triton")) == {"BLOCK", "num_warps"}


AUTOTUNED = """import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK": 256}, num_warps=4), triton.Config({"BLOCK": 1024}, num_warps=8)],
    key=["n"],
)
@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


def kernel_function(x):
    out = torch.empty_like(x)
    n = x.numel()
    double[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, out, n)
    return out
"""
