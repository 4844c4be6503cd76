"""Who lives in a synthetic conversation, what happens in their lives, and where each of it was said."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from foveate.core.schema import Turn
from foveate.corpora.synthetic.bank import Fact, Topic, fill
from foveate.corpora.synthetic.moments import Moment


def bare(answer: str) -> str:
    """An answer without the "my" that only its owner can say."""
    return answer.removeprefix("my ")


@dataclass(frozen=True, slots=True)
class Person:
    """A speaker. `kind` picks the pronouns, `voice` the manner; a helper is an assistant that owns no facts."""

    name: str
    kind: str
    role: str
    voice: str = "plain"

    @property
    def helper(self) -> bool:
        return self.kind == "helper"

    def words(self) -> dict[str, str]:
        """The placeholders that stand for this person in a question."""
        he, his, him = ("she", "her", "her") if self.kind == "her" else ("he", "his", "him")
        return {"X": self.name, "he": he, "his": his, "him": him, "himself": f"{him}self"}


@dataclass(slots=True)
class Stated:
    """One statement of a fact.

    Attributes:
        fact: what was stated.
        turn_ids: the turns that carry it: one, or a question and its answer.
        session: index of the session.
        values: the slot values it was stated with.
        moment: when it happened, for facts with a tense.
        dated: whether its words told when.
        replaced_by: the later statement that makes this one history.
    """

    fact: Fact
    turn_ids: tuple[str, ...]
    session: int
    values: dict[str, str]
    moment: Moment
    dated: bool = False
    replaced_by: Stated | None = None

    @property
    def answer(self) -> str:
        return bare(fill(self.fact.answer, self.values))


@dataclass(slots=True)
class Instance:
    """One occurrence of a topic in a life. `foreign` ones are told of a third person; `owner` is then who tells it.

    `waiting` facts are still to be told; `visits` counts how often the talk came back to it.
    """

    topic: Topic
    owner: Person
    values: dict[str, str]
    foreign: bool = False
    stated: list[Stated] = field(default_factory=list)
    waiting: list[Fact] = field(default_factory=list)
    visits: int = 0


@dataclass(slots=True)
class World:
    """Everything said so far in one conversation, with who said it."""

    people: tuple[Person, Person]
    turns: list[Turn] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)
    used: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)
    uses: Counter[str] = field(default_factory=Counter)
    casts: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)

    def other(self, person: Person) -> Person:
        return self.people[1] if person is self.people[0] else self.people[0]

    def text(self, turn_ids: tuple[str, ...]) -> str:
        """What was said in these turns."""
        return " ".join(turn.text for turn in self.turns if turn.id in turn_ids)

    def holds(self, topic: Topic, owner: Person, value: str) -> bool:
        """Whether a person has an occurrence of the topic with this value of its key, by now or before."""
        return any(value in (i.values[topic.key], i.values.get(f"old_{topic.key}")) for i in self.owned(topic, owner))

    def owned(self, topic: Topic, owner: Person) -> list[Instance]:
        """The occurrences of a topic in one speaker's own life."""
        return [i for i in self.instances if i.topic is topic and i.owner is owner and not i.foreign]
