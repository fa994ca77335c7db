"""Causal attention with tiny heads: its products the right way round, and a few windows at a time.

With four numbers a head, a product whose *columns* are those four uses a quarter of a vector; turned over, with four
rows of as many columns as there are characters, it takes a fifth of the time. So queries, keys and values are kept as
(head, number, character). And a window's scores are much larger than all else about it: worked through a few windows
at a time they stay in the cache. Autograd does neither, hence the gradient is written out; it is checked against
`attend_plainly`, which autograd differentiates (also twice, as Hutchinson's diagonal needs).
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

_CACHED = 1 << 18  # scores at a time: a megabyte


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
        t, triple = qkv.shape[1:]
        scale = math.sqrt(heads / (triple // 3))
        turned = _turned(qkv, 3, heads)
        q, k, v = turned.unbind(0)
        chance, mixed = qkv.new_empty(len(q), t, t), torch.empty_like(v)
        for part in _parts(len(q), t):
            scores = torch.baddbmm(_mask(t, qkv), q[part].transpose(1, 2), k[part], alpha=scale)
            torch.softmax(scores, -1, out=chance[part])
            torch.bmm(v[part], chance[part].transpose(1, 2), out=mixed[part])
        ctx.save_for_backward(turned, chance)
        ctx.heads, ctx.scale = heads, scale
        return _back(mixed[None], heads)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        turned, chance = ctx.saved_tensors
        q, k, v = turned.unbind(0)
        (slope,) = _turned(slopes[0], 1, ctx.heads).unbind(0)
        rise: Any = torch.ops.aten._softmax_backward_data
        out = torch.empty_like(turned)
        to_q, to_k, to_v = out.unbind(0)
        for part in _parts(len(q), q.shape[2]):
            to_chance = torch.bmm(slope[part].transpose(1, 2), v[part])
            to_scores = rise(to_chance, chance[part], -1, q.dtype)
            torch.bmm(k[part], to_scores.transpose(1, 2), out=to_q[part])
            torch.bmm(q[part], to_scores, out=to_k[part])
            torch.bmm(slope[part], chance[part], out=to_v[part])
        out[:2] *= ctx.scale
        return _back(out, ctx.heads), None


def _parts(count: int, t: int) -> Iterator[slice]:
    """Heads of windows, as many at a time as the cache holds the scores of."""
    size = max(1, _CACHED // (t * t))
    return (slice(at, at + size) for at in range(0, count, size))


def _turned(x: Tensor, kinds: int, heads: int) -> Tensor:
    """(windows, t, kinds · width) → (kinds, windows · heads, numbers of a head, t)."""
    windows, t, width = x.shape
    parts = x.reshape(windows, t, kinds, heads, -1).permute(2, 0, 3, 4, 1)
    return parts.reshape(kinds, windows * heads, width // kinds // heads, t)


def _back(x: Tensor, heads: int) -> Tensor:
    """What `_turned` turned, turned back."""
    kinds, rows, numbers, t = x.shape
    parts = x.view(kinds, rows // heads, heads, numbers, t).permute(1, 4, 0, 2, 3)
    return parts.reshape(rows // heads, t, kinds * heads * numbers).contiguous()
