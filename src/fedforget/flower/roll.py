"""Roll: which node may be which client, as the ledger has it."""

from dataclasses import dataclass

from ..storage import nodes
from ..storage.ledger import Ledger


@dataclass(frozen=True)
class Roll:
    """A registered node is bound to the client it names when the two first meet, and is that client from then on."""

    ledger: Ledger
    seats: tuple[str, ...]

    def name(self, claimed: str, partition: int) -> str:
        return claimed or (self.seats[partition] if 0 <= partition < len(self.seats) else "")

    def admit(self, key: str, client: str) -> tuple[str, str]:
        """A forgotten client's node is let in too: it still has slices to delete, and is asked for nothing else."""
        known = nodes.bound(self.ledger) if key else {}
        mine = known.get(key)
        if mine is not None:
            return (mine, "") if client in ("", mine) else ("", f"its key is bound to {mine}")
        enrolled = {m.client: gone for m, gone in self.ledger.members()}
        if not client:
            return "", "it names no client; set client or partition-id in its node-config"
        if client not in enrolled:
            return "", "nobody of that name is enrolled"
        if key:
            if client in known.values():
                return "", f"{client} is bound to another key; if its node was replaced, run action='release' first"
            if enrolled[client] is not None:
                return "", f"{client} was forgotten"
            nodes.bind(self.ledger, key, client)
        return client, ""
