"""Diagonals of curvature by autograd, for any model: the empirical Fisher matrix's, and Hutchinson's of the Hessian.

The Fisher diagonal is the mean over a batch of the *examples'* squared gradients (not the square of their mean).
Hutchinson's takes signs z at random, for which the expectation of z ⊙ Hz is the diagonal of H; |z ⊙ Hz| = |Hz|. As in
the code that RapidRetrain released (AdaHessian's), a filter's entries share the mean over its places, and what is
averaged over steps is the square.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ...seeds import derive
from .sgd import Tensors

Loss = Callable[[Sequence[Tensor]], Tensor]
ExampleLoss = Callable[[Sequence[Tensor], Tensor, Tensor], Tensor]


def signs(seed: int, step: int) -> torch.Generator:
    """Where a step's random signs come from."""
    return torch.Generator().manual_seed(derive(seed, "signs", step) >> 1)


def hutchinson(loss: Loss, weights: Sequence[Tensor], draw: torch.Generator) -> tuple[Tensors, Tensors]:
    """The gradient, and the squared estimate of the Hessian's diagonal."""
    leaves = [w.detach().requires_grad_() for w in weights]
    with torch.enable_grad():
        grads = torch.autograd.grad(loss(leaves), leaves, create_graph=True, materialize_grads=True)
        z = [torch.randint(0, 2, g.shape, generator=draw).to(g).mul_(2).sub_(1) for g in grads]
        products = torch.autograd.grad(grads, leaves, z, materialize_grads=True)
    return [g.detach() for g in grads], [_shared(h.abs()).square() for h in products]


def _shared(h: Tensor) -> Tensor:
    return h.mean(dim=(2, 3), keepdim=True).expand_as(h) if h.dim() == 4 else h


def fisher(loss: ExampleLoss, weights: Sequence[Tensor], x: Tensor, y: Tensor) -> tuple[Tensors, Tensors]:
    """The mean gradient and the mean squared gradient; `loss` is that of one example."""
    per_example = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    grads = per_example([w.detach() for w in weights], x, y)
    return [g.mean(0) for g in grads], [g.square().mean(0) for g in grads]
