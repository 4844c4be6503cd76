"""Chats with a planted conflict: a user's fact, then an update of it or an assistant's reply that contradicts it.

What Eq. 5 of the adaptive compression paper does is seen on these: its c is low for the turn that contradicts the last
reply, be that an outdated turn or the very one that could correct the reply. The kinds:

- update: a fact, its update, and a last reply that goes by the update;
- stale-reply: a fact, its update, and a last reply that still goes by the fact;
- wrong-reply: a fact, and a last reply that says otherwise.

Around them lies a chat with an assistant from `corpora.synthetic`, on other topics. Only `random.Random` with a text
seed is used.

`conflicts.txt` holds the facts: a section `== name` with lines `values: a | b | ...`, then one or more `fact:`,
`update:`, `reply:` and `ask:` lines (`deny:` replies that contradict every value, with the user's own one filled in).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from random import Random
from typing import Literal, get_args

from foveate.core.errors import DataError
from foveate.core.schema import Conversation, Evidence, Query, Question, Turn
from foveate.corpora import synthetic

Kind = Literal["update", "stale-reply", "wrong-reply"]
KINDS: tuple[Kind, ...] = get_args(Kind)

AROUND = synthetic.Shape(sessions=(2, 3), turns=(10, 14), questions=(1, 1), helper_share=1.0)
"""The chat that a conflict is planted in: about 40 turns."""

_NOTED = (
    "Thank you, I have made a note of that.",
    "Good to know, I will remember it.",
    "All right, noted.",
    "Understood, I wrote it down.",
)
_LEADS = (
    "Can you tell me how far you are with my list?",
    "What have you been able to sort out for me?",
    "Where do we stand with everything?",
    "Anything done since we last spoke?",
)


@dataclass(frozen=True, slots=True)
class FactKind:
    """One section of conflicts.txt; `{v}` stands for the value."""

    name: str
    values: tuple[str, ...]
    fact: tuple[str, ...]
    update: tuple[str, ...]
    reply: tuple[str, ...]
    ask: tuple[str, ...]
    deny: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Conflict:
    """One planted conflict.

    Attributes:
        conversation: the chat with one question; its query holds the last reply, its evidence the true turn.
        kind: see the module.
        topic: name of the fact's section.
        true: id of the turn in which the user said what holds now.
        wrong: ids of the turns that say what does not hold (any more).
        opposed: id of the user's turn that contradicts the last reply.
    """

    conversation: Conversation
    kind: Kind
    topic: str
    true: str
    wrong: tuple[str, ...]
    opposed: str


@lru_cache(maxsize=1)
def fact_kinds() -> tuple[FactKind, ...]:
    """The facts of conflicts.txt, in order."""
    text = files("foveate.corpora.synthetic").joinpath("conflicts.txt").read_text(encoding="utf-8")
    return parse(text)


def parse(text: str) -> tuple[FactKind, ...]:
    """The sections of a text in the format of conflicts.txt.

    Raises:
        DataError: a line that is in no section, of an unknown kind, or a section that lacks a kind of line.
    """
    found: dict[str, dict[str, list[str]]] = {}
    name = ""
    for number, line in enumerate(text.split("\n"), start=1):
        key, _, rest = line.partition(":")
        if line.startswith("== "):
            name = line.removeprefix("== ").strip()
            found[name] = {part: [] for part in ("values", "fact", "update", "reply", "ask", "deny")}
        elif not line.strip() or line.startswith("#"):
            continue
        elif not name or key not in found[name]:
            raise DataError(f"conflicts.txt line {number}: {line[:40]!r} is no line of a section")
        else:
            found[name][key] += [item.strip() for item in (rest.split("|") if key == "values" else [rest])]
    for name, parts in found.items():
        if lacking := next((key for key, lines in parts.items() if not lines and key != "deny"), None):
            raise DataError(f"conflicts.txt section {name!r} has no {lacking!r} line")
        if len(set(parts["values"])) < 2:
            raise DataError(f"conflicts.txt section {name!r} needs at least two values")
    return tuple(FactKind(name, **{key: tuple(lines) for key, lines in parts.items()}) for name, parts in found.items())


def generate(n: int, seed: int) -> list[Conflict]:
    """`n` conflicts, kinds and facts in turn; the i-th depends on `seed` and i only.

    Raises:
        DataError: `n` is not positive.
    """
    if n < 1:
        raise DataError(f"cannot generate {n} conflicts: give at least 1")
    kinds = fact_kinds()
    chats = synthetic.generate(n, seed, AROUND)
    made: list[Conflict] = []
    for i, chat in enumerate(chats):
        fact = kinds[i // len(KINDS) % len(kinds)]
        made.append(
            _plant(Random(f"conflict-{seed}-{i}"), f"conflict-{seed}-{i}", chat.turns, fact, KINDS[i % len(KINDS)])
        )
    return made


def _plant(rng: Random, name: str, turns: Sequence[Turn], fact: FactKind, kind: Kind) -> Conflict:
    old, new = rng.sample(fact.values, 2)
    now = old if kind == "wrong-reply" else new
    said = rng.choice(fact.fact).format(v=old)
    reply = _reply(rng, fact, kind, old, new)
    starts = [i for i, turn in enumerate(turns) if i and turn.role == "user"]
    third = max(1, len(starts) // 3)
    places = [(rng.choice(starts[:third]), "fact", said)]
    if kind != "wrong-reply":
        places.append((rng.choice(starts[third : 2 * third]), "update", rng.choice(fact.update).format(v=new)))
    story: list[Turn] = list(turns)
    for place, turn_id, text in reversed(places):
        like = turns[place]
        story[place:place] = [
            _turn(like, turns, turn_id, "user", text),
            _turn(like, turns, f"{turn_id}-noted", "assistant", rng.choice(_NOTED)),
        ]
    lead, last = (
        _turn(turns[-1], turns, turn_id, role, text)
        for turn_id, role, text in (("lead", "user", rng.choice(_LEADS)), ("reply", "assistant", reply))
    )
    true: str = "fact" if kind == "wrong-reply" else "update"
    wrong = {"update": ("fact",), "stale-reply": ("fact", "reply"), "wrong-reply": ("reply",)}[kind]
    query = Query(rng.choice(fact.ask), last_reply=reply, date=turns[-1].date)
    question = Question(f"{name}:q0", query, Evidence((true,), now, category=kind))
    opposed = "fact" if kind == "update" else true
    return Conflict(Conversation(name, (*story, lead, last), (question,)), kind, fact.name, true, wrong, opposed)


def _reply(rng: Random, fact: FactKind, kind: Kind, old: str, new: str) -> str:
    if kind == "wrong-reply" and fact.deny and rng.random() < 0.5:
        return rng.choice(fact.deny).format(v=old)
    return rng.choice(fact.reply).format(v=old if kind == "stale-reply" else new)


def _turn(like: Turn, turns: Sequence[Turn], turn_id: str, role: str, text: str) -> Turn:
    """A turn in the session of `like`, said by whoever has that role in the chat."""
    speaker = next(turn.speaker for turn in turns if turn.role == role)
    return replace(like, id=turn_id, role=role, content=text, speaker=speaker)
