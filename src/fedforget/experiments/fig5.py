"""Figure 5: communication time and storage of FE, uncoded and coded SE, and over the numbers of clients and rounds."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..workspace.storage import StorageReport, storage_report
from .pictures import figure_of
from .recipe import Recipe
from .sheet import NONE, Sheet

# The schemes of the report, and what a picture calls them.
NAMES = {
    "FE": "FE",
    "SE-uncoded": "SE uncoded",
    "SE coded, cross (paper)": "SE coded (the paper's)",
    "wrong": "coded in a shard, same μ",
}


def compute(recipe: Recipe, seed: int) -> dict[str, Any]:
    """Counted, not measured: bytes and messages follow from the plan, seconds from 0.1 s a message and the rate."""
    v = recipe.values
    base = _report(v)
    share = int(v["participants"]) / int(v["clients"])  # as large a share of more clients takes part
    over_clients = [
        (c, _report(v, clients=c, participants=max(1, round(share * c)))) for c in v.get("over_clients", ())
    ]
    over_rounds = [(g, _report(v, rounds=g)) for g in v.get("over_rounds", ())]
    return {
        "setting": {name: v[name] for name in ("parameters", "layers", "clients", "shards", "participants", "rounds")}
        | {"wrong": str(v["wrong"]), "rate": str(v["rate"]), "model_bytes": base.model_bytes},
        "rows": _rows(base),
        "over_clients": [{"clients": c, "rows": _rows(r)} for c, r in over_clients],
        "over_rounds": [{"rounds": g, "rows": _rows(r)} for g, r in over_rounds],
    }


def _report(v: Mapping[str, Any], **changed: int) -> StorageReport:
    names = ("parameters", "layers", "clients", "shards", "participants", "rounds")
    sizes = {name: changed.get(name, int(v[name])) for name in names}
    return storage_report(**sizes, wrong=float(v["wrong"]), rate=float(v["rate"]))


def _rows(report: StorageReport) -> list[dict[str, Any]]:
    return [
        {
            "name": row.name,
            "code": row.code,
            **{kind: getattr(row.account, kind) for kind in ("plain", "server", "holder", "total")},
            "record": asdict(row.account.record),
            "recall": asdict(row.account.recall),
            "forget": asdict(row.account.forget),
            "record_seconds": row.record_seconds,
            "recall_seconds": row.recall_seconds,
        }
        for row in report.rows
    ]


def sheets(result: Mapping[str, Any]) -> tuple[Sheet, ...]:
    fe = result["rows"][0]["server"]
    rows = []
    for row in result["rows"]:
        cited = "0.02" if "paper" in row["name"] else NONE
        share = row["server"] / fe
        rows.append(
            (
                row["name"],
                row["code"],
                _size(row["server"]),
                f"{share:.4f}",
                cited,
                f"{share / 0.02:.2f}" if cited != NONE else NONE,
                _size(row["holder"]),
                _size(row["total"]),
                f"{row['total'] / row['plain']:.2f}",
                _seconds(row["record_seconds"]),
                _seconds(row["recall_seconds"]),
            )
        )
    head = (
        "history",
        "code",
        "server",
        "of FE",
        "the paper's",
        "ratio",
        "a holder",
        "in all",
        "of plain",
        "record",
        "recall",
    )
    s = result["setting"]
    note = (
        f"{s['clients']} clients, {s['shards']} shards of {s['participants']} a round, {s['rounds']} rounds, models of "
        f"{_size(s['model_bytes'])}; seconds at 0.1 s a message and {float(s['rate']) / 1e6:g} Mbit/s, one "
        "message after another. *the paper's* is its claim of 98 % less storage, which counts the server alone."
    )
    return (Sheet("What keeping the history costs", head, tuple(rows), head[2:], (note,)),)


def figures(result: Mapping[str, Any], stamp: str) -> dict[str, Any]:
    from ..plots import Line, Panel

    chosen = [(i, r) for i, r in enumerate(result["rows"]) if _label(r["name"])]
    labels = [_label(r["name"]) for _, r in chosen]
    kinds = (("server", "at the server"), ("holder", "at the fullest holder"), ("total", "in all"))
    stored = [Line(text, [], [_shown(r[kind] / 1e9) for _, r in chosen], 4 + n) for n, (kind, text) in enumerate(kinds)]
    short = ["FE", "SE\nuncoded", "SE\ncoded", "in a\nshard"][: len(labels)]
    first = [
        Panel("storage", "", "GB", stored, log_y=True, bars=short),
        Panel(
            "communication",
            "",
            "seconds",
            [
                Line("recording all rounds", [], [_shown(r["record_seconds"]) for _, r in chosen], 5),
                Line("recall for one request", [], [_shown(r["recall_seconds"]) for _, r in chosen], 3),
            ],
            log_y=True,
            bars=short,
        ),
    ]
    second, third = [], []
    for key, name in (("over_clients", "clients"), ("over_rounds", "rounds")):
        points = result[key]
        x = [p[name] for p in points]
        servers, recalls = [], []
        for style, (at, _) in enumerate(chosen):
            servers.append(Line(labels[style], x, [p["rows"][at]["server"] / 1e9 for p in points], style))
            if style > 1:  # uncoded lies at the server: nothing to fetch
                recalls.append(Line(labels[style], x, [p["rows"][at]["recall_seconds"] for p in points], style))
        second.append(Panel(f"server, over {name}", name, "GB", servers, log_y=True))
        third.append(Panel(f"recall, over {name}", name, "seconds", recalls))
    return {"fig5": figure_of([first, second, third], stamp, height=2.3)}


def _shown(value: float) -> float:
    """Nothing is no bar: an axis of powers of ten has no place for nought."""
    return value or float("nan")


def _label(name: str) -> str:
    return NAMES["wrong"] if name.endswith("% wrong") else NAMES.get(name, "")


def _size(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value else "0 s"
