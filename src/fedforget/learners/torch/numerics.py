"""What the bits of a result depend on, and how it is kept small: one thread, deterministic kernels, a fingerprint.

A sum's last bit depends on the order of its terms, and the order on how many threads share them. So every fit and
every prediction runs on one intra-op thread; parallelism is over clients. What is left (the build, the processor's
instruction set, the device, the precision) is named by `fingerprint`, which belongs beside every digest.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_args

import torch

from ...errors import MissingExtra, SettingError

Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["fp32", "bf16"]

_memory: Any = torch.utils.deterministic


def has_onednn() -> bool:
    there: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return there


def has_onednn_linear() -> bool:
    """oneDNN's matrix product behind a private op: twice the rate of the public one on some processors."""
    return has_onednn() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def has_fused_sgd() -> bool:
    return hasattr(torch, "_fused_sgd_")


def resolve(device: Device) -> str:
    """`auto` is the GPU where there is one."""
    if device not in get_args(Device):
        raise SettingError("device", device, "'auto', 'cpu' or 'cuda'")
    present = torch.cuda.is_available()
    if device == "cuda" and not present:
        raise SettingError("device", device, "'cpu': torch sees no GPU here")
    return "cuda" if present and device != "cpu" else "cpu"


def check_precision(precision: str) -> None:
    if precision not in get_args(Precision):
        raise SettingError("precision", precision, "'fp32' or 'bf16'")


def is_deterministic(device: str) -> bool:
    """Whether two runs on this device end in the same bits. GPU kernels are not shown to."""
    return device == "cpu"


def fingerprint(device: str, precision: Precision) -> str:
    """Two runs with the same fingerprint, seed and data end in the same digests; with another they may not."""
    where = (
        torch.backends.cpu.get_cpu_capability() if device == "cpu" else torch.cuda.get_device_name()  # pragma: no cover
    )
    kernels = "+".join(
        name
        for name, there in (
            ("onednn", has_onednn()),
            ("linear", has_onednn_linear()),
            ("fused-sgd", has_fused_sgd()),
        )
        if there
    )
    return f"torch {torch.__version__}, {device} {where}, {precision}, {kernels or 'plain'}"


@contextmanager
def exact_bits(fill: bool = False) -> Iterator[None]:
    """One intra-op thread and deterministic kernels inside; as it was, outside.

    `fill` guards against code that reads memory it never wrote, by filling all of it: for modules that are not ours.
    """
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    filling = _memory.fill_uninitialized_memory
    if threads != 1:
        torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    _memory.fill_uninitialized_memory = fill
    try:
        yield
    finally:
        _memory.fill_uninitialized_memory = filling
        torch.use_deterministic_algorithms(strict)
        if threads != 1:
            torch.set_num_threads(threads)


def require_version() -> None:
    """Refuse a torch too old to have what is used here."""
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 4):
        raise MissingExtra("the torch learners (torch 2.4 or later)", "torch")
