"""What every part of foveate passes around: turns, conversations, questions.

Frozen dataclasses of plain Python values. A turn holds what a chat message holds (OpenAI form) plus what a corpus knows
about it (speaker, session, date). Gold labels live in `Evidence`, apart from the text a method may see: methods receive
a `Query`, never a `Question`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

PartKind = Literal["text", "image", "audio", "file"]


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a message's content.

    Attributes:
        kind: what it is; anything that is not text has a declared token price (see `core.tokens`).
        text: the words it carries: the text itself, or a caption that stands for a part whose payload is not at hand.
        payload: the part as the caller gave it (OpenAI content-part form), emitted untouched; None for a bare caption.
    """

    kind: PartKind
    text: str = ""
    payload: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation.

    Attributes:
        id: unique in its conversation, for instance "D3:12" or "m17"; stubs carry it.
        role: system, user, assistant, tool or developer.
        content: a string, parts, or None (an assistant message that only calls tools).
        speaker: the name of who speaks, where known; rendered before the text in transcripts.
        session: key of the session the turn belongs to; turns of one session share one date header.
        date: the session's date as it is rendered, for instance "8 May 2023"; None renders no header.
        tool_calls: the calls of an assistant message, in OpenAI form.
        tool_call_id: for a tool message, the call it answers.
        link: turns with the same link move together (a correction and what it corrects).
        pinned: replayed FULL, or the call fails.
        extra: further keys of the message, emitted untouched.
    """

    id: str
    role: str
    content: str | tuple[Part, ...] | None
    speaker: str | None = None
    session: str | None = None
    date: str | None = None
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    tool_call_id: str | None = None
    link: str | None = None
    pinned: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The words of the turn, captions included; "" where it has none."""
        if self.content is None:
            return ""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(p.text if p.kind == "text" else f"[{p.kind}: {p.text}]" for p in self.content if p.text)


@dataclass(frozen=True, slots=True)
class Query:
    """What a method may know when it packs.

    Attributes:
        text: the question or the newest user message.
        last_reply: r_{t-1} of Eq. 5, the last assistant reply, where there is one.
        date: when it is asked, as text, where known.
    """

    text: str
    last_reply: str | None = None
    date: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Gold labels of a question. Never shown to a method at inference.

    Attributes:
        turn_ids: canonical ids of the turns that answer it.
        answer: the gold answer; None where the corpus gives none.
        category: the corpus's own category, as text ("1".."5" on LoCoMo).
        trap: an answer that is wrong by construction (LoCoMo's adversarial answer).
    """

    turn_ids: tuple[str, ...] = ()
    answer: str | None = None
    category: str = ""
    trap: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question asked at the end of its conversation, with its gold labels kept apart."""

    id: str
    query: Query
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns in chronological order and the questions asked about them. Turn ids are unique."""

    id: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...] = ()
