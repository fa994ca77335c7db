"""The builder: whatever comes from outside is text, and stays text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import Page, check

from fedforget.report.html import described, figure, listed, page, paragraph, section, table, tag, text

EVIL = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title><script>",
    "</style><svg/onload=alert(1)>",
    "&lt;b&gt;",
    "]]><!--",
    "javascript:alert(1)",
    "a\u202eb",
    "a\x00b",
]


@pytest.mark.parametrize("words", EVIL)
def test_words_from_outside_are_words_wherever_they_stand(words: str) -> None:
    made = page(
        words,
        section("one", words, paragraph(text(words)), listed([text(words)])),
        table(words, (words, "b"), [(text(words), text(words))], (words,)),
        figure(words, tag("svg", tag("title", text(words)), class_="drawn", role="img")),
        described([(words, text(words))]),
    )
    found = check(made)
    assert found.text.count(words.replace("\u202e", "\\u202e").replace("\x00", "\\u0000")) >= 8


@given(st.text(max_size=60))
def test_any_text_survives_and_nothing_else_appears(words: str) -> None:
    made = Page(tag("p", text(words), title=words))
    assert [name for name, _ in made.tags] == ["p"]
    shown = "".join(c if c.isprintable() or c in "\n\t" else f"\\u{ord(c):04x}" for c in words)
    assert "".join(made.words) == shown
    assert made.tags[0][1]["title"] == shown


def test_columns_of_numbers_stand_right() -> None:
    made = Page(table("c", ("name", "count"), [(text("a"), text(1))], ("count",)))
    assert [a.get("class") for a in made.all("th")] == [None, "number", None]
    assert made.all("td") == [{"class": "number"}]
    assert made.all("div")[0]["tabindex"] == "0", "a box that scrolls can be reached by keyboard"


def test_rows_must_fit_the_head() -> None:
    with pytest.raises(ValueError):
        table("c", ("a", "b", "c"), [(text(1), text(2))])
