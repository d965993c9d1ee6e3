# Host-side tensor descriptors, a persistent grid by the number of multiprocessors.
# case: a=float16[512,256] b=float16[384,256] -> float16[512,384]
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SMS: tl.constexpr):
    n_tiles = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * n_tiles, SMS, flatten=True):
        m, n = (tile // n_tiles) * BM, (tile % n_tiles) * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(a.load([m, k]), b.load([n, k]).T, acc)
        c.store([m, n], acc.to(tl.float16))


def kernel_function(a, b):
    (M, K), N = a.shape, b.shape[0]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    sms = torch.cuda.get_device_properties(a.device).multi_processor_count
    BM, BN, BK = 128, 128, 64
    described = [
        TensorDescriptor.from_tensor(a, [BM, BK]),
        TensorDescriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK]),
        TensorDescriptor.from_tensor(c, [BM, BN]),
    ]
    grid = (min(sms, triton.cdiv(M, BM) * triton.cdiv(N, BN)),)
    persistent[grid](*described, M, N, K, BM, BN, BK, sms, num_warps=8, num_stages=3)
    return c
