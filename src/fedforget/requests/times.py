"""Times: instants as text with one spelling, the legal month, and when to warn. Arithmetic only, no clock.

The month is a calendar month from the day of receipt (GDPR article 12(3)): the same day of the next month, or its last
day where that month is shorter.
"""

import calendar
import re
from datetime import UTC, datetime, timedelta

from ..errors import SettingError

WARNINGS = (7, 20, 27)  # days after receipt
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


def spell(when: datetime) -> str:
    """To the second, in UTC: `2026-03-04T05:06:07Z`; later is greater as text too."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def instant(text: object) -> datetime:
    if isinstance(text, str) and _INSTANT.fullmatch(text):
        try:
            return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        except ValueError:
            pass
    raise SettingError("time", text, "an instant like 2026-03-04T05:06:07Z")


def a_month_after(when: datetime) -> datetime:
    year, month = (when.year + 1, 1) if when.month == 12 else (when.year, when.month + 1)
    return when.replace(year=year, month=month, day=min(when.day, calendar.monthrange(year, month)[1]))


def next_warning(received: datetime, after: datetime) -> datetime:
    """The first warning later than `after`: on days 7, 20 and 27, at the deadline, and then every day."""
    deadline = a_month_after(received)
    for at in (*(received + timedelta(days=days) for days in WARNINGS), deadline):
        if at > after:
            return at
    return deadline + timedelta(days=(after - deadline).days + 1)


def warning(received: datetime, now: datetime) -> str:
    """What is to be said about the time left: nothing in the first week."""
    if now >= (deadline := a_month_after(received)):
        return f"overdue since {spell(deadline)}"
    days = (now - received).days
    if days < WARNINGS[0]:
        return ""
    return f"day {days} since receipt, {(deadline - now).days} days left"
