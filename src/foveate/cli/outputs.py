"""What an evaluation writes: rows, tables and a plot, to the files that its command line names."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from foveate.core.files import write_atomically
from foveate.evaluation.plot import check_name
from foveate.evaluation.results import Row, add_rows, check_writable, read_rows, write_rows


def check_outputs(args: argparse.Namespace, *, add: bool = True) -> None:
    """Raises, before the work begins, what would keep its results from being written.

    Args:
        args: with the paths `out`, `report` and, where there is one, `plot`; None for what is not wanted.
        add: rows are added to what `out` holds already.

    Raises:
        ConfigError: the plot's name ends in no known format.
        DataError: a file cannot be written, or `out` holds no result rows.
    """
    plot: Path | None = vars(args).get("plot")
    if plot is not None:
        check_name(plot)
    for path in (args.out, args.report, plot):
        if path is not None:
            check_writable(path)
    if add and args.out is not None:
        read_rows(args.out)


def write_outputs(
    args: argparse.Namespace,
    text: str,
    rows: Sequence[Row],
    *,
    draw: Callable[[Path], None] | None = None,
    add: bool = True,
) -> None:
    """Print the tables, write what is wanted, and say on stderr where it lies; arguments as for `check_outputs`.

    Args:
        args: see `check_outputs`.
        text: the tables in Markdown.
        rows: in the form of `evaluation.results` where they are added.
        draw: saves the plot.
        add: rows are added to what `out` holds already; else they replace it.
    """
    print(text)
    plot: Path | None = vars(args).get("plot")
    if args.out is not None:
        (add_rows if add else write_rows)(args.out, rows)
    if args.report is not None:
        write_atomically(args.report, text)
    if plot is not None and draw is not None:
        draw(plot)
    for what, path in (("rows", args.out), ("tables", args.report), ("plot", plot)):
        if path is not None:
            print(f"{what}: {path}", file=sys.stderr)
