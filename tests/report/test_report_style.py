"""The page's look: contrast by the formula of WCAG 2, and a real browser where one is installed."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fedforget.report.experiment import Results, experiment_page
from fedforget.report.style import STYLE

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --hide-scrollbars --enable-logging=stderr --log-level=0"
)


def colours(dark: bool) -> dict[str, str]:
    light, _, rest = STYLE.partition("@media (prefers-color-scheme: dark)")
    found = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", light))
    if dark:
        found |= dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", rest.partition("} }")[0]))
    return found


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_what_the_formula_says() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_can_be_read(dark: bool) -> None:
    found = colours(dark)
    for words in ("ink", "soft", "link", "good", "bad"):
        assert contrast(found[words], found["paper"]) >= 4.5, words
    assert contrast(found["ink"], found["raised"]) >= 4.5
    for behind in ("plain", "again", "calibrated", "clean"):
        assert contrast(found["on"], found[behind]) >= 4.5, behind
    assert contrast(found["bar"], found["empty"]) >= 3, "a bar is seen on what is left of it"


def test_the_sheet_loads_nothing() -> None:
    assert "url(" not in STYLE
    assert "@import" not in STYLE
    assert "@font-face" not in STYLE


# --- in a browser ---------------------------------------------------------------------------------------------------

PROBE = """<script>
const out = [...document.querySelectorAll('main *')].filter(e => !e.closest('.wide') &&
  e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + ' ' + e.textContent.slice(0, 30));
const boxes = [...document.querySelectorAll('.wide')].filter(e => e.getBoundingClientRect().right > innerWidth + 1);
document.documentElement.setAttribute('data-found', JSON.stringify({width: innerWidth, out: out, boxes: boxes.length,
  scroll: document.documentElement.scrollWidth, ink: getComputedStyle(document.body).color}));
</script>"""


def seen(folder: Path, name: str, text: str, width: int, dark: bool) -> tuple[str, str]:
    """The page as the browser has it after loading, and what it complained of."""
    page = folder / f"{name}.html"
    page.write_text(text)
    theme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    profile = f"--user-data-dir={folder / f'profile-{name}'}"
    command = [
        str(CHROMIUM),
        *FLAGS.split(),
        profile,
        f"--window-size={width},900",
        *theme,
        "--dump-dom",
        page.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


def long_page() -> str:
    wide = " | ".join(f"column {i}" for i in range(20))
    rule = "|".join(["---"] * 20)
    row = " | ".join(["a-rather-long-word-without-a-place-to-break"] * 20)
    values = {"x.json": {"key": "y" * 300, "rows": [{"digest": "f" * 64, "name": "z" * 90}] * 3}}
    picture = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 2000 10" width="2000"><rect width="2000"/></svg>'
    return experiment_page(
        Results("W" * 80, {"a.md": f"# {'t' * 80}\n\n| {wide} |\n|{rule}|\n| {row} |\n"}, {"p.svg": picture}, values)
    )


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_cut_and_nothing_complained_of(tmp_path: Path, width: int, dark: bool) -> None:
    import json
    from html import unescape

    from test_report_workspace import settings

    from fedforget.report import workspace_page
    from fedforget.workspace import Workspace
    from fedforget.workspace.facts import facts
    from fedforget.workspace.progress import silent

    with Workspace.init(tmp_path / ("W" * 60), settings()) as space:
        space.train()
        space.forget([space.state().plan.clients[0]])
        pages = {"workspace": workspace_page(facts(space, silent)), "experiment": long_page()}
    for name, text in pages.items():
        _, complaints = seen(tmp_path, name, text, width, dark)
        assert complaints == ""
        open_for_script = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
        opened = open_for_script.replace("<details>", "<details open>").replace("</body>", PROBE + "</body>")
        dom, _ = seen(tmp_path, f"{name}-probe", opened, width, dark)
        found = json.loads(unescape(re.search(r'data-found="([^"]*)"', dom)[1]))  # type: ignore[index]
        assert found["out"] == []
        assert found["boxes"] == 0
        assert found["scroll"] <= found["width"]
        ink = tuple(int(x) for x in re.findall(r"\d+", found["ink"])[:3])
        assert (sum(ink) > 380) is dark
