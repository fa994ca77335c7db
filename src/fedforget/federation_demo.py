"""The same on a real federation: nodes leave, die and are forgotten, and the bits are those of one machine.

A SuperLink and eight SuperNodes as processes, TLS and registered keys, two shards: train; stop and unregister the
leaver's node and kill another; forget by a second `flwr run`; verify; and compare with the local engine.
"""

import json
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import SettingError
from .forgetting.guarantee import Guarantee
from .manifest import Keeping
from .processes import LocalFederation, up
from .workspace import FederationSettings, Workspace
from .workspace.reports import Check, VerifyReport

Tell = Callable[[str], None]
_STEP = re.compile(r"fedforget: (?!report )(.*)")
_CONFIG = {"clients": 8, "shards": 2, "rounds": 3, "epochs": 2, "deadline": 300.0, "wait": 120.0}


@dataclass(frozen=True)
class FederationDemoReport:
    folder: str
    nodes: int
    left: str  # whose node was stopped and unregistered, and who was forgotten
    killed: str
    trained: Mapping[str, str]  # shard → model
    forgot: Mapping[str, str]
    guarantee: Guarantee
    verified: VerifyReport
    same_bits: bool  # as on the local engine, before and after
    never_joined: bool  # and there as if the leaver never had joined
    seconds: float

    @property
    def passed(self) -> bool:
        return self.verified.passed and self.same_bits and self.never_joined


def run(app: Path, folder: Path | None, tell: Tell) -> FederationDemoReport:
    if not (app / "pyproject.toml").is_file():
        raise SettingError("app", str(app), "the folder of the Flower app, `flower` in a checkout")
    began = time.monotonic()

    def say(line: str) -> None:
        tell(f"{time.monotonic() - began:4.0f} s  {line}")

    with ExitStack() as stack:
        room = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fedforget-")))
        place = (folder or room / "federation").resolve()
        say("starting a SuperLink and 8 SuperNodes with TLS and registered keys")
        fed = stack.enter_context(up(_CONFIG["clients"], tls=True, folder=place, progress=_steps(say)))  # type: ignore[arg-type]
        found = _carry_out(fed, app, room, say)
        local = _locally(room / "local", found["left"])
        say("stopping all processes")
    return FederationDemoReport(
        str(place),
        len(fed.nodes),
        found["left"],
        found["killed"],
        found["trained"],
        found["forgot"],
        found["guarantee"],
        found["verified"],
        (found["trained"], found["forgot"]) == local[:2],
        local[2],
        time.monotonic() - began,
    )


def _carry_out(fed: LocalFederation, app: Path, room: Path, say: Tell) -> dict[str, Any]:
    space = fed.folder / "workspace"

    def verb(action: str, **config: str) -> Any:
        answer = room / f"{action}.json"
        words = {**_CONFIG, "workspace": str(space), "report": str(answer), "action": action, **config}
        fed.run(app, words, tell=_ours(say)).expect()
        return json.loads(answer.read_text())

    say("training 3 rounds in 2 shards: flwr run … action=train")
    trained = verb("train")["digests"]
    with Workspace.open(space) as looked:
        shard_of = dict(looked.status(members=True).members)
    left = "client-003"
    killed = next(name for name, shard in shard_of.items() if shard != shard_of[left])
    say(f"{left} leaves: its node is stopped, its key unregistered")
    fed.stop(left)
    fed.unregister(left)
    say(f"{killed}'s machine dies: its node is killed")
    fed.kill(killed)
    say(f"forgetting {left}: flwr run … action=forget")
    forgot = verb("forget", client=left)
    say("checking: flwr run … action=verify")
    verified = verb("verify")
    return {
        "left": left,
        "killed": killed,
        "trained": trained,
        "forgot": forgot["after"],
        "guarantee": Guarantee(**{**forgot["guarantee"], "conditions": tuple(forgot["guarantee"]["conditions"])}),
        "verified": VerifyReport(tuple(Check(**c) for c in verified["checks"]), tuple(verified["findings"])),
    }


def _locally(folder: Path, left: str) -> tuple[Mapping[str, str], Mapping[str, str], bool]:
    """Models trained, models after forgetting, and whether the world the leaver never joined ends in the same."""
    settings = FederationSettings(
        clients=8, shards=2, participants=0, rounds=3, epochs=2, keeping=Keeping(holders=8, threshold=4)
    )
    with Workspace.init(folder, settings) as space:
        trained = space.train().digests
        after = space.forget([left]).after
        return trained, after, space.verify(never_joined=True).passed


def _steps(say: Tell) -> Callable[[str, int, int], None]:
    return lambda what, done, total: say(f"  {what} {done}/{total}") if done else None


def _ours(say: Tell) -> Tell:
    """Of all that Flower logs, what FedForget says."""

    def tell(line: str) -> None:
        if found := _STEP.search(line):
            say(f"  {found[1]}")

    return tell
