"""How far `plan`'s estimate of time is from what a forget then takes.

    python benchmarks/estimate.py [--task digits] [--runs 10] [--rounds 30] [--epochs 10] [--room DIR] [--json FILE]

A run is a federation of its own seed, trained, of which one client is forgotten exactly. Printed is real : estimated,
of the clients' work and of the wall clock, and the load of the machine: both only mean something on one that is quiet.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from fedforget.workspace import FederationSettings, Workspace


def one(path: Path, settings: FederationSettings, data: Path | None) -> dict[str, Any]:
    with Workspace.init(path, settings, data=data) as space:
        space.train()
        leaver = space.state().plan.cohort(0, 0, 1)[0]
        plan = space.plan([leaver])
        report = space.forget([leaver])
        assert plan.seconds is not None
        assert plan.wall_seconds is not None
        return {
            "seed": settings.seed,
            "client epochs": report.client_epochs,
            "work": round(report.seconds, 3),
            "work estimated": round(plan.seconds, 3),
            "wall": round(report.wall_seconds, 3),
            "wall estimated": round(plan.wall_seconds, 3),
            "load": round(os.getloadavg()[0], 1),
        }


def within(rows: list[dict[str, Any]], what: str, share: float = 0.2) -> int:
    return sum(abs(row[f"{what} estimated"] / row[what] - 1) <= share for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="digits")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--room", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(dir=given.room) as folder:
        for seed in range(given.runs):
            settings = FederationSettings(task=given.task, rounds=given.rounds, epochs=given.epochs, seed=seed)
            rows.append(row := one(Path(folder) / str(seed), settings, given.data))
            ratios = [row[what] / row[f"{what} estimated"] for what in ("work", "wall")]
            print(f"seed {seed}: work {ratios[0]:.2f}, wall {ratios[1]:.2f}, load {row['load']}")
    found = {"task": given.task, "rounds": given.rounds, "epochs": given.epochs, "runs": rows}
    found |= {f"{what} within 20 %": within(rows, what) for what in ("work", "wall")}
    print(f"within 20 %: work {found['work within 20 %']}, wall {found['wall within 20 %']} of {given.runs}")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
