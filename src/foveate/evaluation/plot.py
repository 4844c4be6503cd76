"""The budget-recall plot: ERB over the token budget with confidence bands, as PNG or SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foveate.core.errors import ConfigError, MissingExtraError
from foveate.evaluation.report import plot_points
from foveate.evaluation.results import Row

# Okabe and Ito's palette: told apart with any kind of colour vision; markers and dashes tell the rest.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D1F")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LEAK_COLOUR = "#888888"
DASHES = ("-", "--", "-.")
SUFFIXES = (".png", ".svg", ".pdf")


def check_name(path: Path) -> None:
    """Raises ConfigError where the file's ending is no picture format that is offered."""
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"--plot {path}: no picture format; give a name that ends in {', '.join(SUFFIXES)}")


def save_plot(rows: Sequence[Row], path: Path) -> None:
    """Draw the query-aware and the query-agnostic methods side by side and save the picture.

    Raises:
        ConfigError: the file's ending is no picture format offered, or no row has a token budget.
        MissingExtraError: matplotlib is not installed.
    """
    check_name(path)
    panels = [
        (title, part)
        for title, aware in (("sees the question", True), ("does not see the question", False))
        if plot_points(part := [row for row in rows if row["q_aware"] is aware])
    ]
    if not panels:
        raise ConfigError("--plot needs at least one method measured at a token budget")
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "eval") from error
    figure = Figure(figsize=(7.6 * len(panels), 6.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, (title, part) in zip(axes, panels, strict=True):
        _draw(axis, title, part)
    axes[0].set_ylabel("evidence kept, ERB in % (pooled categories)")
    head = rows[0]
    figure.suptitle(f"{head['dataset']}, split {head['split']['name']}: evidence kept under a budget", fontsize=14)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)


def _draw(axis: Any, title: str, rows: Sequence[Row]) -> None:
    leaks = {row["method"] for row in rows if row.get("label_leak")}
    series = sorted(plot_points(rows).items(), key=lambda item: -item[1][-1][1])
    ticks = sorted({point[0] for _, points in series for point in points})
    series.sort(key=lambda item: item[0] in leaks)
    for number, (name, points) in enumerate(series):
        budgets, erb, low, high = zip(*points, strict=True)
        colour, dashes = COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]
        if name in leaks:
            colour, dashes = LEAK_COLOUR, ":"
        axis.fill_between(budgets, low, high, color=colour, alpha=0.10, linewidth=0)
        axis.plot(
            budgets,
            erb,
            color=colour,
            marker=MARKERS[number % len(MARKERS)],
            linestyle=dashes,
            linewidth=1.8,
            markersize=5,
            label=f"{name} (sees the labels)" if name in leaks else name,
        )
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks, [str(tick) for tick in ticks])
    axis.minorticks_off()
    axis.set_ylim(0, 101)
    axis.set_xlabel(f"budget in tokens ({rows[0]['tokenizer_id']}), bands: 95 % over conversations")
    axis.set_title(title)
    axis.grid(color="#dddddd", linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9, handlelength=3.5)
