"""Causal attention with many tiny heads, as few large products as will do.

With four numbers a head, a product's inner or outer side is four: an eighth of a vector. Where the head's numbers are
the *inner* side that costs little. Where they are the outer one (probabilities · values) the heads of a window are
multiplied by all heads' values at once and each keeps its own block of the result: four times the arithmetic in half
the time of the narrow product. Autograd cannot choose so, hence the gradient is written out; it is checked against
`attend_plainly`, which autograd differentiates (also twice, as Hutchinson's diagonal needs).
"""

import math
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor


def attend(qkv: Tensor, heads: int) -> Tensor:
    """(windows, characters, 3 · width) of queries, keys and values → (windows, characters, width)."""
    out: Tensor = _Attention.apply(qkv, heads)  # type: ignore[no-untyped-call]
    return out


def attend_plainly(qkv: Tensor, heads: int) -> Tensor:
    """The same by the book."""
    windows, t, triple = qkv.shape
    q, k, v = qkv.view(windows, t, 3, heads, -1).permute(2, 0, 3, 1, 4)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + _mask(t, qkv)
    mixed: Tensor = scores.softmax(-1) @ v
    return mixed.transpose(1, 2).reshape(windows, t, triple // 3)


def _mask(t: int, like: Tensor) -> Tensor:
    return _mask_for(t, like.device, like.dtype)


@lru_cache(maxsize=8)
def _mask_for(t: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    return torch.full((t, t), -math.inf, device=device, dtype=dtype).triu_(1)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, qkv: Tensor, heads: int) -> Tensor:
        windows, t, triple = qkv.shape
        q, k, v = qkv.view(windows, t, 3, triple // 3).unbind(2)
        scale = 1 / math.sqrt(triple // 3 // heads)
        scores = torch.baddbmm(_mask(t, qkv), _narrow(q, heads), _narrow(k, heads).transpose(1, 2), alpha=scale)
        chance = scores.softmax(-1)
        ctx.save_for_backward(qkv, chance)
        ctx.heads, ctx.scale = heads, scale
        return _own(torch.bmm(chance.view(windows, heads * t, t), v), heads)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        qkv, chance = ctx.saved_tensors
        heads, slope = ctx.heads, slopes[0]
        windows, t, triple = qkv.shape
        q, k, v = qkv.view(windows, t, 3, triple // 3).unbind(2)
        rise: Any = torch.ops.aten._softmax_backward_data
        to_chance = torch.bmm(_narrow(slope, heads), _narrow(v, heads).transpose(1, 2))
        to_scores = rise(to_chance, chance, -1, qkv.dtype).view(windows, heads * t, t)
        out = torch.empty_like(qkv).view(windows, t, 3, triple // 3)
        torch.mul(_own(torch.bmm(to_scores, k), heads), ctx.scale, out=out[:, :, 0])
        torch.mul(torch.bmm(to_scores.transpose(1, 2), _apart(q, heads)), ctx.scale, out=out[:, :, 1])
        out[:, :, 2] = torch.bmm(chance.view(windows, heads * t, t).transpose(1, 2), _apart(slope, heads))
        return out.view_as(qkv), None


def _narrow(x: Tensor, heads: int) -> Tensor:
    """(windows, t, width) → (windows · heads, t, width / heads)."""
    windows, t, width = x.shape
    return x.reshape(windows, t, heads, -1).transpose(1, 2).reshape(windows * heads, t, width // heads)


def _own(x: Tensor, heads: int) -> Tensor:
    """(windows, heads · t, width) → (windows, t, width): of each head's rows the head's columns."""
    windows, rows, width = x.shape
    blocks = x.view(windows, heads, rows // heads, heads, -1).diagonal(dim1=1, dim2=3)
    return blocks.permute(0, 1, 3, 2).reshape(windows, rows // heads, width)


def _apart(x: Tensor, heads: int) -> Tensor:
    """(windows, t, width) → (windows, heads · t, width): each head's rows with zeros in the others' columns."""
    windows, t, width = x.shape
    out = x.new_zeros(windows, heads, t, heads, width // heads)
    out.diagonal(dim1=1, dim2=3).copy_(x.reshape(windows, t, heads, -1).permute(0, 1, 3, 2))
    return out.view(windows, heads * t, width)
