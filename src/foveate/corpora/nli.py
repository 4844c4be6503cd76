"""Natural-language inference: sentence pairs with labels, for P(contradiction) of Eq. 5.

Three-way sets that may train a shipped checkpoint (`SOURCES`): SNLI dev and test (Bowman et al., 2015),
counterfactually edited SNLI (Kaushik et al., 2020), Breaking NLI (Glockner et al., 2018), ConjNLI (Saha et al., 2020)
and negation NLI (Hossain et al., 2020; its SNLI and MNLI parts). They reuse each other's sentences, so rows are never
split: `split` splits by groups of pairs that share a sentence.

Sets for evaluation only: dialogue NLI over spoken British English (GU-CLASP), ProSeCCo (self-contradictions of
speakers), DECODE (contradicting pairs, positives only) and a two-way MNLI sample.

The text stays as released (SNLI tokenised), without outer spaces.
"""

from __future__ import annotations

import csv
import hashlib
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from foveate.core.errors import DataError
from foveate.corpora.root import locate, read_jsonl

Label = Literal["entailment", "neutral", "contradiction"]
BinaryLabel = Literal["contradiction", "not"]
NliSource = Literal["snli", "counterfactual", "breaking", "conjnli", "negation"]

LABELS: tuple[Label, ...] = get_args(Label)
SOURCES: tuple[NliSource, ...] = get_args(NliSource)
"""The sets that may train a shipped checkpoint."""

HELD_OUT = frozenset({"snli:test", "counterfactual:test", "conjnli:dev"})
"""Parts that are test in any case, with all pairs that share a sentence with them."""

TRAIN_SHARE, VALIDATION_SHARE = 0.8, 0.1
"""Of the groups that hold no held-out pair; the rest is test."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A pair with one of three labels.

    Attributes:
        premise, hypothesis: the sentences.
        label: what the premise says of the hypothesis.
        source: the set and, after a colon, the part it lies in: "snli:dev", "negation:mnli", "breaking".
    """

    premise: str
    hypothesis: str
    label: Label
    source: str

    @property
    def contradicts(self) -> bool:
        return self.label == "contradiction"


@dataclass(frozen=True, slots=True)
class BinaryPair:
    """A pair of which only is known whether it is a contradiction; fields as in `Pair`."""

    premise: str
    hypothesis: str
    label: BinaryLabel
    source: str

    @property
    def contradicts(self) -> bool:
        return self.label == "contradiction"


@dataclass(frozen=True, slots=True)
class Split:
    """Pairs for training, for choosing, and for the last measurement; no sentence is in two of them."""

    train: tuple[Pair, ...]
    validation: tuple[Pair, ...]
    test: tuple[Pair, ...]


def load(root: Path, source: NliSource) -> list[Pair]:
    """All pairs of a three-way set, its parts one after the other, in the files' order.

    Raises:
        DataError: no such set, or a file is missing, changed or not in the documented form.
    """
    match source:
        case "snli":
            return [pair for part in ("dev", "test") for pair in _snli(root, part)]
        case "counterfactual":
            return [pair for part in ("train", "dev", "test") for pair in _counterfactual(root, part)]
        case "breaking":
            return _breaking(root)
        case "conjnli":
            train = _conjnli(root, "adversarial_train_15k.tsv", "conjnli:train")
            return train + _conjnli(root, "conj_dev.tsv", "conjnli:dev")
        case "negation":
            snli = _negation(root, "SNLI.txt", "utf-8", "negation:snli")
            return snli + _negation(root, "MNLI.txt", "cp1252", "negation:mnli")
    raise DataError(f"there is no NLI set {source!r}: give one of {', '.join(SOURCES)}")


def load_all(root: Path) -> list[Pair]:
    """The pairs of all sets in `SOURCES`: 57,812."""
    return [pair for source in SOURCES for pair in load(root, source)]


def spoken(root: Path, part: Literal["train", "dev", "test"] = "test") -> list[Pair]:
    """Dialogue NLI over spoken British English; a premise holds several turns, each after a mark such as <A>.

    Research only: 11,955 / 927 / 1,261 pairs.
    """
    path = locate(root, "nli/dnli_spoken_gu", f"{part}_5_data.csv")
    return [
        Pair(_text(premise, path), _text(hypothesis, path), _label(label.lower(), path), f"spoken:{part}")
        for premise, hypothesis, label in _columns(path, 3, header=False, quoted=False)
    ]


def prosecco(root: Path) -> list[BinaryPair]:
    """ProSeCCo: two propositions of one speaker, in order; whether they contradict each other. Research only: 1,327."""

    def parse(value: Any, number: int) -> BinaryPair:
        label: BinaryLabel = "contradiction" if value["label"] == "self-contradiction" else "not"
        return BinaryPair(value["proposition_1"].strip(), value["proposition_2"].strip(), label, "prosecco")

    return read_jsonl(locate(root, "nli/prosecco_decode_mnli", "ProSeCCo_final.json"), parse)


def decode(root: Path) -> list[BinaryPair]:
    """DECODE (Nie et al., 2021): pairs of turns that contradict each other, and none that do not. Research only:
    20,796.
    """
    path = locate(root, "nli/prosecco_decode_mnli", "decode_pairs.tsv")
    rows = _columns(path, 3, header=True, quoted=True)
    return [BinaryPair(_text(a, path), _text(b, path), "contradiction", "decode") for a, b, _ in rows]


def mnli_binary(root: Path) -> list[BinaryPair]:
    """2,000 pairs of MNLI dev matched (Williams et al., 2018), contradiction or not. Research only."""
    path = locate(root, "nli/prosecco_decode_mnli", "mnli_dev_matched_binary_2000.csv")
    rows = _columns(path, 3, header=True, quoted=True, separator=",")
    return [
        BinaryPair(_text(a, path), _text(b, path), "contradiction" if label == "1" else "not", "mnli")
        for a, b, label in rows
    ]


def normalised(sentence: str) -> str:
    """Letters and digits alone, case folded: equal for a sentence and its tokenised form."""
    folded = unicodedata.normalize("NFKC", sentence).casefold()
    return "".join(c for c in folded if c.isalnum())


def split(pairs: Sequence[Pair]) -> Split:
    """Train, validation and test by sentence group, each in the order given.

    A group is a connected component of pairs that share a normalised sentence, be it premise or hypothesis. One that
    holds a pair of `HELD_OUT` is test; another goes where the sha256 of its smallest sentence puts it. Give the pairs
    of all sets and select afterwards: the split of a set then does not depend on which sets are used.
    """
    sentences = [_sentences(pair) for pair in pairs]
    root_of = _components(sentences)
    smallest: dict[str, str] = {}
    held: set[str] = set()
    for pair, group, found in zip(pairs, root_of, sentences, strict=True):
        smallest[group] = min(smallest.get(group, found[0]), *found)
        if pair.source in HELD_OUT:
            held.add(group)
    roles = {group: "test" if group in held else _role(sentence) for group, sentence in smallest.items()}
    parts: dict[str, list[Pair]] = {"train": [], "validation": [], "test": []}
    for pair, group in zip(pairs, root_of, strict=True):
        parts[roles[group]].append(pair)
    return Split(*(tuple(parts[name]) for name in ("train", "validation", "test")))


def of_source(pairs: Sequence[Pair], *names: str) -> list[Pair]:
    """The pairs of sets ("snli") or of parts of sets ("snli:dev")."""
    return [pair for pair in pairs if pair.source in names or pair.source.partition(":")[0] in names]


def _sentences(pair: Pair) -> tuple[str, ...]:
    """What links a pair to others; a sentence without letters ("...") links nothing, unless there is nothing else."""
    found = (normalised(pair.premise), normalised(pair.hypothesis))
    return tuple(filter(None, found)) or (pair.premise,)


def _role(sentence: str) -> str:
    share = int.from_bytes(hashlib.sha256(sentence.encode()).digest()[:8], "big") / 2**64
    if share < TRAIN_SHARE:
        return "train"
    return "validation" if share < TRAIN_SHARE + VALIDATION_SHARE else "test"


def _components(sentences: Sequence[Sequence[str]]) -> list[str]:
    """For each pair the representative of its group, by union-find over the sentences."""
    parent: dict[str, str] = {}

    def find(x: str) -> str:
        while parent.setdefault(x, x) != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    for first, *others in sentences:
        for other in others:
            parent[find(other)] = find(first)
    return [find(found[0]) for found in sentences]


def _snli(root: Path, part: str) -> Iterator[Pair]:
    paths = [locate(root, "nli/snli_dev_test", f"{name}.{part}") for name in ("s1", "s2", "labels")]
    for premise, hypothesis, label in zip(*(_lines(path) for path in paths), strict=True):
        yield Pair(_text(premise, paths[0]), _text(hypothesis, paths[1]), _label(label, paths[2]), f"snli:{part}")


def _counterfactual(root: Path, part: str) -> list[Pair]:
    path = locate(root, "nli/counterfactual_snli", f"all_combined_{part}.tsv")
    rows = _columns(path, 3, header=True, quoted=True)
    return [Pair(_text(a, path), _text(b, path), _label(c, path), f"counterfactual:{part}") for a, b, c in rows]


def _breaking(root: Path) -> list[Pair]:
    path = locate(root, "nli/breaking_nli", "dataset.jsonl")

    def parse(value: Any, number: int) -> Pair:
        label = _label(value["gold_label"], path)
        return Pair(_text(value["sentence1"], path), _text(value["sentence2"], path), label, "breaking")

    return read_jsonl(path, parse)


def _conjnli(root: Path, name: str, source: str) -> list[Pair]:
    path = locate(root, "nli/conjnli", name)
    rows = _columns(path, 3, header=True, quoted=False)
    return [Pair(_text(a, path), _text(b, path), _label(c, path), source) for a, b, c in rows]


def _negation(root: Path, name: str, encoding: str, source: str) -> list[Pair]:
    path = locate(root, "nli/negation_nli", name)
    rows = _columns(path, 4, header=True, quoted=False, encoding=encoding)
    return [Pair(_text(a, path), _text(b, path), _label(c, path), source) for _, a, b, c in rows]


def _lines(path: Path, encoding: str = "utf-8") -> list[str]:
    try:
        lines = path.read_text(encoding=encoding).removeprefix("\ufeff").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as {encoding} text: {error}") from error
    return lines[:-1] if lines[-1] == "" else lines


def _columns(
    path: Path, count: int, *, header: bool, quoted: bool, separator: str = "\t", encoding: str = "utf-8"
) -> list[list[str]]:
    """The rows of a table; `quoted` as the csv module reads quotes, else every quote is text."""
    lines = _lines(path, encoding)
    read: Callable[[], list[list[str]]] = (
        (lambda: list(csv.reader(lines, delimiter=separator)))
        if quoted
        else (lambda: [line.split(separator) for line in lines])
    )
    rows = read()[1 if header else 0 :]
    if odd := next((row for row in rows if len(row) != count), None):
        raise DataError(f"{path} has a row of {len(odd)} columns where {count} belong: {odd[:2]}")
    return rows


def _text(sentence: str, path: Path) -> str:
    if not sentence.strip():
        raise DataError(f"{path} has an empty sentence")
    return sentence.strip()


def _label(text: str, path: Path) -> Label:
    for label in LABELS:
        if text == label:
            return label
    raise DataError(f"{path} has the label {text!r}: known are {', '.join(LABELS)}")
