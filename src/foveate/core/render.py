"""From kept pieces to what the model reads, and what that costs.

A `Renderer` owns three things that must agree: how the whole is written, what one more piece adds (an estimate, used
to pack) and what the written whole costs (a fresh count, which decides). Both renderers write the preamble first,
then the turns in order, each session opened by its date header, then the query.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast, runtime_checkable

from foveate.core.messages import spoken, to_message
from foveate.core.schema import Turn
from foveate.core.tokens import MessageCosts, TokenCounter

PieceKind = Literal["preamble", "header", "turn", "stub", "query"]


@dataclass(frozen=True, slots=True)
class Piece:
    """One thing to write. A compressed turn is a turn with shorter content; headers and stubs are turns too."""

    kind: PieceKind
    turn: Turn


@dataclass(frozen=True, slots=True)
class Rendered:
    """The written context: as chat messages and as one text."""

    messages: list[dict[str, Any]]
    text: str


@runtime_checkable
class Renderer(Protocol):
    """Writes pieces and prices them. Stateless, so one may serve many conversations and threads."""

    @property
    def name(self) -> str: ...

    def cost(self, piece: Piece, counter: TokenCounter) -> int:
        """The tokens this piece adds to a context, counted alone."""
        ...

    def render(self, pieces: Sequence[Piece]) -> Rendered:
        """Writes pieces that are already in their order."""
        ...

    def count(self, rendered: Rendered, counter: TokenCounter) -> int:
        """The tokens of a whole context as written, with what every context costs however little it holds."""
        ...


def preamble_piece(text: str) -> Piece:
    """The system text that opens a context."""
    return Piece("preamble", Turn("preamble", "system", text))


def header_piece(date: str) -> Piece:
    """The line that dates a session."""
    return Piece("header", Turn("header", "system", f"[{date}]"))


def query_piece(text: str) -> Piece:
    """The question or newest user message that closes a context."""
    return Piece("query", Turn("query", "user", text))


def stub_piece(turns: Sequence[Turn], tokens: int) -> Piece:
    """The one short message that stands for an atomic group: its ids, who spoke first, how much was left out.

    It takes the first turn's role, and "user" where that is a tool: a tool message needs its call.
    """
    first = turns[0]
    ids = ",".join(turn.id for turn in turns)
    text = f"[{ids} {first.speaker or first.role}: {tokens} tokens omitted]"
    return Piece("stub", Turn(first.id, "user" if first.role == "tool" else first.role, text))


@dataclass(frozen=True, slots=True)
class ChatRenderer:
    """A list of OpenAI messages. Costs are additive: each string of each message is counted on its own.

    A message costs `per_message` plus the tokens of its content, name, call ids, call names, arguments and further
    keys. A part that is no text costs its declared price, whatever its payload. A session header is a system message
    of its own. The request costs `per_context` even where it is empty.
    """

    costs: MessageCosts = field(default_factory=MessageCosts)

    @property
    def name(self) -> str:
        return "chat"

    def cost(self, piece: Piece, counter: TokenCounter) -> int:
        return self._price(to_message(piece.turn), counter)

    def render(self, pieces: Sequence[Piece]) -> Rendered:
        messages = [to_message(piece.turn) for piece in pieces]
        return Rendered(messages, "\n".join(_line(piece) for piece in pieces))

    def count(self, rendered: Rendered, counter: TokenCounter) -> int:
        return self.costs.per_context + sum(self._price(message, counter) for message in rendered.messages)

    def _price(self, message: Mapping[str, Any], counter: TokenCounter) -> int:
        total = self.costs.per_message
        for key, value in message.items():
            if key == "content" and isinstance(value, list):
                total += sum(self._part_price(part, counter) for part in cast(list[Mapping[str, Any]], value))
            elif key != "role":
                total += sum(counter.count(leaf) for leaf in _leaves(value))
        return total

    def _part_price(self, part: Mapping[str, Any], counter: TokenCounter) -> int:
        match part.get("type"):
            case "text":
                return counter.count(part["text"])
            case "refusal":
                return counter.count(part["refusal"])
            case "image_url":
                return self.costs.image
            case "input_audio":
                return self.costs.audio
            case _:
                return self.costs.file


@dataclass(frozen=True, slots=True)
class TranscriptRenderer:
    """One text: a header line a session, then `Speaker: text` a turn, joined by line breaks.

    The role stands in where no speaker is known. A transcript sends no payload, so a part that is no text costs the
    tokens of its marker: `[image: caption]`, or `[image]` without a caption. A piece is priced as its line with the
    line break, which is only an estimate of what it adds (at least 1): the whole text is counted as one.
    """

    @property
    def name(self) -> str:
        return "transcript"

    def cost(self, piece: Piece, counter: TokenCounter) -> int:
        return max(1, counter.count(_line(piece) + "\n"))

    def render(self, pieces: Sequence[Piece]) -> Rendered:
        text = "\n".join(_line(piece) for piece in pieces)
        return Rendered([{"role": "user", "content": text}] if pieces else [], text)

    def count(self, rendered: Rendered, counter: TokenCounter) -> int:
        return counter.count(rendered.text)


def _line(piece: Piece) -> str:
    words = spoken(piece.turn)
    if piece.kind != "turn":
        return words
    return f"{piece.turn.speaker or piece.turn.role}: {words}" if words else f"{piece.turn.speaker or piece.turn.role}:"


def _leaves(value: Any) -> Iterable[str]:
    """The strings a value sends: itself or those inside it; numbers and booleans as JSON writes them; null, none."""
    if value is None:
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in cast(Mapping[str, Any], value).values():
            yield from _leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in cast(Sequence[Any], value):
            yield from _leaves(inner)
    else:
        yield json.dumps(value)
