"""Compiles what kernel files launch, for an architecture that need not be there; for tests of the operators.

Reads lines of JSON, {"name", "file", "subject"}, from standard input; writes one line for each: {"name",
"kernels"}, how many binaries came out, or {"name", "failed"}.
"""

import inspect
import json
import sys
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from tests.operators.triton.subjects import INPUTS, load

TARGET = GPUTarget("cuda", 90, 32)
OPTIONS = ("num_warps", "num_stages", "maxnreg", "num_ctas")
made: list[str] = []


def kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return {torch.float32: "*fp32", torch.bfloat16: "*bf16", torch.int32: "*i32"}[value.dtype]
    return "i1" if isinstance(value, bool) else "i32" if isinstance(value, int) else "fp32"


def compiled(self: Any, *args: Any, grid: Any, **kwargs: Any) -> None:
    """In place of a launch: compile for the target."""
    options = {name: kwargs.pop(name) for name in OPTIONS if name in kwargs}
    kwargs.pop("warmup", None)
    bound = inspect.signature(self.fn).bind(*args, **kwargs)
    bound.apply_defaults()
    constants = {p.name: bound.arguments[p.name] for p in self.params if p.is_constexpr}
    signature = {name: kind(value) for name, value in bound.arguments.items()}
    signature |= dict.fromkeys(constants, "constexpr")
    sizes = grid(dict(bound.arguments)) if callable(grid) else grid
    assert all(size > 0 for size in sizes)
    source = ASTSource(
        fn=self, signature=signature, constexprs={(self.arg_names.index(n),): v for n, v in constants.items()}
    )
    binary = triton.compile(source, target=TARGET, options=options)
    made.append(binary.asm["ptx"])


JITFunction.run = compiled

if __name__ == "__main__":
    for line in sys.stdin:
        task = json.loads(line)
        made.clear()
        try:
            load(task["file"]).kernel_function(*INPUTS[task["subject"]]()[0])
            answer = {"name": task["name"], "kernels": len(made), "ptx": made if task.get("ptx") else []}
        except Exception as failure:  # reported to the test, which fails with it
            answer = {"name": task["name"], "failed": f"{type(failure).__name__}: {failure}"[:2000]}
        print(json.dumps(answer), flush=True)
