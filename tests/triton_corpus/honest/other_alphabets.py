# problem: softmax
# status: correct
# stage: promotion_gate
# reason: not timed
# Names and comments in other alphabets: Кириллица, ελληνικά, 漢字, emoji 🚀.
# -*- coding: utf-8 -*-
"""Софтмакс по строкам — сначала максимум, затем сумма. 行ごとの softmax。"""
import torch
import triton
import triton.language as tl

ΛΟΓΑΡΙΘΜΟΣ: tl.constexpr = 1.4426950408889634  # log₂ e


@triton.jit
def softmax_row(x, y, n, BLOCK: tl.constexpr):
    """每个程序处理一行。"""
    行 = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + 行 * n + at, mask=at < n, other=float("-inf")).to(tl.float32)
    e = tl.exp2((v - tl.max(v, 0)) * ΛΟΓΑΡΙΘΜΟΣ)  # 🚀
    tl.store(y + 行 * n + at, e / tl.sum(e, 0), mask=at < n)


def kernel_function(x):
    "Ausführen – größtmöglicher Block."
    y = torch.empty_like(x)
    softmax_row[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
