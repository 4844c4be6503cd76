"""Plots: ERB over the token budget with bands and over budget rules' mean tokens, and reliability per tier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    figure = _figure(7.6 * len(panels))
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, (title, part) in zip(axes, panels, strict=True):
        _draw(axis, title, part)
    axes[0].set_ylabel("evidence kept, ERB in % (pooled categories)")
    head = rows[0]
    figure.suptitle(f"{head['dataset']}, split {head['split']['name']}: evidence kept under a budget", fontsize=14)
    _save(figure, path)


def save_spending_plot(
    points: Mapping[str, Sequence[tuple[float, float]]], title: str, tokenizer: str, path: Path
) -> None:
    """Draw recall in % over mean tokens, a line a budget rule, and save the picture.

    Args:
        points: rule to (mean tokens, recall), ascending; "fixed" is drawn black, "ceiling" as seeing the labels.
        title: above the picture.
        tokenizer: what tokens are counted with.
        path: the picture.

    Raises:
        ConfigError: the file's ending is no picture format offered.
        MissingExtraError: matplotlib is not installed.
    """
    check_name(path)
    figure = _figure(9.2)
    axis = figure.subplots()
    others = [name for name in points if name not in ("fixed", "ceiling")]
    for number, name in enumerate(["fixed", *others, "ceiling"]):
        tokens, recall = zip(*points[name], strict=True)
        style: dict[str, Any] = {"color": COLOURS[number % 6], "marker": MARKERS[number % 8], "linestyle": "-"}
        match name:
            case "fixed":
                style = {"color": "#000000", "marker": "", "linestyle": "-"}
            case "ceiling":
                style = {"color": LEAK_COLOUR, "marker": "", "linestyle": ":"}
            case _ if number > 6:
                style["linestyle"] = "--"
        label = "ceiling (sees the labels)" if name == "ceiling" else name
        axis.plot(tokens, recall, linewidth=1.8, markersize=5, label=label, **style)
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks := [64, 128, 256, 512, 1024, 2048], [str(tick) for tick in ticks])
    axis.minorticks_off()
    axis.set_xlabel(f"mean rendered tokens ({tokenizer})")
    axis.set_ylabel("evidence kept, ERB in % (pooled categories)")
    axis.set_title(title)
    axis.grid(color="#dddddd", linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9, handlelength=3.5)
    _save(figure, path)


def save_reliability_plot(points: Mapping[str, Sequence[tuple[float, float]]], title: str, path: Path) -> None:
    """Draw realised over predicted usefulness, a line a tier, and save the picture.

    Both axes are logarithmic above 0.001 and straight below, since most turns are hardly ever needed.

    Args:
        points: tier to (predicted, realised) by bin, ascending.
        title: above the picture.
        path: the picture.

    Raises:
        ConfigError: the file's ending is no picture format offered.
        MissingExtraError: matplotlib is not installed.
    """
    check_name(path)
    figure = _figure(7.6)
    axis = figure.subplots()
    diagonal = [0.0, *(10 ** (k / 10) for k in range(-30, 1))]
    axis.plot(diagonal, diagonal, color=LEAK_COLOUR, linestyle=":", linewidth=1.4, label="as predicted")
    for number, (tier, line) in enumerate(points.items()):
        predicted, realised = zip(*line, strict=True)
        style: dict[str, Any] = {"color": COLOURS[number], "marker": MARKERS[number]}
        axis.plot(predicted, realised, linewidth=1.8, markersize=5, label=tier, **style)
    axis.set_xscale("symlog", linthresh=1e-3)
    axis.set_yscale("symlog", linthresh=1e-3)
    axis.set_xlim(0, 1.1)
    axis.set_ylim(0, 1.1)
    axis.set_xlabel("value the packer read (of dropped turns: given up)")
    axis.set_ylabel("share that was evidence and readable (of dropped turns: lost)")
    axis.set_title(title)
    axis.grid(color="#dddddd", linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(loc="upper left", frameon=False, fontsize=9, handlelength=3.5)
    _save(figure, path)


def _figure(width: float) -> Any:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "eval") from error
    figure = Figure(figsize=(width, 6.0), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _save(figure: Any, path: Path) -> None:
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
