"""The golden rows of EVALUATION.md 1.3 to 1.8 and 1.10."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.core.errors import DataError
from foveate.corpora import locomo
from foveate.metrics.locomo import (
    EXTENDED_REFUSALS,
    AnswerSummary,
    adversarial_options,
    aggregate,
    answer_parts,
    choose,
    choose_upstream,
    containment,
    contains,
    f1,
    gold_text,
    multi_f1,
    normal_context,
    refuses,
    score_answer,
    upstream_recall,
)
from foveate.metrics.text import normalise, stem, stemmed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat, and a DOG!", "cat dog"),
        ("1,000 dollars", "1000 dollars"),
        ("don't", "dont"),
        ("Self-care", "selfcare"),
        ("U.S.", "us"),
        ("and the an a", ""),
        ("Adoption–agencies", "adoption–agencies"),
        ("“quoted” — and then", "“quoted” — then"),
        ("theme and sandy", "theme sandy"),
    ],
)
def test_normalise(text: str, expected: str) -> None:
    assert normalise(text) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("paintings", "paint"),
        ("hiking", "hike"),
        ("agencies", "agenc"),
        ("university", "univers"),
        ("realized", "realiz"),
        ("running", "run"),
        ("ran", "ran"),
    ],
)
def test_stem(word: str, expected: str) -> None:
    assert stem(word) == expected


@pytest.mark.parametrize(
    ("prediction", "gold", "expected"),
    [
        ("May 7, 2023", "7 May 2023", 1.0),
        ("on 7 May", "7 May 2023", 0.666667),
        ("paintings and hiking", "painting, hike", 1.0),
        ("the cat cat cat", "cat", 0.5),
        ("She was researching adoption agencies", "adoption agencies", 0.571429),
        ("last year (2022)", "2022", 0.5),
        ("", "7 May 2023", 0.0),
        ("the", "a", 0.0),
        ("", "", 0.0),
    ],
)
def test_single_answer_f1(prediction: str, gold: str, expected: float) -> None:
    assert f1(prediction, gold) == pytest.approx(expected, abs=1e-6)


def test_gold_is_cut_and_made_text() -> None:
    assert score_answer(3, "Psychology", "Psychology; counseling certification") == 1.0
    assert score_answer(4, "Psychology", "Psychology; counseling certification") < 1.0
    assert score_answer(2, "2022", 2022) == 1.0
    assert gold_text(2, None) == ""


@pytest.mark.parametrize(
    ("prediction", "gold", "expected"),
    [
        ("beach", "beach, mountains, forest", 0.333333),
        ("forest, beach", "beach, mountains, forest", 0.666667),
        ("beach and mountains and forest", "beach, mountains, forest", 0.5),
        ("x, y, beach", "beach", 1.0),
        ("Psychology", "Psychology, counseling certification", 0.5),
        ("beach,", "beach, ", 0.5),
        ("a,b,c", "a, b, c", 0.666667),
        ("", "beach, mountains", 0.0),
    ],
)
def test_multi_answer_f1(prediction: str, gold: str, expected: float) -> None:
    assert multi_f1(prediction, gold) == pytest.approx(expected, abs=1e-6)
    assert score_answer(1, prediction, gold) == multi_f1(prediction, gold)


@pytest.mark.parametrize(
    ("prediction", "expected"),
    [
        ("Not mentioned in the conversation", 1),
        ("No information available.", 1),
        ("It is not mentioned, but probably self-care", 1),
        ("I don't know", 0),
        ("unanswerable", 0),
        ("", 0),
    ],
)
def test_adversarial(prediction: str, expected: int) -> None:
    assert score_answer(5, prediction, None) == expected
    assert score_answer(5, prediction, "any gold") == expected


def test_extended_refusals_only_where_asked() -> None:
    assert refuses("I don't know", EXTENDED_REFUSALS)
    assert not refuses("self-care", EXTENDED_REFUSALS)


OPTIONS = {"a": "Not mentioned in the conversation", "b": "self-care"}


@pytest.mark.parametrize(
    ("prediction", "answer", "score"),
    [
        ("a", OPTIONS["a"], 1),
        ("A", OPTIONS["a"], 1),
        ("(a)", OPTIONS["a"], 1),
        ("b", OPTIONS["b"], 0),
        ("c", OPTIONS["b"], 0),
        ("yes", OPTIONS["b"], 0),
        ("no", "no", 0),
        ("(b) self-care is important", "(b) self-care is important", 0),
    ],
)
def test_published_letter_mapping(prediction: str, answer: str, score: int) -> None:
    chosen = choose_upstream(prediction, OPTIONS)
    assert chosen == answer
    assert score_answer(5, chosen, None) == score


@pytest.mark.parametrize(
    ("prediction", "answer"),
    [
        ("a", OPTIONS["a"]),
        ("(B) self-care is important", OPTIONS["b"]),
        ("b)", OPTIONS["b"]),
        ("Not mentioned", "Not mentioned"),
        ("yes", "yes"),
        ("", ""),
    ],
)
def test_pinned_letter_parse(prediction: str, answer: str) -> None:
    assert choose(prediction, OPTIONS) == answer


@pytest.mark.parametrize(("index", "first"), [(152, "refusal"), (153, "refusal"), (154, "trap")])
def test_option_order_is_the_parity_of_a_hash(index: int, first: str) -> None:
    # The sha256 of "conv-26|152", "conv-26|153" and "conv-26|154" start with d2, 2c and 2b.
    options = adversarial_options("conv-26", index, "trap", "refusal")
    assert options["a"] == first
    assert sorted(options.values()) == ["refusal", "trap"]


def test_unknown_category_is_refused() -> None:
    with pytest.raises(DataError, match="category 6"):
        score_answer(6, "x", "x")


def test_aggregate() -> None:
    scores, categories = [1.0, 0.12345, 0.5, 0.0, 1.0], [1, 2, 3, 4, 5]
    predictions = ["x", "not mentioned", "x", "x", "not mentioned"]
    summary = aggregate(scores, categories, disputed=[False, True, False, False, False], predictions=predictions)
    assert summary.overall_5 == pytest.approx((1 + 0.123 + 0.5 + 0 + 1) / 5)
    assert summary.overall_1to4 == pytest.approx((1 + 0.123 + 0.5 + 0) / 4)
    assert summary.macro_5 == pytest.approx(summary.overall_5)
    assert summary.clean_1to4 == pytest.approx(0.5)
    assert summary.false_refusal == 0.25
    assert summary.n == 5


def test_aggregate_says_none_where_nothing_was_measured() -> None:
    assert aggregate([], []) == AnswerSummary(None, None, None, None, {}, None, 0)
    assert aggregate([1.0], [4]).macro_5 is None


@pytest.mark.parametrize(
    ("evidence", "ids", "expected"),
    [
        (["D1:3", "D1:5"], ["D1:3", "D2:1"], 0.5),
        (["D1:3"], ["D2:1"], 0.0),
        ([], ["D2:1"], 1.0),
        (["D1:3", "D2:8", "D12:1"], ["S1", "S12"], 0.666667),
        (["D8:6; D9:17"], ["D8:6", "D9:17"], 0.0),
        (["D30:05"], ["D30:5"], 0.0),
        (["D1:18", "D", "D1:20"], ["D1:18", "D1:20"], 0.666667),
        (["D1:3", "D1:3"], ["D1:3"], 1.0),
        (["D1:3"], [], 0.0),
    ],
)
def test_upstream_recall(evidence: list[str], ids: list[str], expected: float) -> None:
    assert upstream_recall(evidence, ids) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("category", "gold", "context", "strict", "stem_score"),
    [
        (4, "adoption agencies", "She is researching adoption agencies.", 1, 1),
        (4, "agencies", "she called an agency", 0, 1),
        (4, "cat", "concatenate", 0, 0),
        (4, "7 May 2023", "1:56 pm on 8 May, 2023: …yesterday", 0, 0),
        (4, "self-care", "self care matters", 0, 0),
        (1, "beach, mountains, forest", "We love the beach and the forest", 2 / 3, 2 / 3),
        (1, "beach, , forest", "the beach", 0.5, 0.5),
        (3, "Yes; since she said so", "oh yes indeed", 1, 1),
        (4, "", "anything", 0, 0),
    ],
)
def test_containment(category: int, gold: str, context: str, strict: float, stem_score: float) -> None:
    assert containment(category, gold, context) == pytest.approx(strict)
    assert containment(category, gold, context, stem=True) == pytest.approx(stem_score)


def test_empty_parts_are_dropped() -> None:
    assert answer_parts(1, "beach, the, ") == ["beach"]
    assert contains("the", "the") == 0.0


@given(st.lists(st.text(alphabet="aAnthe d,.'-\tx–é", max_size=30), max_size=5))
def test_lines_normalise_one_by_one(lines: list[str]) -> None:
    text = "\n".join(line.replace("\n", " ") for line in lines)
    assert normal_context(text) == normalise(text)
    assert normal_context(text, stem=True) == stemmed(text)


@pytest.fixture(scope="module")
def released(data_root: Path) -> list[dict]:
    return [qa for sample in _samples(data_root) for qa in sample["qa"]]


def _gold(qa: dict) -> str:
    return str(qa.get("answer", qa.get("adversarial_answer")))


REFUSAL = "Not mentioned in the conversation"
CONSTANT_PREDICTORS = {
    "refusal": (lambda qa: REFUSAL, (0.46, 1.37, 2.29, 1.04, 100, 23.30, 1.08)),
    "empty": (lambda qa: "", (0, 0, 0, 0, 0, 0, 0)),
    "gold": (_gold, (100, 100, 92.74, 100, 0.45, 77.29, 99.55)),
    "ceiling": (
        lambda qa: REFUSAL if qa["category"] == 5 else _gold(qa),
        (100, 100, 92.74, 100, 100, 99.65, 99.55),
    ),
    "hedged": (lambda qa: f"{_gold(qa)} (not mentioned)", (77.37, 72.08, 65.60, 73.77, 100, 79.51, 73.57)),
    "question": (lambda qa: qa["question"], (3.25, 1.15, 7.21, 4.59, 0, 2.94, 3.79)),
    "yes or 2023": (lambda qa: "yes" if qa["category"] == 3 else "2023", (0.35, 22.93, 10.49, 0, 0, 4.26, 5.50)),
}


@pytest.mark.parametrize("name", CONSTANT_PREDICTORS)
def test_constant_predictors_on_the_released_data(released: list[dict], name: str) -> None:
    predict, expected = CONSTANT_PREDICTORS[name]
    scores = [score_answer(qa["category"], predict(qa), _gold(qa)) for qa in released]
    summary = aggregate(scores, [qa["category"] for qa in released])
    found = [summary.by_category[c] for c in range(1, 6)] + [summary.overall_5, summary.overall_1to4]
    assert [round(100 * value, 2) for value in found if value is not None] == pytest.approx(expected, abs=0.011)


def test_full_context_ceiling_of_upstream_recall(data_root: Path) -> None:
    samples = _samples(data_root)
    sums, counts = dict.fromkeys(range(1, 6), 0.0), dict.fromkeys(range(1, 6), 0)
    for sample in samples:
        sessions = (v for k, v in sample["conversation"].items() if k.startswith("session_") and isinstance(v, list))
        ids = [turn["dia_id"] for session in sessions for turn in session]
        for qa in sample["qa"]:
            counts[qa["category"]] += 1
            if qa["evidence"]:
                sums[qa["category"]] += upstream_recall(qa["evidence"], ids)
    found = [round(sums[c] / counts[c], 3) for c in range(1, 6)]
    assert found == [0.994, 0.997, 0.927, 1.0, 1.0]
    assert sum(sums.values()) / sum(counts.values()) == pytest.approx(0.99499, abs=5e-6)


def test_containment_ceilings_of_the_released_data(data_root: Path) -> None:
    """Full context and gold evidence, rendered as the published prompts do (EVALUATION.md 1.10)."""
    found = {category: [0.0, 0.0, 0] for category in range(1, 6)}
    for sample, parsed in zip(_samples(data_root), locomo.load(data_root), strict=True):
        lines = _published_lines(sample["conversation"])
        whole = "\n".join(lines.values())
        for question in parsed.questions:
            category, gold = int(question.evidence.category), question.evidence
            answer = gold.trap if category == 5 else gold.answer
            evidence = "\n".join(lines[turn] for turn in gold.turn_ids)
            row = found[category]
            row[0] += containment(category, answer, whole)
            row[1] += containment(category, answer, evidence)
            row[2] += 1
    shares = {category: (round(a / n, 3), round(b / n, 3)) for category, (a, b, n) in found.items()}
    assert shares == {
        1: (0.612, 0.463),
        2: (0.259, 0.146),
        3: (0.188, 0.062),
        4: (0.596, 0.554),
        5: (0.626, 0.585),
    }


def _samples(root: Path) -> list[dict]:
    return json.loads((root / "locomo" / "locomo10.json").read_text(encoding="utf-8"))


def _published_lines(conversation: dict) -> dict[str, str]:
    lines: dict[str, str] = {}
    for key, turns in conversation.items():
        if key.startswith("session_") and isinstance(turns, list):
            for turn in turns:
                shared = f" and shared {turn['blip_caption']}." if turn.get("blip_caption") else ""
                said = f'{turn["speaker"]} said, "{turn["text"]}"{shared}'
                lines[turn["dia_id"]] = f"{conversation[f'{key}_date_time']}: {said}"
    return lines
