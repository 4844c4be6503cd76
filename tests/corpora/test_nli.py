"""NLI sets: counts, the traps of their files, and a split that no sentence crosses."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from foveate.core.errors import DataError
from foveate.corpora import nli
from foveate.corpora.nli import Pair
from foveate.corpora.root import KNOWN

# entailment, neutral, contradiction
COUNTS = {
    "snli:dev": (3329, 3235, 3278),
    "snli:test": (3368, 3219, 3237),
    "counterfactual:train": (2770, 2778, 2782),
    "counterfactual:dev": (326, 325, 349),
    "counterfactual:test": (654, 677, 669),
    "breaking": (982, 47, 7164),
    "conjnli:train": (5820, 6757, 2423),
    "conjnli:dev": (204, 281, 138),
    "negation:snli": (248, 847, 405),
    "negation:mnli": (372, 589, 539),
}
SPLIT = {"train": 34204, "validation": 4564, "test": 19044}


@pytest.fixture(scope="module")
def pairs(data_root: Path) -> list[Pair]:
    return nli.load_all(data_root)


@pytest.fixture(scope="module")
def parts(pairs: list[Pair]) -> nli.Split:
    return nli.split(pairs)


def test_counts(pairs: list[Pair]) -> None:
    found = Counter((pair.source, pair.label) for pair in pairs)
    assert {source: tuple(found[source, label] for label in nli.LABELS) for source in COUNTS} == COUNTS
    assert len(pairs) == sum(sum(counts) for counts in COUNTS.values()) == 57812
    assert all(pair.premise == pair.premise.strip() != "" and pair.hypothesis for pair in pairs)


def test_what_trains_may_train_a_shipped_checkpoint() -> None:
    folders = {"snli": "snli_dev_test", "counterfactual": "counterfactual_snli", "breaking": "breaking_nli"}
    folders |= {"conjnli": "conjnli", "negation": "negation_nli"}
    assert {KNOWN[f"nli/{folders[source]}"].checkpoint for source in nli.SOURCES} == {"yes"}


def test_the_mnli_part_of_negation_nli_is_read_as_cp1252(pairs: list[Pair]) -> None:
    texts = [text for p in nli.of_source(pairs, "negation:mnli") for text in (p.premise, p.hypothesis)]
    assert any("\u201d" in text for text in texts)
    assert not any("\ufffd" in text or "\x94" in text for text in texts)


def test_quoted_and_unquoted_tables(pairs: list[Pair]) -> None:
    quoted = nli.of_source(pairs, "counterfactual:train")
    assert any('"TheFaceShop"' in pair.premise for pair in quoted)
    assert not any('""' in pair.premise for pair in quoted)
    assert any(pair.premise.startswith('Season eight of "South Park",') for pair in nli.of_source(pairs, "conjnli"))


def test_no_sentence_is_in_two_parts(parts: nli.Split) -> None:
    sentences = [
        {nli.normalised(text) for pair in part for text in (pair.premise, pair.hypothesis)} - {""}
        for part in (parts.train, parts.validation, parts.test)
    ]
    assert not sentences[0] & sentences[1]
    assert not sentences[0] & sentences[2]
    assert not sentences[1] & sentences[2]


def test_the_split_and_its_counts(parts: nli.Split) -> None:
    assert {name: len(getattr(parts, name)) for name in SPLIT} == SPLIT
    for source, counts in COUNTS.items():
        if source in nli.HELD_OUT:
            assert len(nli.of_source(parts.test, source)) == sum(counts)
    assert Counter(pair.source for pair in parts.train) == {
        "conjnli:train": 12020,
        "snli:dev": 6891,
        "breaking": 6449,
        "counterfactual:train": 5920,
        "negation:mnli": 1218,
        "negation:snli": 981,
        "counterfactual:dev": 725,
    }
    assert len(nli.of_source(parts.test, "breaking")) == 852
    assert len(nli.of_source(parts.test, "negation")) == 531


def test_the_split_depends_on_the_sentences_alone(pairs: list[Pair], parts: nli.Split) -> None:
    turned = nli.split(pairs[::-1])
    assert set(turned.train) == set(parts.train)
    assert set(turned.test) == set(parts.test)


def test_research_sets(data_root: Path) -> None:
    assert Counter(pair.label for pair in nli.spoken(data_root)) == {
        "contradiction": 440,
        "entailment": 427,
        "neutral": 394,
    }
    assert [len(nli.spoken(data_root, part)) for part in ("train", "dev")] == [11955, 927]
    assert Counter(pair.label for pair in nli.prosecco(data_root)) == {"contradiction": 685, "not": 642}
    assert Counter(pair.label for pair in nli.decode(data_root)) == {"contradiction": 20796}
    assert Counter(pair.label for pair in nli.mnli_binary(data_root)) == {"contradiction": 679, "not": 1321}


def pair(premise: str, hypothesis: str, source: str = "breaking") -> Pair:
    return Pair(premise, hypothesis, "neutral", source)


def test_groups_are_transitive_and_a_held_out_pair_takes_its_group_along() -> None:
    chain = [
        pair("A man ca n't swim .", "He drowns.", "snli:test"),
        pair("A man can't swim.", "He is wet."),
        pair("Rain falls.", "He is wet!"),
        pair("...", "He is WET"),
    ]
    alone = [pair(f"Sentence {n}.", f"Other {n}.") for n in range(200)]
    parts = nli.split([*alone[:100], *chain, *alone[100:]])
    assert [p for p in parts.test if p in chain] == chain
    shares = [len(part) / 200 for part in (parts.train, parts.validation)]
    assert shares == pytest.approx([nli.TRAIN_SHARE, nli.VALIDATION_SHARE], abs=0.08)


def test_sentences_without_letters_link_nothing() -> None:
    marks = [pair("...", f"Some sentence {n}") for n in range(300)]
    parts = nli.split(marks)
    assert min(len(parts.train), len(parts.validation), len(parts.test)) > 0
    assert nli.normalised("?!") == ""
    assert len(nli.split([pair("?", "!")]).test) + len(nli.split([pair("?", "!")]).train) in (0, 1)


def test_of_source_takes_sets_and_parts() -> None:
    some = [pair("a", "b", "snli:dev"), pair("a", "c", "snli:test"), pair("a", "d", "breaking")]
    assert nli.of_source(some, "snli") == some[:2]
    assert nli.of_source(some, "snli:test", "breaking") == some[1:]


def test_an_unknown_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no NLI set 'rte'"):
        nli.load(tmp_path, "rte")  # type: ignore[arg-type]


def test_a_row_of_another_width_and_an_unknown_label_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("a\tb\tc\nd\te\n")
    with pytest.raises(DataError, match="a row of 2 columns where 3 belong"):
        nli._columns(path, 3, header=True, quoted=False)
    with pytest.raises(DataError, match="the label 'maybe'"):
        nli._label("maybe", path)
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter="\t").writerow(['say "hi"', "b", "c"])
    assert nli._columns(path, 3, header=False, quoted=True) == [['say "hi"', "b", "c"]]
