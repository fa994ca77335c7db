"""The page of a workspace: everything in it, nothing that was not said, the same bytes for the same workspace."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pages import check

from fedforget.forgetting.guarantee import MEANINGS, NAMES
from fedforget.report import workspace_page
from fedforget.report.write import is_workspace, write_workspace
from fedforget.workspace import FederationSettings, Task, Workspace
from fedforget.workspace.facts import CellFacts, Facts, RequestFacts, Stretch, facts
from fedforget.workspace.progress import silent
from fedforget.workspace.reports import Check, VerifyReport
from fedforget.workspace.tasks import build

EVIL = "<script>alert('x')</script>"


def settings(**changes: object) -> FederationSettings:
    given = {"clients": 12, "shards": 3, "participants": 2, "rounds": 4, "epochs": 1, "federation": "f", **changes}
    return FederationSettings.of({**given, "keeping": {"holders": 4, "threshold": 2}})


@pytest.fixture(scope="module")
def space() -> Iterator[Workspace]:
    """Two stages; one shard made again exactly, one cleanly."""
    memory = Path("/dev/shm")
    room = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None, prefix="fedforget-")
    with room as folder, Workspace.init(Path(folder) / "W", settings()) as made:
        made.train()
        made.open_stage()
        made.train()
        shards = {made.state().plan.shard_of(c): c for c in made.state().plan.clients}
        made.forget([shards[0]])
        made.forget([shards[1]], "clean")
        yield made


@pytest.fixture(scope="module")
def found(space: Workspace) -> Facts:
    return facts(space, silent)


def test_a_page_has_everything_and_every_part_is_named(found: Facts) -> None:
    text = workspace_page(found)
    page = check(text)
    for heading in ("At a glance", "Lineage", "Requests to be forgotten", "Storage", "Evaluation", "Verification"):
        assert heading in page.text
    for grade, name in NAMES.items():
        assert grade in page.text
        assert name in page.text
        assert MEANINGS[grade] in page.text  # type: ignore[index]
    for request in found.requests:
        assert request.reason in page.text
        for client in request.clients:
            assert client in page.text
    for cell in found.cells:
        assert cell.digest[:16] in page.text
    assert found.evaluation is not None
    for score in found.evaluation.scores:
        assert score.model in page.text
    assert f"{found.status.total_bytes:,}" in page.text
    assert len([a for a in page.all("svg") if a.get("role") == "img"]) == 3
    assert len([a for a in page.all("path") if a.get("class") == "line"]) == 3, "three shards were handed over"


def test_the_same_workspace_gives_the_same_bytes(space: Workspace, tmp_path: Path) -> None:
    one = write_workspace(space, tmp_path / "a.html", silent)
    two = write_workspace(space, tmp_path / "b.html", silent)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert one.bytes == two.bytes == len((tmp_path / "a.html").read_bytes())
    assert one.kind == "workspace"
    assert is_workspace(space.path)
    beside = write_workspace(space, None, silent, evaluate=False, verify=False)
    assert Path(beside.path) == space.path.parent / "W.html"
    page = check(Path(beside.path).read_text())
    assert "The evaluation was left out." in page.text
    assert "The verification was left out." in page.text


def test_names_of_clients_are_words(found: Facts) -> None:
    """Names come from users, from settings and from whatever wrote the ledger: none of them is markup."""
    request = RequestFacts(9, EVIL, (EVIL, "b"), EVIL, "A", EVIL, (EVIL,), ({"stage": EVIL, "shard": EVIL},), EVIL)
    status = replace(found.status, federation=EVIL, task=EVIL, learner=EVIL, codes=(EVIL,), unfinished=(EVIL,), debts=3)
    verification = VerifyReport((Check(EVIL, False, EVIL),), (EVIL,))
    cell = CellFacts(0, 0, 2, 3, 4, EVIL, ((0, 1),), (Stretch(0, 2, 0, EVIL, 1),), EVIL, 3, 0.5)  # type: ignore[arg-type]
    nasty = replace(
        found,
        name=EVIL,
        as_of=EVIL,
        status=status,
        cells=(cell,),
        requests=(request,),
        verification=verification,
        evaluation=None,
        missing=EVIL,
    )
    page = check(workspace_page(nasty))
    assert page.text.count(EVIL) >= 12
    assert "Something is not as it should be." in page.text


def test_a_client_with_a_name_users_may_give(tmp_path: Path) -> None:
    """The name the workspace allows at its oddest, through the whole way."""
    plain = build(settings(clients=4, shards=2))
    names = ["_", "a@b.c-d_e", "Z" * 64, "0"]
    parts = dict(zip(names, plain.examples.values(), strict=True))
    task = Task(plain.dataset, plain.learner, parts)
    with Workspace.init(tmp_path / "W", settings(clients=4, shards=2), task=task) as made:
        made.train()
        made.forget(["a@b.c-d_e"])
        assert "a@b.c-d_e" in check(workspace_page(facts(made, silent))).text


def test_a_federation_nothing_was_done_to(tmp_path: Path) -> None:
    with Workspace.init(tmp_path / "W", settings(participants=0)) as made:
        page = check(workspace_page(facts(made, silent)))
    assert "Nobody has asked to be forgotten." in page.text
    assert "not trained yet, or nobody is left" in page.text
    assert "everybody of a shard take part" in page.text


def test_a_shard_that_ended_and_borrowed_lengths_are_said(found: Facts) -> None:
    ended = CellFacts(0, 1, 0, 0, 4, "lineage", (), (), "", 0, 0.0)
    borrowed = CellFacts(
        0, 0, 2, 4, 4, "lineage", (), (Stretch(0, 0, 1, "prepared", None), Stretch(1, 3, 1, "skipped", 2)), "ab", 3, 1.0
    )
    page = check(workspace_page(replace(found, cells=(borrowed, ended))))
    assert "ended" in page.text
    assert "lengths of shard 2" in page.text
    assert "round 0 prepared, generation 1" in page.text
    kinds = {str(a.get("class")) for a in page.all("rect")}
    assert "k-calibrated" in kinds
