"""HTML by hand: every word that comes from outside is escaped here and nowhere else.

What builds a page passes `Html`, which is safe by construction; a plain `str` is text and becomes safe by `text`.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import NewType

from .style import STYLE

Html = NewType("Html", str)

NOTHING = Html("")
MANY = 5  # columns a narrow screen would press too thin to read


def text(words: object) -> Html:
    """Words as they are, whatever is in them."""
    return Html(escape(_visible(str(words)), quote=True))


def _visible(words: str) -> str:
    """Control characters and those that turn text round are shown, not obeyed."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\u{ord(c):04x}" for c in words)


def tag(name: str, *inside: Html, **attributes: object) -> Html:
    """An element; `class_` is `class`, and underscores are hyphens."""
    pairs = "".join(f' {key.rstrip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{pairs}>{''.join(inside)}</{name}>")


def joined(parts: Iterable[Html], between: str = "") -> Html:
    return Html(between.join(parts))


def paragraph(*inside: Html, **attributes: object) -> Html:
    return tag("p", *inside, **attributes)


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Html]], numbers: Iterable[str] = ()) -> Html:
    """A table that scrolls in its own box where it is too wide; `numbers` names the columns set to the right."""
    numeric = frozenset(numbers)
    right = [column in numeric for column in head]
    heads = [tag("th", text(column), scope="col", **_side(r)) for column, r in zip(head, right, strict=True)]
    lines = []
    for row in rows:
        first, *rest = row
        cells = [tag("th", first, scope="row", **_side(right[0]))]
        cells += [tag("td", cell, **_side(r)) for cell, r in zip(rest, right[1:], strict=True)]
        lines.append(tag("tr", *cells))
    parts = (tag("caption", text(caption)), tag("thead", tag("tr", *heads)), tag("tbody", joined(lines, "\n")))
    whole = tag("table", *parts, **({"class_": "many"} if len(head) > MANY else {}))
    return tag("div", whole, class_="wide", role="region", tabindex=0, aria_label=caption)


def _side(right: bool) -> dict[str, str]:
    return {"class_": "number"} if right else {}


def figure(caption: str, drawing: Html) -> Html:
    box = tag("div", drawing, class_="wide", role="region", tabindex=0, aria_label=caption)
    return tag("figure", box, tag("figcaption", text(caption)))


def section(name: str, title: str, *inside: Html) -> Html:
    return tag("section", tag("h2", text(title), id=name), *inside, aria_labelledby=name)


def listed(items: Iterable[Html]) -> Html:
    return tag("ul", *(tag("li", item) for item in items))


def described(pairs: Iterable[tuple[str, Html]]) -> Html:
    """Names and what they stand for."""
    return tag("dl", *(tag("div", tag("dt", text(name)), tag("dd", value)) for name, value in pairs))


def page(title: str, *sections: Html) -> Html:
    """The whole document: nothing in it comes from anywhere else, and a policy says so to the browser."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    head = (
        '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title)}</title>\n<style>{STYLE}</style>"
    )
    body = joined([tag("main", tag("h1", text(title)), *(Html(s + "\n") for s in sections))])
    return Html(f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n')
