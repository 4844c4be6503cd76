"""Questions about a synthetic conversation, in LoCoMo's five kinds, with the turns that answer them.

1 several turns from different sessions, 2 when something happened, 3 a step beyond what was said, 4 one statement,
5 adversarial: asks one person about what only the other, or somebody else, has told; the evidence is the turn that
tempts and the trap its answer. A question is only asked where its answer is unique in the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from random import Random
from typing import TypeVar

from foveate.core.schema import Evidence, Query, Question
from foveate.corpora.synthetic.bank import Topic, choose, fill, placeholders
from foveate.corpora.synthetic.world import Instance, Person, Stated, World, bare

SHARES = {"1": 0.15, "2": 0.17, "3": 0.05, "4": 0.41, "5": 0.22}
"""Share of each kind among the questions of a conversation, about LoCoMo's own."""

Draft = tuple[str, Evidence]
T = TypeVar("T")
_MY = re.compile(r"\bmy\b")


def ask(rng: Random, world: World, name: str, n: int) -> tuple[Question, ...]:
    """At most `n` questions, no text twice, kinds in the proportion of `SHARES` as far as the talk allows."""
    drafts = {kind: _shuffled(rng, found) for kind, found in _candidates(rng, world).items()}
    chosen: dict[str, Evidence] = {}
    for kind, share in SHARES.items():
        _take(chosen, drafts[kind], round(share * n))
    for kind in ("4", "5", "2"):
        _take(chosen, drafts[kind], n - len(chosen))
    texts = _shuffled(rng, chosen)
    return tuple(Question(f"{name}:q{i}", Query(text), chosen[text]) for i, text in enumerate(texts))


def _take(chosen: dict[str, Evidence], drafts: list[Draft], n: int) -> None:
    taken = 0
    for text, evidence in drafts:
        if taken < n and text not in chosen:
            chosen[text] = evidence
            taken += 1


def _shuffled(rng: Random, items: Iterable[T]) -> list[T]:
    found = list(items)
    rng.shuffle(found)
    return found


def _candidates(rng: Random, world: World) -> dict[str, list[Draft]]:
    found: dict[str, list[Draft]] = {kind: [] for kind in SHARES}
    for instance in world.instances:
        if instance.foreign:
            found["5"].extend(_told_of_a_third(rng, world, instance))
            continue
        for stated in instance.stated:
            found["1"].extend(_before_update(rng, instance, stated))
            found["2"].extend(_when(rng, world, instance, stated))
            found["3"].extend(_inferred(world, instance, stated))
            found["4"].extend(_single(rng, world, instance, stated))
            found["5"].extend(_asked_of_the_other(rng, world, instance, stated))
        found["1"].extend(_two_facts(rng, world, instance))
    found["1"].extend(_lists(rng, world))
    found["1"].extend(_months(rng, world))
    return found


def _values(stated: Stated, person: Person) -> dict[str, str]:
    """Values as a third party says them of `person`."""
    told = {key: _MY.sub(person.words()["his"], value) for key, value in stated.values.items()}
    return told | person.words() | {"month": stated.moment.month}


def _unique(world: World, instance: Instance, stated: Stated, template: str) -> bool:
    """Whether the template fits one occurrence of the topic in its owner's life."""
    if "month" in placeholders(template) and not stated.moment.month:
        return False
    owned = world.owned(instance.topic, instance.owner)
    if len(owned) == 1 or instance.topic.names_key(template):
        return True
    if "month" not in placeholders(template):
        return False
    others = (s for i in owned if i is not instance for s in i.stated if s.fact is stated.fact)
    return all(stated.moment.month not in other.moment.months for other in others)


def _askable(world: World, instance: Instance, stated: Stated, key: str) -> list[str]:
    return [text for text in stated.fact.get(key) if _unique(world, instance, stated, text)]


def _single(rng: Random, world: World, instance: Instance, stated: Stated) -> Iterator[Draft]:
    """What holds now: a replaced statement is not asked for."""
    templates = _askable(world, instance, stated, "ask")
    if stated.replaced_by is None and templates:
        text = fill(choose(rng, rng.choice(templates)), _values(stated, instance.owner))
        yield _in_its_month(rng, stated, text), Evidence(stated.turn_ids, stated.answer, "4")


def _in_its_month(rng: Random, stated: Stated, text: str) -> str:
    """Now and then the month of an event is part of what is asked."""
    month = stated.moment.month
    if stated.fact.tense == "past" and stated.dated and month and month not in text and rng.random() < 0.35:
        return f"{text.removesuffix('?')} in {month}?" if " did " in text else text
    return text


def _when(rng: Random, world: World, instance: Instance, stated: Stated) -> Iterator[Draft]:
    templates = _askable(world, instance, stated, "when")
    if templates and stated.dated:
        text = fill(choose(rng, rng.choice(templates)), _values(stated, instance.owner))
        yield text, Evidence(stated.turn_ids, stated.moment.answer, "2")


def _inferred(world: World, instance: Instance, stated: Stated) -> Iterator[Draft]:
    if stated.replaced_by is not None:
        return
    values = _values(stated, instance.owner)
    for question, answer in stated.fact.pairs("infer"):
        if _unique(world, instance, stated, question):
            yield fill(question, values), Evidence(stated.turn_ids, fill(answer, values), "3")


def _before_update(rng: Random, instance: Instance, stated: Stated) -> Iterator[Draft]:
    """What held before: the older statement and the one that replaced it."""
    new = stated.replaced_by
    if new is not None:
        text = fill(choose(rng, rng.choice(new.fact.get("used"))), _values(new, instance.owner))
        yield text, Evidence(stated.turn_ids + new.turn_ids, stated.answer, "1")


def _two_facts(rng: Random, world: World, instance: Instance) -> Iterator[Draft]:
    """Two facts of one occurrence that were told in different sessions, asked in one breath."""
    standing = [s for s in instance.stated if s.replaced_by is None and _askable(world, instance, s, "ask")]
    pairs = [(a, b) for a in standing for b in standing if a.session < b.session]
    if not pairs:
        return
    pair = rng.choice(pairs)
    parts = [
        fill(choose(rng, rng.choice(_askable(world, instance, s, "ask"))), _values(s, instance.owner)) for s in pair
    ]
    text = f"{parts[0].removesuffix('?')}, and {parts[1][0].lower()}{parts[1][1:]}"
    answer = ", ".join(s.answer for s in pair)
    yield text, Evidence(pair[0].turn_ids + pair[1].turn_ids, answer, "1")


def _lists(rng: Random, world: World) -> Iterator[Draft]:
    """All occurrences of a topic in one life, or in both."""
    topics = {instance.topic.name: instance.topic for instance in world.instances}
    for topic in topics.values():
        owned = [world.owned(topic, person) for person in world.people]
        for person, instances in zip(world.people, owned, strict=True):
            if topic.get("list") and _sessions(instances) > 1:
                yield fill(choose(rng, rng.choice(topic.get("list"))), person.words()), _all_of(topic, instances)
        together = [text for text in topic.get("list") if "has {X}" in text]
        if together and all(owned) and _sessions(owned[0] + owned[1]) > 1:
            first, second = (person.name for person in world.people)
            text = rng.choice(together).replace("has {X}", f"have {first} and {second}")
            yield fill(text, {"himself": "themselves"}), _all_of(topic, owned[0] + owned[1])


def _sessions(instances: list[Instance]) -> int:
    return len({instance.stated[0].session for instance in instances})


def _all_of(topic: Topic, instances: list[Instance]) -> Evidence:
    told = sorted(instances, key=lambda instance: instance.stated[0].session)
    turn_ids = tuple(turn_id for instance in told for turn_id in instance.stated[0].turn_ids)
    return Evidence(turn_ids, ", ".join(bare(instance.values[topic.key]) for instance in told), "1")


def _months(rng: Random, world: World) -> Iterator[Draft]:
    """Everything that happened to a person in one month, for one such month a person."""
    for person in world.people:
        events = [s for i in world.instances if i.owner is person and not i.foreign for s in i.stated if s.dated]
        unclear = {month for s in events if len(s.moment.months) > 1 for month in s.moment.months}
        months = sorted({s.moment.month for s in events} - unclear - {""})
        groups = [(month, [s for s in events if s.moment.month == month]) for month in months]
        groups = [(month, group) for month, group in groups if 2 <= len(group) <= 5]
        if groups:
            month, group = rng.choice(groups)
            form = rng.choice(("What happened in {X}'s life in {month}?", "What did {X} experience in {month}?"))
            turn_ids = tuple(turn_id for s in group for turn_id in s.turn_ids)
            answer = ", ".join(s.answer for s in group)
            yield fill(form, {"X": person.name, "month": month}), Evidence(turn_ids, answer, "1")


def _asked_of_the_other(rng: Random, world: World, instance: Instance, stated: Stated) -> Iterator[Draft]:
    other = world.other(instance.owner)
    if not other.helper:
        yield from _tempting(rng, world, instance, stated, other)


def _told_of_a_third(rng: Random, world: World, instance: Instance) -> Iterator[Draft]:
    for person in world.people:
        if not person.helper:
            yield from _tempting(rng, world, instance, instance.stated[0], person)


def _tempting(rng: Random, world: World, instance: Instance, stated: Stated, person: Person) -> Iterator[Draft]:
    """A question on `stated` asked of `person`, who has no such thing to tell."""
    clean = not world.owned(instance.topic, person)
    templates = [
        text
        for text in stated.fact.get("ask")
        if (clean or instance.topic.names_key(text)) and ("month" not in placeholders(text) or stated.moment.month)
    ]
    if instance.foreign:
        templates = [text for text in templates if "month" not in placeholders(text)]
    if templates:
        text = fill(choose(rng, rng.choice(templates)), _values(stated, person))
        yield text, Evidence(stated.turn_ids, None, "5", trap=stated.answer)
