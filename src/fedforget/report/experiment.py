"""The page of an experiment: the tables, pictures and values of a directory of results, as they lie there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from .foreign import picture
from .html import NOTHING, Html, described, figure, joined, page, paragraph, section, table, tag, text
from .markdown import render

MOST_ROWS = 300


@dataclass(frozen=True)
class Results:
    """What was found, by file name: Markdown, SVG, and JSON already read; `unread` are files that could not be."""

    name: str
    tables: Mapping[str, str]
    pictures: Mapping[str, str]
    values: Mapping[str, Any]
    unread: Sequence[str] = ()


def experiment_page(results: Results) -> str:
    """One page, the same bytes for the same files."""
    parts: list[tuple[str, str, Html]] = []
    drawn = {name: _picture(at, name, svg) for at, (name, svg) in enumerate(results.pictures.items())}
    placed: set[str] = set()
    for at, (name, source) in enumerate(results.tables.items()):
        folder = PurePosixPath(name).parent

        def find(path: str, words: str, folder: PurePosixPath = folder) -> Html | None:
            """Once in the page, where it is first spoken of."""
            whole = (folder / path).as_posix()
            if whole in placed or whole not in drawn:
                return None
            placed.add(whole)
            return drawn[whole]

        parts.append((f"table-{at}", _title(name), render(source, name, find)))
    rest = [made for name, made in drawn.items() if name not in placed]
    if rest:
        parts.append(("pictures", "Pictures", joined(rest)))
    if results.values:
        parts.append(("values", "Values", joined(_values(name, value) for name, value in results.values.items())))
    if results.unread:
        words = "Not shown, for they cannot be read: " + ", ".join(results.unread)
        parts.append(("unread", "Left out", paragraph(text(words))))
    links = tag("nav", tag("ul", *(tag("li", tag("a", text(t), href=f"#{n}")) for n, t, _ in parts)), aria_label="page")
    counts = f"{len(results.tables)} tables, {len(results.pictures)} pictures, {len(results.values)} files of values."
    lead = paragraph(text(counts), class_="soft")
    return page(f"FedForget: {results.name}", lead, links, *(section(n, t, inside) for n, t, inside in parts))


def _title(name: str) -> str:
    return name.removesuffix(".md").replace("/", ": ").replace("_", " ")


def _picture(at: int, name: str, svg: str) -> Html:
    drawn = picture(svg, f"p{at}", name)
    if drawn == NOTHING:
        return paragraph(text(f"{name} is no picture that can be shown."))
    return figure(name, tag("div", drawn, class_="sheet"))


def _values(name: str, value: Any) -> Html:
    """Single values in a list, lists of alike records as tables; the file has it all."""
    inside = joined(_described(name, value)) or paragraph(text("Nothing in it can be shown as a table."))
    return tag("details", tag("summary", text(name)), inside)


def _described(name: str, value: Any) -> list[Html]:
    if isinstance(value, list):
        return [_records(name, value)] if _is_records(value) else []
    if not isinstance(value, dict):
        return [paragraph(text(_short(value)))]
    single = [(str(k), text(_short(v))) for k, v in value.items() if not isinstance(v, dict | list)]
    found = [described(single)] if single else []
    for key, inner in value.items():
        if isinstance(inner, list) and _is_records(inner):
            found.append(_records(f"{name}: {key}", inner))
        elif isinstance(inner, dict) and inner and not any(isinstance(v, dict | list) for v in inner.values()):
            pairs = [(text(k), text(_short(v))) for k, v in inner.items()]
            found.append(table(f"{name}: {key}", ("name", "value"), pairs))
        elif isinstance(inner, list) and inner and not any(isinstance(v, dict | list) for v in inner):
            found.append(paragraph(tag("strong", text(f"{key}: ")), text(", ".join(_short(v) for v in inner[:100]))))
    return found


def _is_records(value: list[Any]) -> bool:
    return bool(value) and all(isinstance(row, dict) and row for row in value)


def _records(caption: str, rows: list[dict[str, Any]]) -> Html:
    head = list(dict.fromkeys(str(key) for row in rows for key, v in row.items() if not isinstance(v, dict | list)))
    if not head:
        return NOTHING
    numbers = [k for k in head if all(isinstance(row.get(k), int | float | None) for row in rows)]
    cells = [[text(_short(row.get(key))) for key in head] for row in rows[:MOST_ROWS]]
    more = f" (the first {MOST_ROWS} of {len(rows)})" if len(rows) > MOST_ROWS else ""
    return table(caption + more, head, cells, numbers)


def _short(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    words = str(value)
    return words if len(words) <= 300 else words[:300] + "…"
