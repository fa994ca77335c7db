"""What all presentations share: tables without frames, lines that wrap softly, sizes and shares for people."""

from rich.console import Console
from rich.table import Table

from ..forgetting.guarantee import MEANINGS, NAMES, GuaranteeClass


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    found = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        found.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return found


def say(out: Console, text: str) -> None:
    out.print(text, markup=False, highlight=False, soft_wrap=True)


def promise(out: Console, grade: GuaranteeClass, reason: str, conditions: tuple[str, ...]) -> None:
    say(out, f"Guarantee {grade} ({NAMES[grade]}): {MEANINGS[grade]}.")
    say(out, f"  Because: {reason}.")
    for condition in conditions:
        say(out, f"  But: {condition}.")


def size(count: int) -> str:
    """Bytes for people."""
    value = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError


def part(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"
