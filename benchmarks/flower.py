"""What forgetting costs a federation on Flower: a round and a recall beside plain Flower's, bytes beside accounting's.

    python benchmarks/flower.py [--nodes 4] [--parameters 250000] [--rounds 4] [--turns 2] [--json FILE]
    python benchmarks/flower.py --table FILE

Real processes: a SuperLink and SuperNodes with TLS and registered keys. The same ClientApp trains for Flower's stock
FedAvg and for the same strategy with unlearning around it, turn by turn in one run, so that a busy machine slows both
alike. A round is timed from asking to asking, everything the server does in between included. A recall reads every
round of every client in one exchange; beside it the same nodes send as many bytes in the plain. Bytes are Flower's own
count of the traffic of a run of the ready app that trains, and of one that recalls all it has kept.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from fedforget.history import accounting
from fedforget.history.accounting import Model
from fedforget.processes import LocalFederation, up
from fedforget.workspace import Workspace

APP = Path(__file__).resolve().parent / "flower_app"
READY = Path(__file__).resolve().parents[1] / "flower"


def measure(nodes: int, parameters: int, rounds: int, turns: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as room, up(nodes, tls=True, progress=progress) as fed:
        here = Path(room)
        moved = count_bytes(fed, here, nodes, parameters, rounds)
        for node in fed.nodes.values():  # the next workspace's slices have the same names
            for path in node.slices.rglob("*.slice"):
                path.unlink()
        size = {"clients": nodes, "parameters": parameters, "rounds": rounds, "turns": turns}
        times, _ = run(fed, here, APP, "times", {**size, "what": "times", "workspace": str(here / "t")})
    return {
        "size": size,
        "rounds": {
            "stock": [s for turn in times["stock"] for s in turn[1:-1]],
            "unlearning": [s for turn in times["unlearning"] for s in turn[1:-1]],
        },
        "recalls": {
            "plain": [r["plain"] for r in times["recalls"]],
            "fedforget": [r["seconds"] for r in times["recalls"]],
        },
        "bytes": moved,
    }


def count_bytes(fed: LocalFederation, room: Path, nodes: int, parameters: int, rounds: int) -> dict[str, Any]:
    """The ready app trains a perceptron of about so many parameters on digits; then all of its history is recalled."""
    space = str(room / "w")
    config = {"action": "train", "workspace": space, "clients": nodes, "shards": 1, "rounds": rounds, "epochs": 1}
    config |= {"learner": "mlp", "hidden": parameters // 75, "holders": nodes, "threshold": nodes // 2}
    _, sent = run(fed, room, READY, "train", {**config, "wait": 300.0})
    _, fetched = run(fed, room, APP, "recall", {"what": "recall", "workspace": space, "clients": nodes})
    with Workspace.open(space) as looked:
        state, model = looked.state(), looked.learner.init(0)
        account = accounting.account(state.keeper(None), Model(len(model.to_bytes()), len(model.names)))
    there_and_back = 2 * len(model.to_bytes()) * nodes * rounds
    return {
        "training": {"predicted": there_and_back + account.record.bytes, "measured": sent},
        "recall": {"predicted": account.recall.bytes, "measured": fetched},
    }


def run(fed: LocalFederation, room: Path, app: Path, what: str, config: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """The app's own report, and all bytes Flower counted for the run."""
    report = room / f"{what}.json"
    print(f"{what} …", file=sys.stderr)
    done = fed.run(app, {**config, "report": str(report)}, patience=3600).expect()
    return json.loads(report.read_text()), int(done.facts["network-traffic"]["total-bytes"])


def progress(what: str, done: int, total: int) -> None:
    print(f"{what} {done}/{total}", file=sys.stderr)


def table(found: dict[str, Any]) -> str:
    size, rounds, recalls, moved = found["size"], found["rounds"], found["recalls"], found["bytes"]
    lines = [
        f"{size['clients']} nodes, {size['parameters'] * 4 / 1e6:.1f} MB of parameters, "
        f"{size['rounds']} rounds, {size['turns']} turns; medians",
        "",
        "| | plain Flower | with unlearning | overhead |",
        "|---|---:|---:|---:|",
        row("a round", rounds["stock"], rounds["unlearning"]),
        row("a recall of all rounds", recalls["plain"], recalls["fedforget"]),
        "",
        "| bytes on the wire | accounting predicts | Flower counted | difference |",
        "|---|---:|---:|---:|",
    ]
    for name, both in moved.items():
        off = both["measured"] / both["predicted"] - 1
        lines.append(
            f"| {name} | {both['predicted'] / 1e6:.2f} MB | {both['measured'] / 1e6:.2f} MB | {100 * off:+.1f} % |"
        )
    return "\n".join(lines)


def row(name: str, plain: list[float], ours: list[float]) -> str:
    before, after = statistics.median(plain), statistics.median(ours)
    return f"| {name} | {before:.2f} s | {after:.2f} s | {100 * (after / before - 1):+.1f} % |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--parameters", type=int, default=250_000)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path, help="Print the table of a stored run and measure nothing.")
    chosen = parser.parse_args()
    if chosen.table:
        print(table(json.loads(chosen.table.read_text())))
        return
    found = measure(chosen.nodes, chosen.parameters, chosen.rounds, chosen.turns)
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


if __name__ == "__main__":
    main()
