"""Markdown, as much of it as tables of results are written in: headings, tables, lists, code and paragraphs.

Links become their words: the page leads nowhere but into itself.
"""

import re
from collections.abc import Callable, Iterator

from .html import Html, joined, listed, paragraph, table, tag, text

_INLINE = re.compile(
    r"`(?P<code>[^`]+)`|\*\*(?P<strong>[^*]+)\*\*|\*(?P<em>[^*\s][^*]*)\*|!?\[(?P<link>[^\]]*)\]\([^)]*\)"
)
_RULE = re.compile(r"^\|?\s*:?-{1,}:?\s*(\|\s*:?-{1,}:?\s*)*\|?$")
_ITEM = re.compile(r"^\s*[-*] +")
_BOLD = re.compile(r"^\*\*([^*]+)\*\*$")
_IMAGE = re.compile(r"^!\[([^\]]*)\]\(([^)\s]+)\)$")

Find = Callable[[str, str], Html | None]  # a picture's path and its words → the picture, where there is one


def nowhere(path: str, words: str) -> Html | None:
    """No pictures to put in."""
    return None


def render(source: str, name: str, find: Find = nowhere) -> Html:
    """A file's text. A table is captioned by the heading or the bold line above it, else by the file's name."""
    return joined(_blocks(source.splitlines(), name, find), "\n")


def _blocks(lines: list[str], name: str, find: Find) -> Iterator[Html]:
    at, caption = 0, name
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
        elif line.startswith("```"):
            end = next((i for i in range(at + 1, len(lines)) if lines[i].startswith("```")), len(lines))
            yield tag("pre", tag("code", text("\n".join(lines[at + 1 : end]))))
            at = end + 1
        elif heading := re.match(r"^#{1,6} +(.*)", line):
            caption = _plain(heading[1])
            yield tag("h3", inline(heading[1]))
            at += 1
        elif line.lstrip().startswith("|") and at + 1 < len(lines) and _RULE.match(lines[at + 1].strip()):
            end = next((i for i in range(at, len(lines)) if not lines[i].lstrip().startswith("|")), len(lines))
            yield _table(lines[at:end], caption)
            at = end
        elif _ITEM.match(line):
            end = next((i for i in range(at, len(lines)) if not _ITEM.match(lines[i])), len(lines))
            yield listed(inline(_ITEM.sub("", item)) for item in lines[at:end])
            at = end
        else:
            end = next((i for i in range(at + 1, len(lines)) if not lines[i].strip() or _starts(lines[i])), len(lines))
            words = " ".join(lines[at:end]).strip()
            image, bold = _IMAGE.match(words), _BOLD.match(words)
            caption = bold[1] if bold else caption
            yield (find(image[2], image[1]) if image else None) or paragraph(inline(words))
            at = end


def _starts(line: str) -> bool:
    return bool(_ITEM.match(line)) or line.lstrip().startswith(("|", "#", "```"))


def _table(lines: list[str], caption: str) -> Html:
    head, rule, *rows = ([cell.strip() for cell in _cells(line)] for line in lines)
    right = [head[i] for i, cell in enumerate(rule[: len(head)]) if cell.endswith(":")]
    fitted = [(row + [""] * len(head))[: len(head)] for row in rows]
    return table(caption, [_plain(h) for h in head], [[inline(c) for c in row] for row in fitted], map(_plain, right))


def _cells(line: str) -> list[str]:
    inside = line.strip().removeprefix("|")
    inside = inside[:-1] if inside.endswith("|") and not inside.endswith("\\|") else inside
    return [cell.replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inside)]


def inline(words: str) -> Html:
    """Emphasis and code; all else is text."""
    parts, at = [], 0
    for found in _INLINE.finditer(words):
        parts.append(text(words[at : found.start()]))
        kind = str(found.lastgroup)
        parts.append(text(found[kind]) if kind == "link" else tag(kind, text(found[kind])))
        at = found.end()
    return joined([*parts, text(words[at:])])


def _plain(words: str) -> str:
    return _INLINE.sub(lambda found: str(found[str(found.lastgroup)]), words)
