"""Small conversations for the tests of the signals."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from foveate.core.schema import Turn

_WORDS = """
    lake camping guitar lessons adoption agency painting sunset pottery class running charity race kids museum parade
    support group counseling school speech book library garden roses violin concert beach birthday necklace Sweden
    grandma hike family tent stars mental health career transgender pride shelter puppy recipe cake marathon painted
""".split()
_FILLERS = "the a is it I you we was and to of that's really so what how when did do my your in on for".split()
_DATES = ("7 May 2023", "25 May 2023", "9 June 2023", "15 July 2023")


def chat(count: int, seed: int = 0) -> list[Turn]:
    """Turns of two speakers in dated sessions of about 20 turns, their words drawn with a fixed seed."""
    rng = random.Random(seed)
    turns: list[Turn] = []
    for i in range(count):
        words = [rng.choice(_WORDS if rng.random() < 0.4 else _FILLERS) for _ in range(rng.randint(3, 40))]
        session = i // 20
        turns.append(
            Turn(
                id=f"D{session + 1}:{i % 20 + 1}",
                role=("user", "assistant")[i % 2],
                content=" ".join(words) + rng.choice(".?!"),
                speaker=("Caroline", "Melanie")[i % 2],
                session=str(session),
                date=_DATES[session % len(_DATES)],
            )
        )
    return turns


def cuts(turns: Sequence[Turn], seed: int = 0) -> Iterator[Sequence[Turn]]:
    """The turns in consecutive pieces of 1 to 9."""
    rng, start = random.Random(seed), 0
    while start < len(turns):
        size = rng.randint(1, 9)
        yield turns[start : start + size]
        start += size
