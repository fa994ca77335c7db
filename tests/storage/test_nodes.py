"""Which node is which client: bound once, told by the chain, and let go only on purpose."""

from pathlib import Path

import pytest

from fedforget.errors import Damaged
from fedforget.storage import nodes
from fedforget.storage.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(f"sqlite:///{tmp_path / 'ledger.db'}", {})


def test_a_key_is_bound_to_one_client_and_a_client_to_one_key(ledger: Ledger) -> None:
    assert nodes.bound(ledger) == {}
    nodes.bind(ledger, "key-1", "a")
    nodes.bind(ledger, "key-2", "b")
    for key, client in (("key-1", "c"), ("key-3", "a")):
        with pytest.raises(Damaged):
            nodes.bind(ledger, key, client)
    assert nodes.bound(ledger) == {"key-1": "a", "key-2": "b"}


def test_a_replaced_machine_is_let_in_after_a_release(ledger: Ledger) -> None:
    nodes.bind(ledger, "key-1", "a")
    nodes.release(ledger, "a")
    nodes.release(ledger, "nobody")
    nodes.bind(ledger, "key-2", "a")
    assert nodes.bound(ledger) == {"key-2": "a"}
    assert [e.kind for e in ledger.events()] == ["created", "bound", "released", "released", "bound"]
    assert ledger.broken_link() is None
