"""What a federation of processes says when it is up."""

import shlex

from rich.console import Console

from ..federation_demo import FederationDemoReport
from ..processes import FederationReport
from .base import say
from .verbs import verified


def raised(out: Console, report: FederationReport) -> None:
    safety = "TLS, registered keys only" if report.tls else "not encrypted, anybody on this machine may join"
    say(out, f"{len(report.nodes)} SuperNodes are online at {report.address} ({safety}).")
    say(out, f"Logs are in {report.folder}/logs. From another terminal:")
    say(out, f"  export FLWR_HOME={shlex.quote(report.home)}")
    say(out, f"  flwr run APP {report.connection} --stream")
    say(out, f"  flwr supernode list {report.connection}")
    say(out, "Ctrl-C stops them all.")


def federation_demo(out: Console, report: FederationDemoReport) -> None:
    say(out, f"{report.nodes} SuperNodes in {len(report.trained)} shards; {report.left} left and is forgotten,")
    say(out, f"{report.killed} died on the way.")
    for shard, before in report.trained.items():
        after = report.forgot.get(shard, "")
        say(
            out, f"  shard {shard}: model {before[:16]} " + ("untouched" if after == before else f"became {after[:16]}")
        )
    say(out, f"  guarantee {report.guarantee}")
    verified(out, report.verified)
    say(out, f"{_word(report.same_bits)} bits: every model, before and after, is the local engine's")
    say(out, f"{_word(report.never_joined)} never joined: and there that of the run {report.left} never joined")
    say(out, f"In {report.seconds:.0f} s.")


def _word(passed: bool) -> str:
    return "ok  " if passed else "FAIL"
