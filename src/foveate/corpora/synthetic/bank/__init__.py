"""The phrases the synthetic generator speaks with: plain text files that anyone can extend, and their reader.

A topic file holds topics; a topic holds slots, loose lines and facts; a line is `key: text`:

    == pet repeat                     a topic; `repeat`: one person may have it several times, with new values; `sad`:
                                      nobody jokes about it
    slot pet/animal: Mochi/a cat | …  values that belong together; the first column of the first slot is the topic's key
    slot mate: @companion             a value of a section of talk.txt, of which each person has a few to come back to
    chat: / echo: / hook:             talk on the topic without its facts: the partner's, the owner's, a later question
    react:                            the partner's once the first fact is known, with its words
    list:                             a question that all occurrences of the topic answer together
    both:                             a question on what {X} and {P} have in common: the key
    -- animal past                    a fact; `past` or `future` where its sentences tell {when}; `update SLOT` where
                                      it replaces the value of an earlier fact, whose old values are {old_...}
    prompt: / say: / plain:           a question that draws the fact out; it told in passing; it told outright
    short: / split:                   an answer that leans on the prompt; question >> answer where both are needed
    ask: / when: / used:              questions about it: now, its time, its value before the update
    infer:                            question => answer that needs a step beyond the words
    other:                            the same said of a third person
    step: FACT:                       question => answer that needs this fact and another one of the topic
    trait: KIND:                      what the fact adds to the answer of a question of traits.txt
    deed:                             what was done with the companion that the fact names
    event:                            a name for what happened, to ask what came first
    caption: / answer:                an image's caption; the answer

Placeholders: slot columns; {animal_} starts with a capital; {the_animal} has "the" for "a"; {when} and {When}; {month}
of the event; {X} who it is about and {he} {his} {him} {himself}; {P} the other person. (so|then) is one of the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from random import Random
from typing import Literal

from foveate.core.errors import DataError

Tense = Literal["none", "past", "future"]

TOPIC_FILES = (
    "home.txt",
    "work.txt",
    "health.txt",
    "leisure.txt",
    "outings.txt",
    "people.txt",
    "everyday.txt",
    "pastimes.txt",
    "feelings.txt",
    "society.txt",
    "outdoors.txt",
)
PRONOUNS = frozenset({"he", "his", "him", "himself"})

_SPECIAL = frozenset({"X", "P", "when", "When", "month"}) | PRONOUNS
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_CHOICE = re.compile(r"\(([^()|]*(?:\|[^()|]*)+)\)")
_ARTICLE = re.compile(r"^(an?|some) ")


@dataclass(frozen=True, slots=True)
class Slot:
    """Columns of values that belong together; one row is drawn for each occurrence of the topic.

    `shared` ones have the rows of a section of talk.txt, and a value may come back in other topics.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Fact:
    """Something one can state and be asked about. `lines` maps a key of the format to its texts."""

    name: str
    tense: Tense
    update: str | None
    lines: Mapping[str, tuple[str, ...]]

    def get(self, key: str) -> tuple[str, ...]:
        return self.lines.get(key, ())

    def pairs(self, key: str) -> tuple[tuple[str, str], ...]:
        """The two halves of each `split` or `infer` line."""
        mark = ">>" if key == "split" else "=>"
        halves = (line.split(mark, 1) for line in self.get(key))
        return tuple((first.strip(), second.strip()) for first, second in halves)

    def keyed(self, key: str) -> tuple[tuple[str, str], ...]:
        """The word before the colon of each `trait` or `step` line, and the text after it."""
        halves = (line.split(": ", 1) for line in self.get(key))
        return tuple((word, text) for word, text in halves)

    @property
    def answer(self) -> str:
        return self.lines["answer"][0]


@dataclass(frozen=True, slots=True)
class Topic:
    """A subject of talk with its facts; the first fact is the one that opens it."""

    name: str
    repeat: bool
    sad: bool
    slots: tuple[Slot, ...]
    lines: Mapping[str, tuple[str, ...]]
    facts: tuple[Fact, ...]

    def get(self, key: str) -> tuple[str, ...]:
        return self.lines.get(key, ())

    @property
    def key(self) -> str:
        return self.slots[0].columns[0]

    def slot_of(self, column: str) -> Slot:
        return next(slot for slot in self.slots if column in slot.columns)

    def names_key(self, template: str) -> bool:
        """Whether a template says which occurrence of the topic it is about."""
        return bool(placeholders(template) & set(self.slots[0].columns))

    def updated_by(self, fact: Fact) -> Fact | None:
        """The fact that may later replace `fact`."""
        return next((f for f in self.facts if f.update and f is not fact and self._same_answer(f, fact)), None)

    def _same_answer(self, update: Fact, fact: Fact) -> bool:
        return fact.update is None and update.answer == fact.answer


@dataclass(slots=True)
class _Draft:
    name: str
    words: list[str]
    lines: dict[str, list[str]] = field(default_factory=dict)
    slots: list[Slot] = field(default_factory=list)
    facts: list[_Draft] = field(default_factory=list)


_TOPIC_KEYS = frozenset({"chat", "react", "echo", "hook", "list", "both"})
_FACT_KEYS = frozenset(
    "prompt say plain short split ask when used infer other step trait deed event caption answer".split()
)


def placeholders(template: str) -> set[str]:
    """Names of the values a template needs."""
    return {name.removesuffix("_").removeprefix("the_") for name in _PLACEHOLDER.findall(template)}


def choose(rng: Random, template: str) -> str:
    """The template with one word or phrase drawn from each (a|b|c)."""
    return _CHOICE.sub(lambda match: rng.choice(match[1].split("|")), template)


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with its placeholders replaced."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        text = values[name.removesuffix("_").removeprefix("the_")]
        if name.startswith("the_"):
            text = _ARTICLE.sub("the ", text)
        return text[:1].upper() + text[1:] if name.endswith("_") else text

    return _PLACEHOLDER.sub(value, template)


@cache
def topics() -> tuple[Topic, ...]:
    """All topics of the packaged files."""
    found = tuple(topic for name in TOPIC_FILES for topic in parse_topics(_lines(name), name))
    names = [topic.name for topic in found]
    if len(set(names)) != len(names):
        raise DataError("two topics of the phrase bank have one name")
    kinds = {kind for topic in found for fact in topic.facts for kind, _ in fact.keyed("trait")}
    if unknown := sorted(kinds - traits().keys()):
        raise DataError(f"trait {unknown[0]!r} has no question in traits.txt")
    return found


@cache
def talk() -> Mapping[str, tuple[str, ...]]:
    """The sections of talk.txt; sections of names are split at their commas."""
    return _sections("talk.txt")


@cache
def traits() -> Mapping[str, tuple[str, ...]]:
    """The questions of traits.txt by kind: what several statements on different topics answer together."""
    return _sections("traits.txt")


def _sections(file: str) -> Mapping[str, tuple[str, ...]]:
    sections: dict[str, list[str]] = {}
    name = ""
    for _, line in _meaningful(_lines(file)):
        if line.startswith("== "):
            name = line[3:].strip()
            sections[name] = []
        elif name in {"her", "him", "helper", "companion"}:
            sections[name].extend(part.strip() for part in line.split(","))
        else:
            sections[name].append(line)
    return {name: tuple(lines) for name, lines in sections.items()}


def parse_topics(lines: Iterable[str], source: str) -> tuple[Topic, ...]:
    """Topics from lines of a topic file.

    Raises:
        DataError: names the file and the line that is not in the format.
    """
    drafts: list[_Draft] = []
    for number, line in _meaningful(lines):
        where = f"{source} line {number}"
        if line.startswith("== "):
            name, *words = line[3:].split()
            drafts.append(_Draft(name, words))
        elif not drafts:
            raise DataError(f"{where}: {line!r} comes before the first topic (== name)")
        elif line.startswith("-- "):
            name, *words = line[3:].split()
            drafts[-1].facts.append(_Draft(name, words))
        else:
            _add_line(drafts[-1], line, where)
    return tuple(_topic(draft, source) for draft in drafts)


def _lines(name: str) -> list[str]:
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8").split("\n")


def _meaningful(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if text and not text.startswith("#"):
            yield number, text


def _add_line(topic: _Draft, line: str, where: str) -> None:
    key, colon, text = line.partition(": ")
    if not colon or not text.strip():
        raise DataError(f"{where}: {line!r} is not of the form key: text")
    if key.startswith("slot "):
        topic.slots.append(_slot(key[5:], text, where))
        return
    target, allowed = (topic.facts[-1], _FACT_KEYS) if topic.facts else (topic, _TOPIC_KEYS)
    if key not in allowed:
        raise DataError(f"{where}: unknown key {key!r}, expected one of {', '.join(sorted(allowed))}")
    target.lines.setdefault(key, []).append(text.strip())


def _slot(columns: str, text: str, where: str) -> Slot:
    names = tuple(name.strip() for name in columns.split("/"))
    if text.startswith("@"):
        return Slot(names, tuple((value,) for value in talk()[text[1:].strip()]), shared=True)
    rows = tuple(tuple(cell.strip() for cell in row.split("/")) for row in text.split("|"))
    if bad := next((row for row in rows if len(row) != len(names)), None):
        raise DataError(f"{where}: {'/'.join(bad)!r} does not have {len(names)} columns")
    return Slot(names, rows)


def _topic(draft: _Draft, source: str) -> Topic:
    facts = tuple(_fact(fact) for fact in draft.facts)
    repeat, sad = ("repeat" in draft.words, "sad" in draft.words)
    topic = Topic(draft.name, repeat, sad, tuple(draft.slots), _frozen(draft.lines), facts)
    columns = {column for slot in topic.slots for column in slot.columns}
    for fact in facts:
        _check(topic, fact, columns, f"{source}: topic {topic.name}, fact {fact.name}")
    return topic


def _fact(draft: _Draft) -> Fact:
    update = draft.words[1] if draft.words[:1] == ["update"] else None
    tense: Tense = "past" if "past" in draft.words else "future" if "future" in draft.words else "none"
    return Fact(draft.name, tense, update, _frozen(draft.lines))


def _check(topic: Topic, fact: Fact, columns: set[str], where: str) -> None:
    """Every fact can be said, asked and answered, and uses only placeholders that have a value."""
    if missing := [key for key in ("say", "plain", "short", "prompt", "ask", "answer") if key not in fact.lines]:
        raise DataError(f"{where}: no {missing[0]} line")
    old = {f"old_{column}" for column in columns} if fact.update else set[str]()
    for text in (line for lines in fact.lines.values() for line in lines):
        if unknown := sorted(placeholders(text) - columns - _SPECIAL - old):
            raise DataError(f"{where}: unknown placeholder {{{unknown[0]}}}")
    for name, text in fact.keyed("step"):
        if all(other.name != name for other in topic.facts) or "=>" not in text:
            raise DataError(f"{where}: step {name!r} is no fact of the topic with question => answer")
    for text in (*fact.get("say"), *fact.get("plain"), *fact.get("short"), *fact.get("split")):
        if {"when", "When"} & placeholders(text) and fact.tense == "none":
            raise DataError(f"{where}: {{when}} in a fact that is neither past nor future")


def _frozen(lines: Mapping[str, list[str]]) -> Mapping[str, tuple[str, ...]]:
    return {key: tuple(texts) for key, texts in lines.items()}
