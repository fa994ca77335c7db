"""Fetching the public files: sources in order, resumed where a connection broke, kept only by checksum.

Plain `urllib`: a resumable download by checksum is a range header and a comparison, and a library
around it would bring three more with it and still not resume.
"""

import contextlib
import errno
import gzip
import http.client
import os
import tarfile
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, BinaryIO

from ..errors import DataError, SettingError, StorageFull
from .catalog import load
from .files import Content, data_root
from .images import CIFAR10, FASHION_MNIST, MNIST
from .shakespeare import CONTENT as SHAKESPEARE
from .shakespeare import PATH as SHAKESPEARE_PATH

Progress = Callable[[str, int, int], None]  # file name, bytes that are there, bytes it will have
CHUNK = 1 << 18
TIMEOUT = 30.0  # seconds without a byte
TRIES = 3  # a connection that breaks is resumed this often before the next source is asked


@dataclass(frozen=True)
class Fetch:
    """One file: where from (in order), what it must be, where it goes, and what is made of it then."""

    urls: tuple[str, ...]
    content: Content
    target: str
    unpack: Callable[[Path], None] | None = None


@dataclass(frozen=True)
class Recipe:
    """The files of a data set, and the reader that raises DataError while it cannot be read."""

    files: tuple[Fetch, ...]
    check: Callable[[Path], object]


class _Failed(Exception):
    """A source did not give the file. With `again` the same source may do so when asked once more."""

    def __init__(self, why: str, *, again: bool) -> None:
        self.again = again
        super().__init__(why)


def download(
    name: str,
    root: str | os.PathLike[str] | None = None,
    *,
    progress: Progress | None = None,
    recipes: Mapping[str, Recipe] | None = None,
) -> Path:
    """Fetches what is missing or damaged of data set `name` and returns its root; what is whole stays."""
    recipes = RECIPES if recipes is None else recipes
    if name not in recipes:
        raise SettingError("data set", name, f"one of {', '.join(recipes)}")
    recipe, folder = recipes[name], data_root(root)
    with contextlib.suppress(DataError):
        recipe.check(folder)
        return folder
    for file in recipe.files:
        try:
            path = fetch(file, folder, progress)
            if file.unpack:
                file.unpack(path)
        except OSError as error:
            target = folder / file.target
            if error.errno == errno.ENOSPC:
                raise StorageFull(target) from error
            found, way = error.strerror or str(error), "choose a folder with --data that can be written"
            raise DataError(target, "a place to write it to", found, way) from error
    recipe.check(folder)
    return folder


def fetch(file: Fetch, root: Path, progress: Progress | None = None) -> Path:
    """The file at its place. What is there already of it, in `.part`, is not fetched again."""
    target = root / file.target
    if target.is_file() and _sum(target) == file.content:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    reasons = []
    for url in file.urls:
        for _ in range(TRIES):
            try:
                _pull(url, part, file.content, progress)
                part.replace(target)
                return target
            except _Failed as failed:
                reasons.append(f"{url}: {failed}")
                if not failed.again:
                    break
    way = f"run the same command again, it goes on from what is there; or put the file at {target} yourself"
    raise DataError(target, str(file.content), "; ".join(dict.fromkeys(reasons)), way)


def _pull(url: str, part: Path, content: Content, progress: Progress | None) -> None:
    """Brings `part` to its full length from `url` and checks it, or says why not."""

    def tell(got: int) -> None:
        if progress:
            progress(part.stem, got, content.size)

    start = part.stat().st_size if part.exists() else 0
    if start < content.size:
        with _open(url, start) as reply:
            # A server that knows no ranges answers 200 and sends everything from the beginning.
            resumed = reply.status == http.HTTPStatus.PARTIAL_CONTENT
            start = start if resumed else 0
            with part.open("ab" if resumed else "wb") as out:
                _copy(reply, out, start, content, tell)
    found = _sum(part)
    if found == content:
        return
    if found.size < content.size:
        raise _Failed(f"ended after {found.size:,} of {content.size:,} bytes", again=True)
    # What came before may have been the fault of another source: then this one gets a clean start.
    part.unlink()
    raise _Failed(f"sent {found}", again=start > 0)


def _open(url: str, start: int) -> http.client.HTTPResponse:
    headers = {"User-Agent": "fedforget", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        reply = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        raise _Failed(f"answered {error.code} {error.reason}", again=False) from error
    except (OSError, http.client.HTTPException) as error:
        raise _Failed(str(getattr(error, "reason", "") or error), again=False) from error
    assert isinstance(reply, http.client.HTTPResponse)
    sent = reply.headers.get("Content-Range", "")
    if reply.status == http.HTTPStatus.PARTIAL_CONTENT and not sent.startswith(f"bytes {start}-"):
        reply.close()
        raise _Failed(f"asked for bytes from {start}, it sends {sent or 'others'}", again=False)
    return reply


def _copy(
    reply: http.client.HTTPResponse, out: BinaryIO, got: int, content: Content, tell: Callable[[int], None]
) -> None:
    """Copies until the end or one byte too many; an error of the network is the source's, not the disk's."""
    tell(got)
    while got <= content.size:
        try:
            chunk = reply.read(min(CHUNK, content.size - got + 1))
        except (OSError, http.client.HTTPException) as error:
            raise _Failed(f"broke off after {got:,} bytes: {error}", again=True) from error
        if not chunk:
            return
        out.write(chunk)
        got += len(chunk)
        tell(min(got, content.size))


def _sum(path: Path) -> Content:
    digest = sha256()
    with path.open("rb") as handle:
        while chunk := handle.read(1 << 20):
            digest.update(chunk)
    return Content(path.stat().st_size, digest.hexdigest())


def _save(path: Path, source: IO[bytes] | gzip.GzipFile) -> None:
    """All of `source` at `path`, or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with part.open("wb") as out:
        while chunk := source.read(1 << 20):
            out.write(chunk)
    part.replace(path)


def gunzip_beside(path: Path) -> None:
    """`file.gz` → `file` next to it, as torchvision leaves both."""
    with gzip.open(path) as source:
        _save(path.with_suffix(""), source)


def untar_batches(path: Path) -> None:
    """The six batches out of CIFAR-10's archive; no name in it is ever used as a path."""
    wanted = {f"{batch}.bin": path.parent / "cifar-10-batches-bin" / f"{batch}.bin" for batch in CIFAR10.batches}
    with tarfile.open(path) as archive:
        for member in archive:
            place = wanted.get(Path(member.name).name)
            source = archive.extractfile(member) if place else None
            if place and source:
                with source:
                    _save(place, source)


def _idx(name: str, folder: str, mirrors: tuple[str, ...], files: Mapping[str, Content]) -> Recipe:
    fetches = [
        Fetch(tuple(mirror + file for mirror in mirrors), content, f"{folder}/{file}", gunzip_beside)
        for file, content in files.items()
    ]
    return Recipe(tuple(fetches), lambda root: load(name, root))


RECIPES: Mapping[str, Recipe] = {
    "digits": Recipe((), lambda root: None),  # come with scikit-learn
    "mnist": _idx(
        "mnist",
        MNIST.folder,
        (
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
            "http://yann.lecun.com/exdb/mnist/",  # the author's, which often refuses programs
        ),
        {
            "train-images-idx3-ubyte.gz": Content(
                9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
            ),
            "train-labels-idx1-ubyte.gz": Content(
                28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
            ),
            "t10k-images-idx3-ubyte.gz": Content(
                1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
            ),
            "t10k-labels-idx1-ubyte.gz": Content(
                4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
            ),
        },
    ),
    "fashion-mnist": _idx(
        "fashion-mnist",
        FASHION_MNIST.folder,
        (
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        ),
        {
            "train-images-idx3-ubyte.gz": Content(
                26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"
            ),
            "train-labels-idx1-ubyte.gz": Content(
                29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"
            ),
            "t10k-images-idx3-ubyte.gz": Content(
                4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"
            ),
            "t10k-labels-idx1-ubyte.gz": Content(
                5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"
            ),
        },
    ),
    "cifar10": Recipe(
        (
            Fetch(
                (
                    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                    "https://cave.cs.toronto.edu/kriz/cifar-10-binary.tar.gz",
                    "https://storage.googleapis.com/mirror.tensorflow.org/www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                ),
                Content(170_052_171, "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"),
                "cifar-10-binary.tar.gz",
                untar_batches,
            ),
        ),
        lambda root: load("cifar10", root),
    ),
    "shakespeare": Recipe(
        (
            Fetch(
                (
                    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
                    "https://storage.googleapis.com/download.tensorflow.org/data/shakespeare.txt",
                ),
                SHAKESPEARE,
                SHAKESPEARE_PATH,
            ),
        ),
        lambda root: load("shakespeare", root),
    ),
}
