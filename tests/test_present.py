"""Reports as a person reads them, in eighty columns."""

from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from fedforget import present
from fedforget.forgetting import Guarantee
from fedforget.workspace.reports import (
    AbandonReport,
    Check,
    EvaluateReport,
    ForgetReport,
    PlanReport,
    Reach,
    RepairReport,
    Score,
    ScrubReport,
    ShardStatus,
    StageReport,
    StatusReport,
    TrainReport,
    VerifyReport,
)
from fedforget.workspace.storage import storage_report

EXACT = Guarantee("X1", "restarted stage 0 shard 1 from round 2, before any leaver took part")
CHANGED = Guarantee("X2", "restarted, but conditions changed", ("client-003 was lost in stage 0, shard 1, round 4",))
REACHES = (Reach(0, 1, 2, 28, False), Reach(1, 1, 0, 30, True))


def shown(show: Callable[[Console, Any], None], report: object, width: int = 80) -> list[str]:
    out = StringIO()
    show(Console(file=out, width=width), report)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def status(**changes: Any) -> StatusReport:
    values: dict[str, Any] = {
        "path": "W",
        "federation": "f",
        "task": "digits",
        "learner": "softmax",
        "stage": 1,
        "handover": "lineage",
        "shards": (
            ShardStatus(0, 25, 30, 30, 2, "X1", True, "ab" * 32),
            ShardStatus(1, 0, 0, 30, 0, "X1", False, ""),
        ),
        "clients": 25,
        "forgotten": (),
        "requests": 0,
        "unfinished": (),
        "epoch": 2,
        "debts": 0,
        "layout": "shard",
        "history": "full",
        "codes": (),
        "holders": 20,
        "server_bytes": 999,
        "holder_bytes": 1_000,
        "total_bytes": 2_500_000_000_000,
    }
    return StatusReport(**{**values, **changes})


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (1_500_000, "1.5 MB"), (2e9, "2.0 GB"), (3e13, "30000.0 GB")],
)
def test_bytes_for_people(count: float, words: str) -> None:
    assert present.size(int(count)) == words


def test_status_shows_every_shard_and_where_an_ended_one_ended() -> None:
    lines = shown(present.status, status())
    assert lines[0] == "W: task digits, learner softmax, stage 1 (lineage)"
    assert lines[1].split() == ["shard", "clients", "rounds", "generation", "class", "model"]
    assert lines[2].split() == ["0", "25", "30/30", "2", "X1", "abababababababab"]
    assert lines[3].split() == ["1", "0", "ended", "0", "X1"]
    assert "code nothing yet" in lines[4]
    assert lines[5] == "Stored: server 999 B, fullest holder 1.0 KB, in all 2500.0 GB; key epoch 2"
    assert len(lines) == 6


def test_status_names_the_forgotten_the_unfinished_the_owed_and_the_members() -> None:
    report = status(
        forgotten=("client-001", "client-002"),
        unfinished=("client-003",),
        debts=7,
        codes=("rs8/20/10/0",),
        members=(("client-004", 0),),
    )
    text = "\n".join(shown(present.status, report))
    assert "Forgotten: client-001, client-002" in text
    assert "Unfinished: forgetting client-003; `fedforget forget W` goes on" in text
    assert "Owed: 7 deletions by holders that are away" in text
    assert "  client-004  shard 0" in text
    assert "code rs8/20/10/0" in text


def test_a_new_federation_says_what_comes_next() -> None:
    assert shown(present.made, status())[-1] == "Next: fedforget train W"


def test_training_names_who_was_missing_and_where_it_went_on() -> None:
    report = TrainReport(0, 4, 2, 40, 1.0, (("client-003", "stage 0, shard 1, round 2", "lost"),), {"0": "cd" * 32})
    assert shown(present.trained, report) == [
        "Stage 0: 4 shard rounds, going on after 2, 40 client-epochs.",
        "  client-003 lost (stage 0, shard 1, round 2)",
        "  shard 0: model cdcdcdcdcdcdcdcd",
    ]


def test_training_tells_first_what_a_restore_undid() -> None:
    report = TrainReport(0, 4, 0, 40, 1.0, (), {}, ("the ledger was put back from a backup",))
    assert shown(present.trained, report)[1] == "  note: the ledger was put back from a backup"


def test_a_stage_says_who_comes_who_goes_and_what_to_beware_of() -> None:
    lines = shown(present.staged, StageReport(1, 30, "merged", (("client-100", 3),), ("client-001",), ("beware",)))
    assert lines == [
        "Stage 1 is open: 30 rounds, hand-over merged.",
        "  client-100 joins shard 3",
        "  client-001 takes part no longer (it is not forgotten)",
        "  warning: beware",
    ]


def test_a_plan_says_what_it_would_touch_cost_and_promise() -> None:
    lines = shown(present.planned, PlanReport(("a", "b"), "exact", REACHES, 58, 290, 12.34, EXACT, (1,)))
    assert lines == [
        "Forgetting a, b by exact would",
        "  make again stage 0 shard 1: 28 rounds from round 2",
        "  make again stage 1 shard 1: 30 rounds from round 0, handed over",
        "  cost 290 client-epochs in 58 shard rounds, about 12.3 s of the clients' work",
        "  end shard 1: nobody would be left in it; the others serve on",
        "Guarantee X1 (exact): bit-identical to the run that never had what is forgotten.",
        "  Because: restarted stage 0 shard 1 from round 2, before any leaver took part.",
    ]


def test_a_plan_that_touches_nothing_says_so_and_gives_no_time_nobody_measured() -> None:
    lines = shown(present.planned, PlanReport(("a",), "exact", (), 0, 0, None, Guarantee("X0", "never drawn"), ()))
    assert lines[1] == "  touch nothing"
    assert lines[2] == "  cost 0 client-epochs in 0 shard rounds"


def forgot(**changes: Any) -> ForgetReport:
    values: dict[str, Any] = {
        "request": 3,
        "clients": ("a",),
        "method": "exact",
        "guarantee": CHANGED,
        "touches": REACHES,
        "rounds": 58,
        "client_epochs": 290,
        "seconds": 9.0,
        "parallel_seconds": 3.0,
        "wall_seconds": 4.0,
        "before": {"0": "00" * 32, "1": "11" * 32, "2": "22" * 32, "10": "aa" * 32},
        "after": {"0": "00" * 32, "1": "33" * 32, "10": "aa" * 32, "11": "bb" * 32},
        "keys_destroyed": 5,
        "slices_deleted": 6,
        "slices_owed": 0,
        "ended": (2,),
    }
    return ForgetReport(**{**values, **changes})


def test_a_forgetting_says_what_became_of_every_shard_in_order() -> None:
    assert shown(present.forgot, forgot()) == [
        "Forgot a by exact (request 3).",
        "  made again stage 0 shard 1: 28 rounds from round 2",
        "  made again stage 1 shard 1: 30 rounds from round 0, handed over",
        "  290 client-epochs, 4.0 s",
        "  shard 0 untouched: model 0000000000000000",
        "  shard 1: model 1111111111111111 became 3333333333333333",
        "  shard 2 has ended: nobody is left in it",
        "  shard 10 untouched: model aaaaaaaaaaaaaaaa",
        "  shard 11: model - became bbbbbbbbbbbbbbbb",
        "  5 keys destroyed, 6 slices deleted",
        "Guarantee X2 (exact, conditions changed): as exact, but for the conditions listed.",
        "  Because: restarted, but conditions changed.",
        "  But: client-003 was lost in stage 0, shard 1, round 4.",
    ]


def test_a_forgetting_names_its_certificate_last() -> None:
    assert (
        shown(present.forgot, forgot(certificate="W/certificates/c.json"))[-1] == "Certificate: W/certificates/c.json"
    )


def test_deletions_that_wait_for_absent_holders_are_said() -> None:
    assert "  5 keys destroyed, 6 slices deleted, 2 owed by holders that are away" in shown(
        present.forgot, forgot(slices_owed=2)
    )


def test_verdicts_stand_in_a_column_and_findings_below_the_first_ten() -> None:
    checks = (
        Check("ledger", True, "9 events"),
        Check("slices", False, "too few"),
        Check("never joined", None, "nothing to compare"),
    )
    lines = shown(present.verified, VerifyReport(checks, tuple(f"slice {i} is missing" for i in range(12))))
    assert lines[:3] == ["ok   ledger: 9 events", "FAIL slices: too few", "--   never joined: nothing to compare"]
    assert lines[3] == "     slice 0 is missing"
    assert lines[-1] == "     and 2 more"
    assert len(lines) == 3 + 10 + 1


def test_a_forget_given_up_is_said_to_have_changed_nothing() -> None:
    assert shown(present.abandoned, AbandonReport(1, "client-001", "exact", 2), width=120) == [
        "Gave up forgetting client-001 (exact): nothing was changed, it may be asked for again.",
        "Owed: 2 deletions by holders that are away",
    ]
    assert len(shown(present.abandoned, AbandonReport(1, "client-001", "exact", 0), width=120)) == 1


def test_scrubbing_says_how_far_it_got() -> None:
    assert shown(present.scrubbed, ScrubReport(20, 100, 4, ("slice x is altered",))) == [
        "Checked 20 of 100 slices, 1 missing or altered.",
        "  slice x is altered",
        "  The next scrub goes on from here.",
    ]
    assert shown(present.scrubbed, ScrubReport(100, 100, 0, ())) == ["Checked 100 of 100 slices, 0 missing or altered."]


def test_repair_says_what_it_could_not_do() -> None:
    assert shown(present.repaired, RepairReport(("a", "b"), 0, ())) == ["Made 2 slices again."]
    lines = shown(present.repaired, RepairReport((), 3, ("slices of x",)))
    assert lines[1:] == ["  3 seats stay vacant: nobody else could take them over", "  lost: slices of x"]


def test_scores_are_aligned_and_what_was_not_measured_is_a_dash() -> None:
    report = EvaluateReport((Score("shard 0", 0.5, 1.25, 0.75, None), Score("ensemble", 1.0, 0.1, 0.9, 0.123)), 360)
    lines = shown(present.evaluated, report)
    assert lines[1].split("  ")[0] == "shard 0"
    assert lines[1].endswith("-")
    assert "50.0 %" in lines[1]
    assert lines[2].endswith("12.3 %")
    assert "360 test examples" in lines[3]


def test_markup_in_a_name_is_text() -> None:
    lines = shown(present.made, status(path="[red]W[/red]"))
    assert "[red]W[/red]" in lines[0]


def test_the_storage_table_fits_eighty_columns() -> None:
    report = storage_report(857_738, 8, 100, 4, 5, 30, 0.1, 1e8)
    lines = shown(present.storage, report)
    assert all(len(line) <= 90 for line in lines)
    for row in report.rows:
        assert sum(line.startswith(row.name + " ") for line in lines) == 2
