"""The ablation table: what each part is worth, as paired differences from the full model over the same conversations.

Rows are those of `foveate evaluate` for single P1 folds, their methods named VARIANT.sSEED. A difference is between the
seeds that both have; the sums of a conversation are averaged over them, so an interval is over conversations alone and
the seeds' deviation stands apart. Runs that lack a fold are left out and named.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from foveate.core.errors import DataError, MissingExtraError
from foveate.evaluation.report import percent, table
from foveate.evaluation.results import Row
from foveate.metrics.statistics import Interval, cluster_bootstrap, paired_bootstrap

MULTI_HOP, MULTI_HOP_AT = "1", 512
"""LoCoMo's category of questions with evidence in several places, and the budget it is shown at."""

FARTHEST = 0.15
"""The largest difference that the plot draws to scale."""

SumsOf = Mapping[str, tuple[int, float]]
"""Conversation -> number of questions, sum of their scores."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One variant at one budget.

    Attributes:
        mean: ERB over the pooled questions, mean over seeds.
        deviation: standard deviation of that over seeds; None for a single seed.
        runs: the sums by seed, all over the same conversations.
    """

    mean: float
    deviation: float | None
    runs: Mapping[int, SumsOf]

    def sums(self, seeds: Collection[int] | None = None) -> SumsOf:
        """Per conversation, the mean over these seeds, or over all."""
        runs = [run for seed, run in self.runs.items() if seeds is None or seed in seeds]
        return {name: (runs[0][name][0], fmean(run[name][1] for run in runs)) for name in runs[0]}


def split_name(method: str) -> tuple[str, int]:
    """Variant and seed of a method's name.

    Raises:
        DataError: the name is of another form.
    """
    variant, dot, seed = method.rpartition(".s")
    if not dot or not seed.isdecimal():
        raise DataError(f"method {method!r} is no ablation run: its name must be VARIANT.sSEED")
    return variant, int(seed)


def unfinished(rows: Sequence[Row]) -> list[str]:
    """The methods that lack a conversation or a budget that another method has."""
    found: dict[str, set[tuple[int, str]]] = {}
    for row in rows:
        found.setdefault(row["method"], set()).update((row["budget"], name) for name in row["clusters"])
    everything = set[tuple[int, str]]().union(*found.values())
    return [method for method, parts in found.items() if parts != everything]


def cells(rows: Sequence[Row]) -> dict[str, dict[int, Cell]]:
    """Variant -> budget -> cell, in the order of the rows.

    Raises:
        DataError: the seeds of a variant were not all measured on the same conversations.
    """
    found: dict[str, dict[int, dict[int, dict[str, tuple[int, float]]]]] = {}
    for row in rows:
        variant, seed = split_name(row["method"])
        runs = found.setdefault(variant, {}).setdefault(row["budget"], {})
        runs.setdefault(seed, {}).update({name: (n, total) for name, (n, total) in row["clusters"].items()})
    return {
        variant: {budget: _cell(variant, runs) for budget, runs in budgets.items()}
        for variant, budgets in found.items()
    }


def _cell(variant: str, runs: Mapping[int, SumsOf]) -> Cell:
    ordered = {seed: dict(sorted(run.items())) for seed, run in sorted(runs.items())}
    if len({tuple(run) for run in ordered.values()}) > 1:
        raise DataError(f"{variant}: its seeds were measured on different conversations; run what is missing first")
    means = [sum(t for _, t in run.values()) / sum(n for n, _ in run.values()) for run in ordered.values()]
    return Cell(fmean(means), stdev(means) if len(means) > 1 else None, ordered)


def difference(cell: Cell, base: Cell) -> Interval:
    """Variant minus base, paired over conversations and over the seeds that both have, 95 %.

    Raises:
        DataError: they were measured on different conversations, or with no common seed.
    """
    seeds = cell.runs.keys() & base.runs.keys()
    if not seeds:
        raise DataError("a variant and the full model have no seed in common: run one with the seeds of the other")
    ours, theirs = cell.sums(seeds), base.sums(seeds)
    if list(ours) != list(theirs):
        raise DataError("a variant and the full model were measured on different conversations")
    first, second, counts = zip(*((ours[name][1], theirs[name][1], ours[name][0]) for name in ours), strict=True)
    return paired_bootstrap(first, second, counts)


def category_mean(rows: Sequence[Row], variant: str, budget: int, category: str) -> float | None:
    """ERB of one category, mean over the variant's seeds and folds; None where no row has it."""
    values = [
        row["metrics"]["erb_by_category"].get(category)
        for row in rows
        if split_name(row["method"])[0] == variant and row["budget"] == budget
    ]
    present = [value for value in values if value is not None]
    return fmean(present) if present else None


def markdown(rows: Sequence[Row], what: Mapping[str, str], base: str = "full") -> str:
    """The report.

    Args:
        rows: see the module.
        what: variant -> what it changes, in the order of the table.
        base: the variant that the others are compared with.
    """
    left_out = unfinished(rows)
    rows = [row for row in rows if row["method"] not in left_out]
    found = cells(rows)
    if base not in found:
        raise DataError(f"no row of the variant {base!r}, which the others are compared with: run it first")
    budgets = sorted(found[base])
    shown = list(dict.fromkeys(name for name in (base, *what) if name in found))
    hard = min(budgets, key=lambda budget: (abs(budget - MULTI_HOP_AT), budget))
    lines = [
        [name, what.get(name, "everything on"), str(len(found[name][budgets[0]].runs))]
        + [_shown(found[name][b]) for b in budgets]
        + [percent(category_mean(rows, name, hard, MULTI_HOP))]
        for name in shown
    ]
    deltas = [
        [name, *(_signed(difference(found[name][b], found[base][b])) for b in budgets)]
        for name in shown
        if name != base
    ]
    heads = [str(b) for b in budgets]
    conversations = ", ".join(found[base][budgets[0]].sums())
    missing = f"\nNot complete, left out: {', '.join(left_out)}.\n" if left_out else ""
    whole = cluster_bootstrap(*_sums(found[base][budgets[0]]))
    return f"""# Ablations on LoCoMo, P1

ERB in % (categories 1-4 pooled) at each budget of rendered tokens, mean over seeds ± their standard deviation.
Test conversations: {conversations}.
With so few conversations intervals cover less than they say: that of `{base}` at {budgets[0]} tokens is
[{100 * whole.low:.1f}, {100 * whole.high:.1f}].

{table(["variant", "what is changed", "seeds", *heads, f"multi-hop, {hard}"], lines)}
{missing}
## Difference from `{base}`, in points

Paired over conversations, 95 % interval; **bold** where it leaves 0 out.

{table(["variant", *heads], deltas)}
"""


def _sums(cell: Cell) -> tuple[list[float], list[int]]:
    return [total for _, total in cell.sums().values()], [n for n, _ in cell.sums().values()]


def _shown(cell: Cell) -> str:
    return f"{100 * cell.mean:.1f}" + ("" if cell.deviation is None else f" ± {100 * cell.deviation:.1f}")


def _signed(found: Interval) -> str:
    text = f"{100 * found.point:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"
    return f"**{text}**" if found.low > 0 or found.high < 0 else text


def save_plot(rows: Sequence[Row], path: Path, base: str = "full") -> None:
    """A panel a budget: each variant's difference from the base with its interval.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    left_out = unfinished(rows)
    found = cells([row for row in rows if row["method"] not in left_out])
    if base not in found:
        raise DataError(f"no row of the variant {base!r}, which the others are compared with: run it first")
    names = [name for name in found if name != base]
    budgets = sorted(found[base])
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "eval") from error
    figure = Figure(figsize=(3.0 * len(budgets) + 2.5, 0.34 * len(names) + 1.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, len(budgets), sharey=True, squeeze=False)[0]
    deltas = {b: [difference(found[name][b], found[base][b]) for name in names] for b in budgets}
    near = [each for column in deltas.values() for each in column if abs(each.point) <= FARTHEST]
    reach = 105 * max((max(abs(each.low), abs(each.high)) for each in near), default=FARTHEST)
    for axis, budget in zip(axes, budgets, strict=True):
        _panel(axis, deltas[budget], budget, reach)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    figure.suptitle(f"ERB against `{base}`, in points (95 % over conversations)", fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)


def _panel(axis: Any, found: Sequence[Interval], budget: int, reach: float) -> None:
    """What lies beyond `FARTHEST` is written at the edge, so that it does not squeeze the others."""
    axis.set_xlim(-reach, reach)
    for place, each in enumerate(found):
        if abs(each.point) > FARTHEST:
            side, arrow = (-1, "\u2190 ") if each.point < 0 else (1, "\u2192 ")
            where = {"ha": "left" if side < 0 else "right", "va": "center", "fontsize": 9, "color": "#D55E00"}
            axis.text(0.97 * side * reach, place, f"{arrow}{100 * each.point:+.0f}", **where)
            continue
        clear = each.low > 0 or each.high < 0
        colour = "#888888" if not clear else "#009E73" if each.point > 0 else "#D55E00"
        axis.plot([100 * each.low, 100 * each.high], [place, place], color=colour, linewidth=2)
        axis.plot([100 * each.point], [place], marker="o", color=colour)
    axis.axvline(0, color="black", linewidth=0.8)
    axis.set_title(f"{budget} tokens", fontsize=10)
    axis.grid(axis="x", alpha=0.3)
