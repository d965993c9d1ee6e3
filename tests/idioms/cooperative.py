# A cooperative grid: all programs meet at a counter that this call zeroes.
# case: x=float32[132,1024] -> float32[132,1024]
import torch
import triton
import triton.language as tl


@triton.jit
def normalise(x, y, part, counter, n, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    pid = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + pid * n + at, mask=at < n, other=0.0)
    tl.store(part + pid, tl.sum(v * v))
    tl.debug_barrier()
    tl.atomic_add(counter, 1, sem="release")
    while tl.atomic_add(counter, 0, sem="acquire") < tl.num_programs(0):
        pass
    many = tl.arange(0, PROGRAMS)
    total = tl.sum(tl.load(part + many, mask=many < tl.num_programs(0), other=0.0, volatile=True))
    tl.store(y + pid * n + at, v / tl.sqrt(total), mask=at < n)


def kernel_function(x):
    rows, n = x.shape
    y, part = torch.empty_like(x), torch.empty(rows, device=x.device)
    counter = torch.zeros((), dtype=torch.int32, device=x.device)
    normalise[(rows,)](
        x, y, part, counter, n,
        triton.next_power_of_2(n), triton.next_power_of_2(rows), launch_cooperative_grid=True,
    )
    return y
