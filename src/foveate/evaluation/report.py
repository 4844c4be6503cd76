"""Markdown tables from result rows. Query-aware and query-agnostic methods are never ranked together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from foveate.core.errors import ConfigError
from foveate.evaluation.records import Budget
from foveate.evaluation.results import Row
from foveate.metrics.statistics import EXACT_LIMIT, holm, paired_bootstrap, sign_flip

Cell = Callable[[Row], str]
FEW_CLUSTERS = "Intervals: 95 %, conversations resampled (with ten or fewer of them they cover less than they say)."


def percent(value: float | None) -> str:
    """A share as a percentage with one decimal; a dash where nothing was measured."""
    return "-" if value is None else f"{100 * value:.1f}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with padded columns: the first to the left, the others to the right."""
    lines = [list(header), *map(list, rows)]
    widths = [max(3, *(len(line[i]) for line in lines)) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        first = cells[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        return f"| {' | '.join([first, *rest])} |"

    rule = f"|{'|'.join(['-' * (widths[0] + 2), *('-' * (width + 1) + ':' for width in widths[1:])])}|"
    return "\n".join([line(lines[0]), rule, *(line(cells) for cells in lines[1:])])


def by_method(rows: Sequence[Row]) -> dict[str, dict[Budget, Row]]:
    """Rows by method and budget, methods in order of first appearance."""
    found: dict[str, dict[Budget, Row]] = {}
    for row in rows:
        found.setdefault(row["method"], {})[row["budget"]] = row
    return found


def budgets_of(rows: Sequence[Row]) -> list[int]:
    """The token budgets in the rows, ascending; "full" is not one of them."""
    return sorted({row["budget"] for row in rows if isinstance(row["budget"], int)})


def _at(methods: Mapping[Budget, Row], budget: Budget) -> Row | None:
    return methods.get(budget, methods.get("full"))


def _mean_erb(methods: Mapping[Budget, Row]) -> float:
    values = [row["metrics"]["erb"] or 0.0 for row in methods.values()]
    return sum(values) / len(values)


def _grid(rows: Sequence[Row], cell: Cell, first: str = "method") -> str:
    budgets: Sequence[Budget] = budgets_of(rows) or ["full"]
    ranked = sorted(by_method(rows).items(), key=lambda item: -_mean_erb(item[1]))
    body: list[list[str]] = []
    for name, methods in ranked:
        found = [_at(methods, budget) for budget in budgets]
        label = f"{name} *" if next(iter(methods.values())).get("label_leak") else name
        body.append([label, *("-" if row is None else cell(row) for row in found)])
    return table([first, *map(str, budgets)], body)


def _erb(row: Row) -> str:
    bounds = row["ci"]["cluster"]["erb"]
    point = percent(row["metrics"]["erb"])
    return point if bounds is None else f"{point} [{percent(bounds[0])}, {percent(bounds[1])}]"


def _parts(row: Row) -> str:
    m = row["metrics"]
    return " / ".join(percent(m[name]) for name in ("erb_all", "erb_any", "coverage", "erb_5"))


def _answers(row: Row) -> str:
    m = row["metrics"]
    return " / ".join(percent(m[name]) for name in ("asc", "asc_stem", "asc_rel"))


def _cost(row: Row) -> str:
    m = row["metrics"]
    return f"{m['tokens']:.0f} / {percent(m['r_pooled'])} / {1000 * m['lat_p50']:.1f} / {1000 * m['lat_p95']:.1f}"


def split_tables(rows: Sequence[Row], cell: Cell, first: str = "method") -> str:
    """One grid for the methods that see the question and one for those that do not."""
    aware = [row for row in rows if row["q_aware"]]
    blind = [row for row in rows if not row["q_aware"]]
    parts: list[str] = []
    for title, part in (("Query-aware", aware), ("Query-agnostic", blind)):
        if part:
            parts.append(f"**{title}**\n\n{_grid(part, cell, first)}")
    return "\n\n".join(parts)


def category_table(rows: Sequence[Row], budget: Budget, names: Mapping[str, str]) -> str:
    """ERB of every category at one budget, all methods; categories in order of their names."""
    at = [row for row in (_at(methods, budget) for methods in by_method(rows).values()) if row is not None]
    at.sort(key=lambda row: (not row["q_aware"], -(row["metrics"]["erb"] or 0.0)))
    categories = sorted({category for row in at for category in row["metrics"]["erb_by_category"]})
    header = ["method", *(f"{c} {names[c]}" if names.get(c, c) != c else c or "all" for c in categories)]
    body = [[row["method"], *(percent(row["metrics"]["erb_by_category"].get(c)) for c in categories)] for row in at]
    return table(header, body)


def compare(first: Row, second: Row) -> tuple[float, float, float, float | None]:
    """Difference of two rows' ERB on the same conversations: point, interval, and the exact sign-flip p.

    p is None where there are more conversations than an exact test can take.

    Raises:
        ConfigError: the rows do not cover the same questions.
    """
    ours, theirs = first["clusters"], second["clusters"]
    if {c: n for c, (n, _) in ours.items()} != {c: n for c, (n, _) in theirs.items()}:
        raise ConfigError(
            f"{first['method']} and {second['method']} were not measured on the same questions: evaluate both again"
        )
    counts = [n for n, _ in ours.values()]
    a = [total for _, total in ours.values()]
    b = [theirs[name][1] for name in ours]
    bounds = paired_bootstrap(a, b, counts)
    deltas = [(x - y) / n for x, y, n in zip(a, b, counts, strict=True)]
    p = sign_flip(deltas) if len(deltas) <= EXACT_LIMIT else None
    return bounds.point, bounds.low, bounds.high, p


def check_baseline(baseline: str, methods: Sequence[str]) -> None:
    """Raises ConfigError where the method to compare with is not among those evaluated."""
    if baseline not in methods:
        raise ConfigError(f"--against {baseline}: not among the methods evaluated; choose from {', '.join(methods)}")


def paired_table(rows: Sequence[Row], baseline: str) -> str:
    """Every other method against a baseline: difference in points, its interval, and p adjusted across budgets (Holm).

    Raises:
        ConfigError: the baseline is not among the rows.
    """
    methods = by_method(rows)
    check_baseline(baseline, list(methods))
    budgets = [budget for budget in budgets_of(rows) if _at(methods[baseline], budget) is not None]
    body: list[list[str]] = []
    for name, found in methods.items():
        pairs = [(budget, found[budget], _at(methods[baseline], budget)) for budget in budgets if budget in found]
        results = [(budget, compare(a, b)) for budget, a, b in pairs if b is not None and a["clusters"]]
        if name != baseline and results:
            body.append([name, *_differences(results, budgets)])
    return table([f"minus {baseline}", *map(str, budgets)], body)


def _differences(
    results: Sequence[tuple[Budget, tuple[float, float, float, float | None]]], budgets: Sequence[Budget]
) -> list[str]:
    tested = [p for _, (_, _, _, p) in results if p is not None]
    adjusted = iter(holm(tested))
    cells: dict[Budget, str] = {}
    for budget, (point, low, high, p) in results:
        tail = "" if p is None else f" p={next(adjusted):.3f}"
        cells[budget] = f"{100 * point:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]{tail}"
    return [cells.get(budget, "-") for budget in budgets]


def markdown(
    rows: Sequence[Row], *, names: Mapping[str, str], against: str | None = None, category_budget: int | None = None
) -> str:
    """The whole report of one evaluation: recall, its variants, categories, paired differences, answers, cost.

    Args:
        rows: of one corpus and split.
        names: category to readable name.
        against: the method that the others are compared with; None leaves that table out.
        category_budget: the budget of the category table; None for the one nearest above 512.

    Raises:
        ConfigError: no row, or `against` is not among them.
    """
    if not rows:
        raise ConfigError("there is no result row to report: evaluate a method first")
    head = rows[0]
    budgets = budgets_of(rows)
    large = [budget for budget in budgets if budget >= 512]
    nearest: Sequence[Budget] = [*large, *budgets[-1:], "full"]
    at = category_budget or nearest[0]
    facts = (
        f"split {head['split']['name']}, {head['conversations']} conversations, {head['n']} questions "
        f"({head['n_evidence']} pooled ones with evidence), budgets in tokens of {head['tokenizer_id']}, "
        f"render {head['render']}, data {head['data_sha'][:12]}, badge `ours`"
    )
    leak = "\n\n\\* sees the gold evidence: a ceiling, no method." if any(row.get("label_leak") for row in rows) else ""
    parts = [
        f"# {head['dataset']}: evidence kept under a token budget\n\n{facts}.",
        f"## ERB in %, pooled categories\n\n{split_tables(rows, _erb)}\n\n{FEW_CLUSTERS}{leak}",
        f"## All / any / coverage / category 5 in %\n\n{split_tables(rows, _parts)}",
        f"## ERB by category at {at} tokens\n\n{category_table(rows, at, names)}",
    ]
    if against is not None:
        note = "Points of ERB, 95 % interval on the same drawn conversations, exact sign-flip p, Holm over the budgets."
        parts.append(f"## Against {against}\n\n{paired_table(rows, against)}\n\n{note}")
    if any(row["metrics"]["asc"] is not None for row in rows):
        title = "Answer string in the context: strict / stemmed / strict relative to the whole history, in %"
        parts.append(f"## {title}\n\n{split_tables(rows, _answers)}")
    parts.append(f"## Tokens / share of the history in % / p50 ms / p95 ms\n\n{split_tables(rows, _cost)}")
    violations = sum(row["metrics"]["budget_violations"] for row in rows)
    parts.append(f"Contexts over their budget: {violations}.")
    return "\n\n".join(parts) + "\n"


def plot_points(rows: Sequence[Row]) -> dict[str, list[tuple[int, float, float, float]]]:
    """Per method: budget, ERB, low, high in %, ascending by budget; a method measured only in full is left out."""
    found: dict[str, list[tuple[int, float, float, float]]] = {}
    for name, methods in by_method(rows).items():
        points = [_point(budget, row) for budget, row in methods.items() if isinstance(budget, int)]
        if points:
            found[name] = sorted(points)
    return found


def _point(budget: int, row: Row) -> tuple[int, float, float, float]:
    erb: Any = row["metrics"]["erb"] or 0.0
    low, high = row["ci"]["cluster"]["erb"] or (erb, erb)
    return budget, 100 * erb, 100 * low, 100 * high
