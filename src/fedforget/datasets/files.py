"""Where data sets lie, and reading one of their files so that what comes back is what was published."""

import gzip
import hashlib
import io
import os
import shlex
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import DataError

# Turns a file's bytes into the content that has the checksum; ValueError says what was found instead.
Decoder = Callable[[bytes], bytes]


@dataclass(frozen=True)
class Content:
    """What a file holds once it is unzipped or unpickled, so that all forms of it share one checksum."""

    size: int
    sha256: str

    @staticmethod
    def of(data: bytes) -> "Content":
        return Content(len(data), hashlib.sha256(data).hexdigest())

    def __str__(self) -> str:
        return f"{self.size:,} bytes with SHA-256 {self.sha256[:16]}…"


def data_root(
    root: str | os.PathLike[str] | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    platform: str = sys.platform,
) -> Path:
    """The folder data sets lie in: `root`, else FEDFORGET_DATA, else the user's cache folder."""
    chosen = os.fspath(root) if root is not None else environ.get("FEDFORGET_DATA", "")
    if chosen:
        return Path(chosen).expanduser()
    if platform == "win32":
        local = environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "fedforget" / "Cache"
    if platform == "darwin":
        return Path.home() / "Library" / "Caches" / "fedforget"
    # The XDG specification has relative paths ignored.
    cache = Path(environ.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "fedforget"


def mend(name: str, root: Path) -> str:
    """The way out that every error about a data set's files ends with."""
    return f"`fedforget data {name} --download --data {shlex.quote(str(root))}` fetches what is missing"


def plain(data: bytes) -> bytes:
    return data


def gunzip(limit: int) -> Decoder:
    """Unzips up to one byte more than `limit`: enough to see that a file is too long, and no bomb."""

    def decode(data: bytes) -> bytes:
        try:
            with gzip.open(io.BytesIO(data)) as handle:
                return handle.read(limit + 1)
        except EOFError:
            raise ValueError(f"{len(data):,} bytes of a gzip file cut short") from None
        except (gzip.BadGzipFile, zlib.error):
            raise ValueError("no gzip file, or a damaged one") from None

    return decode


def read(root: Path, name: str, forms: Mapping[str, Decoder], content: Content) -> bytes:
    """The content of the first of `forms` (path beneath `root` → decoder) that is there, checked."""
    for path, decode in forms.items():
        file = root / path
        try:
            if not file.is_file():
                continue
            # No form of a file is twice as long as its content: what is, is not worth reading.
            if file.stat().st_size > 2 * content.size + 4096:
                raise ValueError(f"{file.stat().st_size:,} bytes")
            data = decode(file.read_bytes())
        except OSError as error:
            raise DataError(file, str(content), error.strerror or "an error", mend(name, root)) from error
        except ValueError as error:
            raise DataError(file, str(content), str(error), mend(name, root)) from error
        found = Content.of(data)
        if found != content:
            raise DataError(file, str(content), str(found), mend(name, root))
        return data
    wanted = root / next(iter(forms))
    raise DataError(wanted, str(content), _absence(root, wanted), mend(name, root))


def _absence(root: Path, file: Path) -> str:
    folders = [root / part for part in reversed(file.relative_to(root).parents)]
    missing = next((folder for folder in folders if not folder.is_dir()), None)
    return f"no folder {missing}" if missing else "no such file"
