"""Windows of text: each character in one window at most."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedforget.datasets.files import Content
from fedforget.datasets.shakespeare import VOCABULARY, load_shakespeare
from fedforget.errors import DataError, SettingError


def write(root: Path, text: str) -> Content:
    folder = root / "tiny_shakespeare"
    folder.mkdir(exist_ok=True)
    (folder / "input.txt").write_bytes(text.encode())
    return Content.of(text.encode())


def test_the_vocabulary_is_a_sorted_constant() -> None:
    assert len(VOCABULARY) == 65
    assert list(VOCABULARY) == sorted(VOCABULARY)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(VOCABULARY, min_size=60, max_size=400), st.integers(1, 5))
def test_windows_join_to_the_text(tmp_path: Path, text: str, context: int) -> None:
    found = load_shakespeare(tmp_path, context=context, content=write(tmp_path, text))
    cut = len(text) * 9 // 10
    for examples, piece in ((found.train, text[:cut]), (found.test, text[cut:])):
        assert examples.x.dtype == np.uint8
        assert examples.y.dtype == np.int64
        assert examples.x.shape == examples.y.shape == (len(piece) // (context + 1), context)
        assert (examples.x[:, 1:] == examples.y[:, :-1]).all()
        windows = np.concatenate([examples.x, examples.y[:, -1:]], axis=1).ravel()
        assert "".join(found.vocabulary[token] for token in windows) == piece[: len(windows)]
    assert (found.kind, found.classes, found.shape) == ("text", 65, (context,))


def test_a_larger_vocabulary_for_a_model_of_the_papers_size(tmp_path: Path) -> None:
    vocabulary = VOCABULARY + "".join(map(chr, range(0x3B1, 0x3B1 + 44)))
    found = load_shakespeare(tmp_path, context=3, vocabulary=vocabulary, content=write(tmp_path, "To be. " * 20))
    assert found.classes == 109
    assert found.train.x.max() < 65


def test_a_character_outside_of_it(tmp_path: Path) -> None:
    content = write(tmp_path, "To be, or not to be # that is the question. " * 4)
    with pytest.raises(DataError, match="b'#' at byte 20"):
        load_shakespeare(tmp_path, context=3, content=content)


def test_another_text(tmp_path: Path) -> None:
    write(tmp_path, "Call me Ishmael.")
    with pytest.raises(DataError, match="expected 1,115,394 bytes") as caught:
        load_shakespeare(tmp_path)
    assert caught.value.found.startswith("16 bytes")


def test_settings_it_cannot_have(tmp_path: Path) -> None:
    content = write(tmp_path, "To be. " * 20)
    with pytest.raises(SettingError, match="context"):
        load_shakespeare(tmp_path, context=0, content=content)
    with pytest.raises(SettingError, match="below 14"):
        load_shakespeare(tmp_path, context=14, content=content)
    with pytest.raises(SettingError, match="vocabulary"):
        load_shakespeare(tmp_path, vocabulary="aa", content=content)
