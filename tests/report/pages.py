"""What must hold of every page: read with the standard library's parser, which sees what a browser would."""

import re
from html.parser import HTMLParser
from itertools import pairwise

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(HTMLParser):
    """A page read strictly: everything opened is closed in order, and whatever matters is noted."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.tables: list[dict[str, int]] = []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice: {attrs}"
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append({"caption": 0, "tr": 0, "th": 0})
        elif self.tables and tag in self.tables[-1]:
            self.tables[-1][tag] += 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]

    @property
    def ids(self) -> list[str]:
        return [str(attrs["id"]) for _, attrs in self.tags if "id" in attrs]


def check(text: str) -> Page:
    """Well-formed, whole by itself, named, captioned, nothing that runs."""
    assert text.startswith("<!DOCTYPE html>\n")
    page = Page(text)
    assert page.all("html") == [{"lang": "en"}]
    assert page.all("meta")[0] == {"charset": "utf-8"}
    assert len(page.all("title")) >= 1
    assert len(page.all("h1")) == 1
    assert len(page.ids) == len(set(page.ids))
    for table in page.tables:
        assert table["caption"] == 1
        assert table["th"] >= table["tr"], "every row has a head of its own"
    for tag, attrs in page.tags:
        assert tag not in ("script", "link", "iframe", "object", "embed", "img", "form", "base", "foreignobject"), tag
        for name, value in attrs.items():
            assert not name.startswith("on"), name
            if name in ("href", "src", "action"):
                assert str(value).startswith("#"), value
                assert str(value)[1:] in page.ids, value
            if name in ("aria-labelledby",):
                assert value in page.ids
    assert not re.search(r"url\((?!#)", text), "nothing is loaded"
    assert not re.search(r"""(?:href|src)\s*=\s*["']?\s*(?:https?:)?//""", text)
    assert "@import" not in text
    policy = next(m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert str(policy).startswith("default-src 'none'")
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels
    return page
