"""Where data sets lie, and the table of them."""

from pathlib import Path

import numpy as np
import pytest

from fedforget.datasets import NAMES, data_root, load
from fedforget.datasets.files import mend
from fedforget.errors import DataError, SettingError


def test_an_argument_goes_first(tmp_path: Path) -> None:
    assert data_root(tmp_path, environ={"FEDFORGET_DATA": "/elsewhere"}) == tmp_path


def test_then_the_environment() -> None:
    assert data_root(environ={"FEDFORGET_DATA": "/elsewhere", "XDG_CACHE_HOME": "/cache"}) == Path("/elsewhere")
    assert data_root("~/data") == Path.home() / "data"


@pytest.mark.parametrize(
    ("platform", "environ", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/cache"}, Path("/cache/fedforget")),
        ("linux", {"XDG_CACHE_HOME": "relative"}, Path.home() / ".cache" / "fedforget"),
        ("linux", {"FEDFORGET_DATA": ""}, Path.home() / ".cache" / "fedforget"),
        ("darwin", {}, Path.home() / "Library" / "Caches" / "fedforget"),
        ("win32", {"LOCALAPPDATA": "/local"}, Path("/local/fedforget/Cache")),
        ("win32", {}, Path.home() / "AppData" / "Local" / "fedforget" / "Cache"),
    ],
)
def test_then_the_cache_of_the_user(platform: str, environ: dict[str, str], expected: Path) -> None:
    assert data_root(environ=environ, platform=platform) == expected


def test_the_way_out_can_be_pasted() -> None:
    assert "--data '/my data'" in mend("mnist", Path("/my data"))


def test_every_name_is_found_or_said_to_be_missing(tmp_path: Path) -> None:
    assert NAMES == ("digits", "mnist", "fashion-mnist", "cifar10", "shakespeare")
    for name in NAMES[1:]:
        with pytest.raises(DataError, match=f"fedforget data {name} --download"):
            load(name, tmp_path)


def test_unknown_name() -> None:
    with pytest.raises(SettingError, match="digits, mnist"):
        load("imagenet")


def test_context_is_for_text() -> None:
    with pytest.raises(SettingError, match="context"):
        load("digits", context=8)
    with pytest.raises(SettingError, match="context"):
        load("shakespeare", context=0)


class TestDigits:
    def test_what_it_is(self) -> None:
        digits = load("digits")
        assert (len(digits.train), len(digits.test), digits.shape, digits.classes) == (1437, 360, (64,), 10)
        assert digits.train.x.dtype == np.float32
        assert digits.train.y.dtype == np.int64
        assert not digits.raw
        assert digits.scaled(digits.train.x) is digits.train.x
        assert digits.vocabulary == ""

    def test_scaled_by_round_constants(self) -> None:
        digits = load("digits")
        assert abs(digits.train.x.mean()) < 0.05
        assert abs(digits.train.x.std() - 1) < 0.05
        # Pixel values 0, 1 … 16 survive exactly, so every machine has the same inputs.
        assert set(np.unique(digits.train.x * 0.375 + 0.3125) * 16) <= set(map(float, range(17)))

    def test_split_by_class(self) -> None:
        digits = load("digits")
        share = np.bincount(digits.test.y) / np.bincount(np.r_[digits.train.y, digits.test.y])
        assert (abs(share - 0.2) < 0.01).all()

    def test_always_the_same(self) -> None:
        first, second = load("digits"), load("digits")
        assert (first.train.x == second.train.x).all()
        assert first.test.y[:10].tolist() == second.test.y[:10].tolist()
