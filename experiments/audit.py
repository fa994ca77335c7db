"""Does LiRA see who was forgotten? The digits at 64 reference federations, IID and by class, one JSON each.

    python experiments/audit.py [--partitions iid by-class] [--again]
    python experiments/audit.py --table        the stored results, as docs/evaluation.md has them

20 clients in 4 shards, all taking part, MLP of 64 hidden units, 10 epochs × 10 rounds; 6 trainings under attack; two
clients a shard, each forgotten alone by every method. The same as `fedforget audit W --client … --each --trainings 6`.
"""

import argparse
import json
import platform
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fedforget import FederationSettings, Workspace, __version__
from fedforget.workspace.audit import audit_report
from fedforget.workspace.reports import to_json
from fedforget.workspace.tasks import numerics

HERE = Path(__file__).parent / "audit"
PARTITIONS = ("iid", "by-class")
CLIENTS = [f"client-{i:03d}" for i in range(8)]  # seats are dealt in hands of S: two of each shard


def run(partition: str) -> dict[str, Any]:
    settings = FederationSettings.of(
        {
            "clients": 20,
            "participants": 0,
            "rounds": 10,
            "learner": "mlp",
            "hidden": 64,
            "partition": partition,
            "federation": "audit",
            "keeping": {"holders": 10, "threshold": 5},
        }
    )

    def progress(what: str, done: int, total: int) -> None:
        print(f"{partition}: {what} {done}/{total}", flush=True)

    with tempfile.TemporaryDirectory() as room, Workspace.init(Path(room) / "W", settings) as space:
        report = audit_report(space, CLIENTS, each=True, references=64, trainings=6, progress=progress)
        found = to_json(report)
        found["numerics"] = numerics(space.learner)
    found |= {"path": "", "version": __version__, "machine": f"{platform.machine()}, {platform.system()}"}
    return {**found, "seconds": round(found["seconds"], 1), "settings": asdict(settings)}


def table(found: dict[str, Any]) -> str:
    """LiRA online on the forgotten and the retained, RMIA's AUC beside it."""
    lines = [
        f"| {found['partition']}: data, seen at | models | AUC | TPR at 1 % FPR | TPR at 0.1 % FPR | RMIA's AUC |",
        "|---|---|---|---|---|---|",
    ]
    by_name = {(f["data"], f["view"], f["world"], f["attack"]): f["result"] for f in found["findings"]}
    for (data, view, world, attack), result in by_name.items():
        if attack != "LiRA":
            continue
        rates = {rate["fpr"]: rate for rate in result["rates"]}
        cells = [f"{result['auc']:.3f} [{', '.join(f'{end:.3f}' for end in result['interval'])}]"]
        cells += [_percent(rates[fpr]) for fpr in (0.01, 0.001)]
        cells.append(f"{by_name[data, view, world, 'RMIA']['auc']:.3f}")
        lines.append(f"| {data}, {view} | {world} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _percent(rate: dict[str, Any]) -> str:
    if rate["tpr"] is None:
        return "–"
    return f"{100 * rate['tpr']:.1f} % [{', '.join(f'{100 * end:.1f}' for end in rate['interval'])}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", nargs="+", default=PARTITIONS, choices=PARTITIONS)
    parser.add_argument("--again", action="store_true", help="also where there is a result already")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    HERE.mkdir(exist_ok=True)
    for partition in given.partitions:
        stored = HERE / f"digits-{partition}.json"
        if not given.table and (given.again or not stored.exists()):
            stored.write_text(json.dumps(run(partition), indent=1) + "\n")
        print(table(json.loads(stored.read_text())), end="\n\n")


if __name__ == "__main__":
    main()
