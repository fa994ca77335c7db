from fedforget.slices import SliceKey
from fedforget.storage.memory import MemoryStore


def test_a_memory_store_can_begin_with_slices_and_shows_them():
    key = SliceKey(0, 0, 0, 0, "client-1")
    store = MemoryStore({key: b"slice"})
    assert store.get(key) == b"slice"
    store.delete([key])
    assert store.slices == {}
