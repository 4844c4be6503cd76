"""Random conversations, counters, and the checks every packed context must pass, apart from the code they check."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from hypothesis import strategies as st

from foveate.core import (
    ChapterCounter,
    Compressed,
    EncodeCounter,
    Importance,
    Packed,
    Part,
    Scores,
    Tier,
    TokenCounter,
    Turn,
    load_counter,
)

GUARDED = ("newest", "score", "optimal")
POLICIES = ("afm", "topk", *GUARDED)

_WORDS = [
    "peanut allergy",
    "We fly to Thailand on 7 May, at 06:40!",
    "ok",
    "don't",
    "internationalization",
    "明天下午三点在东京见面",
    "حساسية شديدة من الفول السوداني",
    "naïve cafe\u0301 Z\u0351\u0357a\u0300",
    "👩‍👩‍👧‍👦🥜",
    "x = {'a': [1, 2]}\n\n\tprint(x)",
    "<|endoftext|>[SEP] [CLS]",
    "\ud800 lone",
    "https://example.org/a?b=c#d",
    "\u200b",
    "  ",
    "\n\n",
]
_TEXT = st.lists(st.sampled_from(_WORDS), max_size=6).map(" ".join)
_IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBOR" * 200}}


@dataclass(frozen=True)
class Case:
    """A conversation with what a scorer might say of it."""

    turns: tuple[Turn, ...]
    scores: Scores


class FloorCounter:
    """Says less for pieces than for the whole: the opposite of the chapter's rule."""

    name = "floor"

    def count(self, text: str) -> int:
        return len(text) // 4


class Shortener:
    """Keeps the first words; deterministic, and within `max_tokens` by its counter."""

    name = "shortener"

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter

    def compress(self, text: str, max_tokens: int, hint: str = "") -> Compressed | None:
        words = text.split()
        kept = words[: max_tokens + len(hint) % 2]
        while kept and self._counter.count(" ".join(kept)) > max_tokens:
            kept.pop()
        return Compressed(" ".join(kept), len(kept) / len(words)) if kept else None


@cache
def counter(name: str) -> TokenCounter:
    match name:
        case "chapter":
            return ChapterCounter()
        case "floor":
            return FloorCounter()
        case "bpe":
            return _tiny_bpe()
        case _:
            return load_counter(name)


COUNTERS = ("chapter", "minilm", "bpe", "floor")


def _tiny_bpe() -> TokenCounter:
    """A byte-level BPE of the family of tiktoken's encodings, trained in process."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([word for word in _WORDS if word.isprintable()] * 3, trainer)
    return EncodeCounter(lambda text: tokenizer.encode(text).ids, "bpe")


_PARTS = st.lists(
    st.one_of(
        _TEXT.map(lambda text: Part("text", text, {"type": "text", "text": text})),
        _TEXT.map(lambda text: Part("text", text)),
        _TEXT.map(lambda text: Part("image", text)),
        st.just(Part("image", "", _IMAGE)),
        st.just(Part("file", "", {"type": "file", "file": {"file_data": "JVBERi0" * 99}})),
    ),
    max_size=3,
).map(tuple)
_CONTENT = st.one_of(_TEXT, _TEXT, st.none(), st.just(""), _PARTS)


@st.composite
def cases(draw: st.DrawFn, max_events: int = 10) -> Case:
    """Plain turns, tool exchanges (parallel, unanswered, interrupted), orphaned results, links, pins, dates."""
    turns: list[Turn] = []
    session = 0

    def add(role: str, **fields: Any) -> None:
        dated = draw(st.integers(0, 3)) > 0
        turns.append(
            Turn(
                id=f"m{len(turns)}",
                role=role,
                content=fields.pop("content", draw(_CONTENT)),
                session=str(session),
                date=f"{session + 1} May 2023" if dated else None,
                link=draw(st.sampled_from([None] * 8 + ["a", "b"])),
                pinned=draw(st.integers(0, 11)) == 0,
                **fields,
            )
        )

    for event in range(draw(st.integers(0, max_events))):
        session += draw(st.sampled_from([0, 0, 1, -1]))
        match draw(st.sampled_from(["plain", "plain", "plain", "tools", "orphan"])):
            case "plain":
                speaker = draw(st.sampled_from([None, "Ann Lee", "Bob"]))
                add(draw(st.sampled_from(["user", "assistant", "system"])), speaker=speaker)
            case "orphan":
                add("tool", tool_call_id=f"lost{event}")
            case _:
                calls = [f"call{draw(st.integers(0, 3))}.{k}" for k in range(draw(st.integers(1, 3)))]
                function = {"name": "look", "arguments": json.dumps({"q": draw(_TEXT)})}
                made = tuple({"id": call, "type": "function", "function": function} for call in calls)
                add("assistant", tool_calls=made)
                for call in calls[: draw(st.integers(0, len(calls)))]:
                    session += draw(st.sampled_from([0, 0, 0, 1]))
                    if draw(st.integers(0, 5)) == 0:
                        add("user")
                    add("tool", tool_call_id=call)
    n = len(turns)
    score = draw(st.lists(st.sampled_from([-0.5, 0.0, 0.1, 0.25, 0.3, 0.45, 0.6, 0.6, 0.9]), min_size=n, max_size=n))
    level = draw(st.lists(st.sampled_from([*Importance, Importance.RELEVANT]), min_size=n, max_size=n))
    importance = level if draw(st.booleans()) else None
    return Case(tuple(turns), Scores(score, importance, {"length": [float(k) for k in range(n)]}))


def groups_by_definition(turns: Sequence[Turn]) -> list[set[int]]:
    """Atomic groups straight from the definition: repeated merging of overlapping sets."""
    sets: list[set[int]] = []
    for index, turn in enumerate(turns):
        tied = {index} | {k for k in range(index) if turn.link is not None and turns[k].link == turn.link}
        if turn.role == "tool":
            callers = [k for k in range(index) if turn.tool_call_id in [call["id"] for call in turns[k].tool_calls]]
            tied |= set(callers[-1:])
        sets = [s for s in sets if not s & tied] + [tied.union(*[s for s in sets if s & tied])]
    return sorted(sets, key=min)


def recount(packed: Packed, renderer: str, counting: TokenCounter) -> int:
    """The tokens of a packed context, counted afresh from what was rendered."""
    if renderer == "transcript":
        return counting.count(packed.text)
    return 3 + sum(4 + _message_tokens(message, counting) for message in packed.messages)


def _message_tokens(message: Mapping[str, Any], counting: TokenCounter) -> int:
    texts: list[str] = [message.get("name") or "", message.get("tool_call_id") or ""]
    prices = 0
    content = message["content"]
    for part in content if isinstance(content, list) else []:
        texts.append(part.get("text", ""))
        prices += {"text": 0, "image_url": 1105, "file": 4420}[part["type"]]
    texts += [content] if isinstance(content, str) else []
    for call in message.get("tool_calls", ()):
        texts += [call["id"], call["type"], call["function"]["name"], call["function"]["arguments"]]
    return prices + sum(counting.count(text) for text in texts)


def check(
    case: Case,
    packed: Packed,
    policy: str,
    renderer: str,
    counting: TokenCounter,
    allowed: int,
    frame: tuple[bool, bool] = (False, False),
) -> None:
    """Everything the packing contract promises of one result; `frame` says whether preamble and query are rendered."""
    assert packed.tokens == recount(packed, renderer, counting)
    assert packed.tokens <= allowed
    tiers = [trace.tier for trace in packed.trace]
    groups = groups_by_definition(case.turns)
    for group in groups:
        assert len({tiers[member] for member in group}) == 1, "a group was split"
    pinned = {m for group in groups if any(case.turns[k].pinned for k in group) for m in group}
    assert all(tiers[member] is Tier.FULL for member in pinned)
    for trace in packed.trace:
        if trace.tier is Tier.PLACEHOLDER:
            (group,) = [g for g in groups if case.turns.index(_turn(case, trace.turn_id)) in g]
            assert trace.tokens["placeholder"] < sum(packed.trace[member].tokens["full"] for member in group)
    if policy in GUARDED:
        _check_guard(case, tiers, groups, pinned)
    if renderer == "chat":
        opened, closed = frame
        assert not opened or packed.messages[0]["role"] == "system"
        assert not closed or packed.messages[-1]["role"] == "user"
        _check_messages(case, packed, packed.messages[int(opened) : len(packed.messages) - int(closed)], groups)


def _check_guard(case: Case, tiers: list[Tier], groups: list[set[int]], pinned: set[int]) -> None:
    levels = case.scores.importance or [Importance.RELEVANT] * len(tiers)
    critical = {m for group in groups if any(levels[k] == Importance.CRITICAL for k in group) for m in group} - pinned
    others = set(range(len(tiers))) - critical - pinned
    if any(tiers[member] < Tier.COMPRESSED for member in critical):
        assert not any(tiers[member] for member in others)


def _turn(case: Case, turn_id: str) -> Turn:
    return next(turn for turn in case.turns if turn.id == turn_id)


def _check_messages(case: Case, packed: Packed, messages: Sequence[Mapping[str, Any]], groups: list[set[int]]) -> None:
    """Reads the messages against the conversation: chronological, under the right header, tools valid."""
    expected = [trace for trace in packed.trace if _shown(trace.turn_id, trace.tier, case, groups)]
    callers: dict[str, int] = {}
    waiting: set[str] = set()
    header = None
    headers: list[str] = []
    position = 0
    for place, message in enumerate(messages):
        content = message["content"]
        match = re.fullmatch(r"\[(-?\d+ May 2023)\]", content) if isinstance(content, str) else None
        if message["role"] == "system" and match:
            assert not waiting, "a header between a call and its results"
            header = match[1]
            headers.append(header)
            continue
        trace = expected[position]
        position += 1
        turn = _turn(case, trace.turn_id)
        if trace.tier is Tier.PLACEHOLDER:
            assert content.startswith(f"[{turn.id}")
            assert content.endswith("tokens omitted]")
        elif turn.role == "tool" and message["role"] == "user":
            assert turn.tool_call_id not in callers
        else:
            assert message["role"] == turn.role
        if trace.tier is not Tier.PLACEHOLDER:
            for call in message.get("tool_calls", ()):
                callers[call["id"]] = place
            waiting |= {call["id"] for call in turn.tool_calls if _answered(case, turn, call["id"])}
        if message["role"] == "tool":
            assert message["tool_call_id"] in callers, "a tool result without its call"
            waiting.discard(message["tool_call_id"])
        elif turn.date is not None and not waiting:
            assert header == turn.date, "a turn under the wrong date"
    assert position == len(expected)


def _answered(case: Case, caller: Turn, call_id: str) -> bool:
    index = case.turns.index(caller)
    for turn in case.turns[index + 1 :]:
        if call_id in [call["id"] for call in turn.tool_calls]:
            return False
        if turn.role == "tool" and turn.tool_call_id == call_id:
            return True
    return False


def _shown(turn_id: str, tier: Tier, case: Case, groups: list[set[int]]) -> bool:
    """Whether a message of this turn's own is due: a stub stands at the first turn of its group."""
    if tier is not Tier.PLACEHOLDER:
        return tier is not Tier.DROP
    index = case.turns.index(_turn(case, turn_id))
    return any(index == min(group) for group in groups)
