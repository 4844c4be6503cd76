"""Relative dates for synthetic chats: what one says of an event, and the date that it means."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

from foveate.corpora.synthetic.bank import Tense

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class Moment:
    """When something happens, seen from a session.

    Attributes:
        phrase: what is said: "last Saturday".
        answer: what it means: "6 May 2023".
        months: the months it may fall in: "May 2023"; two where it cannot be told.
        day: the day itself where the phrase tells it.
    """

    phrase: str
    answer: str
    months: tuple[str, ...]
    day: date | None = None

    @property
    def month(self) -> str:
        """The month it falls in, "" where it cannot be told."""
        return self.months[0] if len(self.months) == 1 else ""


def day_text(day: date) -> str:
    """A date as corpora render it: "8 May 2023"."""
    return f"{day.day} {month_text(day)}"


def month_text(day: date) -> str:
    """A month as questions name it: "May 2023"."""
    return f"{MONTHS[day.month - 1]} {day.year}"


def distance_text(first: date, second: date) -> str:
    """The time between two days: "5 days", "about 3 weeks", "about 2 months"."""
    days = abs((second - first).days)
    if days < 14:
        return f"{days} day{'s' if days > 1 else ''}"
    if days < 60:
        return f"about {round(days / 7)} weeks"
    return f"about {round(days / 30.4)} months"


def draw(rng: Random, today: date, tense: Tense, *, since: bool = False) -> Moment:
    """A random relative date in a session of `today`, before it or (tense "future") after it.

    `since` leaves out what cannot follow that word ("three days ago").
    """
    if tense == "future":
        return _future(rng, today)
    return _past(rng, today, 6 if since else 8)


def _past(rng: Random, today: date, kinds: int) -> Moment:
    match rng.randrange(kinds):
        case 0:
            return _exact("yesterday", today - timedelta(days=1))
        case 1 | 2:
            back = rng.randint(2, 7)
            day = today - timedelta(days=back)
            return _exact(f"last {WEEKDAYS[day.weekday()]}", day)
        case 3:
            return _exact("the day before yesterday", today - timedelta(days=2))
        case 4:
            return _around("last week", f"the week before {day_text(today)}", today - timedelta(days=7), 6)
        case 5:
            before = today.replace(day=1) - timedelta(days=1)
            return Moment("last month", month_text(before), (month_text(before),))
        case 6:
            return _exact("three days ago", today - timedelta(days=3))
        case _:
            return _around("two weeks ago", f"two weeks before {day_text(today)}", today - timedelta(days=14), 2)


def _future(rng: Random, today: date) -> Moment:
    match rng.randrange(5):
        case 0:
            return _exact("tomorrow", today + timedelta(days=1))
        case 1 | 2:
            monday = today + timedelta(days=7 - today.weekday())
            day = monday + timedelta(days=rng.randrange(7))
            return _exact(f"next {WEEKDAYS[day.weekday()]}", day)
        case 3:
            return _around("in two weeks", f"two weeks after {day_text(today)}", today + timedelta(days=14), 2)
        case _:
            after = today.replace(day=1) + timedelta(days=32)
            return Moment("next month", month_text(after), (month_text(after),))


def _exact(phrase: str, day: date) -> Moment:
    return Moment(phrase, day_text(day), (month_text(day),), day)


def _around(phrase: str, answer: str, day: date, slack: int) -> Moment:
    ends = (month_text(day - timedelta(days=slack)), month_text(day + timedelta(days=slack)))
    return Moment(phrase, answer, tuple(dict.fromkeys(ends)))
