"""The plot of the allergy benchmark: how often the turn is FULL, by budget, a panel for each distractor count."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foveate.core.errors import ConfigError, MissingExtraError
from foveate.evaluation.allergy import BADGE, Budget, Row, pooled
from foveate.evaluation.plot import COLOURS, DASHES, MARKERS, check_name
from foveate.metrics.statistics import wilson


def save_plot(rows: Sequence[Row], path: Path) -> None:
    """Draw the panels side by side and save the picture.

    Raises:
        ConfigError: the file's ending is no picture format offered, or there is no row.
        MissingExtraError: matplotlib is not installed.
    """
    check_name(path)
    if not rows:
        raise ConfigError("--plot needs at least one budget that can hold the allergy turn")
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "eval") from error
    counts = sorted({row["distractors"] for row in rows})
    figure = Figure(figsize=(3.4 * len(counts) + 2.4, 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, len(counts), sharey=True, squeeze=False)[0]
    for axis, count in zip(axes, counts, strict=True):
        _draw(axis, rows, count)
    axes[0].set_ylabel("allergy turn FULL, %")
    axes[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9, handlelength=3.5)
    figure.suptitle(f"Allergy benchmark ({BADGE}): the turn that states it, by budget in tokens", fontsize=13)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)


def _draw(axis: Any, rows: Sequence[Row], count: int) -> None:
    budgets: list[Budget] = list(dict.fromkeys(row["budget"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    for number, method in enumerate(methods):
        points = [(place, *pooled(rows, method, budget, count)) for place, budget in enumerate(budgets)]
        shown = [(place, wilson(full, n)) for place, full, n in points if n]
        if not shown:
            continue
        colour, places = COLOURS[number % len(COLOURS)], [place for place, _ in shown]
        low, high = [100 * found.low for _, found in shown], [100 * found.high for _, found in shown]
        axis.fill_between(places, low, high, color=colour, alpha=0.12, linewidth=0)
        axis.plot(
            places,
            [100 * found.point for _, found in shown],
            color=colour,
            marker=MARKERS[number % len(MARKERS)],
            linestyle=DASHES[number % len(DASHES)],
            linewidth=1.8,
            markersize=5,
            label=method,
        )
    axis.set_xticks(range(len(budgets)), [str(budget) for budget in budgets])
    axis.set_ylim(-2, 102)
    axis.set_title(f"{count} distractor messages")
    axis.grid(color="#dddddd", linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
