"""Downloads from a server on this machine: sources in order, resumed, kept by checksum only."""

import gzip
import http.server
import io
import re
import socket
import struct
import tarfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import synthetic

from fedforget.datasets.download import (
    RECIPES,
    Fetch,
    Recipe,
    download,
    fetch,
    gunzip_beside,
    untar_batches,
)
from fedforget.datasets.files import Content
from fedforget.datasets.images import FASHION_MNIST, MNIST, load_cifar10, load_idx
from fedforget.errors import DataError, SettingError, StorageFull

DATA = bytes(range(256)) * 40


@dataclass
class Server:
    """What it has, how it misbehaves, and what it was asked: (path, range)."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cut: dict[str, int] = field(default_factory=dict)  # bytes after which a reply breaks off
    ranges: bool = True
    shifted: bool = False  # answers a range other than the one asked for
    reset: bool = False  # breaks off the hard way, once
    asked: list[tuple[str, str]] = field(default_factory=list)

    def url(self, path: str) -> str:
        return f"{self.address}/{path}"


def handler(server: Server) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, wanted = self.path[1:], self.headers.get("Range", "")
            server.asked.append((path, wanted))
            data = server.files.get(path)
            if data is None:
                self.send_error(404)
                return
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) if wanted and server.ranges else 0
            if start >= len(data):
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            if start:
                said = start + 1 if server.shifted else start
                self.send_header("Content-Range", f"bytes {said}-{len(data) - 1}/{len(data)}")
            self.send_header("Content-Length", str(len(data) - start))
            self.end_headers()
            self.wfile.write(data[start : start + server.cut.get(path, len(data))])
            if server.reset:
                server.reset = False
                time.sleep(0.2)  # let the reader have what was sent
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()

        def log_message(self, *arguments: object) -> None:
            pass

    return Handler


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    state = Server()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(state)) as listener:
        state.address = f"http://127.0.0.1:{listener.server_address[1]}"
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield state
        finally:
            listener.shutdown()
            thread.join(10)


def wanted(server: Server, *paths: str) -> Fetch:
    return Fetch(tuple(map(server.url, paths)), Content.of(DATA), "set/file")


def test_fetched_with_progress_and_then_left_alone(server: Server, tmp_path: Path) -> None:
    server.files["file"] = DATA
    told: list[tuple[str, int, int]] = []
    path = fetch(wanted(server, "file"), tmp_path, lambda *told_now: told.append(told_now))
    assert path.read_bytes() == DATA
    assert told[0] == ("file", 0, len(DATA))
    assert told[-1] == ("file", len(DATA), len(DATA))
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]
    fetch(wanted(server, "file"), tmp_path)
    assert server.asked == [("file", "")]


def test_the_next_source_where_the_first_has_nothing(server: Server, tmp_path: Path) -> None:
    server.files["second"] = DATA
    assert fetch(wanted(server, "first", "second"), tmp_path).read_bytes() == DATA
    assert server.asked == [("first", ""), ("second", "")]


def test_the_next_source_where_nobody_listens(server: Server, tmp_path: Path) -> None:
    server.files["file"] = DATA
    file = wanted(server, "file")
    dead = replace(file, urls=("http://127.0.0.1:9/file", *file.urls))
    assert fetch(dead, tmp_path).read_bytes() == DATA


def test_a_broken_connection_is_resumed(server: Server, tmp_path: Path) -> None:
    server.files["file"], server.cut["file"] = DATA, 4000
    assert fetch(wanted(server, "file"), tmp_path).read_bytes() == DATA
    assert server.asked == [("file", ""), ("file", "bytes=4000-"), ("file", "bytes=8000-")]


def test_a_connection_reset_is_resumed(server: Server, tmp_path: Path) -> None:
    server.files["file"], server.cut["file"], server.reset = DATA, 6000, True
    assert fetch(wanted(server, "file"), tmp_path).read_bytes() == DATA
    assert len(server.asked) >= 2


def test_another_source_goes_on_where_the_first_broke(server: Server, tmp_path: Path) -> None:
    server.files |= {"first": DATA[:3000], "second": DATA}
    assert fetch(wanted(server, "first", "second"), tmp_path).read_bytes() == DATA
    assert server.asked[-1] == ("second", "bytes=3000-")


def test_another_day_goes_on_as_well(server: Server, tmp_path: Path) -> None:
    server.files["file"] = DATA
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "file.part").write_bytes(DATA[:5000])
    assert fetch(wanted(server, "file"), tmp_path).read_bytes() == DATA
    assert server.asked == [("file", "bytes=5000-")]


def test_a_whole_part_needs_no_server(server: Server, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "file.part").write_bytes(DATA)
    assert fetch(wanted(server, "file"), tmp_path).read_bytes() == DATA
    assert server.asked == []


def test_a_server_without_ranges_sends_all_again(server: Server, tmp_path: Path) -> None:
    server.files["file"], server.ranges = DATA, False
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "file.part").write_bytes(DATA[:5000])
    assert fetch(wanted(server, "file"), tmp_path).read_bytes() == DATA


def test_a_server_that_sends_another_range_is_refused(server: Server, tmp_path: Path) -> None:
    server.files["file"], server.shifted = DATA, True
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "file.part").write_bytes(DATA[:5000])
    with pytest.raises(DataError, match="asked for bytes from 5000"):
        fetch(wanted(server, "file"), tmp_path)


def test_a_spoilt_part_gets_a_clean_start(server: Server, tmp_path: Path) -> None:
    server.files["file"] = DATA
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "file.part").write_bytes(b"x" * 5000)
    assert fetch(wanted(server, "file"), tmp_path).read_bytes() == DATA
    assert server.asked == [("file", "bytes=5000-"), ("file", "")]


@pytest.mark.parametrize("wrong", [DATA[:-1] + b"x", DATA + b"more"])
def test_a_wrong_checksum_is_refused(server: Server, tmp_path: Path, wrong: bytes) -> None:
    server.files["file"] = wrong
    with pytest.raises(DataError) as caught:
        fetch(wanted(server, "file"), tmp_path)
    assert caught.value.path == str(tmp_path / "set" / "file")
    assert caught.value.expected == str(Content.of(DATA))
    assert "sent " in caught.value.found
    assert list((tmp_path / "set").iterdir()) == []
    assert len(server.asked) == 1


def test_wrong_in_one_source_right_in_the_next(server: Server, tmp_path: Path) -> None:
    server.files |= {"first": DATA[::-1], "second": DATA}
    assert fetch(wanted(server, "first", "second"), tmp_path).read_bytes() == DATA


def test_no_source_at_all_says_what_each_said_and_keeps_the_part(server: Server, tmp_path: Path) -> None:
    server.files["short"] = DATA[:100]
    with pytest.raises(DataError, match="run the same command again") as caught:
        fetch(wanted(server, "gone", "short"), tmp_path)
    assert "gone: answered 404" in caught.value.found
    assert "short: ended after 100 of 10,240 bytes" in caught.value.found
    assert (tmp_path / "set" / "file.part").read_bytes() == DATA[:100]


def idx_recipe(server: Server, files: dict[str, bytes]) -> dict[str, Recipe]:
    fetches = []
    for name, data in files.items():
        packed = gzip.compress(data)
        server.files[f"{name}.gz"] = packed
        fetches.append(Fetch((server.url(f"{name}.gz"),), Content.of(packed), f"MNIST/raw/{name}.gz", gunzip_beside))
    spec = synthetic.idx_set(files)
    return {"mnist": Recipe(tuple(fetches), lambda root: load_idx(root, spec))}


def test_a_data_set_is_fetched_unzipped_and_mended(server: Server, tmp_path: Path) -> None:
    files = synthetic.idx_files()
    recipes = idx_recipe(server, files)
    root = tmp_path / "not" / "there"
    assert download("mnist", root, recipes=recipes) == root
    assert len(server.asked) == 4
    assert len(load_idx(root, synthetic.idx_set(files)).train) == 12
    # Whole: nobody is asked. An unzipped file damaged: mended from its .gz. Both: fetched again.
    damaged = root / "MNIST" / "raw" / "train-labels-idx1-ubyte"
    download("mnist", root, recipes=recipes)
    damaged.write_bytes(b"junk")
    download("mnist", root, recipes=recipes)
    assert len(server.asked) == 4
    damaged.write_bytes(b"junk")
    damaged.with_name(damaged.name + ".gz").write_bytes(b"junk")
    download("mnist", root, recipes=recipes)
    assert [path for path, _ in server.asked[4:]] == ["train-labels-idx1-ubyte.gz"]
    assert len(load_idx(root, synthetic.idx_set(files)).train) == 12


def test_a_file_that_needs_no_unpacking(server: Server, tmp_path: Path) -> None:
    server.files["file"] = DATA

    def check(root: Path) -> None:
        if not (root / "set" / "file").exists():
            raise DataError(root, "a file", "none", "fetch it")

    download("text", tmp_path, recipes={"text": Recipe((wanted(server, "file"),), check)})
    assert (tmp_path / "set" / "file").read_bytes() == DATA


def archive(batches: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        names = {f"cifar-10-batches-bin/{name}.bin": data for name, data in batches.items()}
        for name, data in (names | {"cifar-10-batches-bin/readme.html": b"hello", "../evil.bin": b"x"}).items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        link = tarfile.TarInfo("data_batch_1.bin")
        link.type, link.linkname = tarfile.DIRTYPE, ""
        tar.addfile(link)
    return out.getvalue()


def test_cifars_archive_gives_six_batches_and_no_more(server: Server, tmp_path: Path) -> None:
    batches = synthetic.cifar_batches()
    packed = server.files["cifar.tar.gz"] = archive(batches)
    file = Fetch((server.url("cifar.tar.gz"),), Content.of(packed), "cifar-10-binary.tar.gz", untar_batches)
    spec = synthetic.cifar_set(batches)
    root = tmp_path / "root"
    download("cifar10", root, recipes={"cifar10": Recipe((file,), lambda path: load_cifar10(path, spec))})
    assert {entry.name for entry in root.iterdir()} == {"cifar-10-batches-bin", "cifar-10-binary.tar.gz"}
    assert {entry.name for entry in (root / "cifar-10-batches-bin").iterdir()} == {f"{b}.bin" for b in batches}
    assert [entry.name for entry in tmp_path.iterdir()] == ["root"]


def test_a_full_disk(server: Server, tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    server.files["file"] = DATA
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "file.part").symlink_to("/dev/full")
    recipe = Recipe((wanted(server, "file"),), lambda root: fetch(Fetch((), Content.of(DATA), "set/file"), root))
    with pytest.raises(StorageFull, match="no space left"):
        download("mnist", tmp_path, recipes={"mnist": recipe})


def test_a_place_that_cannot_be_written(server: Server, tmp_path: Path) -> None:
    (tmp_path / "MNIST").write_bytes(b"a file where a folder should be")
    with pytest.raises(DataError, match="--data"):
        download("mnist", tmp_path, recipes=idx_recipe(server, synthetic.idx_files()))


def test_digits_need_no_download(tmp_path: Path) -> None:
    assert download("digits", tmp_path) == tmp_path
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SettingError, match="digits, mnist"):
        download("imagenet", tmp_path)


def test_the_table_fits_what_the_readers_look_for() -> None:
    for name, spec in (("mnist", MNIST), ("fashion-mnist", FASHION_MNIST)):
        assert [file.target for file in RECIPES[name].files] == [f"{spec.folder}/{f}.gz" for f in spec.files]
    for recipe in RECIPES.values():
        for file in recipe.files:
            assert len(file.urls) >= 2
            assert re.fullmatch("[0-9a-f]{64}", file.content.sha256)
            assert all(re.match("https?://", url) for url in file.urls)
