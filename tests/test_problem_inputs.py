"""How data is drawn for checks, and renewed for timed blocks."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fitness.judge.inputs import DISTRIBUTIONS, perturbed, redrawn
from fitness.judge.problem import load
from fitness.judge.refill import LEAST_FACTOR, Refill
from fitness.judge.structure import Kind, kind_of
from tests.samples import (
    SAMPLES,
    one_thread,  # noqa: F401 -- for all tests here
    sample,
)


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (5, 1), (3, 4, 33)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_every_distribution_serves_every_shape_and_dtype(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    own = torch.rand(shape).to(dtype)
    for name in DISTRIBUTIONS:
        values = redrawn(own, Kind.FREE, name, rng())
        assert (values.shape, values.dtype) == (own.shape, dtype)
        assert torch.equal(values.nan_to_num(), redrawn(own, Kind.FREE, name, rng()).nan_to_num())


def test_distributions_hold_what_their_names_say() -> None:
    def drawn(name: str) -> torch.Tensor:
        return redrawn(torch.rand(64, 256), Kind.FREE, name, rng(1))

    assert drawn("rowscale").std(1).max() > 20 * drawn("rowscale").std(1).min()
    assert drawn("uniform").abs().max() <= 1
    assert drawn("large").abs().max() > 79
    assert drawn("spiky").abs().max() > 30 * drawn("spiky").abs().median()
    assert (drawn("tiny") == 0).all(1).any()
    assert 0 < drawn("tiny").abs().max() < 0.1
    ties = drawn("ties")
    assert ((ties == ties.amax(1, keepdim=True)).sum(1) > 1).any()
    assert set(drawn("integers").unique().tolist()) == {-1.0, 0.0, 1.0}
    special = drawn("special")
    assert (special == 0).any()
    assert torch.signbit(special[special == 0]).any()
    assert ((special != 0) & (special.abs() < torch.finfo(torch.float32).smallest_normal)).any()
    broken = drawn("nonfinite")
    assert int(broken.isinf().sum()) == 1
    assert 1 <= int(broken.isnan().sum()) <= 8
    assert not (broken.isnan().any(1) & broken.isinf().any(1)).any()


def test_perturbed_ones_and_zeros_can_be_told_from_ones_and_zeros() -> None:
    assert not (perturbed(torch.ones(9), rng()) == 1).any()
    assert not (perturbed(torch.zeros(9), rng()) == 0).any()
    assert (perturbed(torch.rand(99), rng()) > 0).all()
    count = torch.tensor(3)
    assert torch.equal(perturbed(count, rng()), count)


def test_a_mask_keeps_its_zeros_and_infinities() -> None:
    mask = torch.tril(torch.ones(8, 8))
    assert torch.equal(perturbed(mask, rng()) == 0, mask == 0)
    barred = torch.where(mask == 0, -torch.inf, 0.0)
    assert torch.equal(perturbed(barred, rng()).isinf(), barred.isinf())


def test_kinds_of_data_are_told_apart() -> None:
    def kind(draw: object) -> Kind:
        torch.manual_seed(0)
        assert callable(draw)
        return kind_of(draw(), draw())

    assert kind(lambda: torch.rand(8, 8)) is Kind.FREE
    assert kind(lambda: torch.rand(8, 8).bfloat16()) is Kind.FREE
    assert kind(lambda: torch.rand(2, 400_000)) is Kind.FREE
    assert kind(lambda: torch.ones(8, 8)) is Kind.CONSTANT
    assert kind(lambda: torch.randint(0, 9, (8, 8))) is Kind.WHOLE
    assert kind(lambda: torch.rand(8, 8) < 0.5) is Kind.WHOLE
    assert kind(lambda: torch.randint(0, 2, (8, 8)).float() * 2 - 1) is Kind.WHOLE
    assert kind(lambda: torch.tril(torch.rand(8, 8))) is Kind.MASKED
    for ordered in (
        lambda: torch.rand(8, 8).sort().values,
        lambda: torch.rand(8, 8).softmax(-1),
        lambda: torch.nn.functional.normalize(torch.randn(8, 8)),
        lambda: torch.nn.functional.one_hot(torch.randint(0, 9, (8,)), 9),
        lambda: torch.rand(8, 1).expand(8, 8),
        lambda: torch.randperm(20),
        lambda: torch.rand(8, 8).cov(),
    ):
        assert kind(ordered) is Kind.ORDERED


def test_refilled_data_never_repeats_and_the_same_number_gives_the_same_data() -> None:
    loaded = sample("linear_gelu").cases[0]
    refill = loaded.refiller("secret")
    seen = set()
    for ordinal in range(300):
        target = loaded.draw("buffers")
        refill.fill(ordinal, target.inputs, target.parameters)
        seen.add(target.inputs[0].numpy().tobytes() + target.parameters[0].numpy().tobytes())
    assert len(seen) == 300
    again = loaded.draw("buffers")
    loaded.refiller("secret").fill(299, again.inputs, again.parameters)
    assert again.inputs[0].numpy().tobytes() + again.parameters[0].numpy().tobytes() in seen


def test_refilled_data_keeps_the_nature_of_the_file_s_own() -> None:
    loaded = sample("triangular").cases[0]
    target = loaded.draw("buffers")
    loaded.refiller("secret").fill(5, target.inputs, target.parameters)
    for tensor in target.inputs:
        assert torch.equal(tensor, tensor.tril())
    loaded = sample("embedding").cases[0]
    target = loaded.draw("buffers")
    loaded.refiller("secret").fill(5, target.inputs, target.parameters)
    assert 0 <= int(target.inputs[0].min()) <= int(target.inputs[0].max()) < 100
    loaded = sample("batch_norm").cases[0]
    target = loaded.draw("buffers")
    loaded.refiller("secret").fill(5, target.inputs, target.parameters)
    assert (target.parameters[3] > 0).all()  # a variance
    assert 0 <= float(target.inputs[0].min()) <= float(target.inputs[0].max()) < 1


def test_a_refill_writes_into_the_given_memory() -> None:
    pools = [([torch.rand(6)], [torch.rand(2)]), ([torch.rand(6)], [torch.rand(2)])]
    refill = Refill(lambda n: pools[n], "secret")
    buffers, parameters = [torch.zeros(6)], [torch.zeros(2)]
    address = buffers[0].data_ptr()
    refill.fill(0, buffers, parameters)
    assert buffers[0].data_ptr() == address
    assert (buffers[0] != 0).any()


def test_a_file_that_fixes_its_seed_still_gives_fresh_data(tmp_path: Path) -> None:
    text = (SAMPLES / "hard_tanh.py").read_text()
    path = tmp_path / "fixed.py"
    path.write_text(text.replace("return [torch.rand(", "torch.manual_seed(0)\n    return [torch.rand("))
    loaded = load(str(path), seed=1, cache_bytes=1 << 25).cases[0]
    assert not torch.equal(loaded.draw("a").inputs[0], loaded.draw("b").inputs[0])


def test_a_file_that_always_returns_ones_is_judged_on_normal_values(tmp_path: Path) -> None:
    text = (SAMPLES / "hard_tanh.py").read_text()
    path = tmp_path / "ones.py"
    path.write_text(text.replace("torch.rand(", "torch.ones("))
    problem = load(str(path), seed=1, cache_bytes=1 << 25)
    assert any("always returns the same data" in note for note in problem.card.notes)
    target = problem.cases[0].draw("buffers", checking=False)
    before = target.inputs[0].clone()
    problem.cases[0].refiller("secret").fill(0, target.inputs, target.parameters)
    assert not torch.equal(before, target.inputs[0])


def test_an_input_that_never_changes_is_varied_in_checks_and_kept_in_timed_blocks(tmp_path: Path) -> None:
    path = tmp_path / "gain.py"
    path.write_text(
        "import torch\nfrom torch import nn\nROWS = 5\n"
        "class Model(nn.Module):\n    def forward(self, x, gain):\n        return x * gain\n"
        "def get_inputs():\n    return [torch.randn(ROWS, 7), torch.ones(7)]\n"
        "def get_init_inputs():\n    return []\n"
    )
    loaded = load(str(path), seed=1, cache_bytes=1 << 25).cases[0]
    assert not (loaded.draw("k").inputs[1] == 1).any()
    target = loaded.draw("k")
    loaded.refiller("secret").fill(0, target.inputs, target.parameters)
    assert (target.inputs[1] == 1).all()


def fills(*draws: torch.Tensor, count: int) -> list[torch.Tensor]:
    """So many fills of a tensor, from a refill over two draws of it."""
    refill = Refill(lambda n: ([draws[n]], []), "secret")
    made = []
    for ordinal in range(count):
        target = torch.empty_like(draws[0])
        refill.fill(ordinal, [target], [])
        made.append(target)
    return made


def test_no_two_fills_are_one_pool_times_one_factor() -> None:
    made = fills(torch.randn(1 << 13), torch.randn(1 << 13), count=8)
    # What a kernel that learns would look a window up by: ratios of neighbours, which one factor keeps.
    seen: set[tuple[int, ...]] = set()
    for x in made:
        ratios = ((x[1:] / x[:-1]).abs().log2() * 1024).round().long()
        marks = {tuple(mark) for mark in torch.stack((ratios[:-2], ratios[1:-1], ratios[2:]), 1).tolist()}
        assert len(marks & seen) < 0.01 * len(marks)
        seen |= marks


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_who_knows_the_pool_and_the_place_still_cannot_answer_from_it(dtype: torch.dtype) -> None:
    rows, n = 16, 1 << 14
    pool = torch.randn(2, rows * n, generator=torch.Generator().manual_seed(1)).to(dtype)
    x = fills(pool[0], pool[1], count=1)[0].float()
    whole = pool.reshape(-1).float()
    likeness = torch.nn.functional.conv1d(whole.view(1, 1, -1), x[:64].view(1, 1, -1))
    start = int(likeness.argmax())
    window = whole[start : start + rows * n].view(rows, n)
    factors = torch.linspace(LEAST_FACTOR, 1, 65)
    guess = torch.stack([(window * f).exp().sum(1) for f in factors]).mean(0).log()
    want = torch.logsumexp(x.view(rows, n).double(), 1)
    allowed = 2**-24 * (32 + n**0.5 + n / 64 + 4 * (want.abs() + x.view(rows, n).amax(1).abs()))
    assert float(((guess - want).abs() / allowed).mean()) > 10


def test_stretches_of_a_long_tensor_take_their_factors_from_different_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fitness.judge.refill.STRETCH", 100)
    first = torch.rand(100).repeat(10)
    (x,) = fills(first, first * 0.999, count=1)  # the pool repeats, the factors do not
    assert all(not torch.allclose(x[n : n + 100], x[:100], rtol=0.01) for n in range(100, 1000, 100))


def test_data_that_stays_clear_of_zero_is_scaled_a_little_only() -> None:
    for x in fills(1 + torch.rand(64), 1 + torch.rand(64), count=5):
        assert float(x.min()) > 0.98
