"""What is read from a problem file: constants, cases, the entry's arguments, the reference, the baselines."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import torch

from fitness.judge.problem import builtin_names, load
from fitness.judge.source import read
from fitness.target import ProblemError
from tests.samples import (
    CACHE,
    SAMPLES,
    one_thread,  # noqa: F401 -- for all tests here
    sample,
)


def written(folder: Path, text: str) -> Path:
    path = folder / "some_problem.py"
    path.write_text(text)
    return path


def test_every_way_to_write_an_integer_constant_can_be_overridden(tmp_path: Path) -> None:
    text = "A, B = 1, 2\nC: int = 3  # ü\nD = (4 *\n  2); E = 2**5\nF = G = 6\nH = 2 * A\nBIG = 1e3\nI = -1\n"
    source = read(written(tmp_path, text))
    values = {name: constant.value for name, constant in source.constants.items()}
    assert values == {"A": 1, "B": 2, "C": 3, "D": 8, "E": 32, "F": 6, "G": 6, "H": 2, "I": -1}
    module = source.execute({name: 10 + n for n, name in enumerate("ABCDEFG")})
    found = {name: getattr(module, name) for name in values}
    assert found == {"A": 10, "B": 11, "C": 12, "D": 13, "E": 14, "F": 15, "G": 16, "H": 20, "I": -1}


def test_sizes_are_found_through_what_get_inputs_calls() -> None:
    text = read(SAMPLES / "conv2d.py")
    assert text.sizes_used_by("get_inputs") == ["batch_size", "in_channels", "height", "width"]


def test_the_source_of_a_model_under_other_constants_can_be_inspected() -> None:
    source = read(SAMPLES / "linear_gelu.py")
    module = source.execute({"batch_size": 5})
    assert "self.linear = nn.Linear" in inspect.getsource(module.Model.__init__)
    assert inspect.getsource(module.get_inputs).startswith("def get_inputs():")
    assert module.get_inputs()[0].shape == (5, 96)


def test_all_built_in_problems_load_with_their_declared_policy() -> None:
    for name in builtin_names():
        problem = load(name, seed=3, cache_bytes=CACHE)
        assert problem.card.policy in ("warm", "cold")
        assert problem.card.given.timed
        assert problem.card.given.flops
        assert not any(case.derived for case in problem.card.cases)


def test_parameters_and_buffers_are_arguments_in_state_dict_order() -> None:
    given = sample("batch_norm").card.given
    names = [spec.name for spec in given.arguments]
    assert names == [
        "x", "bn_weight", "bn_bias", "bn_running_mean", "bn_running_var", "bn_num_batches_tracked", "out",
    ]  # fmt: skip
    assert given.parameters[-1].dtype == "int64"
    assert given.bytes == sum(spec.nbytes for spec in given.arguments)


def test_the_signature_of_a_module_with_two_outputs_and_a_number() -> None:
    card = sample("two_outputs").card
    assert (
        "const float* x,\n    float* out0,\n    float* out1,\n    const int64_t* shapes" in card.signature()
    )
    assert "numbers among the inputs are constants: 2.5" in card.notes


def test_argument_names_never_clash_with_the_language_or_each_other(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "import torch\nfrom torch import nn\n"
        "class Model(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.a = nn.ModuleList([nn.Linear(3, 3)])\n        self.a_0 = nn.Linear(3, 3, bias=False)\n"
        "    def forward(self, float, out, shapes, a_0_bias):\n"
        "        return self.a_0(self.a[0](float + out + shapes + a_0_bias))\n"
        "def get_inputs():\n    return [torch.randn(2, 3) for _ in range(4)]\n"
        "def get_init_inputs():\n    return []\n",
    )
    given = load(str(path), seed=1, cache_bytes=CACHE).card.given
    names = [spec.name for spec in given.arguments]
    assert names == ["float_", "out_", "shapes_", "a_0_bias", "a_0_weight", "a_0_bias_", "a_0_weight_", "out"]


@pytest.mark.parametrize("name", ["linear_gelu", "batch_norm", "conv2d", "attention", "two_outputs", "gru"])
def test_reference_and_framework_agree_and_the_reference_is_float64(name: str) -> None:
    loaded = sample(name).cases[0]
    draw = loaded.draw("key")
    wide = loaded.reference(draw.inputs, draw.parameters)
    narrow = loaded.framework(draw.inputs, draw.parameters)
    assert not any("float64" in note for note in sample(name).card.notes)
    for want, got, spec in zip(wide, narrow, loaded.case.outputs, strict=True):
        assert want.dtype is torch.float64
        assert tuple(got.shape) == spec.shape
        torch.testing.assert_close(got.double(), want, rtol=0.1, atol=0.05)
        assert not torch.equal(got.double(), want)


def test_casts_inside_a_model_do_not_narrow_its_reference() -> None:
    loaded = sample("attention").cases[0]
    draw = loaded.draw("key")
    first = loaded.reference(draw.inputs, draw.parameters)[0]
    nudged = [draw.inputs[0].double() * (1 + 1e-12)]
    second = loaded.reference(nudged, draw.parameters)[0]
    assert 0 < float((first - second).abs().max()) < 1e-9


def test_a_reference_that_looks_at_bits_is_computed_in_float32_and_the_card_says_so(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "import torch\nfrom torch import nn\nROWS = 4\n"
        "class Model(nn.Module):\n    def forward(self, x):\n        return x.view(torch.int32) >> 23\n"
        "def get_inputs():\n    return [torch.randn(ROWS, 8)]\ndef get_init_inputs():\n    return []\n",
    )
    problem = load(str(path), seed=1, cache_bytes=CACHE)
    assert "the reference cannot run in float64: computed in float32" in problem.card.notes


def test_a_draw_depends_on_key_case_and_ordinal_alone() -> None:
    first, second = sample("linear_gelu").cases[0], sample("linear_gelu").cases[1]
    again = load(str(SAMPLES / "linear_gelu.py"), seed=9, cache_bytes=CACHE).cases[0]
    for a, b in zip(first.draw("k", 3).parameters, again.draw("k", 3).parameters, strict=True):
        assert torch.equal(a, b)
    assert torch.equal(first.draw("k", 3).inputs[0], again.draw("k", 3).inputs[0])
    assert not torch.equal(first.draw("k", 3).inputs[0], first.draw("k", 4).inputs[0])
    assert not torch.equal(first.draw("k").inputs[0], first.draw("other").inputs[0])
    assert not torch.equal(first.draw("k").parameters[1], second.draw("k").parameters[1])


def test_drawing_leaves_the_global_generator_as_it_was() -> None:
    torch.manual_seed(5)
    want = torch.rand(3)
    torch.manual_seed(5)
    sample("linear_gelu").cases[0].draw("k")
    assert torch.equal(torch.rand(3), want)


def test_a_model_over_tensors_reads_those_very_tensors() -> None:
    loaded = sample("batch_norm").cases[0]
    draw = loaded.draw("key")
    model = loaded.model_over(draw.parameters)
    assert [t.data_ptr() for t in model.state_dict().values()] == [t.data_ptr() for t in draw.parameters]
    with torch.no_grad():
        before = model(*draw.inputs)
        draw.parameters[1].add_(1.0)
        assert torch.allclose(model(*draw.inputs), before + 1.0)


def test_bind_and_functional_give_what_the_framework_gives() -> None:
    for name in ("two_outputs", "linear_gelu"):
        loaded = sample(name).cases[0]
        draw = loaded.draw("key")
        want = loaded.framework(draw.inputs, draw.parameters)
        with torch.no_grad():
            bound = loaded.flatten(loaded.bind(draw.parameters)(*draw.inputs))
            flat = loaded.flatten(loaded.functional(*draw.inputs, *draw.parameters))
        assert all(torch.equal(a, b) and torch.equal(a, c) for a, b, c in zip(want, bound, flat, strict=True))


def test_tied_weights_are_one_argument(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "import torch\nfrom torch import nn\n"
        "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.up = nn.Linear(4, 4, bias=False)\n        self.down = nn.Linear(4, 4, bias=False)\n"
        "        self.down.weight = self.up.weight\n"
        "    def forward(self, x):\n        return self.down(self.up(x))\n"
        "def get_inputs():\n    return [torch.randn(3, 4)]\ndef get_init_inputs():\n    return []\n",
    )
    loaded = load(str(path), seed=1, cache_bytes=CACHE).cases[0]
    draw = loaded.draw("k")
    assert [spec.name for spec in loaded.case.parameters] == ["up_weight"]
    product = draw.inputs[0] @ draw.parameters[0].T @ draw.parameters[0].T
    torch.testing.assert_close(loaded.framework(draw.inputs, draw.parameters)[0], product)
    with torch.no_grad():
        torch.testing.assert_close(loaded.bind(draw.parameters)(*draw.inputs), product)


def test_size_decides_the_policy_where_the_file_does_not() -> None:
    path = str(SAMPLES / "linear_gelu.py")
    nbytes = sample("linear_gelu").card.given.bytes
    assert load(path, seed=1, cache_bytes=4 * nbytes).card.policy == "warm"
    assert load(path, seed=1, cache_bytes=4 * nbytes - 1).card.policy == "cold"


def test_what_a_file_prints_never_reaches_standard_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (SAMPLES / "two_outputs.py").read_text()
    text = text.replace("return [torch.randn", "print('drawing')\n    return [torch.randn")
    load(str(written(tmp_path, text + "print('imported')\n")), seed=1, cache_bytes=CACHE)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "imported" in printed.err
    assert "drawing" in printed.err


def test_a_file_may_read_and_import_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "beside_the_problem.py").write_text("ROWS = 5\n")
    (tmp_path / "scale.txt").write_text("2.0")
    path = written(
        tmp_path,
        "from pathlib import Path\nimport torch\nfrom torch import nn\nfrom beside_the_problem import ROWS\n"
        "SCALE = float((Path(__file__).parent / 'scale.txt').read_text())\n"
        "class Model(nn.Module):\n    def forward(self, x):\n        return x * SCALE\n"
        "def get_inputs():\n    return [torch.randn(ROWS, 8)]\ndef get_init_inputs():\n    return []\n",
    )
    assert load(str(path), seed=1, cache_bytes=CACHE).card.given.inputs[0].shape == (5, 8)


def test_an_unknown_name_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(ProblemError, match="the nearest is 'softmax'"):
        load("sofmax", seed=1, cache_bytes=CACHE)
