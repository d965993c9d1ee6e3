"""Device argument sets and plan steps, on CPU tensors: what is poisoned, sealed and guarded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
import torch

from fitness.card import TensorSpec
from fitness.judge.cuda import plans
from fitness.judge.cuda.sets import COPIED_BYTES, DeviceSets
from fitness.plan import CasePlan, Constant, Copy, Count, Fill, View

SPECS = (
    TensorSpec("x", (33, 7), "float32"),
    TensorSpec("out", (33, 7), "bfloat16"),
    TensorSpec("flags", (5,), "bool"),
    TensorSpec("counts", (5,), "int64"),
)


@pytest.fixture
def sets() -> Iterator[DeviceSets]:
    with closing(DeviceSets(SPECS, 1, 2)) as made:
        for k in range(made.count):
            made.inputs(k)[0].normal_()
            made.poison(k, k)
        yield made


def write_all(sets: DeviceSets, k: int) -> None:
    for output in sets.outputs(k):
        output.zero_()


def test_a_set_whose_outputs_are_written_is_undamaged(sets: DeviceSets) -> None:
    write_all(sets, 0)
    assert sets.damage(0) is None


def test_one_element_left_unwritten_shows(sets: DeviceSets) -> None:
    kept = sets.outputs(0)[0][3, 2].clone()
    write_all(sets, 0)
    sets.outputs(0)[0][3, 2] = kept
    assert sets.damage(0) == "output out is not written everywhere"


def test_a_bool_left_unwritten_shows(sets: DeviceSets) -> None:
    sets.outputs(0)[0].zero_()
    assert sets.damage(0) == "output flags is not written everywhere"


def test_a_write_before_or_behind_a_buffer_shows(sets: DeviceSets) -> None:
    for at in (-1, 0):
        write_all(sets, 0)
        guard = sets.buffers[0][1].guards[at + 1]
        guard[at] ^= 1
        assert sets.damage(0) == "memory beside out was overwritten"
        guard[at] ^= 1


def test_the_first_harmed_set_of_several_is_told_of(sets: DeviceSets) -> None:
    for k in range(2):
        write_all(sets, k)
    assert sets.damage(0, 2) is None
    sets.inputs(1)[0][0, 0] += 1
    assert sets.damage(0, 2) == "input x was changed"
    assert sets.damage(0) is None


def test_a_changed_input_shows_however_large(sets: DeviceSets, monkeypatch: pytest.MonkeyPatch) -> None:
    assert SPECS[0].nbytes < COPIED_BYTES
    write_all(sets, 0)
    sets.inputs(0)[0][0, 0] += 1
    assert sets.damage(0) == "input x was changed"
    monkeypatch.setattr("fitness.judge.cuda.sets.COPIED_BYTES", 16)
    sets.poison(1, 1)
    write_all(sets, 1)
    assert sets.damage(1) is None
    sets.inputs(1)[0][0, 0] += 1
    assert sets.damage(1) == "input x was changed"


def test_numbers_that_changed_places_show_in_a_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fitness.judge.cuda.sets.COPIED_BYTES", 16)
    spec, out = TensorSpec("x", (8, 4096), "float32"), TensorSpec("out", (1,), "float32")
    with closing(DeviceSets((spec, out), 1, 1)) as made:
        x = made.inputs(0)[0].normal_()
        made.poison(0, 1)
        made.outputs(0)[0].zero_()
        assert made.damage(0) is None
        x[[0, 5]] = x[[5, 0]].clone()
        assert made.damage(0) == "input x was changed"


def test_poison_differs_from_run_to_run_and_is_no_number(sets: DeviceSets) -> None:
    first = sets.outputs(0)[0].view(torch.int16).clone()
    sets.poison(0, 17)
    assert not torch.equal(first, sets.outputs(0)[0].view(torch.int16))
    assert bool(sets.outputs(0)[0].isnan().all())


def test_scratch_is_spoilt_with_the_outputs(sets: DeviceSets) -> None:
    scratch = sets.scratch(0, [64])[0].data
    scratch.zero_()
    sets.poison(0, 3)
    assert bool((scratch != 0).all())


def step_views() -> tuple[View, View]:
    return View(1, 0, (33, 7), (7, 1), "bfloat16"), View(2, 0, (4,), (1,), "float32")


def test_host_steps_run_over_the_judges_buffers(sets: DeviceSets) -> None:
    out, scratch = step_views()
    flags, counts = View(3, 0, (5,), (1,), "bool"), View(4, 0, (5,), (1,), "int64")
    todo = CasePlan(
        "case",
        1,
        (SPECS[0].nbytes, SPECS[1].nbytes, 16, 5, 40),
        (
            Copy("copy", out, View(0, 0, (33, 7), (7, 1), "float32")),
            Fill("fill", scratch, 2.5),
            Constant("constant", flags, (True, False, True, True, False)),
            Count("count", counts, 3, 2),
        ),
        (out, flags, counts),
    )
    run, collect = plans._bind(todo, [], sets, 0)
    for step in [*run, *collect]:
        step()
    assert sets.damage(0) is None
    assert torch.equal(sets.outputs(0)[0], sets.inputs(0)[0].bfloat16())
    assert sets.outputs(0)[1].tolist() == [True, False, True, True, False]
    assert sets.outputs(0)[2].tolist() == [3, 5, 7, 9, 11]


def test_an_output_that_is_part_of_scratch_is_collected() -> None:
    wide = View(1, 2, (33, 7), (9, 1), "bfloat16")
    todo = CasePlan("case", 1, (SPECS[0].nbytes, 33 * 9 * 2 + 64), (Fill("fill", wide, 1.5),), (wide,))
    run, collect = plans._bind(todo, [], DeviceSets(SPECS[:2], 1, 1), 0)
    assert (len(run), len(collect)) == (1, 1)


def test_a_view_that_leaves_its_storage_is_refused(sets: DeviceSets) -> None:
    far = View(1, 1, (33, 7), (7, 1), "bfloat16")
    with pytest.raises(ValueError, match="leaves its storage"):
        plans._tensor(far, [sets.buffers[0][0].data, sets.buffers[0][1].data])


def test_types_that_are_no_types_are_refused() -> None:
    for kind in ("*fp32", "i32", "*i1", "constexpr", "*bf16", "u64", "tensordesc<bf16[16, 64]>", "*fp8e4nv"):
        assert plans._TYPE.fullmatch(kind), kind
    for kind in ("*fp32; system(0)", "i32)", "", "void", "tensordesc<bf16[16]; {>"):
        assert not plans._TYPE.fullmatch(kind), kind


def test_scratch_may_be_left_as_the_run_before_left_it(sets: DeviceSets) -> None:
    first, second = (sets.scratch(k, [64])[0].data for k in range(2))
    first.fill_(7)
    sets.poison(1, 5)
    sets.inherit(1)
    assert bool((second == 7).all())
