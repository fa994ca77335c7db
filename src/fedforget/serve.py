"""Serve: the served combination over HTTP, on this machine.

    GET  /model     the safetensors file; ETag is its digest, so `If-None-Match` costs nothing. `?to=NAME` says who
                    takes it, for the register of exports
    GET  /status    what is served, what is left out, and what is promised
    POST /predict   {"x": [[…], …]} → classes and probabilities

What is served changes with the ledger: a request authorised a moment ago is out of the next answer. There is no
encryption and nobody is asked who they are; what faces a network belongs behind something that does both.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

from .errors import FedForgetError, NothingServed, SettingError
from .workspace import Workspace

MOST = 16 << 20  # bytes of a question
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def json(status: int, document: Any) -> "Reply":
        return Reply(status, json.dumps(document).encode() + b"\n", {"Content-Type": "application/json"})


@dataclass(frozen=True)
class Shelf:
    """Answers for one workspace, one at a time. What was made for a ledger stays until the ledger changes."""

    space: Workspace
    combine: str = "average"
    _lock: Any = field(default_factory=Lock, repr=False)
    _made: dict[object, Any] = field(default_factory=dict, repr=False)

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> Reply:
        """What is asked for, or why not."""
        url = urlsplit(target)
        ways = {"/model": ("GET", "HEAD"), "/status": ("GET", "HEAD"), "/predict": ("POST",)}
        if url.path not in ways:
            return Reply.json(404, {"error": f"there is no {url.path}", "there is": sorted(ways)})
        if method not in ways[url.path]:
            return Reply(405, b"", {"Allow": ", ".join(ways[url.path])})
        try:
            with self._lock:
                if url.path == "/model":
                    return self._model(method, parse_qs(url.query).get("to", [LOOPBACK])[0], headers)
                return self._status() if url.path == "/status" else self._predict(body)
        except NothingServed as fault:
            return Reply.json(503, {"error": str(fault)})
        except SettingError as fault:
            return Reply.json(400, {"error": str(fault)})
        except FedForgetError as fault:
            return Reply.json(500, {"error": str(fault)})

    def _kept(self, make: Callable[[], Any]) -> Any:
        """Made once for what the ledger says now."""
        now = self.space.serving.standpoint()
        if now not in self._made:
            self._made.clear()
            self._made[now] = make()
        return self._made[now]

    def _model(self, method: str, recipient: str, headers: Mapping[str, str]) -> Reply:
        made = self._kept(lambda: self.space.serving.model(self.combine))
        tag = f'"{made.digest}"'
        about = {"ETag": tag, "Cache-Control": "no-cache", "FedForget-Guarantee": made.guarantee.grade}
        known = {text.strip().removeprefix("W/") for text in headers.get("If-None-Match", "").split(",")}
        if known & {tag, "*"}:
            return Reply(304, b"", about)
        if method == "GET":
            self.space.serving.hand_over(made, recipient)
        name = f"fedforget-{made.digest[:12]}.safetensors"
        kind = {"Content-Type": "application/octet-stream", "Content-Disposition": f'attachment; filename="{name}"'}
        return Reply(200, made.blob, {**about, **kind})

    def _status(self) -> Reply:
        made = self._kept(lambda: self.space.serving.model(self.combine))
        found = {key: getattr(made, key) for key in ("combine", "digest", "generation", "shards")}
        left_out = {str(shard): requests for shard, requests in self.space.serving.now().out.items()}
        return Reply.json(200, {**found, "guarantee": asdict(made.guarantee), "left_out": left_out})

    def _predict(self, body: bytes) -> Reply:
        like = self.space.task.test.x
        try:
            asked = np.asarray(json.loads(body)["x"], dtype=like.dtype)
            x = asked.reshape(-1, *like.shape[1:])
        except (ValueError, TypeError, KeyError, OverflowError) as fault:
            raise SettingError("x", str(fault)[:80], f"rows of {like.shape[1:]} numbers, in {{'x': […]}}") from fault
        if not len(x) or not np.isfinite(x).all():
            raise SettingError("x", len(x), "one row or more, of finite numbers")
        said, about = self.space.serving.predict(x, self.combine)
        answer = {"classes": said.argmax(axis=-1).tolist(), "probabilities": said.tolist()}
        return Reply.json(200, {**answer, "guarantee": about.grade})


def server(shelf: Shelf, port: int) -> ThreadingHTTPServer:
    """Listening on this machine's own address, not yet answering; port 0: any that is free."""

    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version, protocol_version, timeout = "fedforget", "", "HTTP/1.1", 30

        def _answer(self) -> None:
            length = self.headers.get("Content-Length", "0")
            if not length.isdecimal() or int(length) > MOST:
                self.close_connection = True
                return self._send(Reply.json(413, {"error": f"at most {MOST} bytes, and Content-Length says how many"}))
            body = self.rfile.read(int(length))
            return self._send(
                shelf.answer(self.command, self.path, {name.title(): text for name, text in self.headers.items()}, body)
            )

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _answer

        def _send(self, reply: Reply) -> None:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.status != 304:
                self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply.body)

        def log_message(self, format: str, *args: Any) -> None:
            """Silent: who took a model is in the register, and nothing else about anybody is kept."""

    return ThreadingHTTPServer((LOOPBACK, port), Handler)
