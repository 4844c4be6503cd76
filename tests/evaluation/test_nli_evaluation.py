"""NLI sets and methods, their table, and planted conflicts under Eq. 5."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from foveate.cli import evaluate_coherence, evaluate_nli
from foveate.core.errors import ConfigError
from foveate.core.schema import Query, Turn
from foveate.core.tokens import load_counter
from foveate.corpora.nli import BinaryPair, Label, Pair
from foveate.corpora.synthetic.conflicts import KINDS, Conflict, generate
from foveate.evaluation import coherence, nli
from foveate.evaluation.coherence import Contradictor, Setting
from foveate.evaluation.nli import Answers, NliSet
from foveate.evaluation.progress import Lines
from foveate.rules.acc import acc_rule
from foveate.rules.coherence import CoherentScorer
from foveate.rules.contradiction import LexicalContradiction
from foveate.rules.ranking import FunctionScorer


class Told:
    """A method that says what it is told to."""

    name = "told"

    def __init__(self, contradiction: list[float], labels: list[str] | None) -> None:
        self._all = list(zip(contradiction, labels or [None] * len(contradiction), strict=True))

    def answer(self, premises: Sequence[str], hypotheses: Sequence[str]) -> Answers:
        part, self._all = self._all[: len(premises)], self._all[len(premises) :]
        labels = [label for _, label in part if label is not None]
        return Answers([p for p, _ in part], labels or None, 1)


def three_way(*labels: Label) -> NliSet:
    return NliSet("snli-test", tuple(Pair(f"p{n}", f"h{n}", label, "snli:test") for n, label in enumerate(labels)))


def test_a_three_way_set_is_measured_on_labels_and_on_contradiction() -> None:
    one = three_way("contradiction", "neutral", "neutral", "contradiction")
    told = Told([0.9, 0.5, 0.1, 0.4], ["contradiction", "contradiction", "neutral", "neutral"])
    row = nli.evaluate(told, one, Lines(1))
    assert (row["n"], row["accuracy"], row["majority"]) == (4, 0.5, 0.5)
    assert (row["binary_accuracy"], row["binary_majority"]) == (0.5, 0.5)
    assert (row["precision"], row["recall"], row["f1"]) == (0.5, 0.5, 0.5)
    assert row["auroc"] == 0.75
    assert row["ece"] == pytest.approx((0.1 + 0.5 + 0.1 + 0.6) / 4)
    assert row["truncated"] == 1
    assert not row["research_only"]


def test_long_sets_are_judged_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nli, "AT_ONCE", 2)
    one = three_way("contradiction", "neutral", "entailment")
    row = nli.evaluate(Told([0.9, 0.1, 0.2], ["contradiction", "neutral", "entailment"]), one, Lines(1))
    assert (row["accuracy"], row["auroc"], row["truncated"]) == (1.0, 1.0, 2)


def test_a_rule_has_no_three_way_accuracy_and_positives_alone_have_recall_alone() -> None:
    row = nli.evaluate(nli.LexicalMethod(), three_way("contradiction", "neutral"), Lines(1))
    assert row["accuracy"] is None
    assert row["binary_accuracy"] is not None
    positives = NliSet(
        "decode", tuple(BinaryPair("I like it.", "I do not like it.", "contradiction", "decode") for _ in "ab")
    )
    row = nli.evaluate(nli.LexicalMethod(), positives, Lines(1))
    kept = {
        key
        for key in ("accuracy", "majority", "binary_accuracy", "auroc", "f1", "precision", "recall", "ece")
        if row[key] is not None
    }
    assert kept == {"recall"}
    assert row["research_only"]
    assert "| decode" in nli.markdown([row])


def test_a_sets_digest_depends_on_texts_and_labels() -> None:
    assert three_way("neutral").sha == three_way("neutral").sha
    assert three_way("neutral").sha != three_way("entailment").sha


def test_sets_are_held_out_and_thinned(data_root: Path) -> None:
    counts = {one.name: len(one.pairs) for one in nli.load_sets(data_root, nli.SETS)}
    assert counts == {
        "snli-test": 9824,
        "counterfactual-test": 2000,
        "breaking": 852,
        "conjnli-dev": 623,
        "negation": 531,
        "spoken-test": 1261,
        "prosecco": 1327,
        "decode": 20796,
        "mnli": 2000,
    }
    (few,) = nli.load_sets(data_root, ["mnli"], limit=10)
    (all_of_them,) = nli.load_sets(data_root, ["mnli"])
    assert few.pairs == all_of_them.pairs[::200]
    with pytest.raises(ConfigError, match="'rte'"):
        nli.load_sets(data_root, ["rte"])


def called(module: ModuleType, *words: str) -> int:
    parser = argparse.ArgumentParser()
    module.configure(parser)
    return module.run(parser.parse_args(list(words)))


def test_the_nli_command_prints_and_writes(data_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, report, plot = (tmp_path / name for name in ("rows.jsonl", "report.md", "plot.svg"))
    words = ("--method", "lexical", "--sets", "conjnli-dev,mnli,decode", "--limit", "60")
    assert called(evaluate_nli, *words, "--out", str(out), "--report", str(report), "--plot", str(plot)) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["set"], row["n"]) for row in rows] == [("conjnli-dev", 60), ("mnli", 60), ("decode", 60)]
    assert report.read_text() in capsys.readouterr().out
    assert "conjnli-dev" in report.read_text()
    assert b"<svg" in plot.read_bytes()
    first = out.read_bytes(), report.read_bytes(), plot.read_bytes()
    called(evaluate_nli, *words, "--out", str(out), "--report", str(report), "--plot", str(plot))
    assert (out.read_bytes(), report.read_bytes(), plot.read_bytes()) == first


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--method", ","), "--method"),
        (("--method", "lexical", "--limit", "-1"), "--limit -1"),
        (("--method", "lexical", "--plot", "x.txt"), "no picture format"),
    ],
)
def test_bad_arguments_of_the_nli_command_are_named(words: tuple[str, ...], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        called(evaluate_nli, *words)


class Knows:
    """Knows which turn contradicts a reply; 0.9 for it, nothing else."""

    def __init__(self, conflicts: Sequence[Conflict]) -> None:
        self._opposed = {
            next(t.text for t in c.conversation.turns if t.id == c.opposed): c.conversation.questions[
                0
            ].query.last_reply
            for c in conflicts
        }

    def probabilities(self, premises: Sequence[str], hypothesis: str) -> list[float]:
        return [0.9 if self._opposed.get(premise) == hypothesis else 0.0 for premise in premises]


@pytest.fixture(scope="module")
def planted() -> list[Conflict]:
    return generate(6, 13)


def low_facts(turns: Sequence[Turn], query: Query) -> list[float]:
    """Planted statements in the middle of the field, the rest by place."""
    return [0.5 if turn.id in ("fact", "update") else (i + 1) / (len(turns) + 1) for i, turn in enumerate(turns)]


def test_paper_demotes_and_guard_keeps_what_contradicts_the_reply(planted: list[Conflict]) -> None:
    base = FunctionScorer("middle", low_facts)
    rows = coherence.evaluate(
        base,
        [Contradictor("oracle", Knows(planted))],
        coherence.MODES,
        0.6,
        planted,
        [128],
        load_counter("minilm"),
        Lines(6),
    )
    at = {(row["mode"], row["kind"]): row for row in rows}
    assert {row["n"] for row in rows if row["kind"] != "all"} == {2}
    assert at["guard", "wrong-reply"]["true"] == 1.0
    assert at["paper", "wrong-reply"]["true"] == 0.0
    assert at["off", "wrong-reply"]["true"] == 0.0
    assert at["guard", "stale-reply"]["true"] == 1.0
    assert at["guard", "update"]["wrong"] == 1.0
    assert at["paper", "update"]["wrong"] == 0.0
    assert at["guard", "all"]["p_opposed"] == pytest.approx(0.9)
    assert at["guard", "all"]["opposed_first"] == 1.0
    assert at["off", "all"]["p_opposed"] is None
    # the reply is the newest turn, so it is kept: the wrong side of what is not an update
    assert at["off", "stale-reply"]["wrong"] == 1.0
    assert at["off", "stale-reply"]["wrong_alone"] == 1.0
    text = coherence.markdown(rows)
    assert text.count("## ") == 1 + len(KINDS)
    assert "| middle, oracle, guard" in text


@pytest.mark.parametrize("mode", ["paper", "guard"])
def test_an_evaluation_packs_what_the_wrapped_scorer_would(planted: list[Conflict], mode: str) -> None:
    conflict, base, rule = planted[2], acc_rule(), LexicalContradiction()
    way = Setting(mode, "lexical")  # type: ignore[arg-type]
    counter = load_counter("minilm")
    made, _ = coherence.outcomes(base, [Contradictor("lexical", rule)], [way], 0.5, conflict, [64, 256], counter)[way]
    index = CoherentScorer(base, rule, mode).open()  # type: ignore[arg-type]
    index.append(conflict.conversation.turns)
    scores = index.score(conflict.conversation.questions[0].query)
    place = {turn.id: i for i, turn in enumerate(conflict.conversation.turns)}
    builder = coherence.ContextBuilder(
        counter=counter, renderer=coherence.TranscriptRenderer(), thresholds=base.thresholds_at(len(place))
    )
    builder.append(conflict.conversation.turns)
    again = [coherence._kept(builder, scores, base.policy, budget, conflict, place) for budget in (64, 256)]
    assert made == again


def test_the_coherence_command_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, report = tmp_path / "rows.jsonl", tmp_path / "report.md"
    words = ("--n", "3", "--budgets", "128,64", "--out", str(out), "--report", str(report))
    assert called(evaluate_coherence, *words) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert {row["budget"] for row in rows} == {64, 128}
    assert len(rows) == 3 * 4 * 2
    assert report.read_text() in capsys.readouterr().out
    first = out.read_bytes()
    called(evaluate_coherence, *words)
    assert out.read_bytes() == first


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--modes", "off,half"), "--modes"),
        (("--budgets", "0"), "--budgets"),
        (("--scorer", " "), "--scorer"),
        (("--weight", "-1"), "--weight"),
    ],
)
def test_bad_arguments_of_the_coherence_command_are_named(words: tuple[str, ...], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        called(evaluate_coherence, *words)
