"""Every mistake in a problem file ends in one line that says what, where and what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fitness.judge.problem import load
from fitness.judge.source import read
from fitness.target import ProblemError
from tests.samples import one_thread  # noqa: F401 -- for all tests here

HEAD = "import torch\nfrom torch import nn\nN = 8\n"
INIT = "def get_init_inputs():\n    return []\n"


def model(result: str = "x * 2") -> str:
    return f"class Model(nn.Module):\n    def forward(self, x):\n        return {result}\n"


def inputs(result: str = "[torch.rand(N, 4)]") -> str:
    return f"def get_inputs():\n    return {result}\n"


def cases(result: str) -> str:
    return HEAD + model() + inputs() + INIT + f"def get_cases(seed):\n    return {result}\n"


def computing(result: str) -> str:
    return HEAD + model(result) + inputs() + INIT


def drawing(result: str) -> str:
    return HEAD + model() + inputs(result) + INIT


def extra(text: str) -> str:
    return HEAD + model() + inputs() + INIT + text


HIDDEN = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.randn(4)
    def forward(self, x):
        return x * self.w
"""
NEEDY = """
class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
    def forward(self, x):
        return x
"""
LAZY = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.LazyLinear(4)
    def forward(self, x):
        return self.w(x)
"""
PAIR = """
class Model(nn.Module):
    def forward(self, x, y):
        return x * y
"""
CHANCE = "[torch.rand(N, 4), __import__('random').random()]"
MISTAKES = {
    "not Python": ("x = 1\ndef f(:\n", r"file\.py:2: is not Python"),
    "not text": (b"\xff\xfe\x00", "is not text"),
    "no Model": (HEAD + inputs() + INIT, "has no Model; add"),
    "no get_inputs": (HEAD + model() + INIT, "has no get_inputs; add"),
    "no get_init_inputs": (HEAD + model() + inputs(), "has no get_init_inputs; add"),
    "Model is no module": (HEAD + "class Model: pass\n" + inputs() + INIT, "not a torch.nn.Module"),
    "import fails": ("import no_such_module\n", r"file\.py:1: the file raised ModuleNotFoundError"),
    "baselines without functions": (extra("BASELINES = {'cublas': 3}\n"), r"BASELINES is .*; give"),
    "a baseline with a name that is taken": (
        extra("BASELINES = {'eager': len}\n"),
        "BASELINES names one 'eager'; choose another name",
    ),
    "exits": ("raise SystemExit(3)\n", "the file raised SystemExit: 3"),
    "get_inputs raises": (drawing("[torch.rand(N, 4)[99]]"), r":8: get_inputs\(\) raised IndexError"),
    "strings": (drawing("['a']"), "returns a str; return tensors and numbers only"),
    "arrays": (drawing("[__import__('numpy').zeros(3)]"), "returns a ndarray"),
    "no tensor": (drawing("[]"), "returns no tensor"),
    "no list": (drawing("torch.rand(3)"), "returns a Tensor; return a list"),
    "empty tensor": (drawing("[torch.rand(0, 4)]"), "x is empty"),
    "other shapes": (drawing("[torch.rand(torch.randint(1, 99, ()).item(), 4)]"), "other shapes from call"),
    "other numbers": (HEAD + PAIR + inputs(CHANCE) + INIT, "other numbers from call"),
    "the same data": (drawing("[torch.arange(4)]"), "always returns the same data"),
    "another device": (drawing("[torch.rand(N, 4, device='meta')]"), "tensor on meta; leave it on the CPU"),
    "Model raises": (HEAD + NEEDY + inputs() + INIT, r"Model\(…\) raised TypeError"),
    "lazy": (HEAD + LAZY + inputs() + INIT, r"lazy layer \(w.weight\)"),
    "hidden chance": (HEAD + HIDDEN + inputs() + INIT, "self.w is random but not in the state dict"),
    "forward raises": (computing("x @ x"), r":6: Model.forward raised RuntimeError"),
    "recursion": (computing("self(x)"), "raised RecursionError"),
    "a number": (computing("3.0"), "returns a float; return a tensor"),
    "nothing": (computing("None"), "returns nothing"),
    "complex": (computing("torch.fft.fft(x)"), "returns a complex64 tensor; use one of float32"),
    "dropout": (computing("nn.functional.dropout(x)"), "different results on the same input"),
    "mutation": (computing("x.mul_(2)"), "changes its argument x"),
    "shape by value": (computing("x[x > 0.5]"), "other shapes from call to call"),
    "NaN": (computing("x * float('nan')"), "gives only NaN"),
    "cases no list": (cases("3"), "returns no list of cases"),
    "case no dict": (cases("[3]"), "case 0 of get_cases.seed. is of type int"),
    "cases raise": (cases("1 / 0"), r":12: get_cases\(seed\) raised ZeroDivisionError"),
    "unknown constant": (cases("[{'constants': {'M': 3}}]"), "'M', which is no .* the nearest is 'N'"),
    "constant no int": (cases("[{'constants': {'N': 'a'}}]"), "N is 'a'; give an integer"),
    "unknown distribution": (cases("[{'distribution': 'norml'}]"), "the nearest is 'normal'"),
    "unknown key": (cases("[{'nam': 'x'}]"), "unknown key 'nam'; the nearest is 'name'"),
    "a name twice": (cases("[{'name': 'x'}, {'name': 'x'}]"), "names two cases 'x'"),
    "first held out": (cases("[{'held_out': True}]"), "the first case is held out"),
    "policy": (extra("POLICY = 'hot'\n"), "set it to 'warm' or 'cold'"),
    "tolerance": (extra("TOLERANCE = 0.1\n"), "TOLERANCE is '0.1'; give an operation"),
    "work": (extra("def flops_and_bytes(case):\n    return 3\n"), r"return \(flops, bytes\)"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_clear_line(mistake: str, tmp_path: Path) -> None:
    text, message = MISTAKES[mistake]
    path = tmp_path / "file.py"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ProblemError, match=message) as caught:
        load(str(path), seed=1, cache_bytes=1 << 25)
    line = str(caught.value)
    assert line.startswith(str(path))
    assert "\n" not in line


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="no such file"):
        load(str(tmp_path / "nothing.py"), seed=1, cache_bytes=1 << 25)
    with pytest.raises(ProblemError, match="is a folder"):
        load(str(tmp_path), seed=1, cache_bytes=1 << 25)


def test_a_pipe_or_a_device_is_refused_before_it_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    for endless in (tmp_path / "pipe.py", Path("/dev/zero")):
        with pytest.raises(ProblemError, match="is no regular file"):
            read(endless)


def test_a_file_of_endless_nesting_is_not_python(tmp_path: Path) -> None:
    (tmp_path / "deep.py").write_text("-" * 1_000_000 + "1")
    with pytest.raises(ProblemError, match="is not Python"):
        read(tmp_path / "deep.py")
