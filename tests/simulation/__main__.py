"""Lives by the thousand: `python -m simulation 0-499` (make simulate). A failing seed lives again by its number."""

import argparse
import gc
import json
import os
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from .life import FAULTS, Theatre

_AT_ONCE = 25  # seeds a worker takes
_MEMORY = Path("/dev/shm")


def seeds(text: str) -> range:
    """`7` or `0-499`."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def some(numbers: Sequence[int]) -> tuple[int, Counter[str], int, list[str]]:
    """How many lives, the faults they met, the fewest one met, and what broke."""
    warnings.simplefilter("error")
    gc.disable()  # a life leaves little behind, and all of it is collected at once
    met: Counter[str] = Counter()
    fewest, broken = 1 << 30, []
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None, prefix="lives-") as room:
        theatre = Theatre.at(Path(room))
        for seed in numbers:
            found, why = theatre.lived(seed)
            met += found
            fewest = min(fewest, sum(found.values()))
            broken += [why] if why else []
        theatre.engine.dispose()
    gc.collect()
    return len(numbers), met, fewest, broken


def batches(numbers: range) -> Iterator[Sequence[int]]:
    for at in range(0, len(numbers), _AT_ONCE):
        yield numbers[at : at + _AT_ONCE]


def main() -> int:
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__)
    parser.add_argument("seeds", type=seeds, help="a seed, or a range of them: 0-499")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, help="write what was found as JSON")
    given = parser.parse_args()
    lives, met, fewest, broken = 0, Counter[str](), 1 << 30, list[str]()
    began = time.perf_counter()
    with ProcessPoolExecutor(given.workers) as pool:
        for count, found, least, why in pool.map(some, batches(given.seeds)):
            lives, met, fewest, broken = lives + count, met + found, min(fewest, least), [*broken, *why]
            sys.stdout.writelines(f"{one}\n" for one in why)
            sys.stderr.write(f"\r{lives} lives, {len(broken)} broken")
    took = time.perf_counter() - began
    sys.stderr.write("\n")
    first, last = given.seeds[0], given.seeds[-1]
    kinds = ", ".join(f"{count} {what}" for what, count in met.most_common())
    sys.stdout.write(
        f"{lives} lives (seeds {first}-{last}), {sum(met.values())} faults, at least {fewest} in each: {kinds}\n"
        f"{len(broken)} broken; {1000 * took / lives:.0f} ms a life on {given.workers} workers\n"
    )
    if given.out:
        document = {
            "seeds": [first, last],
            "lives": lives,
            "faults": dict(sorted(met.items())),
            "fewest_faults": fewest,
            "planned_faults": FAULTS,
            "broken": broken,
        }
        given.out.write_text(json.dumps(document, indent=2) + "\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
