# Indexing, slicing, None, expand_as, transpose, unsqueeze, narrow, chunk: views of every kind reach a kernel.
# case: x=float32[32,128] -> float32[32,64]
import torch
import triton
import triton.language as tl


@triton.jit
def add(a, b, c, out, n, sa0, sa1, sb0, sb1, sc0, sc1, so0, so1, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    m = at < n
    total = tl.load(a + row * sa0 + at * sa1, mask=m) + tl.load(b + row * sb0 + at * sb1, mask=m)
    total += tl.load(c + row * sc0 + at * sc1, mask=m)
    tl.store(out + row * so0 + at * so1, total, mask=m)


def kernel_function(x):
    n = x.shape[1] // 2
    left, right = x[:, :n], x[:, n:]
    first = x[0, None, :n].expand_as(left)
    left_again, _ = x.chunk(2, dim=-1)
    assert left_again.data_ptr() == left.data_ptr() and not left.is_contiguous()
    out = torch.empty(n, x.shape[0], device=x.device, dtype=x.dtype).t()
    right = right.unsqueeze(0).transpose(1, 2).squeeze(0).permute(1, 0)[...]
    add[(x.size(0),)](
        left, right, first, out, n, *left.stride(), *right.stride(), *first.stride(), *out.stride(),
        BLOCK=triton.next_power_of_2(n),
    )
    result = torch.empty((x.shape[0], n), dtype=x.dtype, device=x.device)
    result.copy_(out)
    return result
