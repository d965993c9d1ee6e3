# Questions to the device, answered for the card that is lowered for; .cuda() of what is there already.
# case: x=float32[1024,256] -> float32[1024,256]
import torch
import triton
import triton.language as tl
from triton.runtime import driver

DEVICE = triton.runtime.driver.active.get_active_torch_device()


def is_hopper():
    return torch.cuda.is_available() and torch.cuda.get_device_capability()[0] >= 9


@triton.jit
def persistent(x, y, n, BLOCK: tl.constexpr):
    for start in tl.range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK, num_stages=2):
        at = start + tl.arange(0, BLOCK)
        tl.store(y + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)


def kernel_function(x):
    assert x.is_cuda and x.device.type == "cuda" and torch.cuda.device_count() == 1
    x = x.cuda().to(DEVICE)
    torch.cuda.set_device(x.device)
    device = torch.cuda.current_device()
    sms = driver.active.utils.get_device_properties(device)["multiprocessor_count"]
    assert sms == torch.cuda.get_device_properties(device).multi_processor_count
    assert torch.cuda.current_stream().cuda_stream == 0
    assert triton.runtime.driver.active.get_current_target().backend == "cuda"
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    with torch.cuda.device(x.device):
        persistent[(2 * sms if is_hopper() else sms,)](x, y, x.numel(), BLOCK=1024)
    torch.cuda.synchronize()
    return y
