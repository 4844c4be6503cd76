"""Measures methods on a corpus: every question is scored once and packed for every budget.

The gold labels of a question reach `_Gold.measure`, which compares, and `LabelMethod.score`, the flagged ceiling. What
a `Method` is given goes through `_Scored`, whose functions take turns and a `Query`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from foveate.core.context import ContextBuilder
from foveate.core.messages import spoken
from foveate.core.packed import Packed
from foveate.core.protocols import PolicyName, Scorer, Scores, thresholds_of, tier_values_of
from foveate.core.render import TranscriptRenderer
from foveate.core.schema import Conversation, Evidence, Query, Question, Turn
from foveate.core.tiers import Thresholds, Tier, TierValues
from foveate.core.tokens import TokenCounter
from foveate.evaluation.cache import RecordCache, code_digest, digest
from foveate.evaluation.methods import AnyMethod, LabelMethod, Method, Packing
from foveate.evaluation.progress import Progress
from foveate.evaluation.records import Budget, Record, average
from foveate.evaluation.suites import SplitName, Suite
from foveate.metrics.locomo import answer_parts, normal_context
from foveate.metrics.retrieval import coverage, evidence_recall
from foveate.metrics.text import normalise, stemmed
from foveate.rules.budget import offer_of
from foveate.summarizers.heuristic import HeuristicCompressor

WARM_UPS = 3
WHOLE = 1 << 40


@dataclass(frozen=True, slots=True)
class Bench:
    """What every method is measured with.

    Attributes:
        suite: the corpus.
        split: P0 or P1.
        budgets: tokens allowed, ascending.
        counter: what budgets are counted in.
        cache: where finished conversations are kept.
        seed: of the run; part of the rows' key.
        fold: the only fold of P1 that is evaluated; None for all of them.
        policy: how turns are chosen with trained scorers; None for their own.
    """

    suite: Suite
    split: SplitName
    budgets: tuple[int, ...]
    counter: TokenCounter
    cache: RecordCache
    seed: int = 13
    fold: int | None = None
    policy: PolicyName | None = None

    def budgets_for(self, method: AnyMethod) -> tuple[Budget, ...]:
        """The budgets a method is measured at: one, "full", where it keeps everything."""
        whole = isinstance(method, Method) and method.packing.whole
        return ("full",) if whole else self.budgets


def method_digest(method: AnyMethod) -> str:
    """What tells two methods apart, code aside."""
    fingerprint = method.fingerprint if isinstance(method, Method) else "labels"
    return digest({"name": method.name, "fingerprint": fingerprint})


def method_code(method: AnyMethod) -> str:
    """The digest of the code that a method's results depend on."""
    return code_digest(_trained(method))


def _trained(method: AnyMethod) -> bool:
    return isinstance(method, Method) and bool(method.fingerprint)


def run_method(method: AnyMethod, bench: Bench, progress: Progress) -> list[Record]:
    """The records of a method on the whole corpus; conversations that were measured before are read back."""
    records: list[Record] = []
    for conversation in bench.suite.conversations:
        progress.start(f"{method.name} on {conversation.id}")
        key = _key(method, conversation, bench)
        kept = bench.cache.read(method.name, key, conversation.id)
        if kept is None:
            found = run_conversation(method, conversation, bench)
            bench.cache.write(method.name, key, conversation.id, found)
        else:
            found = kept
        progress.advance(reused=kept is not None)
        records.extend(found)
    return records


def _key(method: AnyMethod, conversation: Conversation, bench: Bench) -> str:
    return digest(
        {
            "data": bench.suite.data_sha,
            "corpus": bench.suite.name,
            "split": bench.split if _trained(method) else "any",
            "conversation": conversation.id,
            "method": method_digest(method),
            "budgets": bench.budgets_for(method),
            "counter": bench.counter.name,
            "render": "chrono",
            "seed": bench.seed,
            "code": method_code(method),
        }
    )


def run_conversation(method: AnyMethod, conversation: Conversation, bench: Bench) -> list[Record]:
    """One record a question and budget, in the order of the questions."""
    gold = _Gold(conversation, bench)
    match method:
        case Method():
            runs = [_Scored(s, method.packing, conversation.turns, bench) for s in method.scorers(conversation.id)]
            budgets = bench.budgets_for(method)
            for run in runs:
                for question in conversation.questions[:WARM_UPS]:
                    run.pack(question.query, budgets)
            return [record for question in conversation.questions for record in _ask(runs, question, budgets, gold)]
        case LabelMethod():
            oracle = _Labelled(method, conversation.turns, bench)
            return [
                gold.measure(question, budget, packed, seconds)
                for question in conversation.questions
                for budget, packed, seconds in oracle.pack(question.evidence, bench.budgets)
            ]


def contexts(
    method: Method, conversation: Conversation, bench: Bench, questions: Sequence[Question]
) -> Iterator[tuple[Record, str]]:
    """What a method keeps for some questions of a conversation at each budget, measured, and its text.

    Of a method with several seeds the first is taken.
    """
    gold = _Gold(conversation, bench)
    run = _Scored(method.scorers(conversation.id)[0], method.packing, conversation.turns, bench)
    for question in questions:
        for budget, packed, seconds in run.pack(question.query, bench.budgets_for(method)):
            yield gold.measure(question, budget, packed, seconds), packed.text


def whole_text(conversation: Conversation, bench: Bench) -> str:
    """The whole conversation as a context would have it."""
    return _Gold(conversation, bench).history.text


def _ask(runs: Sequence[_Scored], question: Question, budgets: Sequence[Budget], gold: _Gold) -> Iterator[Record]:
    packed = [run.pack(question.query, budgets) for run in runs]
    for at in zip(*packed, strict=True):
        yield average([gold.measure(question, budget, context, seconds) for budget, context, seconds in at])


Timed = tuple[Budget, Packed, float]


class _Packer:
    """Scores to contexts over one conversation, with the tokens of its turns counted once.

    Thresholds and tier values are those of the scorer, where it has some and the packing has none.
    """

    def __init__(
        self, packing: Packing, policy: PolicyName, turns: Sequence[Turn], bench: Bench, scorer: Scorer | None = None
    ) -> None:
        self._packing = packing
        self._policy: PolicyName = policy
        self.turns = () if packing.empty else tuple(turns)
        own = Thresholds() if scorer is None else thresholds_of(scorer, len(self.turns))
        thresholds = own if packing.thresholds is None else packing.thresholds(len(self.turns))
        strict = packing.shorten == "strict"
        summarizer = None if packing.shorten == "no" else HeuristicCompressor(bench.counter, strict)
        self._builder = ContextBuilder(
            counter=bench.counter,
            renderer=TranscriptRenderer(),
            summarizer=summarizer,
            thresholds=thresholds,
            tier_values=TierValues() if scorer is None else tier_values_of(scorer),
        )
        self._builder.append(self.turns)

    def pack(self, scores: Scores, query: Query | None, budget: Budget) -> Packed:
        allowed = WHOLE if budget == "full" else budget
        if self._packing.budget is not None:
            offer = offer_of(self._builder.problem(scores, query=query))
            allowed = min(allowed, self._packing.budget.tokens(offer, allowed))
        return self._builder.build(scores, allowed, policy=self._policy, query=query)

    def timed(self, scores: Scores, query: Query | None, budgets: Sequence[Budget], scoring: float) -> list[Timed]:
        """A context for each budget, with the seconds it took on top of `scoring`."""
        found: list[Timed] = []
        for budget in budgets:
            start = time.perf_counter()
            packed = self.pack(scores, query, budget)
            found.append((budget, packed, scoring + time.perf_counter() - start))
        return found


class _Scored:
    """One scorer over one conversation. It sees turns and queries; there is no way for a label to reach it."""

    def __init__(self, scorer: Scorer, packing: Packing, turns: Sequence[Turn], bench: Bench) -> None:
        self._packer = _Packer(packing, packing.policy or scorer.policy, turns, bench, scorer)
        self._index = scorer.open()
        self._index.append(self._packer.turns)

    def pack(self, query: Query, budgets: Sequence[Budget]) -> list[Timed]:
        """The contexts for each budget, each with the seconds of scoring and packing it."""
        start = time.perf_counter()
        scores = self._index.score(query)
        return self._packer.timed(scores, query, budgets, time.perf_counter() - start)


class _Labelled:
    """The flagged ceiling over one conversation: it is given the evidence, and not the question."""

    def __init__(self, method: LabelMethod, turns: Sequence[Turn], bench: Bench) -> None:
        self._method = method
        self._packer = _Packer(Packing(), "score", turns, bench)

    def pack(self, evidence: Evidence, budgets: Sequence[Budget]) -> list[Timed]:
        return self._packer.timed(self._method.score(self._packer.turns, evidence), None, budgets, 0.0)


def line_count(counter: TokenCounter) -> Callable[[str], int]:
    """Counts a text anew, apart from the builder's own count.

    The MiniLM tokenizer splits at white space first, so there the counts of the lines add up, and each is taken once.
    """
    if counter.name != "minilm":
        return counter.count
    one = lru_cache(maxsize=1 << 16)(counter.count)
    return lambda text: sum(map(one, text.split("\n")))


@dataclass(slots=True)
class _Wanted:
    """A question's answer as it is searched for: its parts in both normal forms, and how much the whole history has."""

    strict: list[str]
    stems: list[str]
    whole: float | None = field(default=None)

    def share(self, context: str, parts: Sequence[str]) -> float | None:
        return sum(f" {part} " in context for part in parts) / len(parts) if parts else None


@dataclass(frozen=True, slots=True)
class _Read:
    """A context: its tokens as counted anew, and its text in both normal forms."""

    text: str
    tokens: int
    strict: str
    stems: str


class _Gold:
    """The labels of one conversation and what contexts are compared with."""

    def __init__(self, conversation: Conversation, bench: Bench) -> None:
        self._conversation = conversation
        self._bench = bench
        self._turns = {turn.id: turn for turn in conversation.turns}
        self._last: dict[Budget, _Read] = {}
        self._count = line_count(bench.counter)
        self._places = {turn.id: place for place, turn in enumerate(conversation.turns)}
        self._sessions = {turn.id: turn.session or "" for turn in conversation.turns}
        self._wanted = {question.id: self._parts(question.evidence) for question in conversation.questions}

    @cached_property
    def history(self) -> Packed:
        """The whole conversation."""
        packer = _Packer(Packing(whole=True), "newest", self._conversation.turns, self._bench)
        return packer.pack(Scores(score=[1.0] * len(self._turns)), None, "full")

    @cached_property
    def _history_text(self) -> str:
        return f" {normal_context(self.history.text)} "

    def _parts(self, evidence: Evidence) -> _Wanted:
        numbered = self._bench.suite.name == "locomo"
        apart = evidence.category in self._bench.suite.apart
        answer = evidence.trap if apart else evidence.answer
        parts = [] if answer is None else answer_parts(int(evidence.category) if numbered else 4, answer)
        return _Wanted([normalise(part) for part in parts], [stemmed(part) for part in parts])

    def _read(self, budget: Budget, text: str) -> _Read:
        """The context as it is counted and searched; one equal to the last question's is not read again."""
        last = self._last.get(budget)
        if last is None or last.text != text:
            forms = (f" {normal_context(text, stem=stem)} " for stem in (False, True))
            last = self._last[budget] = _Read(text, self._count(text), *forms)
        return last

    def _coverage(self, turn_id: str, packed: Packed) -> float:
        """How much of a turn the text emitted for it carries; the trace is read only where that is a shorter form."""
        place, turn = self._places[turn_id], self._turns[turn_id]
        match packed.tiers[place] if packed.tiers else Tier.DROP:
            case Tier.DROP:
                return 0.0
            case Tier.FULL:
                emitted = spoken(turn)
            case _:
                emitted = packed.trace[place].emitted
        return coverage(self._bench.suite.spoken(turn), emitted)

    def measure(self, question: Question, budget: Budget, packed: Packed, seconds: float) -> Record:
        """The record of one context."""
        evidence = question.evidence.turn_ids
        covered = {turn: self._coverage(turn, packed) for turn in evidence}
        recall = evidence_recall(evidence, covered, self._sessions)
        read = self._read(budget, packed.text)
        wanted = self._wanted[question.id]
        if wanted.whole is None:
            wanted.whole = wanted.share(self._history_text, wanted.strict)
        return Record(
            question=question.id,
            conversation=self._conversation.id,
            category=question.evidence.category,
            budget=budget,
            tokens=read.tokens,
            history=self.history.tokens,
            erb=None if recall is None else recall.erb,
            all=None if recall is None else recall.all,
            any=None if recall is None else recall.any,
            session=None if recall is None else recall.session,
            coverage=None if recall is None else recall.coverage,
            asc=wanted.share(read.strict, wanted.strict),
            asc_stem=wanted.share(read.stems, wanted.stems),
            asc_full=wanted.whole,
            kept=tuple(turn for turn, tier in zip(self._turns, packed.tiers, strict=False) if tier),
            seconds=seconds,
            violation=budget != "full" and read.tokens > budget,
        )
