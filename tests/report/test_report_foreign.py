"""Pictures by others: what draws is kept, what runs, loads or collides is not."""

import re

import pytest
from pages import Page, check

from fedforget.report.experiment import Results, experiment_page
from fedforget.report.foreign import picture

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 9 9">'


def drawn(inside: str, name: str = "p0") -> str:
    return picture(f"{HEAD}{inside}</svg>", name, "words")


@pytest.mark.parametrize(
    "inside",
    [
        "<script>alert(1)</script>",
        '<rect onload="alert(1)" onclick="alert(1)"/>',
        '<a href="javascript:alert(1)"><rect/></a>',
        '<use xlink:href="https://evil.example/x.svg#a"/>',
        '<use href="data:image/svg+xml,x"/>',
        '<image href="https://evil.example/pixel.png"/>',
        "<foreignObject><body xmlns='http://www.w3.org/1999/xhtml'><form/></body></foreignObject>",
        "<style>* { background: url(https://evil.example) }</style>",
        '<rect style="fill: url(https://evil.example/x)"/>',
        '<rect style="background: \\75rl(//evil.example)"/>',
        '<rect fill="url(https://evil.example#a)"/>',
        '<animate attributeName="href" values="javascript:alert(1)"/>',
        '<set attributeName="onload" to="alert(1)"/>',
        "<metadata><x/></metadata>",
    ],
)
def test_nothing_runs_or_loads(inside: str) -> None:
    found = drawn(inside)
    assert not re.search(r"alert|evil|script|http|data:|style>|<form|<a |metadata|animate|<set", found)
    Page(found)


def test_what_draws_is_kept() -> None:
    found = drawn(
        '<defs><clipPath id="c"><path d="M0 0"/></clipPath></defs>'
        '<g id="g" clip-path="url(#c)" style="fill: url(#c); stroke: #1f77b4"><use xlink:href="#g" x="1"/>'
        '<text transform="rotate(9)">a<tspan>b</tspan>c &lt;d&gt;</text></g>'
    )
    assert 'id="p0-c"' in found
    assert 'clip-path="url(#p0-c)"' in found
    assert "fill: url(#p0-c); stroke: #1f77b4" in found
    assert 'href="#p0-g"' in found
    assert "a<tspan>b</tspan>c &lt;d&gt;" in found
    assert found.startswith('<svg viewBox="0 0 9 9" role="img"><title>words</title>')


def test_two_pictures_do_not_meet() -> None:
    inside = f'{HEAD}<g id="same"><use href="#same"/></g></svg>'
    page = check(experiment_page(Results("r", {}, {"a.svg": inside, "b.svg": inside}, {})))
    assert {"p0-same", "p1-same"} <= set(page.ids)


@pytest.mark.parametrize(
    "text",
    [
        "no picture",
        "<svg",
        '<html xmlns="http://www.w3.org/1999/xhtml"/>',
        '<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><svg xmlns="http://www.w3.org/2000/svg">&b;</svg>',
    ],
)
def test_what_is_no_picture_is_said_to_be_none(text: str) -> None:
    assert picture(text, "p", "w") == ""
    page = check(experiment_page(Results("r", {}, {"bad.svg": text}, {})))
    assert "bad.svg is no picture that can be shown." in page.text


def test_a_picture_of_matplotlib_is_kept_whole() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("svg")
    from io import StringIO

    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.add_subplot()
    axes.plot([1, 2, 3], [3, 1, 2], marker="o", label="a < b")
    axes.legend()
    out = StringIO()
    figure.savefig(out, format="svg")
    found = picture(out.getvalue(), "p0", "a plot")
    page = Page(found)
    assert len(page.all("path")) >= out.getvalue().count("<path") - 1
    used = [a["href"] for a in page.all("use")]
    assert used
    assert {str(u)[1:] for u in used} <= set(page.ids)
