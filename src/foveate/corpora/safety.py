"""Turns with a known importance (AFM section 3.2), written from templates: what must not be lost, what only sounds
like it, and small talk.

CRITICAL: allergies, intolerances, medication, conditions, hard constraints, emergencies, standing orders; in the first
and the third person, plain, hedged, with typing errors, and buried between other sentences. RELEVANT: questions about
allergies, negated ones, news, advice, figures of speech, food, plain talk. TRIVIAL: greetings, thanks, agreement.
A seed gives the same turns on every machine.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from foveate.core.schema import Turn
from foveate.core.tiers import Importance
from foveate.corpora import safety_bank as bank

_SLOT = re.compile(r"\{(\w+)\}")
_KEPT_CAPITAL = re.compile(r"I\b|I['’]")
_SPEAKERS = (None, None, "user", "User", "Ana", "Marcus", "Patient", "Jo", "Priya", "Guest")
_DATES = (None, None, None, "8 May 2023", "2024-02-17", "21 October, 2022", "Monday, 3 June 2019", "14 January, 2021")


@dataclass(frozen=True, slots=True)
class LabelledTurn:
    """A turn and the class it has.

    Attributes:
        turn: as an encoder reads it.
        label: its importance.
        origin: where it comes from, for instance "safety:allergy" or "mts_dialog".
        group: the dialogue or template; what shares a group is never split between training and test.
    """

    turn: Turn
    label: Importance
    origin: str
    group: str


def generate(seed: int, *, per_template: int = 6, carriers: Sequence[str] = ()) -> list[LabelledTurn]:
    """`per_template` turns of every template, in a fixed order; TRIVIAL ones, which have no slots, a third of that.

    Args:
        seed: of the choice of words, styles, speakers and dates.
        per_template: turns a template of a CRITICAL or RELEVANT family.
        carriers: ordinary sentences, between which a part of the turns is buried; none buries nothing.
    """
    rng = random.Random(f"safety-{seed}")
    made: list[LabelledTurn] = []
    for label, families in (
        (Importance.CRITICAL, bank.CRITICAL_FAMILIES),
        (Importance.RELEVANT, bank.RELEVANT_FAMILIES),
        (Importance.TRIVIAL, {"small talk": bank.TRIVIAL}),
    ):
        count = max(1, per_template // 3) if label is Importance.TRIVIAL else per_template
        for family, templates in families.items():
            for number, template in enumerate(templates):
                made.extend(_turns(rng, label, family, number, template, count, carriers))
    return made


def _turns(
    rng: random.Random,
    label: Importance,
    family: str,
    number: int,
    template: str,
    count: int,
    carriers: Sequence[str],
) -> Iterator[LabelledTurn]:
    group = f"safety:{family}:{number}"
    for again in range(count):
        text = filled(template, bank.SLOTS, rng)
        if again and label is not Importance.TRIVIAL:
            text = styled(text, rng, carriers)
        elif again and rng.random() < 0.5:
            text = with_typing_errors(text, rng)
        turn = Turn(f"{group}:{again}", "user", text, speaker=rng.choice(_SPEAKERS), date=rng.choice(_DATES))
        yield LabelledTurn(turn, label, f"safety:{family}", group)


def filled(template: str, slots: Mapping[str, Sequence[str]], rng: random.Random) -> str:
    """The template with one value for each slot; {Slot} is {slot} with a capital. The first letter becomes one."""
    values: dict[str, str] = {}

    def value(found: re.Match[str]) -> str:
        name = found[1].lower()
        if name not in values:
            values[name] = rng.choice(slots[name])
        return values[name][:1].upper() + values[name][1:] if found[1][:1].isupper() else values[name]

    text = _SLOT.sub(value, template)
    return text[:1].upper() + text[1:]


def styled(text: str, rng: random.Random, carriers: Sequence[str]) -> str:
    """The text as it is, after a lead, with typing errors, or before, after or between carrier sentences."""
    style = rng.random()
    if style < 0.2:
        return text
    if style < 0.4:
        return _led(rng.choice(bank.LEADS), text)
    if style < 0.6:
        return with_typing_errors(text, rng)
    if not carriers:
        return text
    inner = _led(rng.choice(bank.LEADS), text) if rng.random() < 0.3 else text
    before, after = rng.choice(carriers), rng.choice(carriers)
    if style < 0.72:
        return f"{before} {inner}"
    return f"{inner} {after}" if style < 0.84 else f"{before} {inner} {after}"


def _led(lead: str, text: str) -> str:
    small = text if _KEPT_CAPITAL.match(text) else text[:1].lower() + text[1:]
    return f"{lead} {small}"


def with_typing_errors(text: str, rng: random.Random) -> str:
    """The text in small letters or without apostrophes or its last stop, with two letters of a long word swapped."""
    if rng.random() < 0.6:
        text = text.lower()
    if rng.random() < 0.6:
        text = text.replace("'", "")
    if rng.random() < 0.6:
        text = text.rstrip(".")
    words = text.split(" ")
    long = [i for i, word in enumerate(words) if len(word) > 5 and word.isalpha()]
    if long and rng.random() < 0.6:
        i = rng.choice(long)
        at = rng.randrange(1, len(words[i]) - 2)
        word = words[i]
        words[i] = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return " ".join(words)
