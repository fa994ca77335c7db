"""What forgetting costs a federation on Flower: a round and a recall beside plain Flower's, bytes beside accounting's.

    python benchmarks/flower.py [--nodes 4] [--parameters 250000] [--rounds 4] [--turns 2] [--json FILE]
    python benchmarks/flower.py --table FILE

Real processes: a SuperLink and SuperNodes with TLS and registered keys. The same ClientApp trains for Flower's stock
FedAvg and for the same strategy with unlearning around it, turn by turn in one run, so that a busy machine slows both
alike. A round is timed from asking to asking, everything the server does in between included. A recall reads every
round of every client in one exchange; beside it the same nodes send as many bytes in the plain. Bytes are Flower's own
count of a run's traffic, of one run that trains and one that recalls.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from fedforget.processes import LocalFederation, up

APP = Path(__file__).resolve().parent / "flower_app"


def measure(nodes: int, parameters: int, rounds: int, turns: int) -> dict[str, Any]:
    size = {"clients": nodes, "parameters": parameters, "rounds": rounds, "turns": turns}
    with tempfile.TemporaryDirectory() as room, up(nodes, tls=True, progress=progress) as fed:
        here = Path(room)
        trained, sent = run(fed, here, "train", {**size, "workspace": str(here / "w")})
        recalled, fetched = run(fed, here, "recall", {**size, "workspace": str(here / "w")})
        clean(fed)
        times, _ = run(fed, here, "times", {**size, "workspace": str(here / "t")})
    recalls = times["recalls"]
    # A recall's run sends the same bytes once more in the plain, for the comparison of times: they are not its own.
    return {
        "size": size,
        "rounds": {
            "stock": [s for turn in times["stock"] for s in turn[1:-1]],
            "unlearning": [s for turn in times["unlearning"] for s in turn[1:-1]],
        },
        "recalls": {"plain": [r["plain"] for r in recalls], "fedforget": [r["seconds"] for r in recalls]},
        "bytes": {
            "training": {"predicted": trained["train"], "measured": sent},
            "recall": {"predicted": trained["recall"], "measured": fetched - recalled["bytes"]},
        },
    }


def run(fed: LocalFederation, room: Path, what: str, config: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """The app's own report, and all bytes Flower counted for the run."""
    report = room / f"{what}.json"
    print(f"{what} …", file=sys.stderr)
    done = fed.run(APP, {**config, "what": what, "report": str(report)}, patience=3600).expect()
    return json.loads(report.read_text()), int(done.facts["network-traffic"]["total-bytes"])


def clean(fed: LocalFederation) -> None:
    """The next workspace's slices have the same names."""
    for node in fed.nodes.values():
        for path in node.slices.rglob("*.slice"):
            path.unlink()


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
