"""What keeping the history costs beside training: seal + code + place, as a share of a round.

    python benchmarks/history.py [--room DIR] [--json FILE]

One round of the paper: 4 shards of 5 clients, 600 MNIST-sized pictures each, 10 epochs of the CNN. Training is timed on
one client-epoch with all cores' share (20 clients over the cores), keeping on the real disk below --room, with fsync.
"""

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from fedforget.examples import Examples
from fedforget.federation import Place, Round, Upload, average
from fedforget.history import Keeper
from fedforget.learners.torch import CNN
from fedforget.manifest import Keeping
from fedforget.plan import Plan
from fedforget.sealing import Vault, faster_cipher
from fedforget.storage.directory import DirectoryStore

SHARDS, PARTICIPANTS, EPOCHS, EXAMPLES = 4, 5, 10, 600


def client_epoch(learner: CNN, rng: np.random.Generator) -> float:
    """Seconds of one client-epoch on one core."""
    data = Examples(rng.integers(0, 256, (EXAMPLES, 28, 28, 1), dtype=np.uint8), rng.integers(0, 10, EXAMPLES))
    start = learner.init(0)
    learner.fit(start, data, epochs=1, seed=0)
    times = []
    for seed in range(5):
        began = time.perf_counter()
        learner.fit(start, data, epochs=1, seed=seed)
        times.append(time.perf_counter() - began)
    return min(times)


def rounds_of(learner: CNN, plan: Plan) -> list[Round]:
    start = learner.init(0)
    models = [learner.init(seed) for seed in range(1, 1 + PARTICIPANTS)]
    found = []
    for shard in range(SHARDS):
        uploads = tuple(Upload(c, m, EXAMPLES) for c, m in zip(plan.cohort(0, shard, 0), models, strict=True))
        found.append(Round(Place(0, shard, 0), start, uploads, average(start, uploads, True)))
    return found


def keeping_seconds(keeping: Keeping, plan: Plan, rounds: list[Round], room: Path) -> float:
    times = []
    for attempt in range(5):
        store = DirectoryStore(room / f"{keeping.layout}-{keeping.keep}-{attempt}")
        keeper = Keeper("benchmark", plan, keeping, True, Vault(0, bytes(32)), store)
        began = time.perf_counter()
        keeper.record(rounds, 0)
        times.append(time.perf_counter() - began)
        shutil.rmtree(store.root)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--room", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    learner = CNN((28, 28, 1), 10, (0.1307,), (0.3081,))
    plan = Plan.of([f"client-{i:03d}" for i in range(100)], shards=SHARDS, rounds=30, participants=PARTICIPANTS)
    cores = os.cpu_count() or 1
    one = client_epoch(learner, np.random.default_rng(0))
    training = one * SHARDS * PARTICIPANTS * EPOCHS / cores
    print(
        f"one client-epoch {one:.3f} s; a round of {SHARDS * PARTICIPANTS * EPOCHS} on {cores} cores {training:.1f} s"
    )
    rounds, rows = rounds_of(learner, plan), []
    with tempfile.TemporaryDirectory(dir=given.room) as room:
        for layout, keep, n, k in (
            ("server", "full", 1, 1),
            ("shard", "full", 20, 10),
            ("shard", "lean", 20, 10),
            ("cross", "full", 20, 4),
            ("cross", "full", 100, 4),
        ):
            keeping = Keeping(layout, keep, n, k, faster_cipher())  # type: ignore[arg-type]
            seconds = keeping_seconds(keeping, plan, rounds, Path(room))
            rows.append(
                {"layout": layout, "keep": keep, "n": n, "k": k, "seconds": seconds, "share": seconds / training}
            )
            print(f"{layout:>7} {keep:<5} ({n},{k}): {seconds:.2f} s, {100 * seconds / training:.1f} % of a round")
    if given.json:
        given.json.write_text(json.dumps({"training": training, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
