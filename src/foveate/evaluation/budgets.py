"""Measures budget rules: what evidence a scorer's questions keep when a rule decides what each may spend.

Every rule has one scalar. It is fitted so that the rule's mean budget over validation questions meets a target (P1: the
validation conversations of the fold; P0: conversations of another corpus), without their labels and without the test
questions. Every test question is then scored once and packed at each budget a rule gave it and at a grid of fixed
budgets. `evaluation.budget_report` compares.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from foveate.core.context import ContextBuilder
from foveate.core.errors import ConfigError, DataError
from foveate.core.files import write_atomically
from foveate.core.messages import spoken
from foveate.core.protocols import PolicyName, Scorer, Scores
from foveate.core.render import TranscriptRenderer
from foveate.core.schema import Conversation, Evidence, Query
from foveate.core.tokens import TokenCounter
from foveate.evaluation.cache import code_digest, digest
from foveate.evaluation.checkpoints import Checkpoint
from foveate.evaluation.progress import Progress
from foveate.evaluation.suites import SplitName, Suite, content_sha
from foveate.metrics.retrieval import coverage, evidence_recall
from foveate.rules.budget import (
    BudgetRule,
    BudgetSign,
    CappedBudget,
    CoverageBudget,
    DynamicBudget,
    NeedBudget,
    Offer,
    PriceBudget,
    entropy,
    fit_scalar,
    logits,
    mean_tokens,
    offer_of,
    softmax,
)

FamilyName = Literal["paper", "prose", "paper-half", "prose-half", "need", "coverage", "price", "share"]
FAMILIES: tuple[FamilyName, ...] = get_args(FamilyName)
STEPS_AN_OCTAVE = 4
FIT_TOLERANCE = 0.5


@dataclass(frozen=True, slots=True)
class Family:
    """A rule up to its scalar.

    Attributes:
        name: in tables and rows.
        what: the budget and the scalar, for a reader.
        make: scalar to rule; the mean budget is monotone in the scalar.
        low, high: the scalars that the fit searches between.
    """

    name: FamilyName
    what: str
    make: Callable[[float], BudgetRule]
    low: float
    high: float


def family(name: FamilyName, b_max: int, b_min: int) -> Family:
    """The rule of that name under `b_max`, at least `b_min`. Eq. 3 takes normalised entropy over log odds."""
    match name:
        case "paper" | "prose":
            what = f"Eq. 3, {_sign(name)}; scalar lambda / B_max"
            return Family(name, what, lambda x: _equation_3(name, x, b_max, b_min), 1e-4, 1e4)
        case "paper-half" | "prose-half":
            sign: BudgetSign = "paper" if name == "paper-half" else "prose"
            what = f"Eq. 3, {_sign(sign)}, with lambda half of B_max; scalar B_max"
            return Family(name, what, partial(_half, sign, b_min=b_min), float(b_min), float(b_max))
        case "need":
            what = "a factor times the expected tokens of the needed turns; scalar the factor"
            return Family(name, what, lambda x: NeedBudget(x, b_min), 1e-4, 1e4)
        case "coverage":
            what = "the least that holds a share of the summed probabilities; scalar the share"
            return Family(name, what, lambda x: CoverageBudget(x, b_min), 1e-9, 1.0)
        case "price":
            what = "one price of a token, value the probability; scalar the price"
            return Family(name, what, lambda x: PriceBudget(x, "turns", b_min), 1e-12, 1.0)
        case "share":
            what = "one price of a token, value the probability over its sum in the question; scalar the price"
            return Family(name, what, lambda x: PriceBudget(x, "share", b_min), 1e-12, 1.0)


def _sign(sign: BudgetSign) -> str:
    return "uncertainty shrinks the budget" if sign == "paper" else "uncertainty grows the budget"


def _equation_3(sign: BudgetSign, fraction: float, b_max: int, b_min: int) -> BudgetRule:
    return DynamicBudget(fraction * b_max, sign, normalised=True, b_min=b_min, log_odds=True)


def _half(sign: BudgetSign, cap: float, b_min: int) -> BudgetRule:
    return CappedBudget(DynamicBudget(cap / 2, sign, normalised=True, b_min=b_min, log_odds=True), round(cap))


def family_names(text: str) -> tuple[FamilyName, ...]:
    """The rules in a comma-separated list, "all" for every one. Raises ConfigError for others, or none."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    found: tuple[FamilyName, ...] = tuple(name for name in FAMILIES if parts.count("all") + parts.count(name))
    if not found or not {*parts} <= {*FAMILIES, "all"}:
        raise ConfigError(f"--rules {text!r}: give 'all' or, comma separated, of {', '.join(FAMILIES)}")
    return found


def grid(b_min: int, b_max: int) -> tuple[int, ...]:
    """The fixed budgets, `STEPS_AN_OCTAVE` to a doubling, both ends included.

    Between two of them the fixed curve is a straight line. Where recall grows by r a doubling the line is at most
    r / 185 below a curve that is linear in the logarithm of the tokens.
    """
    if not 0 < b_min < b_max:
        raise ConfigError(f"budgets from {b_min} to {b_max} tokens: give 0 < least < most")
    steps: list[int] = []
    while (size := round(b_min * 2 ** (len(steps) / STEPS_AN_OCTAVE))) < b_max:
        steps.append(size)
    return tuple(sorted({*steps, b_max}))


@dataclass(frozen=True, slots=True)
class Study:
    """What is compared with what.

    Attributes:
        suite, split: the test questions.
        checkpoint: the scorer, or one a fold; calibrated.
        counter: what budgets are counted in.
        rules: by name.
        targets: mean tokens aimed at, ascending.
        b_min, b_max: what a question may spend.
        fit_on: P0: the conversations that scalars are fitted on; P1 takes each fold's validation conversations.
        fit_name: what those are, for rows.
        work: where finished parts are kept.
    """

    suite: Suite
    split: SplitName
    checkpoint: Checkpoint
    counter: TokenCounter
    rules: tuple[FamilyName, ...]
    targets: tuple[int, ...]
    b_min: int
    b_max: int
    fit_on: tuple[Conversation, ...]
    fit_name: str
    work: Path

    def __post_init__(self) -> None:
        grid(self.b_min, self.b_max)
        outside = [target for target in self.targets if not self.b_min < target < self.b_max]
        if outside or not self.targets:
            raise ConfigError(
                f"target means {', '.join(map(str, outside)) or 'none'}: give means between the least budget of "
                f"{self.b_min} and the most of {self.b_max} tokens"
            )

    @property
    def families(self) -> list[Family]:
        """The rules with their scalars open."""
        return [family(name, self.b_max, self.b_min) for name in self.rules]

    def fold_of(self, conversation: str) -> int:
        """The scorer that a conversation is tested with."""
        return self.suite.fold_of(conversation) if self.split == "P1" else 0

    def validation(self, fold: int) -> list[Conversation]:
        """The conversations that scalars are fitted on."""
        if self.split == "P0":
            return list(self.fit_on)
        wanted = self.suite.validation_of(fold)
        return [conversation for conversation in self.fit_on if conversation.id in wanted]


@dataclass(frozen=True, slots=True)
class Fitted:
    """A scalar and the mean budget it gives on the questions it was fitted on."""

    scalar: float
    mean: float


Fits = dict[str, dict[int, Fitted]]
"""Rule, target -> scalar."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One test question that has evidence.

    Attributes:
        question, conversation, category: which one.
        evidence: how many evidence turns it has.
        needed: tokens of those turns and their headers.
        expected: the sum of the probabilities.
        entropy: normalised, of softmax over the log odds.
        budgets: what each rule gave it, by target.
        points: (tokens rendered, ERB) at every budget it was packed for.
    """

    question: str
    conversation: str
    category: str
    evidence: int
    needed: int
    expected: float
    entropy: float
    budgets: dict[str, dict[int, int]]
    points: dict[int, tuple[int, float]]


class Opened:
    """One scorer over one conversation: questions to scores, offers and contexts. No label reaches it."""

    def __init__(self, scorer: Scorer, conversation: Conversation, counter: TokenCounter) -> None:
        if not scorer.calibrated:
            raise ConfigError(f"{scorer.name} gives no probabilities, which budget rules need: train and calibrate one")
        self._policy: PolicyName = scorer.policy
        self._index = scorer.open()
        self._index.append(conversation.turns)
        self._builder = ContextBuilder(counter=counter, renderer=TranscriptRenderer())
        self._builder.append(conversation.turns)

    def score(self, query: Query) -> tuple[Scores, Offer]:
        scores = self._index.score(query)
        return scores, offer_of(self._builder.problem(scores))

    def pack(self, scores: Scores, budget: int) -> tuple[int, frozenset[str]]:
        """Tokens as rendered, and the ids of the turns kept."""
        packed = self._builder.build(scores, budget, policy=self._policy)
        turns = self._builder.turns
        return packed.tokens, frozenset(turn.id for turn, tier in zip(turns, packed.tiers, strict=True) if tier)


def fit(study: Study, scorer: Scorer, conversations: Iterable[Conversation]) -> Fits:
    """The scalar of each rule and target on the questions of these conversations; their labels are not looked at."""
    offers: list[Offer] = []
    for conversation in conversations:
        opened = Opened(scorer, conversation, study.counter)
        offers += [opened.score(question.query)[1] for question in conversation.questions]
    found: Fits = {}
    for rule in study.families:
        scalars = found[rule.name] = {}
        for target in study.targets:
            scalar = fit_scalar(
                rule.make, offers, target, study.b_max, low=rule.low, high=rule.high, tolerance=FIT_TOLERANCE
            )
            scalars[target] = Fitted(scalar, mean_tokens(rule.make(scalar), offers, study.b_max))
    return found


def measure(study: Study, scorer: Scorer, conversation: Conversation, fits: Fits) -> list[Asked]:
    """Every question of the conversation that has evidence, at each rule's budgets and at the fixed ones."""
    opened = Opened(scorer, conversation, study.counter)
    gold = _Gold(study, conversation)
    rules = {
        rule.name: {target: rule.make(fitted.scalar) for target, fitted in fits[rule.name].items()}
        for rule in study.families
    }
    found: list[Asked] = []
    for question in conversation.questions:
        if not question.evidence.turn_ids:
            continue
        scores, offer = opened.score(question.query)
        budgets = {
            name: {target: rule.tokens(offer, study.b_max) for target, rule in by_target.items()}
            for name, by_target in rules.items()
        }
        sizes = {*grid(study.b_min, study.b_max), *(b for by_target in budgets.values() for b in by_target.values())}
        points: dict[int, tuple[int, float]] = {}
        for size in sorted(sizes):
            tokens, kept = opened.pack(scores, size)
            points[size] = (tokens, gold.recall(question.evidence, kept))
        found.append(
            Asked(
                question=question.id,
                conversation=conversation.id,
                category=question.evidence.category,
                evidence=len(question.evidence.turn_ids),
                needed=gold.needed(question.evidence),
                expected=float(offer.score.sum()),
                entropy=_uncertainty(offer),
                budgets=budgets,
                points=points,
            )
        )
    return found


def _uncertainty(offer: Offer) -> float:
    """The normalised entropy that Eq. 3 is given here."""
    n = len(offer.score)
    return entropy(softmax(logits(offer.score))) / math.log(n) if n > 1 else 0.0


class _Gold:
    """The labels of one conversation."""

    def __init__(self, study: Study, conversation: Conversation) -> None:
        self._builder = ContextBuilder(counter=study.counter, renderer=TranscriptRenderer())
        self._builder.append(conversation.turns)
        self._turns = {turn.id: turn for turn in conversation.turns}
        self._place = {turn.id: place for place, turn in enumerate(conversation.turns)}
        self._covered = {turn.id: coverage(study.suite.spoken(turn), spoken(turn)) for turn in conversation.turns}

    def recall(self, evidence: Evidence, kept: frozenset[str]) -> float:
        """ERB of a context that holds these turns in full."""
        covered = {turn: self._covered[turn] if turn in kept else 0.0 for turn in evidence.turn_ids}
        found = evidence_recall(evidence.turn_ids, covered)
        return 0.0 if found is None else found.erb

    def needed(self, evidence: Evidence) -> int:
        """The tokens of the evidence turns alone, headers included."""
        wanted = {self._place[turn] for turn in evidence.turn_ids}
        score = [float(place in wanted) for place in range(len(self._turns))]
        columns = self._builder.problem(Scores(score))
        headers = {columns.section[place] for place in wanted} - {-1}
        return sum(columns.cost[place] for place in wanted) + sum(columns.header[section] for section in headers)


def run_study(study: Study, progress: Progress) -> tuple[list[Asked], dict[int, Fits]]:
    """All test questions and the fitted scalars by fold; parts that are kept from an earlier run are read back."""
    asked: list[Asked] = []
    fits: dict[int, Fits] = {}
    for conversation in study.suite.conversations:
        fold = study.fold_of(conversation.id)
        scorer = partial(study.checkpoint.scorer, fold)
        if fold not in fits:
            fits[fold] = _fitted(study, fold, scorer, progress)
        progress.start(f"packing {conversation.id}")
        key = _key(study, {"test": content_sha([conversation]), "fold": fold, "fits": _plain(fits[fold])})
        path = study.work / f"{study.checkpoint.name}-{conversation.id}-{key[:16]}.json"
        kept = _read(path)
        if kept is None:
            found = measure(study, scorer(), conversation, fits[fold])
            write_atomically(path, json.dumps([asdict(one) for one in found], ensure_ascii=False))
        else:
            found = [_asked(value) for value in kept]
        asked += found
        progress.advance(reused=kept is not None)
    return asked, fits


def steps_of(study: Study) -> int:
    """How often `run_study` tells its progress."""
    return len(study.suite.conversations) + len({study.fold_of(c.id) for c in study.suite.conversations})


def _fitted(study: Study, fold: int, scorer: Callable[[], Scorer], progress: Progress) -> Fits:
    progress.start(f"fitting scalars for fold {fold}")
    conversations = study.validation(fold)
    key = _key(study, {"fit": content_sha(conversations), "fold": fold})
    path = study.work / f"{study.checkpoint.name}-fit{fold}-{key[:16]}.json"
    kept = _read(path)
    if kept is None:
        fits = fit(study, scorer(), conversations)
        write_atomically(path, json.dumps(_plain(fits)))
    else:
        fits = {
            name: {int(target): Fitted(**value) for target, value in by_target.items()}
            for name, by_target in kept.items()
        }
    progress.advance(reused=kept is not None)
    return fits


def _key(study: Study, part: Mapping[str, object]) -> str:
    """A digest of all that a part of the study depends on."""
    return digest(
        {
            "corpus": study.suite.name,
            "split": study.split,
            "weights": study.checkpoint.fingerprint,
            "counter": study.counter.name,
            "rules": study.rules,
            "targets": study.targets,
            "budgets": [study.b_min, study.b_max],
            "code": code_digest(True),
            **part,
        }
    )


def _plain(fits: Fits) -> dict[str, dict[str, dict[str, float]]]:
    return {
        name: {str(target): asdict(value) for target, value in by_target.items()} for name, by_target in fits.items()
    }


def _read(path: Path) -> Any:
    """The JSON of a finished part; None where there is none.

    Raises:
        DataError: the file is there and cannot be read.
    """
    if not path.exists():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is not JSON ({error}): delete it and evaluate again") from error


def _asked(value: Mapping[str, Any]) -> Asked:
    budgets = {
        name: {int(target): int(size) for target, size in by_target.items()}
        for name, by_target in value["budgets"].items()
    }
    points = {int(size): (int(tokens), float(erb)) for size, (tokens, erb) in value["points"].items()}
    return Asked(**{**value, "budgets": budgets, "points": points})
