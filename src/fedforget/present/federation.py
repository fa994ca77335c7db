"""What a federation of processes says when it is up."""

import shlex

from rich.console import Console

from ..processes import FederationReport
from .base import say


def raised(out: Console, report: FederationReport) -> None:
    safety = "TLS, registered keys only" if report.tls else "not encrypted, anybody on this machine may join"
    say(out, f"{len(report.nodes)} SuperNodes are online at {report.address} ({safety}).")
    say(out, f"Logs are in {report.folder}/logs. From another terminal:")
    say(out, f"  export FLWR_HOME={shlex.quote(report.home)}")
    say(out, f"  flwr run APP {report.connection} --stream")
    say(out, f"  flwr supernode list {report.connection}")
    say(out, "Ctrl-C stops them all.")
