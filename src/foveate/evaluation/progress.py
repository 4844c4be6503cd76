"""How far an evaluation is and how long it will take: a bar on a terminal, plain lines otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

LINE_EVERY = 10.0


class Progress(Protocol):
    """Told of each step done."""

    def start(self, what: str) -> None:
        """What is worked on now."""
        ...

    def advance(self, *, reused: bool = False) -> None:
        """One step is done; `reused` if it cost nothing."""
        ...


class Lines:
    """Plain lines on stderr, at most one in `LINE_EVERY` seconds, with the time left from the steps not reused."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._worked = 0
        self._what = ""
        self._start = self._said = time.monotonic()

    def start(self, what: str) -> None:
        self._what = what

    def advance(self, *, reused: bool = False) -> None:
        self._done += 1
        self._worked += not reused
        now = time.monotonic()
        if now - self._said >= LINE_EVERY or (self._done == self._total and self._worked):
            self._said = now
            print(f"{self._done}/{self._total} {self._what}, {self._left(now)}", file=sys.stderr, flush=True)

    def _left(self, now: float) -> str:
        if not self._worked:
            return "reused"
        left = (now - self._start) / self._worked * (self._total - self._done)
        return f"{now - self._start:.0f} s, about {left:.0f} s left"


class RichBar:
    """A bar of rich on stderr, with elapsed and remaining time."""

    def __init__(self, bar: Bar, total: int) -> None:
        self._bar = bar
        self._task = bar.add_task("evaluating", total=total)

    def start(self, what: str) -> None:
        self._bar.update(self._task, description=what)

    def advance(self, *, reused: bool = False) -> None:
        self._bar.advance(self._task)


@contextmanager
def progress(total: int) -> Iterator[Progress]:
    """A rich bar where stderr is a terminal, else `Lines`."""
    if not sys.stderr.isatty():
        yield Lines(total)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    text = TextColumn("{task.description}")
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        yield RichBar(bar, total)
