"""Long chats of our own making: what the demo trains on, and what a model can learn from without having seen LoCoMo.

A conversation is 8 to 20 sessions over months between two friends (or a person and an assistant). Each session strings
threads together: news on a topic told in one of several ways, answers that lean on the question before them, the same
topic again without its facts, the other speaker's or a third person's version of it, values that are replaced later,
words of the last turn or of its picture taken up again, a second matter at the end of a turn, and small talk. Each
speaker has a voice and a few companions who come back. Every statement remembers its turns, so a question's evidence is
exact by construction (`synthetic.questions`). The phrases lie in `bank/`; the words of a question are not those of the
statement, so that looking for equal words is not enough.

Only `random.Random` with a text seed is used: the same arguments give the same bytes on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

from foveate.core.errors import DataError
from foveate.core.schema import Conversation
from foveate.corpora.store import read, write
from foveate.corpora.synthetic import bank
from foveate.corpora.synthetic.questions import ask
from foveate.corpora.synthetic.session import VOICES, Session
from foveate.corpora.synthetic.world import Person, World

PREFIX = "synthetic-"
"""What the ids of generated conversations begin with."""

__all__ = ["PREFIX", "Shape", "generate", "read", "write"]


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a conversation, each drawn evenly from an inclusive range.

    Attributes:
        sessions: sessions in a conversation.
        turns: turns after which a session is brought to its end.
        questions: questions asked about it.
        helper_share: share of the conversations that are held with an assistant.
    """

    sessions: tuple[int, int] = (8, 20)
    turns: tuple[int, int] = (14, 26)
    questions: tuple[int, int] = (24, 40)
    helper_share: float = 0.15

    def __post_init__(self) -> None:
        for name, (low, high) in (("sessions", self.sessions), ("turns", self.turns), ("questions", self.questions)):
            if not 1 <= low <= high:
                raise DataError(f"{name}=({low}, {high}) is no range: give 1 <= low <= high")
        if not 0 <= self.helper_share <= 1:
            raise DataError(f"helper_share={self.helper_share} is no share: give 0 to 1")


def generate(n: int, seed: int, shape: Shape | None = None) -> list[Conversation]:
    """`n` conversations; the i-th depends on `seed`, `shape` and i only.

    Raises:
        DataError: `n` is not positive.
    """
    if n < 1:
        raise DataError(f"cannot generate {n} conversations: give at least 1")
    return [_conversation(f"{PREFIX}{seed}-{i}", shape or Shape()) for i in range(n)]


def _conversation(name: str, shape: Shape) -> Conversation:
    rng = Random(name)
    world = World(_people(rng, shape))
    today = date(rng.randint(2021, 2025), rng.randint(1, 12), rng.randint(1, 28))
    for index in range(rng.randint(*shape.sessions)):
        Session(rng, world, index, today).hold(rng.randint(*shape.turns))
        today += timedelta(days=rng.choice((2, 3, 5, 6, 8, 10, 13, 17, 24)))
    questions = ask(rng, world, name, rng.randint(*shape.questions))
    return Conversation(name, tuple(world.turns), questions)


def _people(rng: Random, shape: Shape) -> tuple[Person, Person]:
    names = bank.talk()
    kinds = [rng.choice(("her", "him")), rng.choice(("her", "him"))]
    if rng.random() < shape.helper_share:
        kinds[1] = "helper"
    first = rng.choice(names[kinds[0]])
    second = rng.choice([name for name in names[kinds[1]] if name != first])
    voices = rng.choice(VOICES), "plain" if kinds[1] == "helper" else rng.choice(VOICES)
    return Person(first, kinds[0], "user", voices[0]), Person(second, kinds[1], "assistant", voices[1])
