"""Tools: Flower's commands, found and run with everything they keep in a folder of our own, never in the user's."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import MissingExtra, ProcessFailed

CONNECTION = "local-dir"
_NEEDED = ("flwr", "flower-superlink", "flower-supernode", "flower-superexec")
_SECONDS = 120.0  # no answer of `flwr` takes this long


@dataclass(frozen=True)
class Tools:
    """Where Flower's commands are, and what they find in their environment."""

    folder: Path
    bin: Path
    env: Mapping[str, str]

    def command(self, name: str) -> str:
        return str(self.bin / name)

    def flwr(self, *words: str) -> Mapping[str, Any]:
        """One `flwr` command that answers in JSON."""
        command = [self.command("flwr"), *words, "--format", "json"]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=_SECONDS)
        answer = _answer(done.stdout)
        if done.returncode or not answer.get("success"):
            said = tuple((done.stdout + done.stderr).splitlines()[-15:])
            raise ProcessFailed(" ".join(["flwr", *words]), f"ended with code {done.returncode}", "its output", said)
        return answer


def find_tools(home: Path, commands: Path | None = None) -> Tools:
    """Those in `commands`, else those beside this Python, else those on the path. Their home is `home`."""
    on_path = shutil.which("flwr")
    places = [commands] if commands else [Path(sys.executable).parent, *([Path(on_path).parent] if on_path else [])]
    for place in places:
        if all((place / name).exists() for name in _NEEDED):
            # Flower starts its own helpers by name.
            path = os.pathsep.join([str(place), os.environ.get("PATH", "")])
            return Tools(home, place, {**os.environ, "PATH": path, **environment(home)})
    raise MissingExtra("a federation of processes", "flower")


def environment(folder: Path) -> dict[str, str]:
    """Nothing is fetched and nobody is told: it works without a network. Work is looked for twice a second."""
    return {
        "FLWR_HOME": str(folder),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
        "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.5",
        "PYTHONUNBUFFERED": "1",
    }


def write_connection(folder: Path, address: str, authority: Path | None) -> None:
    """What `flwr run APP local-dir` connects to."""
    safety = f"root-certificates = {json.dumps(str(authority))}" if authority else "insecure = true"
    lines = ["[superlink]", f'default = "{CONNECTION}"', "", f"[superlink.{CONNECTION}]"]
    lines += [f'address = "{address}"', safety, ""]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text("\n".join(lines))


def _answer(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
