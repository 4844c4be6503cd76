"""What the packer believed a turn was worth in the tier it gave it, against what it turned out to be worth.

Every question is scored once and packed for every budget, with shorter forms and stubs on offer. For each turn (more
exactly: each item, an atomic group of turns) the tier it got is kept with the value of that option, as the packer read
it, and with its realised usefulness: 1 where the turn is evidence and the text emitted for it covers at least 0.8 of
its words (EVALUATION.md 1.9), else 0. Of a turn that was dropped, the value is that of its full text, which was given
up, and the usefulness is what was lost: 1 where it is evidence. With calibrated values the two have equal means, in
every tier and bin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from foveate.core.context import ContextBuilder
from foveate.core.errors import ConfigError, DataError
from foveate.core.messages import spoken
from foveate.core.packed import Packed
from foveate.core.problem import Columns
from foveate.core.protocols import PolicyName, Scorer, thresholds_of, tier_values_of
from foveate.core.render import TranscriptRenderer
from foveate.core.schema import Conversation, Evidence, Question
from foveate.core.tiers import Tier, TierValues
from foveate.core.tokens import TokenCounter
from foveate.evaluation.cache import code_digest, digest
from foveate.evaluation.checkpoints import Checkpoint
from foveate.evaluation.progress import Progress
from foveate.evaluation.report import percent, table
from foveate.evaluation.results import METRIC_VERSION, Row, RunFacts
from foveate.evaluation.suites import SplitName, Suite, content_sha
from foveate.metrics.calibration import calibration
from foveate.metrics.retrieval import KEPT_FROM, coverage, evidence_recall
from foveate.metrics.statistics import cluster_bootstrap
from foveate.rules.tier_values import evidence_forms, fit_tier_values
from foveate.summarizers.heuristic import HeuristicCompressor

ValuesName = Literal["own", "prior", "fit"]
ShortenName = Literal["strict", "loose", "no"]
BINS = 10
MIDDLE = 512


@dataclass(frozen=True, slots=True)
class Setup:
    """What is measured.

    Attributes:
        suite, split: the questions.
        fold: the only fold of P1 that is tested; None for all of them.
        checkpoint: the scorer, or one a fold; calibrated.
        counter: what budgets are counted in.
        budgets: tokens allowed, ascending.
        policy: how turns are chosen; None for the scorer's own.
        values: what a compressed form is worth: as the scorer has it, the prior, or fitted on `fit_on`.
        shorten: the heuristic compressor that is on offer.
        stub_value: value of a stub as a share of the turn's score.
        fit_on: P0: the conversations that values are fitted on; P1 takes each fold's validation conversations.
        work: where finished conversations are kept.
    """

    suite: Suite
    split: SplitName
    fold: int | None
    checkpoint: Checkpoint
    counter: TokenCounter
    budgets: tuple[int, ...]
    policy: PolicyName | None
    values: ValuesName
    shorten: ShortenName
    stub_value: float
    fit_on: tuple[Conversation, ...]
    work: Path

    @property
    def label(self) -> str:
        """The scorer, and what differs from the defaults."""
        parts = [self.policy, None if self.values == "own" else f"{self.values} values"]
        parts += [None if self.shorten == "strict" else f"{self.shorten} summarizer"]
        parts += [f"stubs {self.stub_value:g}" if self.stub_value else None]
        told = ", ".join(part for part in parts if part)
        return f"{self.checkpoint.name} ({told})" if told else self.checkpoint.name

    def fold_of(self, conversation: str) -> int:
        """The scorer that a conversation is tested with."""
        return self.suite.fold_of(conversation) if self.split == "P1" and self.fold is None else 0

    def summarizer(self) -> HeuristicCompressor | None:
        """What makes the compressed forms."""
        return None if self.shorten == "no" else HeuristicCompressor(self.counter, self.shorten == "strict")

    def values_of(self, scorer: Scorer, conversation: str) -> TierValues:
        """What a compressed form is worth in the tests of a conversation."""
        match self.values:
            case "own":
                return tier_values_of(scorer)
            case "prior":
                return TierValues()
            case "fit":
                return self._fitted(conversation)

    def _fitted(self, conversation: str) -> TierValues:
        summarizer = self.summarizer()
        if summarizer is None:
            raise ConfigError("--values fit without a summarizer: give --shorten strict, or other values")
        chosen = self.fit_on
        if self.split == "P1":
            wanted = self.suite.validation_of(self.suite.fold_of(conversation))
            chosen = tuple(one for one in self.fit_on if one.id in wanted)
        words = self.suite.spoken
        return fit_tier_values(evidence_forms(chosen, summarizer, self.counter, TranscriptRenderer(), words))


@dataclass(frozen=True, slots=True)
class Sample:
    """All questions of one conversation at all budgets.

    Attributes:
        tier: (budgets, questions, items) as given.
        predicted: (budgets, questions, items) what the packer believed that tier to be worth; the value given up where
            dropped.
        needed: (questions, items) whether the item holds evidence.
        useful: (budgets, questions, items) whether it holds evidence and all of that is covered by what was emitted.
        recall: (budgets, questions, 2) ERB and mean coverage.
        tokens: (budgets, questions) rendered.
    """

    tier: NDArray[np.uint8]
    predicted: NDArray[np.float32]
    needed: NDArray[np.bool_]
    useful: NDArray[np.bool_]
    recall: NDArray[np.float64]
    tokens: NDArray[np.int64]


def asked(setup: Setup, conversation: Conversation) -> list[Question]:
    """The questions that are measured: pooled ones that have evidence."""
    return [
        question
        for question in conversation.questions
        if question.evidence.turn_ids and question.evidence.category not in setup.suite.apart
    ]


def measure(setup: Setup, scorer: Scorer, values: TierValues, conversation: Conversation) -> Sample:
    """Packs every question for every budget; labels are read after that alone.

    Raises:
        ConfigError: the scorer gives no probabilities.
    """
    if not scorer.calibrated:
        raise ConfigError(f"{scorer.name} gives no probabilities, so there is nothing to compare: train one")
    turns, questions = conversation.turns, asked(setup, conversation)
    builder = ContextBuilder(
        counter=setup.counter,
        renderer=TranscriptRenderer(),
        summarizer=setup.summarizer(),
        thresholds=thresholds_of(scorer, len(turns)),
        stub_value=setup.stub_value,
        tier_values=values,
    )
    builder.append(turns)
    index = scorer.open()
    index.append(turns)
    policy, items = setup.policy or scorer.policy, builder.items
    shape = (len(setup.budgets), len(questions), len(items))
    tier, useful = np.zeros(shape, np.uint8), np.zeros(shape, np.bool_)
    predicted, needed = np.zeros(shape, np.float32), np.zeros(shape[1:], np.bool_)
    recall, tokens = np.zeros((*shape[:2], 2)), np.zeros(shape[:2], np.int64)
    gold = _Gold(setup, conversation, items)
    for row, question in enumerate(questions):
        scores = index.score(question.query)
        columns = builder.problem(scores, query=question.query)
        needed[row, list(gold.items_of(question.evidence))] = True
        for place, budget in enumerate(setup.budgets):
            packed = builder.build(scores, budget, policy=policy, query=question.query)
            given = [packed.tiers[members[0]] for members in items]
            tier[place, row] = given
            predicted[place, row] = believed(columns, given)
            covered = gold.covered(question.evidence, packed)
            kept = gold.useful(question.evidence, covered, given)
            useful[place, row, kept] = True
            found = evidence_recall(question.evidence.turn_ids, covered)
            assert found is not None
            recall[place, row] = found.erb, found.coverage
            tokens[place, row] = packed.tokens
    return Sample(tier, predicted, needed, useful, recall, tokens)


def believed(columns: Columns, given: Sequence[Tier]) -> list[float]:
    """The value of the option each item was given; of a dropped one, that of its full text.

    The builder must offer one compressed form an item, as this module's does.
    """
    forms = columns.forms

    def value(item: int, tier: Tier) -> float:
        match tier:
            case Tier.FULL | Tier.DROP:
                return columns.value[item]
            case Tier.COMPRESSED:
                option = next(iter(forms.compressed(item)), None)
            case Tier.PLACEHOLDER:
                option = forms.stub(item)
        return 0.0 if option is None else option.value

    return [value(item, tier) for item, tier in enumerate(given)]


class _Gold:
    """The labels of one conversation."""

    def __init__(self, setup: Setup, conversation: Conversation, items: Sequence[tuple[int, ...]]) -> None:
        self._turns = {turn.id: turn for turn in conversation.turns}
        self._place = {turn.id: place for place, turn in enumerate(conversation.turns)}
        self._item = {turn: item for item, members in enumerate(items) for turn in members}
        self._spoken = setup.suite.spoken

    def items_of(self, evidence: Evidence) -> set[int]:
        """The items that hold evidence."""
        return {self._item[self._place[turn]] for turn in evidence.turn_ids}

    def covered(self, evidence: Evidence, packed: Packed) -> dict[str, float]:
        """The coverage of each evidence turn by what was emitted for it."""
        return {turn: self._coverage(turn, packed) for turn in evidence.turn_ids}

    def _coverage(self, turn_id: str, packed: Packed) -> float:
        place, turn = self._place[turn_id], self._turns[turn_id]
        match packed.tiers[place]:
            case Tier.DROP:
                return 0.0
            case Tier.FULL:
                emitted = spoken(turn)
            case _:
                emitted = packed.trace[place].emitted
        return coverage(self._spoken(turn), emitted)

    def useful(self, evidence: Evidence, covered: Mapping[str, float], given: Sequence[Tier]) -> list[int]:
        """The items whose evidence is all covered; of what was dropped, all that holds evidence, since it is lost."""
        short = {
            self._item[self._place[turn]]
            for turn in evidence.turn_ids
            if covered[turn] < KEPT_FROM and given[self._item[self._place[turn]]] is not Tier.DROP
        }
        return sorted(self.items_of(evidence) - short)


def run_calibration(setup: Setup, progress: Progress) -> dict[str, Sample]:
    """The samples by conversation; those that are kept from an earlier run are read back."""
    found: dict[str, Sample] = {}
    for conversation in setup.suite.conversations:
        progress.start(f"packing {conversation.id}")
        key = _key(setup, conversation)
        path = setup.work / f"{setup.checkpoint.name}-{conversation.id}-{key[:16]}.npz"
        kept = _read(path)
        if kept is None:
            scorer = setup.checkpoint.scorer(setup.fold_of(conversation.id))
            kept = measure(setup, scorer, setup.values_of(scorer, conversation.id), conversation)
            _write(path, kept)
            progress.advance()
        else:
            progress.advance(reused=True)
        found[conversation.id] = kept
    return found


def _key(setup: Setup, conversation: Conversation) -> str:
    """A digest of all that a conversation's sample depends on."""
    return digest(
        {
            "corpus": setup.suite.name,
            "split": [setup.split, setup.fold],
            "conversation": content_sha([conversation]),
            "weights": setup.checkpoint.fingerprint,
            "counter": setup.counter.name,
            "budgets": setup.budgets,
            "options": [setup.policy, setup.values, setup.shorten, setup.stub_value],
            "fit": content_sha(list(setup.fit_on)) if setup.values == "fit" else None,
            "code": code_digest(True),
        }
    )


def _write(path: Path, sample: Sample) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".tmp")
    with unfinished.open("wb") as file:
        np.savez_compressed(file, **{name: getattr(sample, name) for name in Sample.__slots__})
    unfinished.replace(path)


def _read(path: Path) -> Sample | None:
    """The sample of a finished conversation; None where there is none.

    Raises:
        DataError: the file is there and cannot be read.
    """
    if not path.exists():
        return None
    try:
        with np.load(path) as file:
            return Sample(**{name: file[name] for name in Sample.__slots__})
    except (BadZipFile, KeyError, OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}): delete it and evaluate again") from error


def rows_of(setup: Setup, samples: Mapping[str, Sample], facts: RunFacts) -> list[Row]:
    """For every budget a row of what was kept, then a row for each tier that was given.

    Raises:
        ConfigError: no question with evidence was asked.
    """
    if not any(len(sample.needed) for sample in samples.values()):
        raise ConfigError(f"no question of {setup.suite.name} with evidence was asked: test on more conversations")
    rows: list[Row] = []
    for place, budget in enumerate(setup.budgets):
        rows.append(_kept_row(setup, samples, facts, place, budget))
        for tier in sorted(Tier, reverse=True):
            parts = [(s, s.tier[place] == tier) for s in samples.values()]
            if any(chosen.any() for _, chosen in parts):
                predicted = np.concatenate([s.predicted[place][chosen] for s, chosen in parts])
                useful = np.concatenate([s.useful[place][chosen] for s, chosen in parts])
                needed = np.concatenate([s.needed[chosen] for s, chosen in parts])
                rows.append(_tier_row(setup, facts, budget, tier, predicted, useful, needed))
    return rows


def _kept_row(setup: Setup, samples: Mapping[str, Sample], facts: RunFacts, place: int, budget: int) -> Row:
    asked = {name: sample for name, sample in samples.items() if len(sample.needed)}
    sums = [math.fsum(sample.recall[place, :, 0]) for sample in asked.values()]
    counts = [len(sample.needed) for sample in asked.values()]
    recall = np.concatenate([sample.recall[place] for sample in asked.values()])
    tokens = np.concatenate([sample.tokens[place] for sample in asked.values()])
    bounds = cluster_bootstrap(sums, counts)
    row = _row(setup, facts, budget, "all", len(recall))
    row["metrics"] = {
        "erb": float(recall[:, 0].mean()),
        "coverage": float(recall[:, 1].mean()),
        "tokens": float(tokens.mean()),
        "budget_violations": int((tokens > budget).sum()),
    }
    row["ci"] = {"cluster": {"erb": [bounds.low, bounds.high]}}
    return row


def _tier_row(
    setup: Setup,
    facts: RunFacts,
    budget: int,
    tier: Tier,
    predicted: NDArray[np.float32],
    useful: NDArray[np.bool_],
    needed: NDArray[np.bool_],
) -> Row:
    found = calibration(predicted.tolist(), useful.tolist(), bins=BINS, binning="mass")
    mean, realised = float(predicted.mean(dtype=np.float64)), float(useful.mean())
    row = _row(setup, facts, budget, tier.name.lower(), len(predicted))
    row["metrics"] = {
        "predicted": mean,
        "realised": realised,
        "ratio": realised / mean if mean else None,
        "ece": found.ece,
        "evidence": float(needed.mean()),
    }
    row["bins"] = [
        {"low": b.low, "high": b.high, "n": b.count, "predicted": b.confidence, "realised": b.rate} for b in found.bins
    ]
    return row


def _row(setup: Setup, facts: RunFacts, budget: int, tier: str, n: int) -> Row:
    """One row in the form of `evaluation.results`; `n` counts questions, or turns of questions in a tier."""
    return {
        "dataset": facts.dataset,
        "data_sha": facts.data_sha,
        "split": {"name": facts.split, "fold": facts.fold},
        "method": f"{setup.label}: {tier}",
        "tier": tier,
        "values": setup.values,
        "q_aware": True,
        "label_leak": False,
        "budget": budget,
        "tokenizer_id": facts.tokenizer_id,
        "render": facts.render,
        "reader": None,
        "adv_track": None,
        "n": n,
        "n_errors": 0,
        "conversations": facts.conversations,
        "metrics": {},
        "ci": {},
        "seed": facts.seed,
        "code_commit": facts.code_commit,
        "train_data": setup.checkpoint.train_data,
        "test_eval_count": 1,
        "metric_version": METRIC_VERSION,
        "method_digest": setup.checkpoint.fingerprint,
        "code_digest": code_digest(True),
        "command": facts.command,
    }


def middle_of(rows: Sequence[Row]) -> int:
    """The budget that is shown bin by bin."""
    return min({row["budget"] for row in rows}, key=lambda budget: (abs(budget - MIDDLE), budget))


def markdown(setup: Setup, rows: Sequence[Row]) -> str:
    """The tables."""
    head, middle = rows[0], middle_of(rows)
    parts = [
        f"# {head['dataset']}: what the packer believed against what it was worth, tier by tier\n\n"
        f"split {head['split']['name']}, {head['conversations']} conversations, {head['n']} pooled questions with "
        f"evidence, scorer {setup.label}, tokens of {head['tokenizer_id']}, data {head['data_sha'][:12]}, badge "
        "`ours`. "
        "Realised: the turn is evidence and at least 0.8 of its words were emitted; of a dropped turn: it is evidence, "
        "and lost. Predicted: the value of the form that was given; of a dropped turn that of its full text. "
        f"ECE over {BINS} bins of equal mass."
    ]
    for budget in sorted({row["budget"] for row in rows}):
        own = [row for row in rows if row["budget"] == budget]
        kept, tiers = own[0]["metrics"], own[1:]
        header = ["tier", "turns", "predicted", "realised", "realised / predicted", "ECE", "evidence in %"]
        parts.append(
            f"## {budget} tokens: ERB {percent(kept['erb'])}, mean coverage {percent(kept['coverage'])}, "
            f"{kept['tokens']:.0f} rendered\n\n" + table(header, [_tier_cells(row) for row in tiers])
        )
    header = ["tier", "turns", "from", "to", "predicted", "realised"]
    body = [
        [row["tier"], str(b["n"]), *(f"{b[name]:.5f}" for name in ("low", "high", "predicted", "realised"))]
        for row in rows
        if row["budget"] == middle and "bins" in row
        for b in row["bins"]
    ]
    parts.append(f"## Reliability at {middle} tokens\n\n{table(header, body)}")
    return "\n\n".join(parts) + "\n"


def _tier_cells(row: Row) -> list[str]:
    found: dict[str, Any] = row["metrics"]
    ratio = "-" if found["ratio"] is None else f"{found['ratio']:.2f}"
    numbers = [f"{found[name]:.5f}" for name in ("predicted", "realised")]
    return [row["tier"], str(row["n"]), *numbers, ratio, f"{found['ece']:.5f}", percent(found["evidence"])]


def plot_points(rows: Sequence[Row]) -> dict[str, list[tuple[float, float]]]:
    """Per tier: (mean predicted, mean realised) of each bin, at the middle budget."""
    middle = middle_of(rows)
    return {
        row["tier"]: [(b["predicted"], b["realised"]) for b in row["bins"]]
        for row in rows
        if row["budget"] == middle and "bins" in row
    }
