# problem: softmax
# status: correct
# stage: promotion_gate
# reason: not timed
# Nested functions, a closure over numbers, assertions with f-strings, torch.no_grad, the device's
# guard.
import torch
import triton
import triton.language as tl

WARPS = 4


@triton.jit
def softmax_row(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * n + at, e / tl.sum(e, axis=0), mask=at < n)


def launcher(warps):
    def launch(x, y):
        def grid(meta):
            assert meta["BLOCK"] >= n, f"a block of {meta['BLOCK']} for {n} columns"
            return (rows,)

        rows, n = x.shape
        with torch.cuda.device(x.device):
            softmax_row[grid](x, y, n, BLOCK=max(16, triton.next_power_of_2(n)), num_warps=warps)
        return y

    return launch


@torch.no_grad()
def kernel_function(x):
    assert x.is_cuda and x.ndim == 2, f"expected a matrix on the device, got {x.ndim} dimensions on {x.device}"
    assert x.dtype in (torch.float16, torch.bfloat16, torch.float32), f"unsupported: {x.dtype=}"
    return launcher(WARPS)(x.detach(), torch.empty_like(x))


if __name__ == "__main__":
    import time

    tensor = torch.randn(8, 8, device="cuda")
    start = time.perf_counter()
    torch.testing.assert_close(kernel_function(tensor), torch.softmax(tensor, -1))
    print(f"{time.perf_counter() - start:.3f} s", triton.testing.do_bench(lambda: kernel_function(tensor)))
