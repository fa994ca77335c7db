"""Commands for those who want to see for themselves: the log, and certificates."""

from pathlib import Path
from typing import Annotated

import typer

from .. import present
from ..workspace import auditing
from .base import AsJson, Data, Folder, answer, app, opened, progress_bar

log = typer.Typer(name="log", help="The federation's log: events, signed checkpoints, proofs.", rich_markup_mode=None)
certificate = typer.Typer(name="certificate", help="The signed accounts of what was done.", rich_markup_mode=None)
app.add_typer(log)
app.add_typer(certificate)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The certificate.", exists=True, dir_okay=False)]
Key = Annotated[str, typer.Option("--key", help="The operator's public key, ed25519:…, or a file with it.")]


@log.command("key")
def log_key(
    path: Folder,
    new: Annotated[bool, typer.Option("--new", help="Make another: the old one was lost, or seen by others.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the public key that checkpoints and certificates are signed with. To be published.

    Example: fedforget log key W
    """
    with opened(path) as space:
        report = auditing.key(space, new)
    answer(report, as_json, present.log_key)


@log.command("show")
def log_show(
    path: Folder,
    last: Annotated[int, typer.Option(help="Only the newest so many; 0: all.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List the events.

    Example: fedforget log show W --last 5
    """
    with opened(path) as space:
        report = auditing.events(space, last)
    answer(report, as_json, present.log_events)


@log.command("checkpoint")
def log_checkpoint(
    path: Folder,
    since: Annotated[int | None, typer.Option(help="With a proof that it goes on from the log of that size.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the newest signed checkpoint. To be kept by others: a ledger that was rewritten does not fit it.

    Example: fedforget log checkpoint W --since 17 --json
    """
    with opened(path) as space:
        report = auditing.checkpoint(space, since)
    answer(report, as_json, present.log_checkpoint)


@log.command("prove")
def log_prove(
    path: Folder,
    event: Annotated[int, typer.Option(help="The number of the event.")],
    as_json: AsJson = False,
) -> None:
    """Prove that an event is in the log of the newest checkpoint.

    Example: fedforget log prove W --event 3
    """
    with opened(path) as space:
        report = auditing.prove(space, event)
    answer(report, as_json, present.log_proof)


@log.command("verify")
def log_verify(
    path: Folder,
    checkpoint: Annotated[Path, typer.Option(help="A checkpoint that was kept elsewhere.", exists=True)],
    key: Key,
    as_json: AsJson = False,
) -> None:
    """Check that the log goes on from a checkpoint kept elsewhere. Exit code 12 if not.

    Example: fedforget log verify W --checkpoint kept.note --key ed25519:…
    """
    with opened(path) as space:
        report = auditing.verify_log(space, checkpoint, auditing.read_key(key))
    answer(report, as_json, present.log_verified)


@log.command("redact")
def log_redact(
    path: Folder,
    why: Annotated[str, typer.Option(help="The reason, which stays in the log: say it without names.")],
    event: Annotated[list[int] | None, typer.Option(help="The number of an event; repeatable.")] = None,
    client: Annotated[str, typer.Option(help="Every event that names this client.")] = "",
    as_json: AsJson = False,
) -> None:
    """Delete for good what events say. Their hashes stay, and with them every proof.

    Example: fedforget log redact W --client client-007 --why "request 3, article 17"
    """
    with opened(path) as space:
        report = auditing.redact(space, event or (), client, why)
    answer(report, as_json, present.log_redacted)


@certificate.command("list")
def certificate_list(path: Folder, as_json: AsJson = False) -> None:
    """List the certificates, and what executed requests wait for to be final.

    Example: fedforget certificate list W
    """
    with opened(path) as space:
        report = auditing.certificates(space)
    answer(report, as_json, present.certificates)


@certificate.command("issue")
def certificate_issue(
    path: Folder,
    verifier: Annotated[bool, typer.Option("--verifier", help="Lay the standalone verifier beside them.")] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Write certificates that are missing, and make final those whose time has come.

    Example: fedforget certificate issue W --verifier
    """
    with opened(path, data) as space:
        report = auditing.issue(space, verifier)
    answer(report, as_json, present.certificates)


@certificate.command("show")
def certificate_show(file: File, as_json: AsJson = False) -> None:
    """Print what a certificate says. Whether it is so, `certificate verify` tells.

    Example: fedforget certificate show W/certificates/request-0001-executed-88ebd042.json
    """
    answer(auditing.show(file), as_json, present.certificate)


@certificate.command("verify")
def certificate_verify(
    file: File,
    key: Key,
    later: Annotated[
        Path | None, typer.Option(help="What `log checkpoint --since SIZE --json` printed later.", exists=True)
    ] = None,
    client: Annotated[str, typer.Option(help="See whether it is about this client, by its salt.")] = "",
    salt: Annotated[str, typer.Option(help="What `certificate salt` printed for the client.")] = "",
    replay: Annotated[
        tuple[int, str] | None,
        typer.Option(metavar="Q DIR", help="Train Q random rounds of that workspace again and compare digests."),
    ] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Check everything about a certificate. Exit code 12 if anything does not hold.

    Example: fedforget certificate verify FILE --key ed25519:… --replay 3 W
    """
    by = auditing.read_key(key)
    if replay is None:
        report = auditing.verify(file, by, later=later, client=client, salted=salt)
    else:
        with opened(Path(replay[1]), data) as space, progress_bar() as bar:
            asked = (replay[0], space)
            report = auditing.verify(file, by, later=later, client=client, salted=salt, replay=asked, progress=bar)
    answer(report, as_json, present.certificate)


@certificate.command("salt")
def certificate_salt(
    path: Folder,
    request: Annotated[int, typer.Option(help="The number of the request.")],
    client: Annotated[str, typer.Option(help="Whom it was about.")],
    as_json: AsJson = False,
) -> None:
    """Print what lets a client find itself in a certificate. For that client alone.

    Example: fedforget certificate salt W --request 1 --client client-007
    """
    with opened(path) as space:
        report = auditing.salt(space, request, client)
    answer(report, as_json, present.certificate_salt)
