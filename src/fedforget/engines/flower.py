"""The engine on Flower: clients are SuperNodes, and so are the holders of slices.

`GridStore` is a slice store whose slices ride along: what is put waits, durably, in the server's own store until the
next message to its holder takes it; what will be read is asked for in one message a node. `GridCohort` trains through
the same messages. A message costs seconds whatever is in it, so nothing gets one of its own that can share one.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from flwr.app import RecordDict

from ..errors import FedForgetError
from ..federation import FitResult, FitTask
from ..slices import HEAD, SERVER, SliceKey, SliceStore
from .flower_post import Post
from .flower_wire import Reply, Request, spot

log = logging.getLogger("fedforget")
_AT_SERVER = (SERVER, HEAD)


@dataclass
class GridStore:
    """Slices at their holders' nodes. `local`: those of the server, and those on their way."""

    post: Post
    local: SliceStore
    place: str = "flower"  # as the ledger notes it: no other store may work on such a workspace
    _fetched: dict[SliceKey, bytes | None] = field(default_factory=dict)
    _expected: list[tuple[SliceKey, ...]] = field(default_factory=list)
    _said: set[str] = field(default_factory=set)

    # --- the store ----------------------------------------------------------------------------------------

    def put(self, pieces: Mapping[SliceKey, bytes]) -> None:
        self.local.put(pieces)
        for key in pieces:
            self._fetched.pop(key, None)

    def get(self, key: SliceKey) -> bytes | None:
        found = self.local.get(key)
        if found is not None or key.holder in _AT_SERVER:
            return found
        if key not in self._fetched:  # somebody else's was wrong: all this holder has of what is being read
            same = [k for keys in self._expected for k in keys if k.holder == key.holder and k not in self._fetched]
            self._fetch({key, *same})
        return self._fetched[key]

    def ahead(self, groups: Iterable[tuple[Sequence[SliceKey], int]]) -> None:
        """Of each group so many will be asked for, the first that are there: fetch all in one exchange.

        What was fetched for the same purpose a moment ago stays; whoever wants all of a group wants to see them now.
        """
        asked = [(tuple(keys), count) for keys, count in groups]
        fresh = {key for keys, count in asked if count >= len(keys) for key in keys}
        again = {key for keys, _ in asked for key in keys} - fresh
        self._fetched = {key: blob for key, blob in self._fetched.items() if blob is not None and key in again}
        self._expected = [keys for keys, _ in asked]
        there = self.post.present()
        wanted: list[SliceKey] = []
        for keys, count in asked:
            away = [k for k in keys if not (k.holder in _AT_SERVER or k in self._fetched or self.local.get(k))]
            listed = [k for k in away if k.holder in there and spot(k) in self.post.peers[k.holder].held]
            wanted += listed[: max(0, count - (len(keys) - len(away)))]
        self._fetch(wanted)

    def delete(self, keys: Collection[SliceKey]) -> frozenset[SliceKey]:
        own = [key for key in keys if key.holder in _AT_SERVER]
        done = set(self.local.delete(own))
        far = _by_holder(key for key in keys if key.holder not in _AT_SERVER)
        self.local.delete([key for mine in far.values() for key in mine])  # those still waiting wait no more
        for mine in far.values():
            for key in mine:
                self._fetched.pop(key, None)
        there = self.post.present()
        requests = {c: Request(delete=mine, about="a deletion") for c, mine in far.items() if c in there}
        for client, reply in self.exchange(requests):
            done |= {key for key in far[client] if spot(key) in reply.deleted}
        return frozenset(done)

    def keys(self, holder: str | None = None) -> Iterator[SliceKey]:
        found = set(self.local.keys(holder))
        for client, peer in self.post.peers.items():
            if holder in (None, client):
                found |= {SliceKey(*at, client) for at in peer.held}
        yield from sorted(found)

    # --- riding along -------------------------------------------------------------------------------------

    def exchange(self, requests: Mapping[str, Request]) -> Iterator[tuple[str, Reply]]:
        """One exchange, every message taking along what waits for its holder."""
        if not requests:
            return
        loaded = {c: replace(request, put=self._waiting(c)) for c, request in requests.items()}
        for client, reply in self.post.ask(loaded):
            sent = {spot(key): key for key in loaded[client].put}
            self.local.delete([sent[at] for at in reply.stored if at in sent])
            held = self.post.peers[client].held
            held |= {at for at in reply.stored if at in sent}
            held -= reply.deleted
            yield client, reply

    def flush(self, close: bool = False) -> None:
        """Deliver what still waits; with `close` every node destroys its key of this run."""
        there = self.post.present()
        waiting = {key.holder for key in self.local.keys()} - set(_AT_SERVER)  # noqa: SIM118
        asked = there if close else there & waiting
        for _ in self.exchange({c: Request(close=close, about="the delivery of slices") for c in asked}):
            pass
        for client in sorted(waiting - there):
            count = sum(1 for _ in self.local.keys(client))
            log.warning("fedforget: %d slices of %s wait at the server until its node is back", count, client)

    def _waiting(self, client: str) -> dict[SliceKey, bytes]:
        found = {key: self.local.get(key) for key in self.local.keys(client)}
        return {key: blob for key, blob in found.items() if blob is not None}

    def _fetch(self, keys: Collection[SliceKey]) -> None:
        """Ask every holder once for all of them; what does not come is missing."""
        self._fetched.update(dict.fromkeys(keys))
        there, asked = self.post.present(), {}
        for client, mine in _by_holder(keys).items():
            if client not in there:
                self._say(f"{client} is away: its slices are missing")
            elif listed := [key for key in mine if spot(key) in self.post.peers[client].held]:
                asked[client] = listed
            else:
                self._say(f"{client} (node {self.post.peers[client].node}) has no {mine[0]}")
        for client, reply in self.exchange({c: Request(get=mine, about="a recall") for c, mine in asked.items()}):
            self._fetched.update({key: reply.got.get(spot(key)) for key in asked[client]})

    def _say(self, loss: str) -> None:
        if loss not in self._said:
            self._said.add(loss)
            log.warning("fedforget: %s", loss)


@dataclass(frozen=True)
class GridCohort:
    """Asks clients through the store's messages. `write` and `read` turn a task into an application's own records."""

    store: GridStore
    write: Callable[[FitTask], RecordDict]
    read: Callable[[FitTask, RecordDict, float], FitResult]

    def fit(self, tasks: Sequence[FitTask]) -> Iterator[FitResult]:
        """One message a client and turn; a second task of the same client goes out when the first is back."""
        left = list(tasks)
        while left:
            turn: dict[str, FitTask] = {}
            for task in left:
                turn.setdefault(task.client, task)
            left = [task for task in left if turn[task.client] is not task]
            yield from self._turn(turn)

    def _turn(self, turn: Mapping[str, FitTask]) -> Iterator[FitResult]:
        requests = {client: Request(train=self.write(task), about=str(task.place)) for client, task in turn.items()}
        for client, reply in self.store.exchange(requests):
            if reply.train is None:
                continue
            try:
                yield self.read(turn[client], reply.train, reply.seconds)
            except (FedForgetError, KeyError, ValueError, TypeError) as fault:
                log.warning(
                    "fedforget: lost %s in %s: its upload cannot be read: %s", client, turn[client].place, fault
                )


def _by_holder(keys: Iterable[SliceKey]) -> dict[str, list[SliceKey]]:
    found: dict[str, list[SliceKey]] = {}
    for key in keys:
        found.setdefault(key.holder, []).append(key)
    return found
