"""Predicted against realised usefulness: what is counted for each tier, and resuming."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from foveate.core.context import ContextBuilder
from foveate.core.errors import ConfigError, DataError
from foveate.core.protocols import Scores
from foveate.core.render import TranscriptRenderer
from foveate.core.schema import Conversation, Evidence, Query, Question, Turn
from foveate.core.tiers import Tier, TierValues
from foveate.core.tokens import ChapterCounter
from foveate.evaluation.checkpoints import Checkpoint
from foveate.evaluation.progress import Lines
from foveate.evaluation.results import REQUIRED, RunFacts, add_rows, read_rows
from foveate.evaluation.suites import Suite
from foveate.evaluation.tier_calibration import Setup, markdown, measure, plot_points, rows_of, run_calibration
from foveate.rules.ranking import FunctionScorer

FACTS = RunFacts("locomo", "sha", "P1", "chapter", "chrono", frozenset({"5"}), 3, 13, "foveate ...", "abc")


def conversation(name: str, turns: int = 24, questions: int = 6) -> Conversation:
    """Question k is about turn 3k; every second turn has a part that the compressor may leave out."""
    more = ["", "we walked along the river and talked about the weather for a long while, as people do. "]
    said = tuple(
        Turn(
            f"{name}:{i}", "user", f"{more[i % 2]}My word is Alpha{i} here.", session=str(i // 8), date=f"day {i // 8}"
        )
        for i in range(turns)
    )
    asked = tuple(
        Question(f"{name}:q{k}", Query(f"{3 * k}"), Evidence((f"{name}:{3 * k}",), None, "5" if k == 4 else "1"))
        for k in range(questions)
    )
    return Conversation(name, said, (*asked, Question(f"{name}:none", Query("0"), Evidence((), None, "1"))))


def probabilities(turns: Sequence[Turn], query: Query) -> list[float]:
    wanted = int(query.text)
    return [float(0.9 * np.exp(-abs(i - wanted) / 2)) for i in range(len(turns))]


def checkpoint(seen: list[str] | None = None, *, calibrated: bool = True) -> Checkpoint:
    def scorer(fold: int) -> FunctionScorer:
        def score(turns: Sequence[Turn], query: Query) -> list[float]:
            if seen is not None:
                seen.append(f"{fold}:{turns[0].id.split(':')[0]}")
            return probabilities(turns, query)

        return FunctionScorer(f"fold{fold}", score, "optimal", calibrated=calibrated)

    return Checkpoint("run", scorer, "chats", "fingerprint")


def setup(folder: Path, **changes: object) -> Setup:
    suite = Suite(
        name="locomo",
        data_sha="sha",
        conversations=tuple(conversation(name) for name in "abc"),
        spoken=lambda turn: turn.text,
        apart=frozenset({"5"}),
        categories={"1": "multi-hop", "5": "adversarial"},
        folds=(("a",), ("b",), ("c",)),
    )
    values: dict[str, object] = {
        "suite": suite,
        "split": "P1",
        "fold": None,
        "checkpoint": checkpoint(),
        "counter": ChapterCounter(),
        "budgets": (40, 90),
        "policy": None,
        "values": "own",
        "shorten": "strict",
        "stub_value": 0.0,
        "fit_on": suite.conversations,
        "work": folder,
    }
    return Setup(**{**values, **changes})  # type: ignore[arg-type]


def test_every_tier_has_the_value_the_packer_read_and_what_came_of_it(tmp_path: Path) -> None:
    one, chat = setup(tmp_path, policy="afm", stub_value=0.3), conversation("a")
    found = measure(one, checkpoint().scorer(0), TierValues(), chat)
    assert found.tier.shape == found.predicted.shape == found.useful.shape == (2, 5, 24)
    assert set(np.unique(found.tier)) == {0, 1, 2, 3}
    assert found.needed.sum() == 5
    score = np.array([probabilities(chat.turns, q.query) for q in chat.questions if q.evidence.category == "1"][:5])
    builder = ContextBuilder(
        counter=one.counter, renderer=TranscriptRenderer(), summarizer=one.summarizer(), stub_value=0.3
    )
    builder.append(chat.turns)
    forms = builder.problem(Scores([1.0] * 24)).forms
    share = {Tier.FULL: np.ones(24), Tier.DROP: np.ones(24), Tier.PLACEHOLDER: np.full(24, 0.3)}
    made = [forms.compressed(item) for item in range(24)]
    share[Tier.COMPRESSED] = np.array([forms[0].value if forms else 0.0 for forms in made])
    for tier, part in share.items():
        chosen = found.tier == tier
        np.testing.assert_allclose(found.predicted[chosen], (score * part)[None].repeat(2, 0)[chosen], rtol=1e-5)
    evidence = found.needed[None].repeat(2, 0)
    for tier, useful in ((Tier.FULL, True), (Tier.DROP, True), (Tier.PLACEHOLDER, False)):
        chosen = (found.tier == tier) & evidence
        assert (found.useful[chosen] == useful).all(), tier
    assert not found.useful[~evidence].any()
    kept = (found.tier == Tier.FULL) & evidence
    np.testing.assert_allclose(found.recall[..., 0], kept.sum(2))
    assert (found.recall[..., 1] >= found.recall[..., 0]).all()
    assert (found.tokens <= np.array([[40], [90]])).all()


def test_questions_apart_or_without_evidence_are_left_out_and_labels_change_no_packing(tmp_path: Path) -> None:
    one, chat = setup(tmp_path), conversation("a")
    first = measure(one, checkpoint().scorer(0), TierValues(), chat)
    elsewhere = [replace(q, evidence=Evidence(("a:23",), "x", q.evidence.category)) for q in chat.questions[:6]]
    other = measure(one, checkpoint().scorer(0), TierValues(), replace(chat, questions=tuple(elsewhere)))
    assert first.tier.shape[1] == 5
    assert (first.tier == other.tier).all()
    assert (first.predicted == other.predicted).all()
    assert (first.useful != other.useful).any()


def test_values_are_fitted_on_the_validation_conversations_of_the_fold(tmp_path: Path) -> None:
    one = setup(tmp_path, values="fit")
    scorer = checkpoint().scorer(0)
    found = one.values_of(scorer, "a")
    alone = setup(tmp_path, values="fit", split="P0", fit_on=(conversation("b"),)).values_of(scorer, "a")
    assert found == alone
    assert found.slope is not None
    assert setup(tmp_path, values="prior").values_of(scorer, "a") == TierValues()
    with pytest.raises(ConfigError, match="without a summarizer"):
        setup(tmp_path, values="fit", shorten="no").values_of(scorer, "a")


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    seen: list[str] = []
    one = setup(tmp_path, checkpoint=checkpoint(seen))
    first = rows_of(one, run_calibration(one, Lines(3)), FACTS)
    assert list(dict.fromkeys(seen)) == ["0:a", "1:b", "2:c"]
    before = len(seen)
    assert rows_of(one, run_calibration(one, Lines(3)), FACTS) == first
    assert len(seen) == before
    run_calibration(replace(one, stub_value=0.5), Lines(3))
    assert len(seen) == 2 * before
    for path in tmp_path.glob("run-a-*.npz"):
        path.write_bytes(b"PK")
    with pytest.raises(DataError, match="delete it and evaluate again"):
        run_calibration(one, Lines(3))


def test_rows_and_tables_say_what_was_found(tmp_path: Path) -> None:
    one = setup(tmp_path, policy="afm", stub_value=0.3)
    samples = run_calibration(one, Lines(3))
    rows = rows_of(one, samples, FACTS)
    assert all(set(REQUIRED) <= set(row) for row in rows)
    assert [row["tier"] for row in rows] == 2 * ["all", "full", "compressed", "placeholder", "drop"]
    for budget in (40, 90):
        own = [row for row in rows if row["budget"] == budget]
        assert own[0]["n"] == 15
        assert sum(row["n"] for row in own[1:]) == 15 * 24
        kept = {row["tier"]: row["n"] * row["metrics"]["realised"] for row in own[1:]}
        assert kept["full"] + kept["compressed"] == pytest.approx(15 * own[0]["metrics"]["erb"])
        assert sum(row["n"] * row["metrics"]["evidence"] for row in own[1:]) == pytest.approx(15)
    for row in rows:
        if row["tier"] != "all":
            assert sum(b["n"] for b in row["bins"]) == row["n"]
            means = [sum(b["n"] * b[name] for b in row["bins"]) / row["n"] for name in ("predicted", "realised")]
            assert means == pytest.approx([row["metrics"]["predicted"], row["metrics"]["realised"]], abs=1e-6)
            off = sum(b["n"] * abs(b["predicted"] - b["realised"]) for b in row["bins"]) / row["n"]
            assert row["metrics"]["ece"] == pytest.approx(off)
    text = markdown(one, rows)
    assert "scorer run (afm, stubs 0.3)" in text
    assert "## 90 tokens: ERB" in text
    assert "## Reliability at 90 tokens" in text
    assert set(plot_points(rows)) == {"full", "compressed", "placeholder", "drop"}
    add_rows(tmp_path / "rows.jsonl", rows)
    assert len(read_rows(tmp_path / "rows.jsonl")) == len(rows)


def test_scores_that_are_no_probabilities_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no probabilities"):
        run_calibration(setup(tmp_path, checkpoint=checkpoint(calibrated=False)), Lines(3))


def test_nothing_asked_is_an_error(tmp_path: Path) -> None:
    one = setup(tmp_path)
    one = replace(one, suite=replace(one.suite, apart=frozenset({"1", "5"})))
    with pytest.raises(ConfigError, match="no question of locomo"):
        rows_of(one, run_calibration(one, Lines(3)), FACTS)
