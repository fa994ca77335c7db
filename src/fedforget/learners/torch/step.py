"""The CNN's gradient, written out by hand: what autograd computes, without its bookkeeping and with fewer passes.

    x ── conv 5×5 ── pool ── relu ── conv 5×5 ── pool ── relu ── dense ── relu ── dense ── softmax

Everything stays channels-last, where oneDNN's convolutions and torch's pooling are vectorised. The rectifier comes
after the pooling, which it commutes with, on a quarter of the numbers; and a bias' gradient is summed before the
gradient is spread back through the pooling, which moves numbers but does not change their sum.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .numerics import has_onednn_linear

_pool: Any = torch.ops.aten.max_pool2d_with_indices
_pool_back: Any = torch.ops.aten.max_pool2d_with_indices_backward
_conv_back: Any = torch.ops.aten.convolution_backward
_relu_back: Any = torch.ops.aten.threshold_backward


class Weights(NamedTuple):
    """The CNN's tensors, in the order of its parameters; also the shape of its gradient."""

    filters1: Tensor
    bias1: Tensor
    filters2: Tensor
    bias2: Tensor
    dense1: Tensor
    lift1: Tensor
    dense2: Tensor
    lift2: Tensor


class Trace(NamedTuple):
    """What the forward pass leaves for the backward one."""

    x: Tensor
    conv1: Tensor
    pool1: Tensor  # pooled and rectified
    where1: Tensor
    conv2: Tensor
    pool2: Tensor
    where2: Tensor
    flat: Tensor
    hidden: Tensor
    logits: Tensor


class Slopes(NamedTuple):
    """The gradients of what each layer puts out; `pool` is at the pooled numbers, `conv` spread back before them."""

    pool1: Tensor
    conv1: Tensor
    pool2: Tensor
    conv2: Tensor
    hidden: Tensor
    logits: Tensor


def product(x: Tensor, w: Tensor) -> Tensor:
    """x · wᵀ."""
    if has_onednn_linear() and not x.is_cuda:
        linear: Any = torch.ops.mkldnn._linear_pointwise
        out: Tensor = linear(x, w, None, "none", [], "")
        return out
    return x @ w.t()


def forward(w: Weights, x: Tensor) -> Trace:
    """`x` is (n, channels, height, width) in channels-last memory, of the type of the weights."""
    conv1 = F.conv2d(x, w.filters1, w.bias1, padding=2)
    pool1, where1 = _pool(conv1, [2, 2], [2, 2])
    pool1.relu_()
    conv2 = F.conv2d(pool1, w.filters2, w.bias2, padding=2)
    pool2, where2 = _pool(conv2, [2, 2], [2, 2])
    pool2.relu_()
    flat = pool2.permute(0, 2, 3, 1).reshape(len(x), -1)
    hidden = product(flat, w.dense1).add_(w.lift1).relu_()
    logits = product(hidden, w.dense2).add_(w.lift2)
    return Trace(x, conv1, pool1, where1, conv2, pool2, where2, flat, hidden, logits)


def mistake(logits: Tensor, y: Tensor) -> Tensor:
    """The gradient of each example's cross-entropy at the logits, in the logits' type."""
    slope = logits.float().softmax(1)
    slope[torch.arange(len(y), device=y.device), y] -= 1
    return slope.to(logits.dtype)


def slopes(w: Weights, t: Trace, logits: Tensor) -> Slopes:
    """Back through the layers, from the gradient at the logits."""
    hidden = _relu_back(product(logits, w.dense2.t()), t.hidden, 0)
    flat = product(hidden, w.dense1.t())
    n, channels, high, wide = t.pool2.shape
    pool2 = _relu_back(flat.view(n, high, wide, channels).permute(0, 3, 1, 2), t.pool2, 0)
    conv2 = _spread(pool2, t.conv2, t.where2)
    pool1 = _relu_back(_conv_back(conv2, t.pool1, w.filters2, None, *_GEOMETRY, [True, False, False])[0], t.pool1, 0)
    return Slopes(pool1, _spread(pool1, t.conv1, t.where1), pool2, conv2, hidden, logits)


# stride, padding, dilation, transposed, output padding, groups
_GEOMETRY: tuple[Any, ...] = ([1, 1], [2, 2], [1, 1], False, [0, 0], 1)


def _spread(slope: Tensor, before: Tensor, where: Tensor) -> Tensor:
    out: Tensor = _pool_back(slope, before, [2, 2], [2, 2], [0, 0], [1, 1], False, where)
    return out


def gradient(w: Weights, t: Trace, s: Slopes) -> Weights:
    """The sum over the batch of the examples' gradients, from what came in and the slope of what went out."""
    return Weights(
        _conv_back(s.conv1, t.x, w.filters1, None, *_GEOMETRY, [False, True, False])[1],
        _channels(s.pool1).sum(0),
        _conv_back(s.conv2, t.pool1, w.filters2, None, *_GEOMETRY, [False, True, False])[1],
        _channels(s.pool2).sum(0),
        product(s.hidden.t(), t.flat.t()),
        s.hidden.sum(0),
        product(s.logits.t(), t.hidden.t()),
        s.logits.sum(0),
    )


def squares(w: Weights, t: Trace, s: Slopes) -> Weights:
    """The sum over the batch of the examples' *squared* gradients.

    Of a dense layer the square of an outer product is the outer product of squares, so a product does it. A filter's
    gradient is itself a sum over places, so it has to be formed for each example before it is squared.
    """
    return Weights(
        _filter_squares(s.conv1, t.x, w.filters1),
        _example_sums(s.pool1).square().sum(0),
        _filter_squares(s.conv2, t.pool1, w.filters2),
        _example_sums(s.pool2).square().sum(0),
        product(s.hidden.square().t(), t.flat.square().t()),
        s.hidden.square().sum(0),
        product(s.logits.square().t(), t.hidden.square().t()),
        s.logits.square().sum(0),
    )


def _channels(x: Tensor) -> Tensor:
    """One row a place, one column a channel: a view, in channels-last memory."""
    return x.permute(0, 2, 3, 1).reshape(-1, x.shape[1])


def _example_sums(x: Tensor) -> Tensor:
    return x.flatten(2).sum(2)


_CHUNK = 16  # examples whose patches are laid out at a time: 10 MB for the second layer


def _filter_squares(slope: Tensor, x: Tensor, filters: Tensor) -> Tensor:
    out, into, high, wide = filters.shape
    total = torch.zeros(out, into * high * wide, dtype=x.dtype, device=x.device)
    for at in range(0, len(x), _CHUNK):
        patches = F.unfold(x[at : at + _CHUNK].contiguous(), (high, wide), padding=2)
        total += torch.bmm(slope[at : at + _CHUNK].flatten(2), patches.transpose(1, 2)).square_().sum(0)
    return total.view(out, into, high, wide)
