"""Where a question's evidence stands among all turns in order of score: R@k and MRR, without any budget.

For comparing with published rankers, which report these (EVALUATION.md section 3). Every turn is a candidate; turns of
equal score stand in the order of the conversation; questions without evidence are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from foveate.core.protocols import Scorer
from foveate.core.schema import Conversation
from foveate.evaluation.methods import NOTHING_TRAINED, LabelMethod, Method
from foveate.evaluation.progress import Progress
from foveate.evaluation.report import percent, table
from foveate.evaluation.results import METRIC_VERSION, Row, RunFacts
from foveate.evaluation.runner import method_code, method_digest
from foveate.evaluation.suites import Suite
from foveate.metrics.retrieval import ranking_of, recall_at, reciprocal_rank
from foveate.metrics.statistics import cluster_bootstrap

CUTS = (1, 5, 10, 20)
_NAMES = (*(f"r@{cut}" for cut in CUTS), "mrr")


@dataclass(frozen=True, slots=True)
class Ranked:
    """One question's ranking, measured.

    Attributes:
        conversation: its id.
        category: of the question.
        found: the metrics by name: R@k for each cut, and the reciprocal rank of the first evidence turn.
    """

    conversation: str
    category: str
    found: dict[str, float]


def rank_conversation(scorers: Sequence[Scorer], conversation: Conversation) -> list[Ranked]:
    """Every question that has evidence; the mean over the scorers (seeds). Labels are read after scoring."""
    ids = [turn.id for turn in conversation.turns]
    indexes = [scorer.open() for scorer in scorers]
    for index in indexes:
        index.append(conversation.turns)
    ranked: list[Ranked] = []
    for question in conversation.questions:
        gold = question.evidence.turn_ids
        if not gold:
            continue
        rankings = [ranking_of(index.score(question.query).score, ids) for index in indexes]
        measured = [_measured(ranking, gold) for ranking in rankings]
        means = {name: fmean(one[name] for one in measured) for name in _NAMES}
        ranked.append(Ranked(conversation.id, question.evidence.category or "", means))
    return ranked


def _measured(ranking: Sequence[str], gold: Sequence[str]) -> dict[str, float]:
    values = [*(recall_at(ranking, gold, cut) for cut in CUTS), reciprocal_rank(ranking, gold)]
    return {name: value for name, value in zip(_NAMES, values, strict=True) if value is not None}


def rank(method: Method, suite: Suite, facts: RunFacts, bar: Progress) -> Row:
    """The row of one method: categories pooled, those apart beside them, and R@10 and MRR of each category."""
    ranked: list[Ranked] = []
    for conversation in suite.conversations:
        bar.start(f"{method.name} on {conversation.id}")
        ranked.extend(rank_conversation(method.scorers(conversation.id), conversation))
        bar.advance()
    pooled = [one for one in ranked if one.category not in suite.apart]
    apart = [one for one in ranked if one.category in suite.apart]
    metrics: dict[str, float | None] = dict(_means(pooled))
    metrics |= {f"{name}_apart": value for name, value in _means(apart).items()}
    for category in sorted({one.category for one in ranked}):
        own = _means([one for one in ranked if one.category == category])
        metrics |= {f"{name}_{category}": own[name] for name in ("r@10", "mrr")}
    return {
        "dataset": facts.dataset,
        "data_sha": facts.data_sha,
        "split": {"name": facts.split, "fold": facts.fold},
        "method": method.name,
        "q_aware": method.q_aware,
        "label_leak": False,
        "budget": "none",
        "tokenizer_id": facts.tokenizer_id,
        "render": facts.render,
        "reader": None,
        "adv_track": None,
        "n": len(pooled),
        "n_errors": 0,
        "conversations": facts.conversations,
        "metrics": metrics,
        "ci": {"cluster": {name: _interval(pooled, name) for name in ("r@10", "mrr")}},
        "seed": facts.seed,
        "code_commit": facts.code_commit,
        "train_data": method.train_data or NOTHING_TRAINED,
        "test_eval_count": 1,
        "metric_version": METRIC_VERSION,
        "method_digest": method_digest(method),
        "code_digest": method_code(method),
        "command": facts.command,
    }


def can_rank(method: Method | LabelMethod) -> bool:
    """Whether a method ranks turns by what it knows of the question, and not by labels or not at all."""
    return isinstance(method, Method) and not method.packing.empty and not method.packing.whole


def _means(ranked: Sequence[Ranked]) -> dict[str, float]:
    return {name: math.fsum(one.found[name] for one in ranked) / len(ranked) for name in _NAMES} if ranked else {}


def _interval(ranked: Sequence[Ranked], name: str) -> list[float] | None:
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    for one in ranked:
        sums[one.conversation] = sums.get(one.conversation, 0.0) + one.found[name]
        counts[one.conversation] = counts.get(one.conversation, 0) + 1
    if not sums:
        return None
    bounds = cluster_bootstrap(list(sums.values()), list(counts.values()))
    return [bounds.low, bounds.high]


def markdown(rows: Sequence[Row], names: Mapping[str, str]) -> str:
    """R@k and MRR with intervals over conversations, then the categories, in the order of MRR."""
    ordered = sorted(rows, key=lambda row: -row["metrics"]["mrr"])
    first = ordered[0]
    categories = [c for c in names if f"mrr_{c}" in first["metrics"]]
    head = (
        f"# Ranking of {first['dataset']}'s turns, split {first['split']['name']}\n\n"
        f"{first['n']} questions with evidence; every turn is a candidate. R@k: the share of a question's evidence "
        "turns among the first k; MRR: the mean of 1 over the rank of the first of them; all in %. In brackets: 95 % "
        "intervals over conversations."
    )
    shown = table(
        ["method", *(f"R@{cut}" for cut in CUTS), "MRR", "R@10 apart", "MRR apart"],
        [
            [
                row["method"],
                *(percent(row["metrics"][f"r@{cut}"]) + (_bounds(row, "r@10") if cut == 10 else "") for cut in CUTS),
                percent(row["metrics"]["mrr"]) + _bounds(row, "mrr"),
                percent(row["metrics"].get("r@10_apart")),
                percent(row["metrics"].get("mrr_apart")),
            ]
            for row in ordered
        ],
    )
    parts = table(
        ["R@10 / MRR", *(names[c] for c in categories)],
        [
            [
                row["method"],
                *(" / ".join(percent(row["metrics"][f"{m}_{c}"]) for m in ("r@10", "mrr")) for c in categories),
            ]
            for row in ordered
        ],
    )
    return "\n\n".join([head, shown, parts]) + "\n"


def _bounds(row: Row, name: str) -> str:
    bounds = row["ci"]["cluster"][name]
    return "" if bounds is None else f" [{percent(bounds[0])}, {percent(bounds[1])}]"
