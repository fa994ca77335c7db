"""Canonical JSON: one value has one spelling, so that a signature or a hash over it means something.

Keys sorted by code point, no spaces, UTF-8, and no number but integers of at most 53 bits, for others are read
differently by different readers (RFC 8785 forbids less and asks for more). Decimal numbers travel as strings.
"""

import json
from typing import Any

from .errors import SettingError

_LARGEST = 1 << 53


def canonical(value: Any) -> bytes:
    """The one spelling of a value."""
    _check(value, "value")
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def read_canonical(blob: bytes) -> Any:
    """The value of a canonical spelling; another spelling of the same value is refused."""
    try:
        value = json.loads(blob)
        same = canonical(value) == blob
    except (ValueError, RecursionError, SettingError) as fault:
        raise SettingError("document", blob[:40], "canonical JSON") from fault
    if not same:
        raise SettingError("document", blob[:40], "canonical JSON: sorted keys, no spaces, each key once")
    return value


def _check(value: Any, where: str) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise SettingError(where, value, "text without lone surrogates")
    elif isinstance(value, int):
        if abs(value) >= _LARGEST:
            raise SettingError(where, value, "an integer of at most 53 bits")
    elif isinstance(value, list | tuple):
        for at, item in enumerate(value):
            _check(item, f"{where}[{at}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise SettingError(where, key, "an object whose keys are text")
            _check(key, where)
            _check(item, f"{where}.{key}")
    else:
        raise SettingError(where, type(value).__name__, "text, an integer, true, false, null, a list or an object")
