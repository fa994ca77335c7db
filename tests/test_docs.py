"""What the pages say is so: their commands exist with their options, their code runs, their names and links resolve."""

import ast
import importlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer

from fedforget import errors
from fedforget.cli import app
from fedforget.forgetting import METHODS
from fedforget.forgetting.guarantee import NAMES

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "flower/README.md", *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
TORCH = re.compile(r"^\s*(?:from|import) (?:torch|fedforget\.learners\.torch)\b", re.MULTILINE)

pages = pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))


def blocks(page: Path, *languages: str) -> list[str]:
    return [body for language, body in BLOCK.findall(page.read_text()) if language in languages]


def inline(page: Path) -> list[str]:
    """Code within the text, line breaks in it mended."""
    text = BLOCK.sub("", page.read_text())
    return [" ".join(code.split()) for code in INLINE.findall(text)]


# --- commands -----------------------------------------------------------------------------------------------


def shown_commands(page: Path) -> Iterator[list[str]]:
    lines = [line for block in blocks(page, "bash", "sh", "console", "text", "") for line in block.splitlines()]
    for code in [*lines, *inline(page)]:
        line = code.removeprefix("$ ").strip()
        if line.startswith("fedforget ") and not line.startswith("fedforget …"):
            yield shlex.split(line, comments=True)


def options() -> Mapping[str, set[str]]:
    """Each command's options; those of a group by both words."""
    return {
        name: {"--help", "-h", *(flag for p in command.params for flag in (*p.opts, *p.secondary_opts))}
        for name, command in commands(typer.main.get_command(app))
    }


def commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield before + name, command


def command_of(words: Sequence[str], known: Collection[str]) -> str:
    """The command, of one word or two, that a line calls."""
    return next((name for name in (" ".join(words[:2]), words[0]) if name in known), words[0])


@pages
def test_every_command_named_exists_with_its_options(page: Path) -> None:
    known = options()
    for _, *words in shown_commands(page):
        if words[0].startswith("-"):
            assert words[0] in ("--help", "--version", "-h")
            continue
        name = command_of(words, known)
        assert name in known, words
        flags = {word.split("=")[0] for word in words[1:] if re.match(r"--?[a-z]", word)}
        assert flags <= known[name], words


def test_every_command_is_named_on_some_page() -> None:
    known = options()
    named = {command_of(words[1:], known) for page in PAGES for words in shown_commands(page) if len(words) > 1}
    assert set(known) <= named


@pages
def test_every_make_target_named_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    lines = [line for block in blocks(page, "bash", "sh") for line in block.splitlines()] + inline(page)
    named = {found[1] for line in lines if (found := re.match(r"make ([a-z][a-z-]*)\b", line))}
    assert named <= targets


# --- code ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: str(p.relative_to(ROOT)))
def test_every_block_of_python_runs(page: Path, tmp_path: Path) -> None:
    """A page's blocks one after the other, in an empty directory, warnings as errors."""
    found = blocks(page, "python")
    if any(TORCH.search(block) for block in found) and find_spec("torch") is None:
        pytest.skip("needs the torch extra")
    (tmp_path / "page.py").write_text(script("\n".join(found)))
    done = subprocess.run(
        [sys.executable, "-W", "error", "page.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


def script(text: str) -> str:
    """Definitions at the top and the rest under the usual guard: workers load what they need from the top."""
    tree = ast.parse(text)
    at_top = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    top = [node for node in tree.body if isinstance(node, at_top)]
    rest = [node for node in tree.body if not isinstance(node, at_top)]
    guard = ast.If(ast.parse("__name__ == '__main__'", mode="eval").body, rest, [])
    return ast.unparse(ast.fix_missing_locations(ast.Module([*top, guard], [])))


@pages
def test_every_block_of_json_or_toml_reads(page: Path) -> None:
    import tomllib

    for block in blocks(page, "json"):
        json.loads(block)
    for block in blocks(page, "toml"):
        tomllib.loads(block)


# --- names --------------------------------------------------------------------------------------------------


def resolve(dotted: str) -> Any:
    """What `fedforget.module.attribute.attribute` names."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError as fault:
            if fault.name is None or not fault.name.startswith("fedforget"):
                pytest.skip(f"{dotted} needs {fault.name}")
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AttributeError(dotted)


@pages
def test_every_dotted_name_exists(page: Path) -> None:
    for code in inline(page):
        if re.fullmatch(r"fedforget(\.\w+)+", code) and not code.endswith((".db", ".toml", ".cohort")):
            resolve(code)


@pages
def test_every_error_named_exists_with_the_exit_code_it_is_said_to_have(page: Path) -> None:
    text = page.read_text()
    for name, code in re.findall(r"`(\w+)`\s*\(exit code (\d+)\)", text):
        assert getattr(errors, name).exit_code == int(code)
    known = {name for name in dir(errors) if isinstance(getattr(errors, name), type)}
    like_errors = re.compile(r"[A-Z]\w*(Errors?|Broken|Destroyed|Failed|Refused|Full)")
    named = {code for code in inline(page) if like_errors.fullmatch(code)}
    assert named <= known


def named_tests(page: Path) -> set[str]:
    return {code for code in inline(page) if re.fullmatch(r"tests/[\w/]+\.py(::\w+)?", code)}


@pages
def test_every_test_named_exists(page: Path) -> None:
    for name in named_tests(page):
        file, _, function = name.partition("::")
        assert (ROOT / file).is_file(), name
        if function:
            assert re.search(rf"^ *def {function}\(", (ROOT / file).read_text(), re.MULTILINE), name


@pages
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(BLOCK.sub("", page.read_text())):
        if "://" in target or target.startswith("mailto:"):
            continue
        file, _, heading = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.exists(), target
        if heading:
            assert heading in {_anchor(line) for line in there.read_text().splitlines() if line.startswith("#")}, target


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lstrip("# ").lower()).replace(" ", "-")


@pages
def test_lines_of_tables_have_as_many_cells_as_their_heads(page: Path) -> None:
    text = BLOCK.sub("", page.read_text())
    for above, below in pairwise(text.splitlines()):
        if above.startswith("|") and below.startswith("|"):
            assert _cells(above) == _cells(below), below


def _cells(row: str) -> int:
    return INLINE.sub("", row).count("|")


# --- the paper map ------------------------------------------------------------------------------------------


def paper_map() -> list[list[str]]:
    """Its rows: what the paper has, the function that is it, the test that shows it."""
    page = ROOT / "docs" / "paper-map.md"
    rows = [line.strip("|").split("|") for line in page.read_text().splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def test_the_paper_map_has_every_equation_algorithm_table_and_figure() -> None:
    items = " ".join(row[0] for row in paper_map())
    for item in ("encode", "reconstruct", "prepare", "retrain", "Algorithm 1", "T_s", "T_c", "γ", "λ_c", "Table 1"):
        assert item in items
    for figure in (3, 4, 5):
        assert f"Figure {figure}" in items


def test_each_row_of_the_paper_map_names_a_function_and_a_test_or_says_not_yet() -> None:
    for item, function, test in paper_map():
        assert "fedforget." in function or "row" in function or "not yet" in function, item
        assert "tests/" in test or "not yet" in test, item
        for name in re.findall(r"\brow (\w+)", function):
            assert name in METHODS


# --- what the README promises -------------------------------------------------------------------------------


def test_the_readme_names_every_guarantee_class_the_program_gives() -> None:
    text = (ROOT / "README.md").read_text()
    rows = dict(re.findall(r"^\| (X\d|A|Q) \| ([^|]+) \|", text, re.MULTILINE))
    assert rows
    for grade, name in rows.items():
        assert NAMES[grade] == name.strip()  # type: ignore[index]


def test_the_check_of_ci_is_the_readmes_test_command_and_the_checks_beside_it() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    makefile = (ROOT / "Makefile").read_text()
    assert "make check" in script
    assert re.search(r"^check:.*\n(?:\t.*\n)*\t.*\btest\b", makefile, re.MULTILINE)


def test_the_tables_of_stored_benchmarks_are_what_the_benchmarks_print() -> None:
    stored = ROOT / "benchmarks/results/cohort.json"
    command = [sys.executable, str(ROOT / "benchmarks/cohort.py"), "--table", str(stored)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert printed in (ROOT / "docs/learners.md").read_text()
    command = [sys.executable, str(ROOT / "experiments/accuracy.py"), "--table"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert printed in (ROOT / "docs/learners.md").read_text()
