"""Budget rules against the best fixed budget of equal mean cost: rows, tables and the picture's points.

Equal cost is taken at what was really spent. A rule's mean rendered tokens over the compared questions lie between the
means of two neighbouring fixed budgets; giving each question the one or the other by a coin whose odds meet that mean
costs the same, and its expected recall is the straight line between theirs. That is what a rule is compared with.
Categories that stand apart are compared at their own mean cost.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from foveate.evaluation.budgets import Asked, Fits, Study, grid
from foveate.evaluation.cache import code_digest
from foveate.evaluation.report import FEW_CLUSTERS, percent, table
from foveate.evaluation.results import METRIC_VERSION, Row, RunFacts
from foveate.metrics.efficiency import percentile
from foveate.metrics.statistics import EXACT_LIMIT, cluster_bootstrap, holm, paired_bootstrap, sign_flip, spearman

SizeOf = Callable[[Asked], int]
MIDDLE = 512


@dataclass(frozen=True, slots=True)
class Spent:
    """What questions got under one way to give budgets.

    Attributes:
        tokens: mean rendered tokens.
        counts: questions by conversation.
        sums: their summed ERB.
    """

    tokens: float
    counts: tuple[int, ...]
    sums: tuple[float, ...]

    @property
    def erb(self) -> float:
        """Mean over questions."""
        return math.fsum(self.sums) / sum(self.counts)


@dataclass(frozen=True, slots=True)
class Versus:
    """A rule less the fixed budget of equal mean cost, in ERB.

    Attributes:
        fixed: ERB of the fixed budget.
        point, low, high: the difference and its 95 % interval, conversations resampled.
        p: exact sign-flip over conversations; None where there are too many.
    """

    fixed: float
    point: float
    low: float
    high: float
    p: float | None


def spent(asked: Sequence[Asked], size_of: SizeOf) -> Spent:
    """Totals by conversation, in order of first appearance."""
    counts: dict[str, int] = {}
    sums: dict[str, float] = {}
    for one in asked:
        counts[one.conversation] = counts.get(one.conversation, 0) + 1
        sums[one.conversation] = sums.get(one.conversation, 0.0) + one.points[size_of(one)][1]
    tokens = math.fsum(one.points[size_of(one)][0] for one in asked) / len(asked)
    return Spent(tokens, tuple(counts.values()), tuple(sums.values()))


def fixed_at(curve: Sequence[Spent], tokens: float) -> Spent:
    """The fixed budget whose mean cost is `tokens`, between two neighbours of the curve (ascending by tokens).

    Beyond the ends of the curve the end stands.
    """
    place = bisect_right([point.tokens for point in curve], tokens)
    if place == 0 or place == len(curve):
        return curve[min(place, len(curve) - 1)]
    below, above = curve[place - 1], curve[place]
    share = (tokens - below.tokens) / (above.tokens - below.tokens)
    mixed = tuple((1 - share) * a + share * b for a, b in zip(below.sums, above.sums, strict=True))
    return Spent(tokens, below.counts, mixed)


def versus(ours: Spent, curve: Sequence[Spent]) -> Versus:
    """The comparison at equal mean cost."""
    theirs = fixed_at(curve, ours.tokens)
    bounds = paired_bootstrap(ours.sums, theirs.sums, ours.counts)
    deltas = [(a - b) / n for a, b, n in zip(ours.sums, theirs.sums, ours.counts, strict=True)]
    p = sign_flip(deltas) if len(deltas) <= EXACT_LIMIT else None
    return Versus(theirs.erb, bounds.point, bounds.low, bounds.high, p)


def ceiling_at(asked: Sequence[Asked], sizes: Sequence[int], tokens: float) -> tuple[float, float]:
    """Mean tokens and ERB where each question gets, of these sizes, the one that labels say is best at one price.

    The price is the least at which the mean is within `tokens` (see `rules.budget` on why one price is optimal): no
    rule that gives these sizes and packs alike can do better at this mean, up to one question.
    """
    curves = [[one.points[size] for size in sizes] for one in asked]

    def at(price: float) -> tuple[float, float]:
        best = [max(curve, key=lambda point: (point[1] - price * point[0], -point[0])) for curve in curves]
        return fmean(point[0] for point in best), fmean(point[1] for point in best)

    low, high = 1e-9, 1.0
    if at(low)[0] <= tokens:
        return at(low)
    for _ in range(40):
        middle = math.sqrt(low * high)
        if at(middle)[0] > tokens:
            low = middle
        else:
            high = middle
    return at(high)


def least_budget(one: Asked, sizes: Sequence[int]) -> int:
    """The least of these fixed budgets that keeps all the evidence; twice the largest where none does."""
    return next((size for size in sizes if one.points[size][1] == 1.0), 2 * sizes[-1])


@dataclass(frozen=True, slots=True)
class Findings:
    """What a study found.

    Attributes:
        rows: result rows, rules and targets, then the fixed budgets, then the ceiling.
        signals: what a rule could go by -> rank correlation with the number of evidence turns, with the tokens they
            take, and with the least fixed budget that keeps them.
        spending: rule -> category -> mean tokens at the middle target; "needed" for what the evidence itself takes.
        middle: that target.
    """

    rows: list[Row]
    signals: dict[str, tuple[float | None, float | None, float | None]]
    spending: dict[str, dict[str, float]]
    middle: int


def findings(study: Study, asked: Sequence[Asked], fits: Mapping[int, Fits], facts: RunFacts) -> Findings:
    """Compares every rule with the fixed budgets, at every target."""
    sizes = grid(study.b_min, study.b_max)
    pooled = [one for one in asked if one.category not in facts.apart]
    apart = [one for one in asked if one.category in facts.apart]
    curve, curve_apart = (_curve(part, sizes) for part in (pooled, apart))
    rows: list[Row] = []
    for name in study.rules:
        found: list[Row] = []
        for target in study.targets:
            given = _given(name, target)
            found.append(_row(study, facts, name, target, pooled, given, curve))
            found[-1]["against_fixed_apart"] = _apart(apart, given, curve_apart)
            found[-1]["fit"] = _fit_of(study, fits, name, target)
        _adjust(found)
        rows += found
    rows += [_row(study, facts, "fixed", size, pooled, _always(size), None) for size in sizes]
    for target in study.targets:
        tokens, erb = ceiling_at(pooled, sizes, target)
        row = _row(study, facts, "ceiling", target, pooled, None, None)
        rows.append({**row, "label_leak": True, "metrics": {"erb": erb, "tokens": tokens, "budget_violations": 0}})
    middle = min(study.targets, key=lambda target: (abs(target - MIDDLE), target))
    return Findings(rows, _signals(study, pooled, sizes, middle), _spending(study, asked, sizes, middle), middle)


def _curve(asked: Sequence[Asked], sizes: Sequence[int]) -> list[Spent]:
    """The fixed budgets, ascending by what they spend; none for no question."""
    return sorted((spent(asked, _always(size)) for size in sizes if asked), key=lambda point: point.tokens)


def _always(size: int) -> SizeOf:
    return lambda one: size


def _given(name: str, target: int) -> SizeOf:
    return lambda one: one.budgets[name][target]


def _row(
    study: Study,
    facts: RunFacts,
    name: str,
    budget: int,
    asked: Sequence[Asked],
    size_of: SizeOf | None,
    curve: Sequence[Spent] | None,
) -> Row:
    """One row in the form of `evaluation.results`; `budget` is the target of a rule."""
    row: Row = {
        "dataset": facts.dataset,
        "data_sha": facts.data_sha,
        "split": {"name": facts.split, "fold": facts.fold},
        "method": f"{study.checkpoint.name} + {name}",
        "rule": name,
        "q_aware": True,
        "label_leak": False,
        "budget": budget,
        "b_min": study.b_min,
        "b_max": study.b_max,
        "tokenizer_id": facts.tokenizer_id,
        "render": facts.render,
        "reader": None,
        "adv_track": None,
        "n": len(asked),
        "n_errors": 0,
        "conversations": facts.conversations,
        "metrics": {},
        "ci": {},
        "seed": facts.seed,
        "code_commit": facts.code_commit,
        "train_data": study.checkpoint.train_data,
        "test_eval_count": 1,
        "metric_version": METRIC_VERSION,
        "method_digest": study.checkpoint.fingerprint,
        "code_digest": code_digest(True),
        "command": facts.command,
    }
    if size_of is None:
        return row
    ours = spent(asked, size_of)
    bounds = cluster_bootstrap(ours.sums, ours.counts)
    over = sum(one.points[size_of(one)][0] > size_of(one) for one in asked)
    row["metrics"] = {"erb": ours.erb, "tokens": ours.tokens, "budget_violations": over}
    row["ci"] = {"cluster": {"erb": [bounds.low, bounds.high]}}
    if curve is not None:
        row["against_fixed"] = _plain(versus(ours, curve))
        row["given"] = _quantiles([size_of(one) for one in asked])
        row["at_least"] = fmean(size_of(one) <= study.b_min for one in asked)
        row["at_most"] = fmean(size_of(one) >= study.b_max for one in asked)
    return row


def _plain(found: Versus) -> dict[str, float | None]:
    return {"fixed": found.fixed, "point": found.point, "low": found.low, "high": found.high, "p": found.p}


def _quantiles(values: Sequence[int]) -> dict[str, float | None]:
    shares = (0.05, 0.25, 0.5, 0.75, 0.95)
    return {"mean": fmean(values), **{f"p{100 * share:.0f}": percentile(values, share) for share in shares}}


def _apart(asked: Sequence[Asked], size_of: SizeOf, curve: Sequence[Spent]) -> dict[str, float | None] | None:
    if not asked:
        return None
    ours = spent(asked, size_of)
    return {"erb": ours.erb, "tokens": ours.tokens, **_plain(versus(ours, curve))}


def _fit_of(study: Study, fits: Mapping[int, Fits], name: str, target: int) -> Row:
    """The scalars by fold, and the mean budget they gave on the questions they were fitted on.

    Scalars are text: rows cut numbers to six decimals, which is too few for the price of a token.
    """
    found = {fold: fitted[name][target] for fold, fitted in sorted(fits.items())}
    return {
        "on": study.fit_name,
        "scalar": {str(fold): f"{one.scalar:.6g}" for fold, one in found.items()},
        "mean": {str(fold): one.mean for fold, one in found.items()},
    }


def _adjust(rows: Sequence[Row]) -> None:
    """Holm over the targets of one rule."""
    for key in ("against_fixed", "against_fixed_apart"):
        tested = [row[key] for row in rows if row[key] is not None and row[key]["p"] is not None]
        for cell, p in zip(tested, holm([cell["p"] for cell in tested]), strict=True):
            cell["p_holm"] = p


def _signals(
    study: Study, asked: Sequence[Asked], sizes: Sequence[int], middle: int
) -> dict[str, tuple[float | None, float | None, float | None]]:
    columns: dict[str, list[float]] = {
        "entropy of Eq. 3": [one.entropy for one in asked],
        "sum of the probabilities": [one.expected for one in asked],
    }
    columns |= {f"budget of `{name}`": [one.budgets[name][middle] for one in asked] for name in study.rules}
    wanted = (
        [one.evidence for one in asked],
        [one.needed for one in asked],
        [least_budget(one, sizes) for one in asked],
    )
    return {
        name: (spearman(values, wanted[0]), spearman(values, wanted[1]), spearman(values, wanted[2]))
        for name, values in columns.items()
    }


def _spending(study: Study, asked: Sequence[Asked], sizes: Sequence[int], middle: int) -> dict[str, dict[str, float]]:
    def by_category(value: Callable[[Asked], float]) -> dict[str, float]:
        names = sorted({one.category for one in asked})
        return {name: fmean(value(one) for one in asked if one.category == name) for name in names}

    found = {name: by_category(lambda one, name=name: one.budgets[name][middle]) for name in study.rules}
    found["evidence alone"] = by_category(lambda one: one.needed)
    found["least fixed budget that keeps it all"] = by_category(lambda one: least_budget(one, sizes))
    return found


def markdown(study: Study, found: Findings, names: Mapping[str, str]) -> str:
    """The tables of a study.

    Args:
        study: what was run.
        found: its findings.
        names: category to readable name.
    """
    rules = {name: [row for row in found.rows if row["rule"] == name] for name in study.rules}
    ceiling = [row for row in found.rows if row["rule"] == "ceiling"]
    head = found.rows[0]
    targets = [str(target) for target in study.targets]
    facts = (
        f"split {head['split']['name']}, {head['conversations']} conversations, {head['n']} pooled questions with "
        f"evidence, scorer {study.checkpoint.name}, {study.b_min} to {study.b_max} tokens of {head['tokenizer_id']} a "
        f"question, data {head['data_sha'][:12]}, badge `ours`. Scalars are fitted to the mean budget on "
        f"{study.fit_name}, without labels"
    )
    parts = [
        f"# {head['dataset']}: budget rules against fixed budgets of equal mean cost\n\n{facts}.\n\n"
        + "\n".join(f"- `{rule.name}`: {rule.what}." for rule in study.families),
        "## Points of ERB above the fixed budget of equal mean cost, by target mean\n\n"
        + table(["rule", *targets], [[name, *map(_difference, rows)] for name, rows in rules.items()])
        + "\n\nEqual cost is the mean of the rendered tokens of the compared questions; the fixed budget is "
        f"interpolated there between two of {len(grid(study.b_min, study.b_max))} fixed budgets. {FEW_CLUSTERS} "
        "Exact sign-flip p, Holm over the targets of a rule.",
        "## Mean rendered tokens / ERB in %\n\n"
        + table(
            ["rule", *targets],
            [[name, *map(_spent, rows)] for name, rows in [*rules.items(), ("ceiling *", ceiling)]],
        )
        + "\n\n\\* each question at the fixed budget that its labels say is best, at this mean or below: what perfect "
        "foresight could gain with this scorer.",
    ]
    if any(row["against_fixed_apart"] for rows in rules.values() for row in rows):
        apart = [[name, *(_apart_cell(row["against_fixed_apart"]) for row in rows)] for name, rows in rules.items()]
        title = f"The same for category {', '.join(sorted(study.suite.apart))}, at its own mean cost"
        parts.append(f"## {title}\n\n{table(['rule', *targets], apart)}")
    given = [[name, *_given_cells(rows[study.targets.index(found.middle)])] for name, rows in rules.items()]
    header = ["rule", "mean", "p5", "p25", "p50", "p75", "p95", "at the least", "at the most"]
    parts.append(f"## Budgets given at the target of {found.middle}\n\n{table(header, given)}")
    categories = sorted({category for row in found.spending.values() for category in row})
    spending = [[name, *(f"{row[category]:.0f}" for category in categories)] for name, row in found.spending.items()]
    header = ["tokens", *(f"{c} {names[c]}" if names.get(c, c) != c else c or "all" for c in categories)]
    parts.append(f"## Mean budget by category at the target of {found.middle}\n\n{table(header, spending)}")
    signals = [[name, *map(_correlation, values)] for name, values in found.signals.items()]
    header = ["signal", "evidence turns", "evidence tokens", "least fixed budget that keeps it all"]
    parts.append(f"## Rank correlation of what a rule goes by with what a question needs\n\n{table(header, signals)}")
    parts.append(f"## Mean budget on the fitted questions and the scalar, by fold\n\n{_scalars(rules, targets)}")
    over = sum(row["metrics"]["budget_violations"] for row in found.rows)
    parts.append(f"Contexts over their budget: {over}.")
    return "\n\n".join(parts) + "\n"


def _difference(row: Row) -> str:
    return _versus_cell(row["against_fixed"])


def _apart_cell(cell: Mapping[str, float | None] | None) -> str:
    return "-" if cell is None else _versus_cell(cell)


def _versus_cell(cell: Mapping[str, float | None]) -> str:
    point, low, high = (100 * (cell[key] or 0.0) for key in ("point", "low", "high"))
    p = cell.get("p_holm")
    tail = "" if p is None else f" p={p:.3f}"
    return f"{point:+.1f} [{low:+.1f}, {high:+.1f}]{tail}"


def _spent(row: Row) -> str:
    return f"{row['metrics']['tokens']:.0f} / {percent(row['metrics']['erb'])}"


def _given_cells(row: Row) -> list[str]:
    given = [f"{row['given'][key]:.0f}" for key in ("mean", "p5", "p25", "p50", "p75", "p95")]
    return [*given, percent(row["at_least"]), percent(row["at_most"])]


def _correlation(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f}"


def _scalars(rules: Mapping[str, Sequence[Row]], targets: Sequence[str]) -> str:
    body: list[list[str]] = []
    for name, rows in rules.items():
        for fold in rows[0]["fit"]["scalar"]:
            cells = [f"{row['fit']['mean'][fold]:.0f}: {float(row['fit']['scalar'][fold]):.3g}" for row in rows]
            body.append([name, fold, *cells])
    return table(["rule", "fold", *targets], body)


def plot_points(found: Findings) -> dict[str, list[tuple[float, float]]]:
    """Per rule: (mean rendered tokens, ERB in %), ascending; "fixed" and "ceiling" among them."""
    points: dict[str, list[tuple[float, float]]] = {}
    for row in found.rows:
        points.setdefault(row["rule"], []).append((row["metrics"]["tokens"], 100 * row["metrics"]["erb"]))
    return {name: sorted(set(line)) for name, line in points.items()}


def shown_as(found: Findings, rows: Sequence[Row]) -> Findings:
    """The findings with rows as they are stored, so that they print as they read back."""
    return replace(found, rows=list(rows))
