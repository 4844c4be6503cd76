"""The runner: who sees what, budgets, resuming, folds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.core.errors import CheckpointError, ConfigError
from foveate.core.protocols import PolicyName, Scores
from foveate.core.schema import Conversation, Evidence, Part, Query, Question, Turn
from foveate.core.tiers import Thresholds
from foveate.core.tokens import ChapterCounter, load_counter
from foveate.evaluation import checkpoints, runner
from foveate.evaluation.cache import RecordCache
from foveate.evaluation.content import content_words
from foveate.evaluation.embedding import MiniLmEmbedder
from foveate.evaluation.methods import (
    RULES,
    LabelMethod,
    Method,
    Methods,
    Packing,
    RuleName,
    checkpoint_method,
    method_names,
    rule_method,
)
from foveate.evaluation.progress import Lines
from foveate.evaluation.suites import Suite
from foveate.rules.ranking import FunctionScorer

SECRET = "xylophone"


def conversation(name: str) -> Conversation:
    words = [
        "I went hiking",
        "My sister Ann moved",
        "We ate pasta",
        "The dog is called Rex",
        "Rain again",
        "Good night",
    ]
    turns = tuple(
        Turn(
            f"D{1 + i // 3}:{1 + i % 3}",
            "user",
            text,
            speaker="Bo",
            session=str(1 + i // 3),
            date=f"{1 + i // 3} May 2023",
        )
        for i, text in enumerate(words)
    )
    evidence = Evidence(turn_ids=("D2:1",), answer=f"Rex {SECRET}", category="4", trap=SECRET)
    questions = (
        Question(f"{name}:q0", Query("What is the dog called?"), evidence),
        Question(f"{name}:q1", Query("Who moved?"), Evidence(("D1:2",), "Ann", "1")),
        Question(f"{name}:q2", Query("Who won?"), Evidence((), None, "5", "nobody")),
    )
    return Conversation(name, turns, questions)


def suite(*names: str) -> Suite:
    return Suite(
        name="locomo",
        data_sha="sha",
        conversations=tuple(conversation(name) for name in names),
        spoken=lambda turn: turn.text,
        apart=frozenset({"5"}),
        categories={},
        folds=(("a",), ("b",)),
    )


def bench(folder: Path, *names: str, budgets: tuple[int, ...] = (20, 60)) -> runner.Bench:
    return runner.Bench(suite(*(names or ("a", "b"))), "P0", budgets, ChapterCounter(), RecordCache(folder))


@dataclass
class Spy:
    """A scorer that keeps whatever it is given."""

    seen: list[object]
    name: str = "spy"
    policy: PolicyName = "score"
    calibrated: bool = False
    stop_at: str | None = None

    def open(self) -> Spy:
        return self

    def append(self, turns: Sequence[Turn]) -> None:
        self.turns = tuple(turns)
        self.seen.append(self.turns)

    def score(self, query: Query) -> Scores:
        self.seen.append(query)
        return Scores([1.0] * len(self.turns))


def reachable(value: object) -> list[object]:
    """Everything a method could get at from what it was handed."""
    if is_dataclass(value) and not isinstance(value, type):
        return [value, *(inner for f in fields(value) for inner in reachable(getattr(value, f.name)))]
    if isinstance(value, tuple | list):
        return [inner for item in value for inner in reachable(item)]
    if isinstance(value, dict):
        return [inner for item in value.items() for inner in reachable(item)]
    return [value]


def test_a_method_is_handed_turns_and_queries_and_nothing_of_the_labels(tmp_path: Path) -> None:
    spy = Spy([])
    runner.run_conversation(Method("spy", True, lambda _: (spy,)), conversation("a"), bench(tmp_path))
    found = reachable(spy.seen)
    assert {type(item) for item in found if is_dataclass(item)} == {Turn, Query}
    assert not [item for item in found if isinstance(item, Evidence | Question | Conversation | Part)]
    assert SECRET not in repr(found)
    assert "hiking" in repr(found)


def test_only_the_label_method_sees_evidence_and_it_does_not_see_the_question(tmp_path: Path) -> None:
    seen: list[object] = []

    def score(turns: Sequence[Turn], evidence: Evidence) -> Scores:
        seen.append(evidence)
        return Scores([0.0] * len(turns))

    runner.run_conversation(LabelMethod("spy", score), conversation("a"), bench(tmp_path))
    assert [type(item) for item in seen] == [Evidence] * 3
    assert "dog called" not in repr(seen)


@dataclass
class Choosy(Spy):
    """Falling scores, with thresholds of its own."""

    policy: PolicyName = "topk"

    def open(self) -> Choosy:
        return self

    def thresholds_at(self, n: int) -> Thresholds:
        return Thresholds(high=0.1 * n, mid=0.1 * n)

    def score(self, query: Query) -> Scores:
        return Scores([0.9, 0.5, 0.7, 0.3, 0.65, 0.2])


def test_a_scorers_own_thresholds_hold_where_the_packing_has_none(tmp_path: Path) -> None:
    def kept(packing: Packing) -> tuple[str, ...]:
        method = Method("choosy", True, lambda _: (Choosy([]),), packing)
        return runner.run_conversation(method, conversation("a"), bench(tmp_path, budgets=(200,)))[0].kept

    assert kept(Packing()) == ("D1:1", "D1:3", "D2:2")
    assert kept(Packing(thresholds=lambda n: Thresholds(0.8, 0.8))) == ("D1:1",)


def test_one_record_a_question_and_budget_each_within_its_budget(tmp_path: Path) -> None:
    found = runner.run_conversation(rule("bm25"), conversation("a"), bench(tmp_path))
    assert [(r.question, r.budget) for r in found] == [(f"a:q{q}", b) for q in range(3) for b in (20, 60)]
    assert not any(r.violation for r in found)
    assert all(0 < r.tokens <= r.budget for r in found if isinstance(r.budget, int))
    assert found[0].erb == 1.0
    assert "D2:1" in found[0].kept
    assert found[4].erb is None
    assert found[4].coverage is None


def test_answers_are_searched_in_the_context_and_against_the_whole_history(tmp_path: Path) -> None:
    found = runner.run_conversation(rule("full"), conversation("a"), bench(tmp_path))
    assert [r.budget for r in found] == ["full"] * 3
    assert [(r.asc, r.asc_full) for r in found] == [(0.0, 0.0), (1.0, 1.0), (0.0, 0.0)]
    assert all(r.tokens == r.history for r in found)


def rule(name: RuleName) -> Method | LabelMethod:
    return rule_method(name, MiniLmEmbedder())


def test_oracle_keeps_the_evidence_and_stateless_nothing(tmp_path: Path) -> None:
    oracle = runner.run_conversation(rule("oracle"), conversation("a"), bench(tmp_path))
    assert [r.erb for r in oracle] == [1.0, 1.0, 1.0, 1.0, None, None]
    empty = runner.run_conversation(rule("stateless"), conversation("a"), bench(tmp_path))
    assert {(r.tokens, r.kept) for r in empty} == {(0, ())}


def test_random_is_a_mean_over_seeds(tmp_path: Path) -> None:
    method = rule("random")
    assert isinstance(method, Method)
    scorers = method.scorers("a")
    assert len(scorers) == 5
    parts = [replace(method, scorers=lambda _, scorer=scorer: (scorer,)) for scorer in scorers]
    alone = [runner.run_conversation(part, conversation("a"), bench(tmp_path)) for part in parts]
    together = runner.run_conversation(method, conversation("a"), bench(tmp_path))
    first = [records[0].erb for records in alone]
    assert together[0].erb == pytest.approx(sum(value for value in first if value is not None) / 5)


@pytest.mark.parametrize("name", [n for n in RULES if not n.startswith(("dense", "rrf", "best", "afm-rule-dense"))])
def test_every_rule_runs_within_its_budget(tmp_path: Path, name: RuleName) -> None:
    method = rule(name)
    found = runner.run_conversation(method, conversation("a"), bench(tmp_path))
    assert len(found) == 3 * len(bench(tmp_path).budgets_for(method))
    assert not any(r.violation for r in found)
    assert method.name == name


@pytest.mark.parametrize("name", ["dense", "dense-date", "rrf", "best-sum", "best-sum-content", "afm-rule-dense"])
def test_dense_rules_share_one_embedder(tmp_path: Path, name: RuleName) -> None:
    pytest.importorskip("torch")
    found = runner.run_conversation(rule(name), conversation("a"), bench(tmp_path))
    assert found[1].erb == 1.0


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    asked: list[str] = []
    broken = {"b"}

    def scorers(name: str) -> tuple[FunctionScorer]:
        if name in broken:
            raise KeyboardInterrupt
        asked.append(name)
        return (FunctionScorer("f", lambda turns, query: [1.0] * len(turns)),)

    method = Method("f", True, scorers)
    with pytest.raises(KeyboardInterrupt):
        runner.run_method(method, bench(tmp_path), Lines(2))
    broken.clear()
    found = runner.run_method(method, bench(tmp_path), Lines(2))
    assert asked == ["a", "b"]
    assert [r.conversation for r in found] == ["a"] * 6 + ["b"] * 6
    assert runner.run_method(method, bench(tmp_path), Lines(2)) == found
    assert asked == ["a", "b"]


@pytest.mark.parametrize("change", ["budgets", "weights", "data"])
def test_what_a_result_depends_on_is_measured_again_when_it_changes(tmp_path: Path, change: str) -> None:
    asked: list[str] = []

    def scorers(name: str) -> tuple[FunctionScorer]:
        asked.append(name)
        return (FunctionScorer("f", lambda turns, query: [1.0] * len(turns)),)

    method, base = Method("f", True, scorers), bench(tmp_path, "a")
    runner.run_method(method, base, Lines(1))
    match change:
        case "budgets":
            base = replace(base, budgets=(20,))
        case "weights":
            method = replace(method, fingerprint="other")
        case _:
            base = replace(base, suite=replace(base.suite, data_sha="other"))
    runner.run_method(method, base, Lines(1))
    assert asked == ["a", "a"]


@given(st.lists(st.text(max_size=40), max_size=6))
def test_lines_count_as_the_whole_does(lines: list[str]) -> None:
    pytest.importorskip("tokenizers")
    counter = load_counter("minilm")
    text = "\n".join(lines)
    assert runner.line_count(counter)(text) == counter.count(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What is the dog's name?", "dog's name?"),
        ("When did Ann move to Rome?", "Ann move Rome?"),
        ("Who is it?", "Who is it?"),
    ],
)
def test_function_words_are_dropped_unless_there_are_no_others(text: str, expected: str) -> None:
    assert content_words(text) == expected


def test_names(tmp_path: Path) -> None:
    assert method_names(" bm25, dense ") == ("bm25", "dense")
    assert method_names("rules") == RULES
    with pytest.raises(ConfigError, match="twice"):
        method_names("bm25,rules")
    with pytest.raises(ConfigError, match="best-sum"):
        method_names(" , ")
    with pytest.raises(ConfigError, match=r"no method 'bm26'.*bm25.*oracle"):
        Methods(suite("a"), "P0").find("bm26")


def folds(root: Path, number: int = 2, *, trained: bool = True) -> Path:
    for k in range(number):
        model = root / f"fold{k}" / "model"
        model.mkdir(parents=True)
        (model / "model.safetensors").write_bytes(b"weights %d" % k)
        if trained:
            (model / "config.json").write_text(json.dumps({"trained_on": [f"locomo:{k}"]}))
    return root


def test_each_conversation_is_scored_by_the_fold_that_did_not_train_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(folder: Path, name: str) -> FunctionScorer:
        return FunctionScorer(folder.name, lambda turns, query: [1.0] * len(turns))

    monkeypatch.setattr(checkpoints, "_load", load)
    method = checkpoint_method(folds(tmp_path / "run"), "P1", suite("a", "b"))
    assert [method.scorers(name)[0].name for name in ("a", "b")] == ["fold0", "fold1"]
    assert method.name == "run"
    assert method.train_data == "locomo"
    with pytest.raises(ConfigError, match="no fold that tests c"):
        method.scorers("c")


def test_runs_that_saw_the_test_conversations_are_refused(tmp_path: Path) -> None:
    run = folds(tmp_path / "run")
    (run / "fold1" / "model" / "config.json").write_text('{"chosen_on": ["locomo:0"], "trained_on": ["qmsum:train"]}')
    with pytest.raises(ConfigError, match="LoCoMo fold 0"):
        checkpoint_method(run, "P1", suite("a", "b"))
    with pytest.raises(ConfigError, match="which this split would test"):
        checkpoint_method(run / "fold0", "P0", suite("a", "b"))


def test_folders_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--split P1"):
        checkpoint_method(folds(tmp_path / "run"), "P0", suite("a", "b"))
    with pytest.raises(CheckpointError, match="fold1 is no folder"):
        checkpoint_method(folds(tmp_path / "short", 1), "P1", suite("a", "b"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match="neither a run"):
        checkpoint_method(tmp_path / "empty", "P0", suite("a", "b"))


@pytest.mark.parametrize("text", ["{", "[]", '{"trained_on": 3}'])
def test_a_damaged_config_of_a_model_is_named(tmp_path: Path, text: str) -> None:
    run = folds(tmp_path / "run")
    (run / "fold0" / "model" / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"config.json cannot be read"):
        checkpoint_method(run / "fold0", "P1", suite("a", "b"), 0)


def test_one_fold_alone_takes_its_run_and_its_conversations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(folder: Path, name: str) -> FunctionScorer:
        return FunctionScorer(folder.name, lambda turns, query: [1.0] * len(turns))

    monkeypatch.setattr(checkpoints, "_load", load)
    run, part = folds(tmp_path / "run"), suite("a", "b").only_fold(1)
    assert [c.id for c in part.conversations] == ["b"]
    for folder in (run, run / "fold1"):
        method = checkpoint_method(folder, "P1", part, 1)
        assert method.name == folder.name  # not "fold1" for every run: the rows of two runs would be one
        assert method.scorers("b")[0].name == "fold1"
    with pytest.raises(ConfigError, match="LoCoMo fold 0"):
        checkpoint_method(run / "fold0", "P1", part, 1)
    with pytest.raises(ConfigError, match="--fold 2: the folds of locomo are 0 to 1"):
        part.only_fold(2)


def test_other_weights_are_another_method(tmp_path: Path) -> None:
    run = folds(tmp_path / "run", trained=False)
    before = checkpoint_method(run / "fold0", "P0", suite("a"))
    (run / "fold0" / "model" / "model.safetensors").write_bytes(b"other")
    after = checkpoint_method(run / "fold0", "P0", suite("a"))
    assert runner.method_digest(before) != runner.method_digest(after)
    assert before.train_data is None
