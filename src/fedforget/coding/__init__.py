"""Coding: a record on n holders, back from any k of them, liars found. Bytes in, bytes out, no files, no keys.

`Code` is what the rest of FedForget knows; `ReedSolomon` is the code it uses, `RealLagrange` the paper's formula,
for study.
"""

import re

from fedforget.coding.kernels import Kernel, NumpyKernel
from fedforget.coding.kernels_llvm import choose_mode, host_features, llvm_kernel
from fedforget.coding.protocol import Code, Entropy, Readable, Writable
from fedforget.coding.real import ErrorRow, RealLagrange, error_table
from fedforget.coding.reed_solomon import ReedSolomon, fastest_kernel
from fedforget.coding.stripes import block_length, buffers, join, recover, stripe
from fedforget.errors import SettingError

__all__ = [
    "Code",
    "Entropy",
    "ErrorRow",
    "Kernel",
    "NumpyKernel",
    "Readable",
    "RealLagrange",
    "ReedSolomon",
    "Writable",
    "block_length",
    "buffers",
    "choose_mode",
    "code_named",
    "error_table",
    "fastest_kernel",
    "host_features",
    "join",
    "llvm_kernel",
    "recover",
    "stripe",
]

_NUMBER = r"(0|[1-9][0-9]{0,5})"
_DESCRIPTION = re.compile(rf"(rs8|rs16|real-[a-z0-9]+-[a-z]+)/{_NUMBER}/{_NUMBER}/{_NUMBER}")


def code_named(description: str, *, kernel: Kernel | None = None, study: bool = False) -> Code:
    """The code a description such as `rs8/20/10/0` stands for (name/n/k/masks).

    The real code loses what it stores, so it is made only for who says `study=True`.
    """
    match = _DESCRIPTION.fullmatch(description)
    if match is None:
        raise SettingError("code", description, "name/n/k/masks, such as rs8/20/10/0")
    name, n, k, masks = match[1], int(match[2]), int(match[3]), int(match[4])
    if name.startswith("rs"):
        return ReedSolomon(n, k, masks, int(name[2:]), kernel or fastest_kernel())
    if not study:
        raise SettingError("code", description, "exact; the real code loses bits and is for study only")
    if masks:
        raise SettingError("masks", masks, "0 for the real code")
    _, precision, family = name.split("-")
    return RealLagrange(n, k, family, precision)
