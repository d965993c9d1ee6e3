// problem: softmax
// status: rejected
// stage: admit
// reason: defines no entry
// A Python module where C++ is wanted.
import torch

def kernel_function(x):
    return torch.softmax(x, dim=-1)
