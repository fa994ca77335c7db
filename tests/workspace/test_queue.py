"""From the wish to the last word: a request goes through all its states, in batches, and is final in the end."""

from pathlib import Path
from typing import Any

import pytest
from asking import Clock, ask, desk, enrol, key, kinds, states, wish
from small import assert_in_order, client, copied, every_digest, trained
from worlds import world_without

from fedforget.errors import AlreadyForgotten, NeedsHuman, RequestDenied, SettingError, UnknownClient, UnknownRequest
from fedforget.requests import Scope
from fedforget.workspace import FederationSettings, Workspace

EVERYBODY = [client(i) for i in range(8)]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def pristine(request: pytest.FixtureRequest, shared_room: Path) -> tuple[Path, Any]:
    """A workspace with its ledger in a file, or on a server: the same is so of both."""
    server = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    path = trained(shared_room / request.param, ledger=server.new() if server else "")
    with desk(path, Clock()) as space:
        enrol(space, EVERYBODY)
    return path, server


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(pristine: tuple[Path, Any], room: Path) -> Path:
    source, server = pristine
    target = copied(source, room / "w")
    if server:  # the copy gets a copy of the database
        settings = (target / "federation.toml").read_text()
        url = FederationSettings.from_toml(settings).ledger
        (target / "federation.toml").write_text(settings.replace(url, server.new(like=url)))
    return target


def shard_mates(space: Workspace) -> tuple[str, str]:
    """Two clients of the same shard."""
    plan = space.state().plan
    return plan.present(0, 0)[0], plan.present(0, 0)[1]


def test_a_clients_own_wish_is_authorised_planned_and_quarantined_at_once(path: Path, clock: Clock) -> None:
    with desk(path, clock) as space:
        report = ask(space, client(0))
        assert [(r.request, r.state, r.again) for r in report.receipts] == [("r-client-000", "quarantined", False)]
        (line,) = space.requests.list().requests
        assert (line.role, line.name, line.scope) == ("client", client(0), client(0))
        assert (line.received, line.deadline) == ("2026-01-31T12:00:00Z", "2026-02-28T12:00:00Z")
        shard = space.state().plan.shard_of(client(0))
        assert space.requests.list().left_out == ((0, shard, "2026-01-31T12:00:00Z"),)
        assert kinds(space)[-5:] == ["received", "authorised", "planned", "left out", "quarantined"]


def test_after_the_window_the_batch_is_carried_out_and_after_the_backups_it_is_final(path: Path, clock: Clock) -> None:
    with desk(path, clock) as space:
        ask(space, client(0), client(1))
        clock.pass_by(hours=23)
        early = space.requests.run()
        assert (early.executed, early.waiting, early.next_batch) == ((), 2, "2026-02-01T12:00:00Z")
        clock.pass_by(hours=1)
        report = space.requests.run()
        assert report.executed == ("r-client-000", "r-client-001")
        assert len(report.rebuilds) == 1
        assert kinds(space).count("forgotten") == 1
        assert space.requests.list().left_out == ()
        assert states(space) == {"r-client-000": "executed", "r-client-001": "executed"}
        assert every_digest(space) == world_without(space)
        assert_in_order(space)
        clock.pass_by(days=29)
        assert space.requests.run().final == ()
        clock.pass_by(days=1)
        assert space.requests.run().final == ("r-client-000", "r-client-001")
        assert set(states(space).values()) == {"final"}
        assert space.requests.run().final == ()
        shown = space.requests.show("r-client-000")
        assert shown.outcome is not None
        assert shown.outcome["guarantee"]["grade"] == "X1"
        assert shown.document["scope"] == {"kind": "client", "clients": [client(0)]}


def test_an_operators_wish_waits_for_a_second_operator(path: Path, clock: Clock) -> None:
    with desk(path, clock) as space:
        ask(space, client(0), by="ann")
        assert states(space) == {"r-client-000": "received"}
        assert space.requests.run(now=True).executed == ()
        alone = space.requests.say("r-client-000", "approve", key=key("ann"))
        assert alone.receipts[0].kind == "alone"
        with pytest.raises(RequestDenied, match="second operator"):
            alone.raise_if_denied()
        space.requests.enrol("operator", "ann", key("ann's other key").public)
        assert space.requests.say("r-client-000", "approve", key=key("ann's other key")).receipts[0].kind == "alone"
        with pytest.raises(SettingError, match="unsigned"):
            space.requests.say("r-client-000", "approve")
        approval = space.requests.verdict("r-client-000", "approve", "", key("bob")).to_bytes()
        assert [space.requests.decide(approval).receipts[0].again for _ in range(3)] == [False, True, True]
        assert states(space) == {"r-client-000": "quarantined"}
        assert space.requests.run(now=True).executed == ("r-client-000",)
        assert [(v.verdict, v.name) for v in space.requests.show("r-client-000").verdicts] == [("approve", "bob")]


def test_a_wish_delivered_fifty_times_has_one_effect(path: Path, clock: Clock) -> None:
    with desk(path, clock) as space:
        blob = wish(space, client(0), request="r").to_bytes()
        receipts = space.requests.ask(*[blob] * 25).receipts
        assert [r.again for r in receipts] == [False] + [True] * 24
        space.requests.run(now=True)
        clock.pass_by(days=60)  # the wish itself has long expired: it is known, not new
        assert {(r.state, r.again) for r in space.requests.ask(*[blob] * 25).receipts} == {("executed", True)}
        assert kinds(space).count("received") == kinds(space).count("forgotten") == 1


def test_another_wish_under_the_same_id_is_denied(path: Path, clock: Clock) -> None:
    with desk(path, clock) as space:
        ask(space, client(0))
        other = wish(space, client(1), request="r-client-000")
        assert space.requests.ask(other.to_bytes()).receipts[0].kind == "taken"
        again = wish(space, client(0), request="r-client-000", reason="moved away")
        assert space.requests.ask(again.to_bytes()).receipts[0].kind == "taken"
        assert states(space) == {"r-client-000": "quarantined"}


def test_held_it_stays_left_out_and_released_it_goes_on(path: Path, clock: Clock) -> None:
    with desk(path, clock) as space:
        ask(space, client(0))
        with pytest.raises(SettingError, match="told why"):
            space.requests.say("r-client-000", "hold")
        space.requests.say("r-client-000", "hold", "identity to be checked", key("ann"))
        assert states(space) == {"r-client-000": "on_hold"}
        assert space.requests.list().requests[0].reason == "identity to be checked"
        assert space.requests.list().left_out
        assert space.requests.run(now=True).executed == ()
        space.requests.say("r-client-000", "release")
        assert states(space) == {"r-client-000": "quarantined"}
        assert [v.role for v in space.requests.show("r-client-000").verdicts] == ["operator", "custodian"]
        assert space.requests.run(now=True).executed == ("r-client-000",)


def test_held_before_it_was_approved_it_is_released_to_wait_for_approval(path: Path, clock: Clock) -> None:
    with desk(path, clock) as space:
        ask(space, client(0), by="ann")
        space.requests.say("r-client-000", "hold", "let me see")
        space.requests.say("r-client-000", "release", key=key("ann"))
        assert states(space) == {"r-client-000": "received"}


def test_rejected_or_withdrawn_its_shards_are_served_again_unless_others_mind(path: Path, clock: Clock) -> None:
    with desk(path, clock) as space:
        one, other = shard_mates(space)
        ask(space, one, other)
        space.requests.say(f"r-{one}", "reject", "withdrawn", key(one))
        assert states(space)[f"r-{one}"] == "rejected"
        assert [shard for _, shard, _ in space.requests.list().left_out] == [0]
        denied = space.requests.say(f"r-{other}", "reject", "I mind", key(one))
        assert denied.receipts[0].kind == "not allowed"
        space.requests.say(f"r-{other}", "reject", "not the person it says it is", key("ann"))
        assert space.requests.list().left_out == ()
        assert space.requests.run(now=True).executed == ()
        with pytest.raises(RequestDenied):
            space.requests.say(f"r-{other}", "hold", "too late")


def test_two_wishes_for_one_client_are_both_answered_by_one_rebuild(path: Path, clock: Clock) -> None:
    with desk(path, clock) as space:
        ask(space, client(0))
        space.requests.ask(wish(space, client(0), "ann", "second").to_bytes())
        space.requests.say("second", "approve", key=key("bob"))
        assert space.requests.run(now=True).executed == ("r-client-000", "second")
        assert kinds(space).count("forgotten") == 1


def test_who_was_forgotten_for_somebody_elses_request_is_done_with(path: Path, clock: Clock) -> None:
    with desk(path, clock) as space:
        ask(space, client(0), client(1))
        space.requests.say("r-client-000", "hold", "wait")
        space.forget([client(0)])
        assert states(space) == {"r-client-000": "on_hold", "r-client-001": "quarantined", "by-hand-1": "executed"}
        space.requests.say("r-client-000", "release")
        assert states(space)["r-client-000"] == "executed"
        assert space.requests.show("r-client-000").request.rebuild == 1
        space.forget([client(1)])
        assert space.requests.run(now=True).executed == ()
        assert states(space)["r-client-001"] == "executed"
        denied = space.requests.ask(wish(space, client(1), request="late").to_bytes()).receipts[0]
        assert (denied.state, denied.kind) == ("denied", "impossible")


def test_forgetting_by_hand_is_a_request_through_the_same_states(path: Path, clock: Clock) -> None:
    with desk(path, clock) as space:
        space.forget([client(2), client(3)])
        (line,) = space.requests.list().requests
        assert (line.id, line.state, line.role, line.scope) == (
            "by-hand-1",
            "executed",
            "custodian",
            "client-002, client-003",
        )
        told = [k for k in kinds(space) if k not in ("round", "enrolled", "noted", "deleted", "certified")]
        assert told[2:] == [
            "requested", "received", "authorised", "planned", "left out", "quarantined", "rebuilding",
            "forgotten", "sealed", "executed",
        ]  # fmt: skip
        clock.pass_by(days=30)
        assert space.requests.run().final == ("by-hand-1",)
        assert space.requests.decide(wish(space, client(4)).to_bytes()).receipts[0].state == "denied"
        with pytest.raises(SettingError):
            space.requests.say("by-hand-1", "hold", "stop", key("ann"))


def test_the_month_is_warned_of_on_days_7_20_27_and_every_day_after_it(path: Path, clock: Clock) -> None:
    with desk(path, clock) as space:
        space.requests.policy(window_hours=480)
        ask(space, client(0))
        space.requests.say("r-client-000", "hold", "waiting for a reply")
        told = {}
        for day in range(1, 32):
            clock.pass_by(days=1)
            for request, text in space.requests.run().warnings:
                assert request == "r-client-000"
                told[day] = text
        assert list(told) == [7, 20, 27, 28, 29, 30, 31]
        assert told[7] == "day 7 since receipt, 21 days left"
        assert told[28] == "overdue since 2026-02-28T12:00:00Z"
        assert space.requests.list().requests[0].warning == told[31]
        assert kinds(space).count("warned") == 7
        space.requests.say("r-client-000", "reject", "no reply")
        clock.pass_by(days=1)
        assert space.requests.run().warnings == ()
        assert space.requests.list().requests[0].warning == ""


def test_policies_are_declared_and_kept(path: Path, clock: Clock) -> None:
    with desk(path, clock) as space:
        assert vars(space.requests.policy()) == {"window_hours": 24, "backup_days": 30}
        space.requests.policy(window_hours=0)
        space.requests.policy(backup_days=0)
        assert vars(space.requests.policy()) == {"window_hours": 0, "backup_days": 0}
        assert kinds(space)[-2:] == ["declared", "declared"]
        ask(space, client(0))
        report = space.requests.run()
        assert (report.executed, report.final) == (("r-client-000",), ("r-client-000",))
        for wrong in ({"window_hours": 481}, {"window_hours": -1}, {"backup_days": -1}, {"backup_days": 4000}):
            with pytest.raises(SettingError):
                space.requests.policy(**wrong)


def test_keys_are_enrolled_once_and_revoked_for_good(path: Path, clock: Clock) -> None:
    with desk(path, clock) as space:
        again = space.requests.enrol("client", client(0), key(client(0)).public)
        assert again.revoked is None
        assert len(space.requests.keys().keys) == 10
        for role, name, error in (
            ("client", client(1), SettingError),
            ("operator", client(0), SettingError),
            ("king", "ann", SettingError),
            ("operator", "", SettingError),
            ("operator", "a\nb", SettingError),
            ("client", "nobody", UnknownClient),
        ):
            with pytest.raises(error):
                space.requests.enrol(role, name, key(client(0)).public)
        blob = wish(space, client(0), request="r").to_bytes()
        clock.pass_by(hours=1)
        assert space.requests.revoke(key(client(0)).public).revoked == "2026-01-31T13:00:00Z"
        clock.pass_by(hours=1)
        assert space.requests.revoke(key(client(0)).public).revoked == "2026-01-31T13:00:00Z"
        assert space.requests.ask(blob).receipts[0].kind == "revoked"
        with pytest.raises(SettingError, match="revoked"):
            space.requests.enrol("client", client(0), key(client(0)).public)
        with pytest.raises(SettingError, match="enrolled"):
            space.requests.revoke(key("nobody").public)
        with pytest.raises(SettingError, match="enrolled"):
            space.requests.wish(Scope.of_clients([client(0)]), key("nobody"))
        space.forget([client(5)])
        with pytest.raises(AlreadyForgotten):
            space.requests.enrol("client", client(5), key("another").public)


def test_what_is_not_known_is_said(path: Path, clock: Clock) -> None:
    with desk(path, clock) as space:
        with pytest.raises(UnknownRequest, match="r-1"):
            space.requests.show("r-1")
        with pytest.raises(UnknownRequest):
            space.requests.say("r-1", "hold", "why")
        assert space.requests.ask(b"").receipts[0].kind == "malformed"
        stranger = space.requests.wish(Scope.of_clients(["nobody"]), key("ann")).to_bytes()
        assert "never enrolled" in space.requests.ask(stranger).receipts[0].why
        odd = space.requests.wish(Scope.of_stages(5, 6), key("ann"), request="odd").to_bytes()
        space.requests.ask(odd)
        space.requests.say("odd", "approve", key=key("bob"))
        assert states(space) == {"odd": "needs_human"}


def test_what_cannot_be_carried_out_waits_for_a_human_and_the_rest_goes_on(path: Path, clock: Clock) -> None:
    """The start of one shard's restart is lost on too many holders."""
    with desk(path, clock) as space:
        plan = space.state().plan
        late = {s: next(c for c in plan.present(0, s) if c not in plan.cohort(0, s, 0)) for s in range(2)}
        ask(space, late[0], late[1])
        for slice in list(space.store.keys()):
            if slice.shard == 0 and slice.holder != "server.head":
                space.store.path(slice).unlink()
        report = space.requests.run(now=True)
        assert report.executed == (f"r-{late[1]}",)
        assert [request for request, _ in report.needs_human] == [f"r-{late[0]}"]
        with pytest.raises(NeedsHuman, match="requests release"):
            report.raise_if_stuck()
        assert [shard for _, shard, _ in space.requests.list().left_out] == [0]
        again = space.requests.run(now=True)
        assert again.needs_human == ()
        again.raise_if_stuck()
        space.requests.say(f"r-{late[0]}", "release")
        assert states(space)[f"r-{late[0]}"] == "quarantined"
        assert [request for request, _ in space.requests.run(now=True).needs_human] == [f"r-{late[0]}"]


def test_pages_of_the_list(path: Path, clock: Clock) -> None:
    with desk(path, clock) as space:
        ask(space, *EVERYBODY[:4])
        space.requests.say("r-client-001", "hold", "wait")
        assert [r.id for r in space.requests.list(limit=2).requests] == ["r-client-000", "r-client-001"]
        assert [r.id for r in space.requests.list(after=2, limit=1).requests] == ["r-client-002"]
        assert [r.id for r in space.requests.list(["on_hold"]).requests] == ["r-client-001"]
        assert space.requests.list().counts == {"on_hold": 1, "quarantined": 3}
