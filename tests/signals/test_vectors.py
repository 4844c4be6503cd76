"""The cached scorer: each turn encoded once, neighbours mixed anew, growth equal to a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
import torch
from chats import chat, cuts

from foveate.core.protocols import PolicyName, Scorer
from foveate.core.schema import Query, Turn
from foveate.core.tiers import OrdinalThresholds, TierValues
from foveate.learned.mixer import Mixer
from foveate.signals.features import SIGNAL_NAMES
from foveate.signals.lexical import Floats
from foveate.signals.vectors import Column, VectorIndex, VectorScorer, turn_text

DIM, WIDTH = 16, 8
QUESTION = Query("When did Melanie paint the sunset?")


class FakeModel:
    """Letter counts as the encoder, a real mixer, and a head that reads all of its inputs."""

    name = "fake"
    policy: PolicyName = "optimal"
    tier_values = TierValues(9.0, -7.0)
    thresholds: OrdinalThresholds | None = None
    dim, width = DIM, WIDTH

    def __init__(self, window: int = 2, layers: int = 2) -> None:
        torch.manual_seed(0)
        self._mixer = Mixer(DIM, WIDTH, window, layers, dropout=0.0).eval()
        self.reach = self._mixer.reach
        self.encoded: Counter[str] = Counter()
        self.mixed_rows: list[int] = []
        self.mixed = np.zeros((0, WIDTH), dtype=np.float32)

    def encode(self, texts: Sequence[str]) -> Floats:
        self.encoded.update(texts)
        out = np.zeros((len(texts), DIM), dtype=np.float32)
        for row, text in enumerate(texts):
            for letter in text.encode():
                out[row, letter % DIM] += 1
        return out / np.linalg.norm(out, axis=1, keepdims=True)

    @torch.inference_mode()
    def mix(self, vectors: Floats) -> Floats:
        self.mixed_rows.append(len(vectors))
        return self._mixer(torch.from_numpy(vectors.copy())).numpy()

    def head(self, vectors: Floats, mixed: Floats, query: Floats, signals: Floats) -> Floats:
        self.mixed = mixed.copy()
        return 1 / (1 + np.exp(-(vectors @ query + mixed.sum(1) + 0.1 * signals.sum(1))))


def opened(model: FakeModel, turns: Sequence[Turn]) -> VectorIndex:
    index = VectorScorer(model).open()
    index.append(turns)
    return index


def test_each_turn_is_encoded_exactly_once() -> None:
    turns, model = chat(60), FakeModel()
    index = VectorScorer(model).open()
    for piece in cuts(turns):
        index.append(piece)
        index.score(QUESTION)
    assert {text: model.encoded[text] for text in map(turn_text, turns)} == Counter(map(turn_text, turns))


def test_questions_that_are_remembered_are_not_encoded_again() -> None:
    model = FakeModel()
    index = opened(model, chat(5))
    before = index.score(QUESTION)
    index.remember([QUESTION.text])
    seen = model.encoded[QUESTION.text]
    assert list(index.score(QUESTION).score) == list(before.score)
    assert model.encoded[QUESTION.text] == seen


@pytest.mark.parametrize(("window", "layers"), [(2, 2), (3, 1), (1, 3), (0, 1), (2, 0)])
@pytest.mark.parametrize("seed", [0, 1])
def test_growth_equals_a_batch(window: int, layers: int, seed: int) -> None:
    turns, growing, whole = chat(50, seed), FakeModel(window, layers), FakeModel(window, layers)
    index = VectorScorer(growing).open()
    for piece in cuts(turns, seed):
        index.append(piece)
        index.score(QUESTION)
    found = index.score(QUESTION)
    expected = opened(whole, turns).score(QUESTION)
    np.testing.assert_allclose(growing.mixed, whole.mixed, atol=1e-6)
    np.testing.assert_allclose(found.score, expected.score, atol=1e-6)


def test_a_new_turn_mixes_its_neighbours_only() -> None:
    turns, model = chat(60), FakeModel()
    index = opened(model, turns[:50])
    index.score(QUESTION)
    index.append(turns[50:51])
    index.score(QUESTION)
    assert model.mixed_rows == [50, 2 * model.reach + 1]


def test_appends_before_the_first_question_are_encoded_together() -> None:
    model = FakeModel()
    index = opened(model, chat(10))
    for turn in chat(13)[10:]:
        index.append([turn])
    index.score(QUESTION)
    assert model.mixed_rows == [13]


def test_scores_come_with_every_signal_and_the_cosine() -> None:
    model = FakeModel()
    scores = opened(model, chat(30)).score(QUESTION)
    assert len(scores.score) == 30
    assert set(scores.signals) == {"cosine", *SIGNAL_NAMES}
    assert all(len(column) == 30 for column in scores.signals.values())
    vectors, query = model.encode([turn_text(t) for t in chat(30)]), model.encode([QUESTION.text])[0]
    np.testing.assert_allclose(list(scores.signals["cosine"]), vectors @ query, atol=1e-6)


def test_earlier_scores_keep_their_cosines_when_the_conversation_grows() -> None:
    index = opened(FakeModel(), chat(3))
    early = index.score(QUESTION)
    cosines = list(early.signals["cosine"])
    index.append(chat(200)[3:])
    index.score(QUESTION)
    assert list(early.signals["cosine"]) == cosines


def test_an_empty_conversation_has_no_scores() -> None:
    model = FakeModel()
    assert list(VectorScorer(model).open().score(QUESTION).score) == []
    assert list(opened(model, []).score(QUESTION).score) == []


def test_the_scorer_is_what_its_model_says() -> None:
    scorer = VectorScorer(FakeModel())
    assert isinstance(scorer, Scorer)
    assert (scorer.name, scorer.policy, scorer.calibrated) == ("fake", "optimal", True)


def test_two_conversations_share_nothing() -> None:
    scorer = VectorScorer(FakeModel())
    first, second = scorer.open(), scorer.open()
    first.append(chat(4))
    second.append(chat(7, seed=9))
    assert (len(first.score(QUESTION).score), len(second.score(QUESTION).score)) == (4, 7)


def test_the_encoder_reads_date_speaker_and_words() -> None:
    assert turn_text(Turn("a", "user", "Hi", speaker="Ann", date="8 May 2023")) == "8 May 2023 Ann: Hi"
    assert turn_text(Turn("a", "user", "Hi")) == "user: Hi"
    assert turn_text(Turn("a", "assistant", None)) == "assistant:"


def test_a_column_reads_as_plain_numbers() -> None:
    column = Column(np.array([1.5, 2.5, 4.5], dtype=np.float32))
    assert (column[-1], list(column[1:]), len(column)) == (4.5, [2.5, 4.5], 3)
    assert type(column[0]) is float
    assert [b - a for a, b in pairwise(column)] == [1, 2]


def test_a_reply_gives_the_signal_of_eq_5_and_only_a_reply() -> None:
    asked: list[Floats] = []

    def contradiction(vectors: Floats, reply: Floats) -> Floats:
        asked.append(reply)
        return np.linspace(0, 1, len(vectors), dtype=np.float32)

    model = FakeModel()
    index = VectorScorer(model, contradiction=contradiction).open()
    index.append(chat(6))
    assert "contradiction" not in index.score(QUESTION).signals
    found = index.score(Query(QUESTION.text, last_reply="No."))
    assert list(found.signals["contradiction"]) == pytest.approx(np.linspace(0, 1, 6).tolist())
    np.testing.assert_allclose(asked[0], model.encode(["assistant: No."])[0])
