"""Budget rules measured: who fits on what, equal cost, the ceiling, resuming."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from foveate.core.errors import ConfigError, DataError
from foveate.core.schema import Conversation, Evidence, Query, Question, Turn
from foveate.core.tokens import ChapterCounter
from foveate.evaluation import budgets
from foveate.evaluation.budget_report import (
    Spent,
    ceiling_at,
    findings,
    fixed_at,
    least_budget,
    markdown,
    plot_points,
    spent,
    versus,
)
from foveate.evaluation.budgets import FAMILIES, Asked, Study, family, family_names, grid, measure, run_study, steps_of
from foveate.evaluation.checkpoints import Checkpoint
from foveate.evaluation.progress import Lines
from foveate.evaluation.results import REQUIRED, RunFacts, add_rows, read_rows
from foveate.evaluation.suites import Suite
from foveate.rules.budget import BudgetRule, Offer
from foveate.rules.ranking import FunctionScorer


def conversation(name: str, turns: int = 40, questions: int = 6) -> Conversation:
    """Question k is about turn 3k, and the odd ones about the turn after it as well."""
    said = tuple(
        Turn(f"{name}:{i}", "user", f"word{i} " + "filler " * (i % 7), session=str(i // 8), date=f"day {i // 8}")
        for i in range(turns)
    )
    asked = tuple(
        Question(
            f"{name}:q{k}",
            Query(f"{3 * k}"),
            Evidence(tuple(f"{name}:{3 * k + j}" for j in range(1 + k % 2)), None, "5" if k == 4 else "1"),
        )
        for k in range(questions)
    )
    empty = Question(f"{name}:none", Query("0"), Evidence((), None, "1"))
    return Conversation(name, said, (*asked, empty))


def probabilities(turns: Sequence[Turn], query: Query) -> list[float]:
    """Sharp for even questions, flat for odd ones."""
    wanted = int(query.text)
    width = 0.7 if wanted % 2 == 0 else 4.0
    return [float(0.9 * np.exp(-abs(i - wanted) / width)) for i in range(len(turns))]


def checkpoint(seen: list[str] | None = None, *, calibrated: bool = True) -> Checkpoint:
    def scorer(fold: int) -> FunctionScorer:
        def score(turns: Sequence[Turn], query: Query) -> list[float]:
            if seen is not None:
                seen.append(f"{fold}:{turns[0].id.split(':')[0]}")
            return probabilities(turns, query)

        return FunctionScorer(f"fold{fold}", score, calibrated=calibrated)

    return Checkpoint("run", scorer, "chats", "fingerprint")


def study(folder: Path, names: str = "abc", **changes: object) -> Study:
    suite = Suite(
        name="locomo",
        data_sha="sha",
        conversations=tuple(conversation(name) for name in names),
        spoken=lambda turn: turn.text,
        apart=frozenset({"5"}),
        categories={"1": "multi-hop", "5": "adversarial"},
        folds=(("a",), ("b",), ("c",)),
    )
    values: dict[str, object] = {
        "suite": suite,
        "split": "P1",
        "checkpoint": checkpoint(),
        "counter": ChapterCounter(),
        "rules": FAMILIES,
        "targets": (60, 120),
        "b_min": 20,
        "b_max": 320,
        "fit_on": suite.conversations,
        "fit_name": "validation",
        "work": folder,
    }
    return Study(**{**values, **changes})  # type: ignore[arg-type]


FACTS = RunFacts("locomo", "sha", "P1", "chapter", "chrono", frozenset({"5"}), 3, 13, "foveate ...", "abc")


def asked(question: str, points: dict[int, tuple[int, float]], category: str = "1") -> Asked:
    return Asked(question, question[0], category, 1, 10, 1.0, 0.5, {}, points)


def test_p1_fits_on_the_next_folds_conversations_and_tests_on_its_own(tmp_path: Path) -> None:
    seen: list[str] = []
    run_study(study(tmp_path, checkpoint=checkpoint(seen)), Lines(6))
    order = list(dict.fromkeys(seen))
    assert order == ["0:b", "0:a", "1:c", "1:b", "2:a", "2:c"]


def test_p0_fits_on_what_it_is_given(tmp_path: Path) -> None:
    seen: list[str] = []
    one = study(tmp_path, split="P0", checkpoint=checkpoint(seen), fit_on=(conversation("z"),))
    assert steps_of(one) == 4
    run_study(one, Lines(4))
    assert list(dict.fromkeys(seen)) == ["0:z", "0:a", "0:b", "0:c"]


def test_the_fit_meets_the_targets_and_every_budget_is_packed(tmp_path: Path) -> None:
    one = study(tmp_path)
    found, fits = run_study(one, Lines(6))
    assert sorted(fits) == [0, 1, 2]
    for name, by_target in fits[0].items():
        for target, fitted in by_target.items():
            assert fitted.mean == pytest.approx(target, rel=0.35), name
    assert [a.question for a in found][:6] == [f"a:q{k}" for k in range(6)]
    for question in found:
        assert {*grid(20, 320), *(b for t in question.budgets.values() for b in t.values())} == set(question.points)
        assert all(tokens <= size for size, (tokens, _) in question.points.items())
        assert question.points[320][1] >= question.points[20][1]
    sharp = next(a for a in found if a.question == "a:q0")
    flat = next(a for a in found if a.question == "a:q1")
    assert flat.entropy > sharp.entropy
    assert flat.budgets["prose"][120] > sharp.budgets["prose"][120]
    assert flat.budgets["paper"][120] < sharp.budgets["paper"][120]
    assert flat.needed > sharp.needed


def test_the_labels_change_no_budget(tmp_path: Path) -> None:
    one = study(tmp_path)
    _, fits = run_study(one, Lines(6))
    tested = one.suite.conversations[0]
    other = replace(
        tested,
        questions=tuple(
            replace(q, evidence=Evidence(("a:39",), "x", "2")) for q in tested.questions if q.evidence.turn_ids
        ),
    )
    scorer = one.checkpoint.scorer(0)
    first, second = measure(one, scorer, tested, fits[0]), measure(one, scorer, other, fits[0])
    assert [a.budgets for a in first] == [a.budgets for a in second]
    assert [a.points for a in first] != [a.points for a in second]


def test_an_interrupted_study_goes_on_where_it_stopped(tmp_path: Path) -> None:
    seen: list[str] = []
    one = study(tmp_path, checkpoint=checkpoint(seen))
    first = run_study(one, Lines(6))
    asked_before = len(seen)
    assert run_study(one, Lines(6)) == first
    assert len(seen) == asked_before
    run_study(replace(one, targets=(60,)), Lines(6))
    assert len(seen) == 2 * asked_before
    for path in tmp_path.glob("run-a-*.json"):
        path.write_text("{")
    with pytest.raises(DataError, match="delete it and evaluate again"):
        run_study(one, Lines(6))


def test_equal_cost_is_the_line_between_two_fixed_budgets() -> None:
    questions = [
        asked("a:1", {10: (10, 0.0), 20: (20, 1.0), 15: (14, 1.0)}),
        asked("b:1", {10: (8, 0.5), 20: (20, 0.5), 15: (10, 0.5)}),
    ]
    curve = [spent(questions, lambda one, size=size: size) for size in (10, 20)]
    assert [point.tokens for point in curve] == [9.0, 20.0]
    ours = spent(questions, lambda one: 15)
    assert (ours.tokens, ours.erb) == (12.0, 0.75)
    theirs = fixed_at(curve, 12.0)
    assert theirs.erb == pytest.approx(0.25 + 3 / 11 * 0.5)
    found = versus(ours, curve)
    assert found.fixed == pytest.approx(theirs.erb)
    assert found.point == pytest.approx(0.75 - theirs.erb)
    assert found.low <= found.point <= found.high
    assert found.p == 1.0
    assert fixed_at(curve, 5.0) == curve[0]
    assert fixed_at(curve, 50.0) == curve[1]


def test_a_fixed_budget_does_not_differ_from_itself() -> None:
    curve = [Spent(10.0, (2, 3), (0.5, 1.0)), Spent(20.0, (2, 3), (1.0, 2.0))]
    for point in curve:
        assert versus(point, curve).point == 0.0


def test_the_ceiling_is_the_best_split_of_the_mean() -> None:
    sizes = (10, 20, 40)
    questions = [
        asked("a:1", {10: (10, 1.0), 20: (20, 1.0), 40: (40, 1.0)}),
        asked("a:2", {10: (10, 0.0), 20: (20, 0.0), 40: (40, 1.0)}),
        asked("a:3", {10: (10, 0.0), 20: (20, 0.5), 40: (40, 0.5)}),
    ]
    assert ceiling_at(questions, sizes, 100.0) == (pytest.approx(70 / 3), pytest.approx(2.5 / 3))
    assert ceiling_at(questions, sizes, 15.0) == (pytest.approx(40 / 3), pytest.approx(1.5 / 3))
    assert ceiling_at(questions, sizes, 10.0) == (10.0, pytest.approx(1 / 3))
    assert [least_budget(one, sizes) for one in questions] == [10, 40, 80]


def test_rows_and_tables_say_what_was_found(tmp_path: Path) -> None:
    one = study(tmp_path)
    questions, fits = run_study(one, Lines(6))
    found = findings(one, questions, fits, FACTS)
    rules = [row for row in found.rows if row["rule"] in FAMILIES]
    assert [(row["rule"], row["budget"]) for row in rules] == [(name, t) for name in FAMILIES for t in (60, 120)]
    assert all(set(REQUIRED) <= set(row) for row in found.rows)
    assert {row["n"] for row in found.rows} == {15}
    for row in rules:
        versus_fixed = row["against_fixed"]
        assert versus_fixed["point"] == pytest.approx(row["metrics"]["erb"] - versus_fixed["fixed"])
        assert versus_fixed["p_holm"] >= versus_fixed["p"]
        assert row["against_fixed_apart"]["erb"] is not None
        stored = {fold: float(scalar) for fold, scalar in row["fit"]["scalar"].items()}
        fitted = {str(fold): fits[fold][row["rule"]][row["budget"]].scalar for fold in fits}
        assert stored == pytest.approx(fitted, rel=1e-5)
        assert row["metrics"]["budget_violations"] == 0
    ceiling = [row for row in found.rows if row["rule"] == "ceiling"]
    assert all(row["label_leak"] for row in ceiling)
    assert ceiling[-1]["metrics"]["erb"] >= max(row["metrics"]["erb"] for row in found.rows)
    assert found.signals["budget of `prose`"][2] == pytest.approx(-(found.signals["budget of `paper-half`"][2] or 0))
    text = markdown(one, found, one.suite.categories)
    assert "| share " in text
    assert "The same for category 5" in text
    assert "Contexts over their budget: 0." in text
    assert set(plot_points(found)) == {*FAMILIES, "fixed", "ceiling"}
    add_rows(tmp_path / "rows.jsonl", found.rows)
    assert len(read_rows(tmp_path / "rows.jsonl")) == len(found.rows)
    assert json.dumps(found.rows)


def test_without_a_category_apart_there_is_no_table_of_it(tmp_path: Path) -> None:
    one = study(tmp_path)
    one = replace(one, suite=replace(one.suite, apart=frozenset()))
    questions, fits = run_study(one, Lines(6))
    found = findings(one, questions, fits, replace(FACTS, apart=frozenset()))
    assert "The same for category" not in markdown(one, found, {})


@pytest.mark.parametrize("name", FAMILIES)
def test_every_rule_spends_monotonely_between_its_ends(name: budgets.FamilyName) -> None:
    offer = Offer.of([0.9, 0.3, 0.2, 0.05], [90, 120, 80, 60])
    one = family(name, 300, 20)
    scalars = np.geomspace(one.low, one.high, 60)
    spends = [one.make(float(scalar)).tokens(offer, 300) for scalar in scalars]
    assert isinstance(one.make(one.low), BudgetRule)
    assert spends in (sorted(spends), sorted(spends, reverse=True))
    assert min(spends) >= 20
    assert max(spends) > min(spends)


def test_the_grid_holds_both_ends_and_four_steps_a_doubling() -> None:
    assert grid(64, 2048)[::4] == (64, 128, 256, 512, 1024, 2048)
    assert grid(100, 150) == (100, 119, 141, 150)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda folder: study(folder, targets=(10, 60)), "target means 10"),
        (lambda folder: study(folder, targets=()), "target means none"),
        (lambda folder: study(folder, b_min=400), "from 400 to 320"),
        (lambda folder: family_names("share,magic"), "'share,magic'"),
        (lambda folder: family_names(" , "), "give 'all'"),
        (
            lambda folder: run_study(study(folder, checkpoint=checkpoint(calibrated=False)), Lines(6)),
            "no probabilities",
        ),
    ],
)
def test_bad_input_is_one_clear_error(tmp_path: Path, build, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(tmp_path)


def test_rules_are_named_in_one_order() -> None:
    assert family_names("share, paper") == ("paper", "share")
    assert family_names("all") == FAMILIES
