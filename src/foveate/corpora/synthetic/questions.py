"""Questions about a synthetic conversation, in LoCoMo's five kinds, with the turns that answer them.

1 several turns, mostly from different sessions (what came before, lists, all that was done with somebody or belongs to
one kind, what both have in common, cause and consequence), 2 when something happened or what came first, 3 a step
beyond what was said, 4 one statement, 5 adversarial: asks one person about what only the other, or somebody else, has
told; the evidence is the turn that tempts and the trap its answer. A question is only asked where its answer is unique
in the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import combinations
from random import Random
from typing import TypeVar

from foveate.core.schema import Evidence, Query, Question
from foveate.corpora.synthetic.bank import Topic, choose, fill, placeholders, traits
from foveate.corpora.synthetic.moments import distance_text
from foveate.corpora.synthetic.world import Instance, Person, Stated, World, bare

SHARES = {"1": 0.15, "2": 0.17, "3": 0.05, "4": 0.41, "5": 0.22}
"""Share of each kind among the questions of a conversation, about LoCoMo's own."""

FIRST = 0.6
"""Share of the single questions that take the first wording of the bank, which is the nearest to the statement's."""
LIST = (2, 7)
"""Least and most statements that answer one question together."""
NEAR = 0.5
"""Share of the questions on cause and consequence in one session that are kept."""
PAIRS = 0.4
"""Share of the occurrences of a topic of which two facts are asked for in one breath."""
ORDERS = 3
"""Questions on the order of two events that a person's life may add."""

Draft = tuple[str, Evidence]
T = TypeVar("T")
_MY = re.compile(r"\bmy\b")
_ARTICLE = re.compile(r"^(an?|some|the|my) ")
_PLURAL = {"he": "they", "his": "their", "him": "them", "himself": "themselves"}
_TOGETHER = (
    "What has {X} done together with {mate}?",
    "Which experiences has {X} shared with {mate}?",
    "What was {mate} there for, according to {X}?",
    "When was {X} in the company of {mate}, and what was it for?",
)


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
        found["1"].extend(_steps(rng, world, instance))
    found["1"].extend(_lists(rng, world))
    found["1"].extend(_months(rng, world))
    found["1"].extend(_in_common(rng, world))
    for person in world.people:
        found["1"].extend(_of_one_kind(rng, world, person))
        found["1"].extend(_together(rng, world, person))
        found["2"].extend(_order(rng, world, person))
    return found


def _own(world: World, person: Person) -> list[tuple[Instance, Stated]]:
    """What holds of a person, in the order told."""
    found = [
        (instance, stated)
        for instance in world.instances
        if instance.owner is person and not instance.foreign
        for stated in instance.stated
        if stated.replaced_by is None
    ]
    return sorted(found, key=lambda pair: pair[1].session)


def _values(stated: Stated, person: Person) -> dict[str, str]:
    """Values as a third party says them of `person`."""
    told = {key: _MY.sub(person.words()["his"], value) for key, value in stated.values.items()}
    return told | person.words() | {"month": stated.moment.month}


def _unique(world: World, instance: Instance, stated: Stated, template: str) -> bool:
    """Whether the template fits one occurrence of the topic in its owner's life, or in both where it names nobody."""
    if "month" in placeholders(template) and not stated.moment.month:
        return False
    if "X" not in placeholders(template) and _shared(world, instance, template):
        return False
    owned = world.owned(instance.topic, instance.owner)
    if len(owned) == 1 or instance.topic.names_key(template):
        return True
    if "month" not in placeholders(template):
        return False
    others = (s for i in owned if i is not instance for s in i.stated if s.fact is stated.fact)
    return all(stated.moment.month not in other.moment.months for other in others)


def _shared(world: World, instance: Instance, template: str) -> bool:
    """Whether the template, which names nobody, fits the other speaker's life, too."""
    other = world.other(instance.owner)
    if instance.topic.names_key(template):
        return world.holds(instance.topic, other, instance.values[instance.topic.key])
    return bool(world.owned(instance.topic, other))


def _askable(world: World, instance: Instance, stated: Stated, key: str) -> list[str]:
    return [text for text in stated.fact.get(key) if _unique(world, instance, stated, text)]


def _single(rng: Random, world: World, instance: Instance, stated: Stated) -> Iterator[Draft]:
    """What holds now: a replaced statement is not asked for."""
    templates = _askable(world, instance, stated, "ask")
    if stated.replaced_by is None and templates:
        template = templates[0] if rng.random() < FIRST else rng.choice(templates)
        text = fill(choose(rng, template), _values(stated, instance.owner))
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
    if not pairs or rng.random() > PAIRS:
        return
    pair = rng.choice(pairs)
    parts = [
        fill(choose(rng, rng.choice(_askable(world, instance, s, "ask"))), _values(s, instance.owner)) for s in pair
    ]
    text = f"{parts[0].removesuffix('?')}, and {parts[1][0].lower()}{parts[1][1:]}"
    answer = ", ".join(s.answer for s in pair)
    yield text, Evidence(pair[0].turn_ids + pair[1].turn_ids, answer, "1")


def _steps(rng: Random, world: World, instance: Instance) -> Iterator[Draft]:
    """One fact asked for by way of another one: cause and consequence."""
    standing = {s.fact.name: s for s in instance.stated if s.replaced_by is None}
    for stated in standing.values():
        for name, text in stated.fact.keyed("step"):
            first, (question, answer) = standing.get(name), text.split("=>")
            if first is None or not _unique(world, instance, stated, question):
                continue
            if first.session == stated.session and rng.random() > NEAR:
                continue
            values = _values(stated, instance.owner)
            turn_ids = _joined((first, stated))
            if len(turn_ids) > 1:
                yield fill(question.strip(), values), Evidence(turn_ids, bare(fill(answer.strip(), values)), "1")


def _joined(told: Iterable[Stated]) -> tuple[str, ...]:
    """The turns of several statements, each once, in the order told."""
    return tuple(dict.fromkeys(turn_id for stated in told for turn_id in stated.turn_ids))


def _of_one_kind(rng: Random, world: World, person: Person) -> Iterator[Draft]:
    """What several statements on different topics say together: all that helps a person to relax."""
    for kind, questions in traits().items():
        told = [(i, s, text) for i, s in _own(world, person) for key, text in s.fact.keyed("trait") if key == kind]
        turn_ids = _joined(stated for _, stated, _ in told)
        if LIST[0] <= len(told) <= LIST[1] and len({s.session for _, s, _ in told}) > 1:
            parts = dict.fromkeys(bare(fill(text, _values(stated, person))) for _, stated, text in told)
            yield fill(rng.choice(questions), person.words()), Evidence(turn_ids, ", ".join(parts), "1")


def _together(rng: Random, world: World, person: Person) -> Iterator[Draft]:
    """All that a person did with one companion; where a turn does not name it, with the turn that does."""
    groups: dict[str, list[tuple[Instance, Stated]]] = {}
    for instance, stated in _own(world, person):
        if stated.fact.get("deed"):
            groups.setdefault(stated.answer, []).append((instance, stated))
    for told in groups.values():
        if not LIST[0] <= len(told) <= LIST[1] or len({s.session for _, s in told}) == 1:
            continue
        values = _values(told[0][1], person)
        mate = fill(told[0][1].fact.answer, values)
        parts = [bare(fill(stated.fact.get("deed")[0], _values(stated, person))) for _, stated in told]
        turn_ids = _joined(s for instance, stated in told for s in _naming(world, instance, stated))
        form = rng.choice(_TOGETHER)
        yield fill(form, person.words() | {"mate": mate}), Evidence(turn_ids, ", ".join(parts), "1")


def _naming(world: World, instance: Instance, stated: Stated) -> tuple[Stated, ...]:
    """The statement, after the one that opened its topic where it leaves out what it is about."""
    first = instance.stated[0]
    if stated is first or _ARTICLE.sub("", instance.values[instance.topic.key]) in world.text(stated.turn_ids):
        return (stated,)
    return first, stated


def _in_common(rng: Random, world: World) -> Iterator[Draft]:
    """What both people have told of themselves."""
    first, second = world.people
    for instance in world.instances:
        texts = instance.topic.get("both")
        if instance.foreign or instance.owner is not first or not texts or not _standing(instance):
            continue
        for other in world.owned(instance.topic, second):
            key = instance.topic.key
            if other.values[key] == instance.values[key] and _standing(other) and _alone(world, instance.topic):
                text = fill(rng.choice(texts), {"X": first.name, "P": second.name})
                told = sorted((instance.stated[0], other.stated[0]), key=lambda s: s.session)
                yield text, Evidence(_joined(told), bare(instance.values[key]), "1")


def _standing(instance: Instance) -> bool:
    return instance.stated[0].replaced_by is None


def _alone(world: World, topic: Topic) -> bool:
    """Whether the two people share one value of the topic's key, not several."""
    first, second = ({i.values[topic.key] for i in world.owned(topic, person)} for person in world.people)
    return len(first & second) == 1


def _order(rng: Random, world: World, person: Person) -> Iterator[Draft]:
    """Which of two events came first, or how far they lie apart; the days are those that were told."""
    events = [
        (stated.moment.day, fill(stated.fact.get("event")[0], _values(stated, person)), stated)
        for instance, stated in _own(world, person)
        if stated.dated
        and stated.fact.get("event")
        and (len(world.owned(instance.topic, person)) == 1 or instance.topic.names_key(stated.fact.get("event")[0]))
    ]
    known = [(day, name, stated) for day, name, stated in events if day is not None]
    pairs = [(a, b) for a, b in combinations(known, 2) if a[0] != b[0] and a[2].turn_ids != b[2].turn_ids]
    for pair in rng.sample(pairs, min(ORDERS, len(pairs))):
        (day, early, first), (later, late, second) = sorted(pair, key=lambda event: event[0])
        one, two = rng.sample((early, late), 2)
        form, answer = rng.choice(
            (
                ("Which came first for {X}, {one} or {two}?", early),
                ("What happened earlier in {X}'s life: {one} or {two}?", early),
                ("Which is more recent for {X}, {one} or {two}?", late),
                ("How much time lies between {one} and {two} in {X}'s life?", distance_text(day, later)),
            )
        )
        values = person.words() | {"one": one, "two": two}
        yield fill(form, values), Evidence(_joined(sorted((first, second), key=_session)), answer, "2")


def _session(stated: Stated) -> int:
    return stated.session


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
            yield fill(text, _PLURAL), _all_of(topic, owned[0] + owned[1])


def _sessions(instances: list[Instance]) -> int:
    return len({instance.stated[0].session for instance in instances})


def _all_of(topic: Topic, instances: list[Instance]) -> Evidence:
    told = sorted(instances, key=lambda instance: instance.stated[0].session)
    turn_ids = _joined(instance.stated[0] for instance in told)
    return Evidence(turn_ids, ", ".join(dict.fromkeys(bare(i.values[topic.key]) for i in told)), "1")


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
            turn_ids = _joined(group)
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
    if world.holds(instance.topic, person, stated.values[instance.topic.key]):
        return
    templates = [
        text
        for text in stated.fact.get("ask")
        if "X" in placeholders(text)
        and (clean or instance.topic.names_key(text))
        and ("month" not in placeholders(text) or stated.moment.month)
    ]
    if instance.foreign:
        templates = [text for text in templates if "month" not in placeholders(text)]
    if templates:
        text = fill(choose(rng, rng.choice(templates)), _values(stated, person))
        yield text, Evidence(stated.turn_ids, None, "5", trap=stated.answer)
