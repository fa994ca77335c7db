"""Is the accuracy real? Unsharded FedAvg in the paper's setting, on the real data, one JSON a run.

    python experiments/accuracy.py --data DATA [--tasks mnist cifar10 …] [--seed 0] [--room ROOM]

100 clients, 20 a round, 10 local epochs, 30 rounds, IID. Resumable: a run that is there is not run again, one that was
interrupted goes on at its last round (its workspace lies in ROOM until it is done).
"""

import argparse
import json
import platform
import shutil
import time
from dataclasses import asdict
from pathlib import Path

from fedforget import FederationSettings, Workspace, __version__
from fedforget.engines.local import numerics
from fedforget.manifest import Keeping

HERE = Path(__file__).parent / "accuracy"
TARGETS = {"mnist": 0.98, "fashion-mnist": 0.87, "cifar10": 0.58, "shakespeare": 2.4}


def run(task: str, seed: int, data: Path, room: Path, workers: int | None) -> dict[str, object]:
    keeping = Keeping(layout="server", keep="lean", holders=1, threshold=1)
    settings = FederationSettings(task=task, shards=1, participants=20, seed=seed, keeping=keeping)
    if not (room / "federation.toml").exists():
        shutil.rmtree(room, ignore_errors=True)
        Workspace.init(room, settings, data=data).close()
    began = time.perf_counter()
    with Workspace.open(room, data=data, workers=workers) as space:
        report = space.train(lambda what, done, total: print(f"{task} {what} {done}/{total}", flush=True))
        score = space.evaluate().score("shard 0")
        found: dict[str, object] = {
            "task": task,
            "seed": seed,
            "accuracy": score.test_accuracy,
            "loss": score.test_loss,
            "target": TARGETS[task],
            "met": score.test_loss < TARGETS[task] if task == "shakespeare" else score.test_accuracy >= TARGETS[task],
            "client_epochs": report.client_epochs,
            "resumed_at": report.resumed_at,
            "seconds": round(time.perf_counter() - began, 1),
            "digest": report.digests["0"],
            "settings": asdict(space.settings),
            "version": __version__,
            "numerics": numerics(space.learner),
            "machine": f"{platform.machine()}, {platform.system()}",
        }
    shutil.rmtree(room)
    return found


def table() -> str:
    """Every stored run."""
    lines = ["| run | accuracy | loss | wanted | met | seconds |", "|---|---:|---:|---|---|---:|"]
    for path in sorted(HERE.glob("*.json")):
        found = json.loads(path.read_text())
        text = found["task"] == "shakespeare"
        wanted = f"loss below {found['target']}" if text else f"accuracy of {100 * found['target']:.0f} % or more"
        lines.append(
            f"| {path.stem} | {100 * found['accuracy']:.2f} % | {found['loss']:.3f} | {wanted} "
            f"| {'yes' if found['met'] else 'no'} | {found['seconds']:.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--table", action="store_true", help="print the stored runs and run nothing")
    parser.add_argument("--tasks", nargs="+", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--room", type=Path, default=Path("accuracy-room"))
    given = parser.parse_args()
    if given.table:
        print(table())
        return
    if given.data is None:
        parser.error("--data is where the data sets lie")
    HERE.mkdir(exist_ok=True)
    for task in given.tasks:
        result = HERE / f"{task}-seed{given.seed}.json"
        if not result.exists():
            found = run(task, given.seed, given.data, given.room / task, given.workers)
            result.write_text(json.dumps(found, indent=2) + "\n")
        found = json.loads(result.read_text())
        print(f"{task}: accuracy {found['accuracy']:.4f}, loss {found['loss']:.4f}, met {found['met']}")


if __name__ == "__main__":
    main()
