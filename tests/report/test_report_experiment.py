"""The page of a directory of results: tables, pictures and values as they lie there."""

import json
from pathlib import Path

import pytest
from pages import check

from fedforget.errors import DataError, NotAWorkspace
from fedforget.report.experiment import Results, experiment_page
from fedforget.report.markdown import inline, render
from fedforget.report.write import is_workspace, read_results, write_experiment

TABLE = """# Table 1: F1 & *time*

Ours **beside** the `paper's`, see [docs](https://example.org/x).
It goes on.

| method | F1 | note |
|---|---:|:--|
| SE | 0.54 | a \\| b |
| FR <b> | 0.51 |

- one
- `two`

```
fedforget <reproduce>
```
"""


def test_markdown_as_tables_of_results_have_it() -> None:
    page = check(experiment_page(Results("r", {"table1.md": TABLE}, {}, {})))
    assert [t["tr"] for t in page.tables] == [3]
    assert "Table 1: F1 & time" in page.text
    assert "a | b" in page.text
    assert "FR <b>" in page.text
    assert "fedforget <reproduce>" in page.text
    assert "see docs" in page.text.replace("  ", " ")
    assert [a.get("class") for a in page.all("td")] == ["number", None, "number", None]
    assert len(page.all("li")) == 2 + 1  # and the page's own link to the table
    assert not page.all("b")


@pytest.mark.parametrize(
    ("source", "made"),
    [
        ("a < b", "a &lt; b"),
        ("**x** and *y* and `z<`", "<strong>x</strong> and <em>y</em> and <code>z&lt;</code>"),
        ("[words](https://x.y)", "words"),
        ("![picture](a.svg)", "picture"),
        ("2 * 3 * 4", "2 * 3 * 4"),
    ],
)
def test_inline(source: str, made: str) -> None:
    assert inline(source) == made


def test_a_table_without_a_heading_is_captioned_by_its_file() -> None:
    assert "<caption>plain.md</caption>" in render("|a|\n|-|\n|1|", "plain.md")
    assert "<pre>" in render("```\nnever closed", "x")
    assert render("| no rule\ntext", "x") == "<p>| no rule text</p>"


def test_a_picture_stands_where_it_is_first_spoken_of_and_a_bold_line_names_a_table() -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg"><rect id="r"/></svg>'
    source = "![one](fig.svg)\n\n**What it costs**\n\n|a|\n|-|\n|1|\n\n![again](fig.svg)\n\n![gone](no.svg)\n"
    results = Results("r", {"sub/a.md": source}, {"other.svg": svg, "sub/fig.svg": svg}, {})
    text = experiment_page(results)
    page = check(text)
    assert "<caption>What it costs</caption>" in text
    assert text.index("p1-r") < text.index("What it costs") < text.index("p0-r"), "the other is among the pictures"
    assert text.count("<svg") == 2
    assert "again" in page.text
    assert "gone" in page.text


def test_values_become_lists_and_tables() -> None:
    values = {
        "a.json": {
            "seed": 0,
            "accuracy": 0.98712345678,
            "met": True,
            "none": None,
            "long": "x" * 400,
            "settings": {"task": "mnist", "lr": 0.05},
            "curve": [1, 2.5],
            "rows": [{"k": 1, "deep": {}}, {"k": 2.0, "name": "<b>"}],
            "empty": [],
            "deeper": {"a": {"b": 1}},
        },
        "b.json": [{"x": 1}],
        "c.json": 3,
        "d.json": [1, 2],
        "e.json": {"f": [{"g": {}}]},
        "many.json": [{"n": i} for i in range(301)],
    }
    page = check(experiment_page(Results("r", {}, {}, values, ("broken.json",))))
    for words in ("0.987123", "yes", "–", "x" * 300 + "…", "1, 2.5", "<b>", "broken.json", "the first 300 of 301"):
        assert words in page.text
    assert "Nothing in it can be shown as a table." in page.text
    captions = page.text
    assert "a.json: settings" in captions
    assert "a.json: rows" in captions


def test_a_directory_is_read_and_its_page_is_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "table1"
    (folder / "cells").mkdir(parents=True)
    (folder / "table1.md").write_text(TABLE)
    (folder / "fig.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><rect/></svg>')
    (folder / "cells" / "one.json").write_text(json.dumps({"seed": 0}))
    (folder / "cells" / "half.json").write_text('{"seed":')
    (folder / ".hidden.json").write_text("{}")
    (folder / "notes.txt").write_text("not shown")
    found = read_results(folder)
    assert (list(found.tables), list(found.pictures), list(found.values)) == (
        ["table1.md"],
        ["fig.svg"],
        ["cells/one.json"],
    )
    assert list(found.unread) == ["cells/half.json"]
    assert not is_workspace(folder)
    written = write_experiment(folder, None)
    assert written.path == str(tmp_path / "table1.html")
    text = Path(written.path).read_text(encoding="utf-8")
    assert written.bytes == len(text.encode())
    check(text)
    assert write_experiment(folder, tmp_path / "again.html").bytes == written.bytes
    assert (tmp_path / "again.html").read_bytes() == Path(written.path).read_bytes()
    with pytest.raises(DataError):
        write_experiment(folder, tmp_path)


def test_a_directory_with_nothing_in_it_is_no_workspace(tmp_path: Path) -> None:
    assert is_workspace(tmp_path)
    with pytest.raises(NotAWorkspace):
        read_results(tmp_path)
    (tmp_path / "keys.json").write_text("{}")
    assert not is_workspace(tmp_path)
    (tmp_path / "ledger.db").touch()
    assert is_workspace(tmp_path), "half a workspace is not shown as results"
