"""The verbs of requests: who may ask, asking, answering, and working the queue."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from .. import present
from ..requests import Scope
from ..requests.wish import Saying
from ..workspace import signer
from ..workspace.request_reports import DeliveryReport
from .base import AsJson, Clients, Data, Folder, MethodName, answer, app, opened, progress_bar
from .scopes import Label, Samples, SamplesFile, Stages, scope_of

queue = typer.Typer(
    name="requests", help="Look at the queue, and answer requests.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(queue)

KeyFile = Annotated[Path, typer.Option("--key", help="The secret key of whoever signs (see keygen).")]
MaybeKey = Annotated[Path | None, typer.Option("--key", help="The secret key of whoever says so; else by own hand.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="The request's id.")]
Reason = Annotated[str, typer.Option("--reason", help="One line; whoever asked is told.")]
Basis = Annotated[str, typer.Option("--basis", help="The legal basis, such as 'GDPR 17(1)(b)'.")]
NewId = Annotated[str, typer.Option("--id", help="An id of your own; else a random one.")]


@app.command()
def keygen(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The secret half; the public one is FILE.pub.")],
    as_json: AsJson = False,
) -> None:
    """Make a key pair to sign requests with. The secret file is for its owner's eyes alone.

    Example: fedforget keygen client-007.key
    """
    answer(signer.make_keys(path), as_json, present.key_pair)


@app.command()
def enroll(
    path: Folder,
    key: Annotated[str, typer.Option("--key", help="The public key, or its file (FILE.pub).")] = "",
    client: Annotated[str, typer.Option("--client", help="The client whose key it is.")] = "",
    operator: Annotated[str, typer.Option("--operator", help="The operator whose key it is.")] = "",
    auditor: Annotated[str, typer.Option("--auditor", help="The auditor whose key it is.")] = "",
    revoke: Annotated[bool, typer.Option("--revoke", help="This key speaks for nobody from now on.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say whose key a public key is. Without a key, list those enrolled.

    Example: fedforget enroll W --client client-007 --key client-007.key.pub
    """
    names = {role: name for role, name in (("client", client), ("operator", operator), ("auditor", auditor)) if name}
    with opened(path) as space:
        desk = space.requests
        if not key:
            answer(desk.keys(), as_json, present.keys)
        elif revoke:
            answer(desk.revoke(signer.read_public(key)), as_json, present.key)
        elif len(names) != 1:
            raise typer.BadParameter("one of --client, --operator, --auditor says whose key it is")
        else:
            ((role, name),) = names.items()
            answer(desk.enrol(role, name, signer.read_public(key)), as_json, present.key)


@app.command()
def wish(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to be delivered.")],
    key: KeyFile,
    federation: Annotated[str, typer.Option("--federation", help="Its name (`status --json` has it).")],
    client: Clients = None,
    samples: Samples = None,
    samples_file: SamplesFile = None,
    label: Label = None,
    stages: Stages = None,
    operator: Annotated[str, typer.Option("--operator", help="Your name, if you ask as an operator.")] = "",
    reason: Reason = "",
    basis: Basis = "",
    id: NewId = "",
    as_json: AsJson = False,
) -> None:
    """Sign a wish to be forgotten, at home. Deliver the file with `fedforget request DIR --file OUT`.

    Example: fedforget wish wish.json --federation 3f1c --client client-007 --key client-007.key
    """
    scope = _scope(client, samples, samples_file, label, stages)
    who = ("operator", operator) if operator else ("client", "".join(scope.clients[:1]))
    secret, now = signer.read_secret(key), datetime.now(UTC)
    answer(signer.write_wish(out, federation, scope, *who, secret, now, reason, basis, id), as_json, present.wished)


@app.command()
def request(
    path: Folder,
    file: Annotated[list[Path] | None, typer.Option("--file", "-f", help="A signed wish; may be repeated.")] = None,
    client: Clients = None,
    samples: Samples = None,
    samples_file: SamplesFile = None,
    label: Label = None,
    stages: Stages = None,
    key: MaybeKey = None,
    reason: Reason = "",
    basis: Basis = "",
    id: NewId = "",
    as_json: AsJson = False,
) -> None:
    """Deliver signed wishes, or sign one here. However often it comes, it has one effect.

    Example: fedforget request W --file wish.json
    Example: fedforget request W --client client-007 --key operator.key --basis "GDPR 17(1)(b)"
    """
    blobs = [each.read_bytes() for each in file or ()]
    with opened(path) as space:
        if key is not None:
            scope = _scope(client, samples, samples_file, label, stages)
            blobs.append(space.requests.wish(scope, signer.read_secret(key), reason, basis, id).to_bytes())
        if not blobs:
            raise typer.BadParameter("--file brings a signed wish, --client and --key sign one here")
        report = space.requests.ask(*blobs)
    _answered(report, as_json)


def _scope(
    client: list[str] | None, samples: str | None, samples_file: Path | None, label: int | None, stages: str | None
) -> Scope:
    found = scope_of(client, samples, samples_file, label, stages)
    return found or Scope.of_clients(())


@app.command()
def approve(path: Folder, id: Id, key: KeyFile, reason: Reason = "", as_json: AsJson = False) -> None:
    """Approve another operator's request. With a key of your own, never the one that asked.

    Example: fedforget approve W 5f2a0c --key second.key
    """
    _say(path, id, "approve", reason, key, as_json)


@queue.command("list")
def list_requests(
    path: Folder,
    state: Annotated[list[str] | None, typer.Option("--state", help="Only those in this state; repeatable.")] = None,
    limit: Annotated[int, typer.Option(help="At most so many; 0: all.")] = 0,
    as_json: AsJson = False,
) -> None:
    """What was asked for, how far it has got, and how the legal month stands.

    Example: fedforget requests list W --state on_hold
    """
    with opened(path) as space:
        answer(space.requests.list(state or (), limit=limit or None), as_json, present.requests)


@queue.command()
def show(path: Folder, id: Id, as_json: AsJson = False) -> None:
    """All there is to know of one request.

    Example: fedforget requests show W 5f2a0c
    """
    with opened(path) as space:
        answer(space.requests.show(id), as_json, present.request)


@queue.command()
def hold(path: Folder, id: Id, reason: Reason = "", key: MaybeKey = None, as_json: AsJson = False) -> None:
    """Stop a request for now. Its shards stay left out of what is served, and its month goes on.

    Example: fedforget requests hold W 5f2a0c --reason "identity to be checked"
    """
    _say(path, id, "hold", reason, key, as_json)


@queue.command()
def release(path: Folder, id: Id, reason: Reason = "", key: MaybeKey = None, as_json: AsJson = False) -> None:
    """Let a request go on that was on hold or needed a human.

    Example: fedforget requests release W 5f2a0c
    """
    _say(path, id, "release", reason, key, as_json)


@queue.command()
def reject(path: Folder, id: Id, reason: Reason = "", key: MaybeKey = None, as_json: AsJson = False) -> None:
    """Refuse a request, for a reason; or withdraw one's own, with the key that asked.

    Example: fedforget requests reject W 5f2a0c --reason "not the person it says it is"
    """
    _say(path, id, "reject", reason, key, as_json)


def _say(path: Path, id: str, saying: Saying, reason: str, key: Path | None, as_json: bool) -> None:
    with opened(path) as space:
        report = space.requests.say(id, saying, reason, signer.read_secret(key) if key else None)
    _answered(report, as_json)


def _answered(report: DeliveryReport, as_json: bool) -> None:
    if as_json or any(receipt.state != "denied" for receipt in report.receipts):
        answer(report, as_json, present.delivered)
    report.raise_if_denied()


@app.command()
def run(
    path: Folder,
    now: Annotated[bool, typer.Option("--now", help="Do not wait for the window to end.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Go on for ever, pass after pass.")] = False,
    every: Annotated[float, typer.Option(help="--watch: seconds between passes.")] = 60.0,
    method: MethodName = "exact",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Work the queue. What waits is carried out in one batch, at most one rebuild a shard. Exit code 14 if stuck.

    Example: fedforget run W --now
    Example: fedforget run W --watch
    """
    with opened(path, data) as space, progress_bar() as bar:
        if watch:
            space.requests.watch(lambda found: answer(found, as_json, present.worked), every, method, progress=bar)
        report = space.requests.run(now, method, progress=bar)
    answer(report, as_json, present.worked)
    report.raise_if_stuck()


@app.command()
def policy(
    path: Folder,
    window: Annotated[int | None, typer.Option("--window", help="Hours requests are gathered before a batch.")] = None,
    backup_days: Annotated[int | None, typer.Option("--backup-days", help="Days backups are kept.")] = None,
    as_json: AsJson = False,
) -> None:
    """How long requests are gathered and backups kept. A request is final when no backup is older.

    Example: fedforget policy W --window 24 --backup-days 30
    """
    with opened(path) as space:
        answer(space.requests.policy(window, backup_days), as_json, present.policy)
