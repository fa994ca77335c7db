"""Page: a target's tables in Markdown and its pictures; written from cells, or compared with them."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..storage.disk import Disk
from .cells import Cell
from .recipe import Recipe
from .sheet import Sheet

_BLOCK = "<!-- results: {target} {preset} -->"
_END = "<!-- end -->"


@dataclass(frozen=True)
class Page:
    """Everything that is shown of a target, as values."""

    target: str
    recipe: Recipe
    folder: Path
    cells: tuple[Cell, ...]
    of: int
    sheets: tuple[Sheet, ...]
    figures: dict[str, Any]
    stamp: str

    @property
    def path(self) -> Path:
        return self.folder / f"{self.target}.md"

    def text(self) -> str:
        return f"# {self.recipe.title}\n\n{self.body('')}\n"

    def body(self, prefix: str) -> str:
        """Tables and pictures; `prefix` leads from the reader's folder to this one."""
        parts = [self._made_of(), *(sheet.markdown() for sheet in self.sheets)]
        parts += [f"![{name}]({prefix}{name}.svg)" for name in self.figures]
        return "\n\n".join(parts)

    def _made_of(self) -> str:
        seeds = sorted({c.seed for c in self.cells if c.seed is not None})
        machines = sorted({str(c.measured["machine"]) for c in self.cells})
        lacking = self.of - len(self.cells)
        missing = f" **Not run: {lacking} cells.**" if lacking else ""
        return (
            f"`fedforget reproduce {self.target} --preset {self.recipe.preset}`: {len(self.cells)} of {self.of} cells, "
            f"seeds {', '.join(map(str, seeds))}; {'; '.join(machines)}.{missing}"
        )

    def write(self, docs: Path | None = None) -> tuple[Path, ...]:
        """Tables, pictures and the block in a page of the docs."""
        Disk().write(self.path, self.text().encode())
        files = [self.path]
        for name, figure in self.figures.items():
            from ..plots import draw

            files += draw(figure, self.folder / name)
        if docs is not None:
            page = docs.read_text()
            block = self._block(page)
            if block is None:
                raise DataError(
                    docs, self._opening(), "no such line", f"add it and a line {_END} where the results belong"
                )
            Disk().write(docs, page.replace(block, self._wanted(docs)).encode())
            files.append(docs)
        return tuple(files)

    def findings(self, docs: Path | None) -> Iterator[str]:
        """What is stored and is not what the cells say."""
        if not self.path.exists():
            yield f"{self.path} is missing"
        elif self.path.read_text() != self.text():
            yield f"{self.path} is not what the cells say"
        for name in self.figures:
            from ..plots import stamp_of

            for path in (self.folder / f"{name}.svg", self.folder / f"{name}.png"):
                if not path.exists():
                    yield f"{path} is missing"
                elif stamp_of(path) != self.stamp:
                    yield f"{path} was drawn from other cells"
        block = self._block(docs.read_text()) if docs else None
        if docs is not None and block is not None and block != self._wanted(docs):
            yield f"{docs}: the results of {self.target} {self.recipe.preset} are not what the cells say"

    def _opening(self) -> str:
        return _BLOCK.format(target=self.target, preset=self.recipe.preset)

    def _block(self, page: str) -> str | None:
        found = re.search(re.escape(self._opening()) + r".*?" + re.escape(_END), page, re.DOTALL)
        return found[0] if found else None

    def _wanted(self, docs: Path) -> str:
        prefix = os.path.relpath(self.folder.resolve(), docs.parent.resolve()).replace(os.sep, "/") + "/"
        return f"{self._opening()}\n\n{self.body(prefix)}\n\n{_END}"
