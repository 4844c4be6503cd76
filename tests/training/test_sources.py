"""Which conversations a run sees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_runs import write_conversations

from foveate.config.schema import DataConfig
from foveate.core.errors import ConfigError, DataError
from foveate.corpora import locomo, store
from foveate.training.sources import load_sources, thin


@pytest.mark.parametrize("name", ["wikipedia", "qmsum:dev", "qmsum", "friendsqa:train", "locomo10"])
def test_an_unknown_source_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match="data source") as caught:
        load_sources(DataConfig(train=(name,)), "train")
    assert repr(name) in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.jsonl"):
        load_sources(DataConfig(train=(f"synthetic:{tmp_path / 'none.jsonl'}",)), "train")


def test_locomo_needs_a_fold() -> None:
    with pytest.raises(ConfigError, match=r"data\.fold"):
        DataConfig(train=("locomo",))
    with pytest.raises(ConfigError, match=r"data\.fold"):
        DataConfig(validation=("locomo",))


@pytest.mark.parametrize("fold", range(5))
def test_no_test_conversation_of_the_fold_is_seen(data_root: Path, fold: int) -> None:
    config = DataConfig(train=("locomo",), validation=("locomo",), fold=fold)
    train, validation = (
        {conversation.id.partition("@")[0] for conversation in load_sources(config, role)}
        for role in ("train", "validation")
    )
    split = locomo.folds()[fold]
    assert train == set(split.train)
    assert validation == set(split.validation)
    assert not (train | validation) & set(split.test)
    assert not train & validation


def test_qmsum_questions_have_their_evidence(data_root: Path) -> None:
    pieces = load_sources(DataConfig(train=("qmsum:train",), max_turns=400), "train")
    assert len(pieces) > 50
    for piece in pieces:
        assert len(piece.turns) <= 400
        here = {turn.id for turn in piece.turns}
        assert piece.questions
        assert all(q.evidence.turn_ids and here.issuperset(q.evidence.turn_ids) for q in piece.questions)


def test_any_source_gives_cloze_questions_instead_of_its_own(data_root: Path) -> None:
    config = DataConfig(train=("cloze:qmsum:val",), cloze_conversations=5, cloze_questions=7, cloze_turns=200)
    pieces = load_sources(config, "train")
    assert len(pieces) == 5
    assert all(len(piece.turns) <= 200 and len(piece.questions) <= 7 for piece in pieces)
    assert sum(len(piece.questions) for piece in pieces) > 20
    assert {q.evidence.category for piece in pieces for q in piece.questions} == {"cloze"}
    with pytest.raises(ConfigError, match=r"data\.fold"):
        DataConfig(train=("cloze:locomo",))
    with pytest.raises(ConfigError, match="data source 'wikipedia'"):
        load_sources(DataConfig(train=("cloze:wikipedia",)), "train")


def test_long_conversations_are_cut_and_keep_what_is_answerable(tmp_path: Path) -> None:
    path = write_conversations(tmp_path / "some.jsonl", 3, seed=8)
    whole = store.read(path)
    pieces = load_sources(DataConfig(train=(f"synthetic:{path}",), max_turns=8), "train")
    questions = {q.id for c in whole for q in c.questions if q.evidence.turn_ids}
    kept = [q for piece in pieces for q in piece.questions]
    assert 0 < len(kept) == len({q.id for q in kept})
    assert {q.id for q in kept} <= questions
    assert all("@" in piece.id and len(piece.turns) <= 8 for piece in pieces)
    for question in kept:
        (home,) = [piece for piece in pieces if question in piece.questions]
        assert {turn.id for turn in home.turns}.issuperset(question.evidence.turn_ids)


def test_at_most_max_conversations_train_and_validation_is_whole(tmp_path: Path) -> None:
    name = f"synthetic:{write_conversations(tmp_path / 'some.jsonl', 3, seed=8)}"
    config = DataConfig(train=(name,), validation=(name,), max_conversations=2)
    assert [c.id for c in load_sources(config, "train")] == [c.id for c in load_sources(config, "validation")][:2]
    assert len(load_sources(config, "validation")) == 3


def test_a_source_without_evidence_is_refused(tmp_path: Path) -> None:
    path = write_conversations(tmp_path / "some.jsonl", 1, seed=8)
    records = [json.loads(line) | {"questions": []} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    with pytest.raises(ConfigError, match="no question with evidence"):
        load_sources(DataConfig(train=(f"synthetic:{path}",)), "train")


@pytest.mark.parametrize(("most", "expected"), [(0, 6), (1, 1), (4, 4), (6, 6), (9, 6)])
def test_thinning_keeps_order_and_count(tmp_path: Path, most: int, expected: int) -> None:
    questions = [q for c in store.read(write_conversations(tmp_path / "a.jsonl", 2, seed=8)) for q in c.questions][:6]
    kept = thin(questions, most)
    assert len(kept) == expected
    assert list(kept) == [q for q in questions if q in kept]
