"""Dates as conversations write them: a session's date, the dates a question names, words that tell time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, date

_MONTHS = {
    name: number
    for number, names in enumerate(
        "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sep sept|october oct|"
        "november nov|december dec".split("|"),
        start=1,
    )
    for name in names.split()
}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_DAY_MONTH = re.compile(
    rf"\b(?:(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?({_MONTH})\b(?:,?\s+(\d{{4}}))?", re.IGNORECASE
)
_MONTH_DAY = re.compile(rf"\b({_MONTH})\s+(\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(\d{{4}}))?", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:19|20)\d{2}\b")
_TEMPORAL = re.compile(
    rf"\b(?:yesterday|today|tonight|tomorrow|recently|ago|last|next|since|week(?:end)?s?|months?|years?|days?|{_MONTH}|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:19|20)\d{2})\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|dozen|once|twice|couple)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class When:
    """A calendar date as far as a text gives it; None for what it leaves open."""

    year: int | None = None
    month: int | None = None
    day: int | None = None


def find_dates(text: str) -> list[When]:
    """The dates a text names, in order of their form: ISO, "May 8, 2023", "8 May 2023", "May 2023", "May", "2023".

    A lower-case "may" or "march" is a verb, not a month, unless a day or a year stands beside it.
    """
    found: list[When] = []
    for y, m, d in _ISO.findall(text):
        if 1 <= int(m) <= 12:
            found.append(When(int(y), int(m), int(d)))
    rest = _ISO.sub(" ", text)
    for month, day, year in _MONTH_DAY.findall(rest):
        found.append(When(int(year) if year else None, _MONTHS[month.lower()], int(day)))
    rest = _MONTH_DAY.sub(" ", rest)
    for day, month, year in _DAY_MONTH.findall(rest):
        if day or year or month[0].isupper():
            found.append(When(int(year) if year else None, _MONTHS[month.lower()], int(day) if day else None))
    rest = _DAY_MONTH.sub(" ", rest)
    found += [When(int(year)) for year in _YEAR.findall(rest)]
    return found


def parse_date(text: str | None) -> date | None:
    """The first complete calendar date in a text; None where there is none or it does not exist."""
    for when in find_dates(text or ""):
        if when.year and when.month and when.day:
            try:
                return date(when.year, when.month, when.day)
            except ValueError:
                continue
    return None


def days_apart(when: When, day: date) -> float:
    """Days from a session's day to the nearest day that `when` may mean; 0 inside it."""
    years = (when.year,) if when.year else range(max(MINYEAR, day.year - 1), min(MAXYEAR, day.year + 1) + 1)
    return min(_gap(year, when, day) for year in years)


def _gap(year: int, when: When, day: date) -> float:
    first = date(year, when.month or 1, min(when.day or 1, 28))
    if when.day:
        return abs((day - first).days + min(when.day, 28) - when.day)
    last_month = when.month or 12
    last = date(year, last_month, 28)
    return max((first - day).days, (day - last).days - 3, 0)


def has_temporal_words(text: str) -> bool:
    """Whether a text says when: a weekday, a month, a year, "last week", "two days ago"."""
    return _TEMPORAL.search(text) is not None


def has_number(text: str) -> bool:
    """Whether a text holds a digit or a small number word."""
    return _NUMBER.search(text) is not None
