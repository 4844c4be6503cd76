"""Names to methods: the rule baselines of EVALUATION.md section 11, and any trained or exported scorer.

A `Method` can score turns against a `Query` and nothing else: no type here that it touches holds a gold label. The one
exception is a `LabelMethod` (the oracle ceiling), a type of its own, to which the runner hands the evidence explicitly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from foveate.core.errors import ConfigError
from foveate.core.protocols import PolicyName, Scorer, Scores
from foveate.core.schema import Evidence, Turn
from foveate.core.tiers import Thresholds
from foveate.evaluation.checkpoints import load_checkpoint
from foveate.evaluation.content import ContentScorer
from foveate.evaluation.embedding import MiniLmEmbedder
from foveate.evaluation.suites import SplitName, Suite
from foveate.rules.acc import acc_rule
from foveate.rules.afm import AfmScorer, afm_paper_offline, afm_public_offline, afm_rule
from foveate.rules.budget import BudgetRule, BudgetSign, DynamicBudget
from foveate.rules.eviction import EvictionScorer, WindowScorer
from foveate.rules.ranking import (
    Bm25Scorer,
    DenseScorer,
    OldestFirstScorer,
    RandomScorer,
    RecencyScorer,
    RrfScorer,
    SumScorer,
)

RuleName = Literal[
    "stateless",
    "full",
    "oldest",
    "recency",
    "window-20",
    "random",
    "bm25",
    "bm25-near-date",
    "bm25-near-date-content",
    "dense",
    "dense-date",
    "rrf",
    "best-sum",
    "best-sum-content",
    "evict-fifo",
    "evict-importance",
    "evict-hybrid",
    "afm-paper-offline",
    "afm-public-offline",
    "afm-rule",
    "afm-rule-dense",
    "acc-paper",
    "acc-prose",
    "oracle",
]
RULES: tuple[RuleName, ...] = get_args(RuleName)
RANDOM_SEEDS = (13, 42, 1337, 2024, 31337)
NOTHING_TRAINED = "none"
_CHOICES = f"the folder of a run or an export, 'rules', or of {', '.join(RULES)}"


@dataclass(frozen=True, slots=True)
class Packing:
    """How the scores of a method become a context.

    Attributes:
        shorten: how turns may be shortened, which also allows stubs: not at all, by the heuristic compressor as AFM has
            it ("loose"), or only where numbers, names and negations survive ("strict").
        thresholds: tau_high and tau_mid for a history of n turns; None for the defaults.
        budget: the rule for the budget used (Eq. 3); None for all that is allowed.
        empty: no turn is offered at all.
        whole: everything is kept, whatever the budget.
        policy: how turns are chosen; None for the scorer's own policy.
    """

    shorten: Literal["no", "loose", "strict"] = "no"
    thresholds: Callable[[int], Thresholds] | None = None
    budget: BudgetRule | None = None
    empty: bool = False
    whole: bool = False
    policy: PolicyName | None = None


ALL_TURNS = Packing()


@dataclass(frozen=True, slots=True)
class Method:
    """A method that sees turns and the question.

    Attributes:
        name: in tables and rows.
        q_aware: whether it looks at the question.
        scorers: the scorers for a conversation, by its id; results are averaged over them (seeds).
        packing: how their scores are used.
        train_data: what it was trained on; "none" for rules.
        fingerprint: tells apart two methods of one name (the sha256 of a checkpoint's files).
    """

    name: str
    q_aware: bool
    scorers: Callable[[str], tuple[Scorer, ...]]
    packing: Packing = ALL_TURNS
    train_data: str | None = NOTHING_TRAINED
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class LabelMethod:
    """A ceiling that is shown the gold evidence of each question. Its rows are flagged as label leaks.

    Attributes:
        name: in tables and rows.
        score: turns and evidence to one score a turn.
    """

    name: str
    score: Callable[[Sequence[Turn], Evidence], Scores]


AnyMethod = Method | LabelMethod


def evidence_first(turns: Sequence[Turn], evidence: Evidence) -> Scores:
    """Evidence turns first, the rest by recency as filler."""
    wanted, n = set(evidence.turn_ids), len(turns)
    return Scores(score=[(i + 1) / n + (2.0 if turn.id in wanted else 0.0) for i, turn in enumerate(turns)])


def rule_method(name: RuleName, embedder: MiniLmEmbedder) -> AnyMethod:
    """The rule baseline of that name; `embedder` serves those that need sentence vectors."""
    match name:
        case "stateless":
            return _blind(name, RecencyScorer(), packing=Packing(empty=True))
        case "full":
            return _blind(name, RecencyScorer(), packing=Packing(whole=True))
        case "oldest":
            return _blind(name, OldestFirstScorer())
        case "recency":
            return _blind(name, RecencyScorer())
        case "window-20":
            return _blind(name, WindowScorer(20))
        case "random":
            return _blind(name, *(RandomScorer(seed) for seed in RANDOM_SEEDS))
        case "evict-fifo":
            return _blind(name, EvictionScorer("fifo"))
        case "evict-importance":
            return _blind(name, EvictionScorer("importance"))
        case "evict-hybrid":
            return _blind(name, EvictionScorer("hybrid"))
        case "bm25":
            return _aware(name, Bm25Scorer())
        case "bm25-near-date":
            return _aware(name, Bm25Scorer(window=1, header=True))
        case "bm25-near-date-content":
            return _aware(name, ContentScorer(Bm25Scorer(window=1, header=True)))
        case "dense":
            return _aware(name, DenseScorer(embedder))
        case "dense-date":
            return _aware(name, DenseScorer(embedder, header=True))
        case "rrf":
            return _aware(name, RrfScorer((Bm25Scorer(), DenseScorer(embedder)), k=60.0))
        case "best-sum":
            return _aware(name, SumScorer((Bm25Scorer(window=1, header=True), DenseScorer(embedder, header=True))))
        case "best-sum-content":
            lexical = ContentScorer(Bm25Scorer(window=1, header=True))
            return _aware(name, SumScorer((lexical, DenseScorer(embedder, header=True))))
        case "afm-paper-offline":
            return _afm(name, afm_paper_offline())
        case "afm-public-offline":
            return _afm(name, afm_public_offline())
        case "afm-rule":
            return _afm(name, afm_rule())
        case "afm-rule-dense":
            return _afm(name, afm_rule(embedder))
        case "acc-paper":
            return _acc(name, "paper")
        case "acc-prose":
            return _acc(name, "prose")
        case "oracle":
            return LabelMethod(name, evidence_first)


def _blind(name: str, *scorers: Scorer, packing: Packing = ALL_TURNS) -> Method:
    return Method(name, False, lambda _: scorers, packing)


def _aware(name: str, scorer: Scorer) -> Method:
    return Method(name, True, lambda _: (scorer,))


def _afm(name: str, scorer: AfmScorer) -> Method:
    return Method(name, True, lambda _: (scorer,), Packing("loose", scorer.thresholds_at))


def _acc(name: str, sign: BudgetSign) -> Method:
    scorer = acc_rule()
    packing = Packing("strict", scorer.thresholds_at, DynamicBudget(sign=sign))
    return Method(name, True, lambda _: (scorer,), packing)


def checkpoint_method(
    folder: Path, split: SplitName, suite: Suite, only: int | None = None, policy: PolicyName | None = None
) -> Method:
    """The scorer of a run or export folder; under P1 the one of the fold that tests the conversation.

    With `only`, the scorer of that fold: the folder itself, or its part of that name. With `policy`, packed by that one
    instead of the scorer's own.

    Raises:
        ConfigError: the split does not fit the folder.
        CheckpointError: the folder holds no scorer.
    """
    if split == "P1" and only is None:
        found, fold = load_checkpoint(folder, suite.name, folds=len(suite.folds)), suite.fold_of
    else:
        found, fold = load_checkpoint(folder, suite.name, fold=only), _first
    return Method(
        name=found.name,
        q_aware=True,
        scorers=lambda conversation: (found.scorer(fold(conversation)),),
        train_data=found.train_data,
        packing=Packing(policy=policy),
        fingerprint=found.fingerprint + (f"|{policy}" if policy else ""),
    )


def _first(conversation_id: str) -> int:
    return 0


def method_names(text: str) -> tuple[str, ...]:
    """The names in a comma-separated list, with "rules" standing for every rule baseline.

    Raises:
        ConfigError: there is none, or one stands twice.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    names = [name for part in parts for name in (RULES if part == "rules" else (part,))]
    if not names:
        raise ConfigError(f"no method to evaluate: give {_CHOICES}")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"method {twice!r} is named twice: name each method once")
    return tuple(names)


class Methods:
    """Finds methods by name; those that need sentence vectors share one encoder, which loads on first use.

    Args:
        suite: what they will be measured on.
        split: P0 or P1.
        fold: the only fold that is evaluated; None for all of them.
        policy: how turns are chosen with trained scorers; None for their own.
    """

    def __init__(
        self, suite: Suite, split: SplitName, fold: int | None = None, policy: PolicyName | None = None
    ) -> None:
        self._suite = suite
        self._policy: PolicyName | None = policy
        self._fold = fold
        self._split: SplitName = split
        self._embedder = MiniLmEmbedder()

    def find(self, name: str) -> AnyMethod:
        """A rule baseline by name, else the scorer in a folder.

        Raises:
            ConfigError: neither a rule nor a folder; the message lists the rules.
            CheckpointError: the folder holds no scorer.
        """
        rule: RuleName | None = next((known for known in RULES if known == name), None)
        if rule is not None:
            return rule_method(rule, self._embedder)
        if not Path(name).is_dir():
            raise ConfigError(f"no method {name!r}: give {_CHOICES}")
        return checkpoint_method(Path(name), self._split, self._suite, self._fold, self._policy)
