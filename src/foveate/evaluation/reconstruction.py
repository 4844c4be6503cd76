"""Does BLEU(D, D^) of Eq. 8 know a good context? BLEU of packed contexts against the history, beside evidence recall.

Reading R1 of EVALUATION.md section 7: D^ is the packed context. (R2, a reader's reconstruction of the history from
the context, needs a reader that writes tens of thousands of tokens, and is not measured.) If BLEU told evidence from
filler, contexts of one length with more of the evidence would have more of it: the rank correlation says if they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from foveate.core.schema import Conversation, Question
from foveate.evaluation.methods import Method
from foveate.evaluation.progress import Progress
from foveate.evaluation.records import Budget, Record
from foveate.evaluation.report import percent, table
from foveate.evaluation.results import METRIC_VERSION, Row, RunFacts
from foveate.evaluation.runner import Bench, contexts, method_code, method_digest, whole_text
from foveate.metrics.bleu import Reconstruction, ReconstructionBleu, corpus_bleu
from foveate.metrics.statistics import spearman


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """One context: what of the evidence it keeps, its BLEU, its text, and the text of the history."""

    record: Record
    bleu: Reconstruction
    context: str
    history: str


def rebuild(method: Method, bench: Bench, questions: int, bar: Progress) -> list[Rebuilt]:
    """The contexts of a method for the first `questions` pooled questions with evidence of each conversation.

    Raises:
        MissingExtraError: sacrebleu is not installed.
    """
    found: list[Rebuilt] = []
    for conversation in bench.suite.conversations:
        bar.start(f"{method.name} on {conversation.id}")
        history = whole_text(conversation, bench)
        score = ReconstructionBleu(history)
        for record, text in contexts(method, conversation, bench, _asked(bench, conversation)[:questions]):
            found.append(Rebuilt(record, score(text), text, history))
        bar.advance()
    return found


def _asked(bench: Bench, conversation: Conversation) -> list[Question]:
    apart = bench.suite.apart
    return [q for q in conversation.questions if q.evidence.turn_ids and q.evidence.category not in apart]


def rows_of(method: Method, bench: Bench, rebuilt: Sequence[Rebuilt], facts: RunFacts) -> list[Row]:
    """One row a budget."""
    return [
        _row(method, budget, [one for one in rebuilt if one.record.budget == budget], facts)
        for budget in bench.budgets_for(method)
    ]


def _row(method: Method, budget: Budget, rebuilt: Sequence[Rebuilt], facts: RunFacts) -> Row:
    erb = [one.record.erb or 0.0 for one in rebuilt]
    precision, of_ceiling = (
        [x or 0.0 for x in xs] for xs in zip(*((r.bleu.precision, r.bleu.of_ceiling) for r in rebuilt), strict=True)
    )
    return {
        "dataset": facts.dataset,
        "data_sha": facts.data_sha,
        "split": {"name": facts.split, "fold": facts.fold},
        "method": method.name,
        "q_aware": method.q_aware,
        "label_leak": False,
        "budget": budget,
        "tokenizer_id": facts.tokenizer_id,
        "render": facts.render,
        "reader": None,
        "adv_track": None,
        "n": len(rebuilt),
        "n_errors": 0,
        "conversations": facts.conversations,
        "metrics": {
            "erb": fmean(erb),
            "ratio": fmean(one.bleu.ratio for one in rebuilt),
            "bleu": fmean(one.bleu.bleu for one in rebuilt),
            "corpus_bleu": corpus_bleu([one.context for one in rebuilt], [one.history for one in rebuilt]),
            "precision": fmean(precision),
            "of_ceiling": fmean(of_ceiling),
            "spearman_ratio": spearman([one.bleu.ratio for one in rebuilt], [one.bleu.bleu for one in rebuilt]),
            "spearman_erb_bleu": spearman(erb, [one.bleu.bleu for one in rebuilt]),
            "spearman_erb_precision": spearman(erb, precision),
        },
        "ci": {},
        "seed": facts.seed,
        "code_commit": facts.code_commit,
        "train_data": method.train_data,
        "test_eval_count": 1,
        "metric_version": METRIC_VERSION,
        "method_digest": method_digest(method),
        "code_digest": method_code(method),
        "command": facts.command,
    }


def markdown(rows: Sequence[Row]) -> str:
    """Lengths, BLEU in its three forms, and what it has to do with the evidence."""
    first = rows[0]
    head = (
        f"# BLEU of the context against the history (Eq. 8): {first['dataset']}, split {first['split']['name']}\n\n"
        "The first questions with evidence of each conversation. r: words of the context over words of the history. "
        "BLEU: mean of sacrebleu's sentence scores (`eff:yes`); corpus: `eff:no`, counts summed. BLEU/BP: without the "
        "brevity penalty, and BLEU/ceiling: over 100 exp(1 - 1/r), both in %. Spearman: over questions."
    )
    header = ["method", "budget", "n", "ERB", "r", "BLEU", "corpus", "BLEU/BP", "BLEU/ceiling"]
    header += ["Spearman r, BLEU", "ERB, BLEU", "ERB, BLEU/BP"]
    return f"{head}\n\n{table(header, [_cells(row) for row in rows])}\n"


def _cells(row: Row) -> list[str]:
    found = row["metrics"]
    correlations = (found[name] for name in ("spearman_ratio", "spearman_erb_bleu", "spearman_erb_precision"))
    return [
        row["method"],
        str(row["budget"]),
        str(row["n"]),
        percent(found["erb"]),
        f"{found['ratio']:.3f}",
        *(f"{found[name]:.2g}" for name in ("bleu", "corpus_bleu")),
        f"{found['precision']:.1f}",
        percent(found["of_ceiling"]),
        *("-" if value is None else f"{value:+.2f}" for value in correlations),
    ]
