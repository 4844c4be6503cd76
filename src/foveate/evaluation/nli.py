"""How well P(contradiction) of Eq. 5 is known: every NLI set, one method at a time.

A set with three labels is measured on them where the method gives three; every set is measured on contradiction
against the rest, called at 0.5 (EVALUATION.md section 6). DECODE holds contradictions only: of its metrics the recall
alone means anything. The share of the most frequent label stands beside every accuracy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from foveate.core.errors import ConfigError, MissingExtraError
from foveate.corpora import nli
from foveate.corpora.nli import BinaryPair, Pair
from foveate.evaluation.plot import COLOURS, MARKERS, check_name
from foveate.evaluation.progress import Progress
from foveate.evaluation.report import percent, table
from foveate.evaluation.results import Row, rounded
from foveate.metrics.calibration import calibration
from foveate.metrics.nli import THRESHOLD, accuracy, auroc, majority_accuracy, prf
from foveate.rules.contradiction import LexicalContradiction

SetName = Literal[
    "snli-test",
    "counterfactual-test",
    "breaking",
    "conjnli-dev",
    "negation",
    "spoken-test",
    "prosecco",
    "decode",
    "mnli",
]
SETS: tuple[SetName, ...] = get_args(SetName)
RESEARCH: frozenset[str] = frozenset({"spoken-test", "prosecco", "decode", "mnli"})
"""Sets that no shipped checkpoint may be trained on."""
LEXICAL = "lexical"
AT_ONCE = 512
"""Pairs judged between two reports of progress."""
METRIC_VERSION = "nli-1"


@dataclass(frozen=True, slots=True)
class NliSet:
    """Labelled pairs under a name."""

    name: str
    pairs: tuple[Pair | BinaryPair, ...]

    @property
    def sha(self) -> str:
        """A digest of texts and labels, in order."""
        lines = (f"{p.premise}\0{p.hypothesis}\0{p.label}\n" for p in self.pairs)
        return hashlib.sha256("".join(lines).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Answers:
    """What a method says of the pairs of a set.

    Attributes:
        contradiction: P(contradiction) of each pair.
        labels: the most probable of three labels; None where the method knows contradiction only.
        truncated: pairs that were cut.
    """

    contradiction: list[float]
    labels: list[str] | None
    truncated: int


class NliMethod(Protocol):
    name: str

    def answer(self, premises: Sequence[str], hypotheses: Sequence[str]) -> Answers: ...


class LexicalMethod:
    """The rule of `rules.contradiction`."""

    name = LEXICAL

    def answer(self, premises: Sequence[str], hypotheses: Sequence[str]) -> Answers:
        rule = LexicalContradiction()
        pairs = zip(premises, hypotheses, strict=True)
        return Answers([rule.probabilities([premise], hypothesis)[0] for premise, hypothesis in pairs], None, 0)


class TrainedMethod:
    """A run with an NLI head, or a cross-encoder by folder or hub id.

    Raises:
        CheckpointError: nothing of the kind by that name.
        MissingExtraError: torch is not installed.
    """

    def __init__(self, name: str) -> None:
        try:
            from foveate.learned.contradiction import CONTRADICTION, load_nli
            from foveate.learned.nli import NLI_LABELS
        except ImportError as error:
            raise MissingExtraError(error.name or "torch", "train") from error
        self._model, self._labels, self._column = load_nli(name), NLI_LABELS, CONTRADICTION
        self.name = self._model.name

    def answer(self, premises: Sequence[str], hypotheses: Sequence[str]) -> Answers:
        judged = self._model.judge(premises, hypotheses)
        return Answers(
            judged.probabilities[:, self._column].tolist(),
            [self._labels[k] for k in judged.probabilities.argmax(1)],
            int(judged.truncated.sum()),
        )


def nli_method(name: str) -> NliMethod:
    """The rule for the name lexical, else the model of that folder or hub id."""
    return LexicalMethod() if name == LEXICAL else TrainedMethod(name)


def load_sets(root: Path, names: Sequence[str], limit: int = 0) -> list[NliSet]:
    """The named sets, each with at most `limit` pairs, evenly spaced; 0 takes all.

    Raises:
        ConfigError: an unknown name.
        DataError: a file is missing or changed.
    """
    if odd := next((name for name in names if name not in SETS), None):
        raise ConfigError(f"--sets names {odd!r}: known are {', '.join(SETS)}")
    held = nli.split(nli.load_all(root)).test if set(names) - RESEARCH else ()
    loaders: dict[str, Callable[[], Sequence[Pair | BinaryPair]]] = {
        "snli-test": lambda: nli.of_source(held, "snli:test"),
        "counterfactual-test": lambda: nli.of_source(held, "counterfactual:test"),
        "breaking": lambda: nli.of_source(held, "breaking"),
        "conjnli-dev": lambda: nli.of_source(held, "conjnli:dev"),
        "negation": lambda: nli.of_source(held, "negation"),
        "spoken-test": lambda: nli.spoken(root, "test"),
        "prosecco": lambda: nli.prosecco(root),
        "decode": lambda: nli.decode(root),
        "mnli": lambda: nli.mnli_binary(root),
    }
    return [NliSet(name, _evenly(loaders[name](), limit)) for name in names]


def _evenly(pairs: Sequence[Pair | BinaryPair], most: int) -> tuple[Pair | BinaryPair, ...]:
    if not most or len(pairs) <= most:
        return tuple(pairs)
    return tuple(pairs[i * len(pairs) // most] for i in range(most))


def evaluate(method: NliMethod, one: NliSet, bar: Progress) -> Row:
    """A method on a set: the metrics, and the bins of a reliability diagram."""
    parts: list[Answers] = []
    bar.start(f"{method.name} on {one.name}")
    for start in range(0, len(one.pairs), AT_ONCE):
        pairs = one.pairs[start : start + AT_ONCE]
        parts.append(method.answer([p.premise for p in pairs], [p.hypothesis for p in pairs]))
    bar.advance()
    probabilities = [p for part in parts for p in part.contradiction]
    labels = [label for part in parts for label in part.labels or ()]
    found = _metrics(one.pairs, probabilities, labels)
    return {
        "set": one.name,
        "method": method.name,
        "n": len(one.pairs),
        "pairs_sha": one.sha,
        "truncated": sum(part.truncated for part in parts),
        "research_only": one.name in RESEARCH,
        "metric_version": METRIC_VERSION,
        **rounded(found),
    }


def _metrics(pairs: Sequence[Pair | BinaryPair], probabilities: list[float], labels: list[str]) -> dict[str, Any]:
    gold = [pair.contradicts for pair in pairs]
    called = [p >= THRESHOLD for p in probabilities]
    positives_only = all(gold)
    three = bool(pairs) and all(isinstance(pair, Pair) for pair in pairs)
    of_contradiction, reliable = prf(called, gold), calibration(probabilities, gold)
    return {
        "accuracy": accuracy(labels, [pair.label for pair in pairs]) if three and labels else None,
        "majority": majority_accuracy([pair.label for pair in pairs]) if three else None,
        "binary_accuracy": None if positives_only else accuracy(called, gold),
        "binary_majority": None if positives_only else majority_accuracy(gold),
        "auroc": auroc(probabilities, gold),
        "f1": None if positives_only else of_contradiction.f1,
        "precision": None if positives_only else of_contradiction.precision,
        "recall": of_contradiction.recall,
        "ece": None if positives_only else reliable.ece,
        "brier": None if positives_only else reliable.brier,
        "reliability": None
        if positives_only
        else [[b.low, b.high, b.count, b.confidence, b.rate] for b in reliable.bins],
    }


_COLUMNS = {
    "accuracy": "accuracy",
    "majority": "majority",
    "contradiction or not": "binary_accuracy",
    "majority ": "binary_majority",
    "AUROC": "auroc",
    "F1": "f1",
    "recall": "recall",
    "ECE": "ece",
}


def markdown(rows: Sequence[Row]) -> str:
    """One table a method, in the order of the rows."""
    parts = ["# Natural-language inference\n\nAll in %; AUROC, F1, recall and ECE are those of contradiction."]
    for name in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == name]
        body = [[row["set"], str(row["n"]), *(percent(row[key]) for key in _COLUMNS.values())] for row in own]
        cut = sum(row["truncated"] for row in own)
        tail = f"\n\n{cut} pairs were longer than the model reads and were cut." if cut else ""
        parts.append(f"## {name}\n\n{table(['set', 'n', *(title.strip() for title in _COLUMNS)], body)}{tail}")
    return "\n\n".join(parts) + "\n"


def save_reliability(rows: Sequence[Row], path: Path) -> None:
    """A reliability diagram a set: the rate of contradictions over the predicted probability, a line a method.

    Raises:
        ConfigError: the file's ending is no picture format offered, or no row has both classes.
        MissingExtraError: matplotlib is not installed.
    """
    check_name(path)
    names = list(dict.fromkeys(row["set"] for row in rows if row["reliability"]))
    if not names:
        raise ConfigError("--plot needs a set with contradictions and others")
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "eval") from error
    wide = min(4, len(names))
    high = -(-len(names) // wide)
    figure = Figure(figsize=(3.6 * wide, 3.6 * high + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(high, wide, sharex=True, sharey=True, squeeze=False).ravel()
    methods = list(dict.fromkeys(row["method"] for row in rows))
    for axis, name in zip(axes, names, strict=False):
        axis.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=1.0)
        for row in (row for row in rows if row["set"] == name):
            number = methods.index(row["method"])
            confidence, rate = ([b[k] for b in row["reliability"]] for k in (3, 4))
            style = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
            axis.plot(confidence, rate, markersize=4, linewidth=1.4, label=row["method"], **style)
        axis.set_title(name, fontsize=10)
        axis.set_aspect("equal")
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[len(names) :]:
        axis.set_axis_off()
    axes[0].legend(frameon=False, fontsize=8)
    figure.supxlabel("predicted probability of contradiction", fontsize=10)
    figure.supylabel("share that contradicts", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": "foveate"}):
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
