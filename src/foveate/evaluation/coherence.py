"""What Eq. 5-6 do to planted conflicts: which side of a conflict is still in the packed context.

A side is kept where its turn is packed in full. In an update, keeping the newest statement is what counts and the
outdated one is harmless beside it, harmful alone; after a wrong reply, losing the statement that could correct it is
the failure known as the allergy. See `corpora.synthetic.conflicts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from foveate.core.context import ContextBuilder
from foveate.core.protocols import PolicyName, Scorer, Scores, thresholds_of
from foveate.core.render import TranscriptRenderer
from foveate.core.schema import Turn
from foveate.core.tiers import Tier
from foveate.core.tokens import TokenCounter
from foveate.corpora.synthetic.conflicts import KINDS, Conflict, Kind
from foveate.evaluation.progress import Progress
from foveate.evaluation.report import percent, table
from foveate.evaluation.results import Row, rounded
from foveate.rules.acc import CoherenceMode, coherent
from foveate.rules.coherence import plain_text, policy_of
from foveate.rules.contradiction import ContradictionProb

Mode = Literal["off", "paper", "guard"]
MODES: tuple[Mode, ...] = get_args(Mode)
METRIC_VERSION = "coherence-1"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One conflict at one budget.

    Attributes:
        true: the user's newest statement is in the context.
        wrong: a turn that says otherwise is.
    """

    true: bool
    wrong: bool


@dataclass(frozen=True, slots=True)
class Found:
    """How the conflict looks to the contradiction model.

    Attributes:
        p: P(contradiction) of the user's turn that contradicts the last reply.
        first: whether no other turn has a higher one.
    """

    p: float
    first: bool


@dataclass(frozen=True, slots=True)
class Contradictor:
    """A model of P(contradiction) under a name, and what it reads of a turn."""

    name: str
    model: ContradictionProb
    premise: Callable[[Turn], str] = plain_text


@dataclass(frozen=True, slots=True)
class Setting:
    """A scorer's scores changed in one way; `nli` is None in mode off."""

    mode: Mode
    nli: str | None


Result = dict[Setting, tuple[list[Outcome], Found | None]]


def settings(modes: Sequence[Mode], models: Sequence[Contradictor]) -> list[Setting]:
    """Every way: mode off once, the others with each model."""
    return [
        Setting(mode, name)
        for mode in modes
        for name in ([None] if mode == "off" else [model.name for model in models])
    ]


def outcomes(
    base: Scorer,
    models: Sequence[Contradictor],
    ways: Sequence[Setting],
    weight: float,
    conflict: Conflict,
    budgets: Sequence[int],
    counter: TokenCounter,
) -> Result:
    """What is kept of a conflict in each way at each budget, and what each model thought of it.

    The scores and each model's P are computed once; what `CoherentScorer` would give is built from them.
    """
    turns, (question,) = conflict.conversation.turns, conflict.conversation.questions
    index = base.open()
    index.append(turns)
    s = index.score(question.query).score
    reply = question.query.last_reply or ""
    known = {model.name: model.model.probabilities([model.premise(t) for t in turns], reply) for model in models}
    thresholds = thresholds_of(base, len(turns))
    builder = ContextBuilder(counter=counter, renderer=TranscriptRenderer(), thresholds=thresholds)
    builder.append(turns)
    place = {turn.id: i for i, turn in enumerate(turns)}
    found: Result = {}
    for way in ways:
        p = [0.0] * len(turns) if way.nli is None else known[way.nli]
        mode: CoherenceMode = "paper" if way.mode == "off" else way.mode
        z = [coherent(a, b, mode, weight) for a, b in zip(s, p, strict=True)]
        made = [_kept(builder, Scores(z), policy_of(base), budget, conflict, place) for budget in budgets]
        here = p[place[conflict.opposed]]
        found[way] = made, None if way.nli is None else Found(here, here > 0 and here >= max(p))
    return found


def _kept(
    builder: ContextBuilder, scores: Scores, policy: PolicyName, budget: int, conflict: Conflict, place: dict[str, int]
) -> Outcome:
    tiers = builder.build(scores, budget, policy=policy).tiers
    full = {name for name, i in place.items() if tiers[i] == Tier.FULL}
    return Outcome(conflict.true in full, any(name in full for name in conflict.wrong))


def evaluate(
    base: Scorer,
    models: Sequence[Contradictor],
    modes: Sequence[Mode],
    weight: float,
    conflicts: Sequence[Conflict],
    budgets: Sequence[int],
    counter: TokenCounter,
    bar: Progress,
) -> list[Row]:
    """A row for every way, kind and budget, and for all kinds together."""
    ways = settings(modes, models)
    bar.start(base.name)
    measured: list[tuple[Kind, Result]] = []
    for conflict in conflicts:
        measured.append((conflict.kind, outcomes(base, models, ways, weight, conflict, budgets, counter)))
        bar.advance()
    rows: list[Row] = []
    for way in ways:
        for kind in ("all", *KINDS):
            own = [found[way] for name, found in measured if kind in ("all", name)]
            for column, budget in enumerate(budgets if own else ()):
                head = {"scorer": base.name, "nli": way.nli, "mode": way.mode, "weight": weight}
                head |= {"kind": kind, "budget": budget, "n": len(own), "metric_version": METRIC_VERSION}
                shares = _shares([made[column] for made, _ in own]) | _of_models([found for _, found in own])
                rows.append(
                    head | {"budget": budget, "n": len(own), **rounded(shares), "metric_version": METRIC_VERSION}
                )
    return rows


def _of_models(found: Sequence[Found | None]) -> Row:
    known = [one for one in found if one is not None]
    if not known:
        return {"p_opposed": None, "opposed_first": None}
    return {
        "p_opposed": sum(one.p for one in known) / len(known),
        "opposed_first": sum(one.first for one in known) / len(known),
    }


def _shares(made: Sequence[Outcome]) -> Row:
    n = len(made)
    return {
        "true": sum(one.true for one in made) / n,
        "wrong": sum(one.wrong for one in made) / n,
        "both": sum(one.true and one.wrong for one in made) / n,
        "wrong_alone": sum(one.wrong and not one.true for one in made) / n,
    }


def markdown(rows: Sequence[Row]) -> str:
    """A table a kind: methods down, budgets across, each cell the true side, the wrong side, both and the wrong side
    alone.
    """
    budgets = list(dict.fromkeys(row["budget"] for row in rows))
    parts = [
        "# Planted conflicts\n\nShare of the contexts in % that hold the true side / the wrong side / both / the wrong "
        "side alone. P is the mean P(contradiction) of the turn that contradicts the last reply, first how often no "
        "other turn has a higher one."
    ]
    for kind in dict.fromkeys(row["kind"] for row in rows):
        own = [row for row in rows if row["kind"] == kind]
        names = list(dict.fromkeys(_name(row) for row in own))
        body = [_line(name, [row for row in own if _name(row) == name], budgets) for name in names]
        header = ["scorer, contradiction, mode", *map(str, budgets), "P", "first"]
        parts.append(f"## {kind} ({own[0]['n']})\n\n{table(header, body)}")
    return "\n\n".join(parts) + "\n"


def _name(row: Row) -> str:
    return row["scorer"] if row["mode"] == "off" else f"{row['scorer']}, {row['nli']}, {row['mode']}"


def _line(name: str, rows: Sequence[Row], budgets: Sequence[int]) -> list[str]:
    at = {row["budget"]: row for row in rows}
    cells = [" / ".join(percent(at[b][key]) for key in ("true", "wrong", "both", "wrong_alone")) for b in budgets]
    off = rows[0]["mode"] == "off"
    tail = ["-", "-"] if off else [f"{rows[0]['p_opposed']:.2f}", percent(rows[0]["opposed_first"])]
    return [name, *cells, *tail]
