"""What `fedforget data --show` prints: how large a data set is, and which client has what of it."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from .dataset import Dataset
from .partition import Rows, left_over

SHADES = " ▁▂▃▄▅▆▇█"


def summary(
    dataset: Dataset, parts: Mapping[str, Rows] | None = None, *, partition: str = "", seed: int | None = None
) -> dict[str, Any]:
    """A data set, and a partition of it where one is given, as plain values that JSON can hold."""
    about: dict[str, Any] = {
        "name": dataset.name,
        "kind": dataset.kind,
        "train": len(dataset.train),
        "test": len(dataset.test),
        "shape": list(dataset.shape),
        "classes": dataset.classes,
    }
    pictures = dataset.kind == "image"
    if pictures:
        about["labels"] = list(dataset.labels)
        about["train_by_class"] = np.bincount(dataset.train.y, minlength=dataset.classes).tolist()
    if parts is None:
        return about
    sizes = [len(rows) for rows in parts.values()]
    about |= {
        "partition": partition,
        "seed": seed,
        "smallest": min(sizes),
        "largest": max(sizes),
        "left_over": left_over(parts, len(dataset.train)),
        "clients": [_client(dataset, name, rows) for name, rows in parts.items()],
    }
    return about


def _client(dataset: Dataset, name: str, rows: Rows) -> dict[str, Any]:
    client: dict[str, Any] = {"client": name, "examples": len(rows)}
    if dataset.kind == "image":
        client["by_class"] = np.bincount(dataset.train.y[rows], minlength=dataset.classes).tolist()
    else:
        # Where its pieces of text begin and end: two of them mean two buckets.
        breaks = np.flatnonzero(np.diff(rows) != 1) + 1
        pieces = np.split(rows, breaks)
        client["pieces"] = len(pieces)
    return client


def plot(about: Mapping[str, Any], *, width: int = 80, most: int = 20) -> str:
    """`summary` as a small plot in plain text, `width` columns wide, of the first `most` clients."""
    lines = [_title(about), *_classes(about, width)]
    if "clients" in about:
        lines += ["", _heading(about), *_clients(about, width, most)]
    return "\n".join(lines)


def _title(about: Mapping[str, Any]) -> str:
    shape = "×".join(map(str, about["shape"]))
    what = f"{about['classes']} classes" if about["kind"] == "image" else f"{about['classes']} characters"
    return f"{about['name']}: {about['train']:,} to train, {about['test']:,} to test, {what}, inputs {shape}"


def _classes(about: Mapping[str, Any], width: int) -> list[str]:
    counts = about.get("train_by_class", [])
    if not counts:
        return []
    column, digits = max(map(len, about["labels"])), len(f"{max(counts):,}")
    room = max(1, width - column - digits - 4)
    return [
        f"  {label:<{column}} {count:>{digits},} {_bar(count, max(counts), room)}"
        for label, count in zip(about["labels"], counts, strict=True)
    ]


def _heading(about: Mapping[str, Any]) -> str:
    seed = "" if about["seed"] is None else f", seed {about['seed']}"
    low, high = about["smallest"], about["largest"]
    sizes = f"{low:,} each" if low == high else f"{low:,} to {high:,} each"
    how = about["partition"] or "dealt"
    return f"{how} to {len(about['clients'])} clients{seed}: {sizes}, {about['left_over']:,} left over"


def _clients(about: Mapping[str, Any], width: int, most: int) -> list[str]:
    clients = about["clients"]
    column, digits = len(clients[0]["client"]), len(f"{about['largest']:,}")
    shaded = about["kind"] == "image"
    room = max(1, width - column - digits - 4 - (about["classes"] + 3 if shaded else 0))
    lines = []
    for client in clients[:most]:
        size = client["examples"]
        shades = f"|{_shades(client['by_class'], size)}| " if shaded else ""
        bar = _bar(size, about["largest"], room)
        lines.append(f"  {client['client']} {size:>{digits},} {shades}{bar}".rstrip())
    if len(clients) > most:
        lines.append(f"  … and {len(clients) - most} more")
    if shaded:
        lines.append("  between | and |: the share of each class, in the order above")
    return lines


def _shades(counts: list[int], size: int) -> str:
    # Rounded up, so that a class a client has one example of is not shown as one it has none of.
    return "".join(SHADES[math.ceil(count / size * (len(SHADES) - 1))] for count in counts)


def _bar(value: int, largest: int, room: int) -> str:
    return "█" * max(1 if value else 0, round(value / largest * room))
