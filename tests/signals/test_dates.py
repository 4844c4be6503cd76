"""Dates as conversations write them."""

from __future__ import annotations

from datetime import date

import pytest

from foveate.signals.dates import When, days_apart, find_dates, has_number, has_temporal_words, parse_date


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on 2023-05-08.", [When(2023, 5, 8)]),
        ("8 May 2023", [When(2023, 5, 8)]),
        ("May 8, 2023", [When(2023, 5, 8)]),
        ("may 8", [When(None, 5, 8)]),
        ("8th of may", [When(None, 5, 8)]),
        ("June 5th, 2022", [When(2022, 6, 5)]),
        ("1:56 pm on 8 May, 2023", [When(2023, 5, 8)]),
        ("in May 2023", [When(2023, 5, None)]),
        ("in may 2023", [When(2023, 5, None)]),
        ("last Sept", [When(None, 9, None)]),
        ("In May we met", [When(None, 5, None)]),
        ("You may march on.", []),
        ("back in 2022", [When(2022, None, None)]),
        ("room 3050, 12 people", []),
        ("mayhem in Juneau", []),
        ("", []),
    ],
)
def test_finds(text: str, expected: list[When]) -> None:
    assert find_dates(text) == expected


def test_finds_every_date_once() -> None:
    found = find_dates("Between 2023-01-02 and 3 June 2022, or May 8, 2023?")
    assert sorted(found, key=str) == sorted([When(2023, 1, 2), When(2022, 6, 3), When(2023, 5, 8)], key=str)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8 May 2023", date(2023, 5, 8)),
        ("May 8, 2023", date(2023, 5, 8)),
        ("2023-05-08", date(2023, 5, 8)),
        ("29 February 2024", date(2024, 2, 29)),
        ("29 February 2023", None),
        ("31 June 2023", None),
        ("2023-13-01", None),
        ("2023-02-31, I mean 2023-03-01", date(2023, 3, 1)),
        ("May 2023", None),
        ("8 May", None),
        ("", None),
        (None, None),
    ],
)
def test_parses_complete_dates_that_exist(text: str | None, expected: date | None) -> None:
    assert parse_date(text) == expected


@pytest.mark.parametrize(
    ("when", "day", "expected"),
    [
        (When(2023, 5, 8), date(2023, 5, 8), 0),
        (When(2023, 5, 8), date(2023, 5, 18), 10),
        (When(2023, 5, 8), date(2023, 4, 28), 10),
        (When(2023, 5, None), date(2023, 5, 31), 0),
        (When(2023, 5, None), date(2023, 4, 29), 2),
        (When(2023, None, None), date(2023, 12, 31), 0),
        (When(2022, None, None), date(2023, 1, 1), 1),
        (When(None, 1, 1), date(2023, 12, 31), 1),
        (When(None, 12, 28), date(2023, 1, 2), 5),
        (When(None, 5, None), date(2021, 5, 4), 0),
        (When(None, 1, 1), date(9999, 12, 30), 363),
        (When(None, 12, 28), date(1, 12, 29), 1),
    ],
)
def test_days_apart(when: When, day: date, expected: int) -> None:
    assert days_apart(when, day) == expected


@pytest.mark.parametrize(
    "text", ["2023-13-45", "2023-00-00", "0000-01-01", "May 45, 2023", "31 February 2023", "0 May"]
)
def test_dates_that_do_not_exist_do_no_harm(text: str) -> None:
    for when in find_dates(text):
        assert days_apart(when, date(2023, 5, 8)) >= 0


@pytest.mark.parametrize(
    "text", ["yesterday", "last week", "two days ago", "on Friday", "In May", "in 2022", "Weekends"]
)
def test_words_that_tell_time(text: str) -> None:
    assert has_temporal_words(text)


@pytest.mark.parametrize("text", ["I like tea", "weakened", "monkey", "2222222"])
def test_words_that_tell_no_time(text: str) -> None:
    assert not has_temporal_words(text)


def test_numbers() -> None:
    assert has_number("I have 3")
    assert has_number("Twice!")
    assert not has_number("often someone")
