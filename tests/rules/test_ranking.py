"""The untrained rankers."""

import os
import subprocess
import sys

import pytest

from foveate.core.errors import ConfigError
from foveate.core.protocols import Scorer
from foveate.core.schema import Query, Turn
from foveate.rules.hashing import HashingEmbedder
from foveate.rules.ranking import (
    Bm25Scorer,
    DenseScorer,
    FunctionScorer,
    OldestFirstScorer,
    RandomScorer,
    RecencyScorer,
    RrfScorer,
    SumScorer,
)

TEXTS = ["The beagle is called Biscuit", "ok", "We paint on Sundays", "What is the beagle called?"]


def turns_of(texts=TEXTS) -> list[Turn]:
    return [Turn(id=f"m{i}", role="user", content=t, session="1", date="8 May 2023") for i, t in enumerate(texts)]


def scores(scorer: Scorer, query: str = "beagle name", turns: list[Turn] | None = None) -> list[float]:
    index = scorer.open()
    for turn in turns_of() if turns is None else turns:
        index.append([turn])
    return list(index.score(Query(text=query)).score)


ALL = [
    RandomScorer(13),
    RecencyScorer(),
    OldestFirstScorer(),
    Bm25Scorer(),
    Bm25Scorer(window=1, header=True),
    DenseScorer(HashingEmbedder()),
    DenseScorer(HashingEmbedder(), header=True, window=1),
    RrfScorer((Bm25Scorer(), DenseScorer(HashingEmbedder()))),
    SumScorer((Bm25Scorer(), RecencyScorer()), weights=(1.0, 0.1)),
    FunctionScorer("length", lambda turns, query: [len(t.text) for t in turns]),
]


@pytest.mark.parametrize("scorer", ALL, ids=lambda s: s.name)
def test_every_ranker_fits_the_protocol_and_gives_one_score_a_turn(scorer: Scorer) -> None:
    assert isinstance(scorer, Scorer)
    assert scores(scorer, turns=[]) == []
    assert len(scores(scorer, turns=turns_of()[:1])) == 1
    assert len(scores(scorer)) == 4
    assert scores(scorer) == scores(scorer)


def test_recency_and_oldest_first_are_mirrored() -> None:
    assert scores(RecencyScorer()) == [0.25, 0.5, 0.75, 1.0] == scores(OldestFirstScorer())[::-1]


def test_random_depends_on_seed_turn_and_query_only() -> None:
    assert scores(RandomScorer(1)) != scores(RandomScorer(2))
    assert scores(RandomScorer(1), "a") != scores(RandomScorer(1), "b")
    assert scores(RandomScorer(1))[:2] == scores(RandomScorer(1), turns=turns_of()[:2])


def test_bm25_window_lifts_the_neighbour_and_the_header_matches_the_date() -> None:
    assert scores(Bm25Scorer(), "beagle")[1] == 0.0 < scores(Bm25Scorer(window=1), "beagle")[1]
    assert scores(Bm25Scorer(), "May")[2] == 0.0 < scores(Bm25Scorer(header=True), "May")[2]


def test_a_dense_window_adds_the_neighbours() -> None:
    assert scores(DenseScorer(HashingEmbedder(), window=1), "beagle Biscuit")[1] > 0.3


def test_rrf_is_the_sum_of_reciprocal_ranks_with_ties_to_the_earlier_turn() -> None:
    flat = FunctionScorer("flat", lambda turns, query: [0.0] * len(turns))
    assert scores(RrfScorer((flat, RecencyScorer()), k=60)) == pytest.approx(
        [1 / 61 + 1 / 64, 1 / 62 + 1 / 63] * 1
        + [
            1 / 63 + 1 / 62,
            1 / 64 + 1 / 61,
        ]
    )


def test_sum_ignores_scale_and_constant_scorers() -> None:
    double = FunctionScorer("double", lambda turns, query: [2.0 * i for i in range(len(turns))])
    flat = FunctionScorer("flat", lambda turns, query: [5.0] * len(turns))
    alone = scores(SumScorer((RecencyScorer(),)))
    assert scores(SumScorer((double,))) == pytest.approx(alone)
    assert scores(SumScorer((RecencyScorer(), flat))) == pytest.approx(alone)


def test_misuse_is_one_clear_error() -> None:
    with pytest.raises(ConfigError, match="'short' gave 1 scores for 4 turns"):
        scores(FunctionScorer("short", lambda turns, query: [1.0]))
    with pytest.raises(ConfigError, match="0 scorers"):
        RrfScorer(()).open()
    with pytest.raises(ConfigError, match="2 weights for 1 scorers"):
        SumScorer((RecencyScorer(),), weights=(1.0, 2.0))


def test_hash_vectors_are_equal_across_processes() -> None:
    code = (
        "from foveate.rules.hashing import HashingEmbedder, PositionalHashingEmbedder as P;import hashlib;"
        "print(hashlib.sha256(HashingEmbedder().embed(['peanuts \\u98df', 'x']).tobytes()"
        " + P().embed(['peanut stew']).tobytes()).hexdigest())"
    )
    outs = [
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1", "4242")
    ]
    assert len(set(outs)) == 1


def test_inflections_and_typing_errors_meet_in_the_hashing_embedder() -> None:
    e = HashingEmbedder()
    a, b, c, d = e.embed(["allergic to peanuts", "peanut alergy", "train to Lyon", "花生过敏"])
    assert a @ b > 0.2 > abs(a @ c)
    assert e.embed(["我对花生过敏"])[0] @ d > 0.4
