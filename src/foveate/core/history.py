"""What the context builder keeps of a growing conversation between two builds: groups, sections, token counts.

Appending a turn counts that turn only. The columns handed to the packer are the lists kept here, so that a build
copies nothing but the scores.

A section is a run of dated turns with one session and date. Undated turns neither open nor close one. A tool result
belongs to the section of its call, so that no header falls between the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from foveate.core.errors import ConversationError
from foveate.core.messages import Grouper
from foveate.core.protocols import Summarizer
from foveate.core.render import Piece, Renderer, header_piece, stub_piece
from foveate.core.schema import Part, Turn
from foveate.core.tokens import TokenCounter


@dataclass(frozen=True, slots=True)
class Shortened:
    """An item's compressed form.

    Attributes:
        saved: tokens it saves against FULL.
        retention: the share of the item's content it carries, its turns weighted by their tokens.
        pieces: one a turn.
        costs: tokens of each piece.
        note: what the summarizer says of how its forms were made, each note once.
    """

    saved: int
    retention: float
    pieces: tuple[Piece, ...]
    costs: tuple[int, ...]
    note: str = ""


class History:
    """The turns of one conversation with everything about them that no query changes. Items are atomic groups.

    Attributes:
        turns: as appended.
        pieces: as rendered in FULL; an orphaned tool result is rendered as a user message, since a tool message needs
            its call.
        costs: tokens of each piece.
        section_of: section of each turn, -1 for none.
        dates: header piece of each section.
        header: tokens of each section's header.
        cost: tokens of each item in FULL, further headers of an item that spans sections included.
        section: section of each item, that of its first turn.
        pinned: items that hold a pinned turn.
        groups: which turns make up each item.
        grouped: whether any item has several turns; if not, items and turns have the same numbers.
        last_result: for each turn that made calls, the index of its last result.
        total: tokens of all turns in FULL and of all headers.
    """

    def __init__(self, counter: TokenCounter, renderer: Renderer) -> None:
        self.turns: list[Turn] = []
        self.pieces: list[Piece] = []
        self.costs: list[int] = []
        self.section_of: list[int] = []
        self.dates: list[Piece] = []
        self.header: list[int] = []
        self.cost: list[int] = []
        self.section: list[int] = []
        self.pinned: set[int] = set()
        self.groups = Grouper()
        self.grouped = False
        self.last_result: dict[int, int] = {}
        self.total = 0
        self._counter = counter
        self._renderer = renderer
        self._index: dict[str, int] = {}
        self._stubs: dict[tuple[int, ...], tuple[int, Piece]] = {}
        self._run: tuple[str | None, str] | None = None

    def append(self, turns: Sequence[Turn]) -> None:
        """Adds turns at the end; either all of them are added or, where an id is taken, none."""
        ids: set[str] = set()
        for turn in turns:
            if turn.id in self._index or turn.id in ids:
                raise ConversationError(f"turn id {turn.id!r} is already taken: give each turn its own id")
            ids.add(turn.id)
        for turn in turns:
            self._add(turn)

    def index(self, turn_id: str) -> int:
        """The index of a turn."""
        if turn_id not in self._index:
            raise ConversationError(f"no turn {turn_id!r} in this conversation of {len(self.turns)} turns")
        return self._index[turn_id]

    def stub(self, members: tuple[int, ...]) -> tuple[int, Piece]:
        """The tokens and the piece of the stub that stands for these turns."""
        if members not in self._stubs:
            piece = stub_piece([self.turns[member] for member in members], sum(self.costs[m] for m in members))
            self._stubs[members] = self._renderer.cost(piece, self._counter), piece
        return self._stubs[members]

    def shorten(self, members: tuple[int, ...], summarizer: Summarizer, ratio: float, hint: str) -> Shortened | None:
        """The compressed form of these turns, None where none of them gets cheaper. Not cached here."""
        pieces: list[Piece] = []
        costs: list[int] = []
        notes: list[str] = []
        kept = 0.0
        for member in members:
            piece, retention, note = self._shorten_turn(member, summarizer, ratio, hint)
            pieces.append(piece)
            costs.append(self._renderer.cost(piece, self._counter))
            kept += self.costs[member] * retention
            if note and note not in notes:
                notes.append(note)
        full = sum(self.costs[member] for member in members)
        if sum(costs) >= full:
            return None
        return Shortened(full - sum(costs), kept / full, tuple(pieces), tuple(costs), "; ".join(notes))

    def headers_of(self, items: Iterable[int]) -> set[int]:
        """The sections whose headers are written where these items are kept as text."""
        return {self.section_of[m] for item in items for m in self.groups.members[item]} - {-1}

    def _add(self, turn: Turn) -> None:
        index = len(self.turns)
        merged = self.groups.add(turn)
        shown = turn
        if self.groups.orphan(index, turn):
            shown = replace(turn, role="user", tool_call_id=None, speaker=turn.speaker or "tool")
        piece = Piece("turn", shown)
        self._index[turn.id] = index
        self.turns.append(turn)
        self.pieces.append(piece)
        self.costs.append(self._renderer.cost(piece, self._counter))
        self.section_of.append(self._section(index, turn))
        self.total += self.costs[index]
        if index in self.groups.call_of:
            self.last_result[self.groups.call_of[index]] = index
        item = self.groups.group_of[index]
        if merged:
            self._regroup()
        elif item == len(self.cost):
            self.cost.append(self.costs[index])
            self.section.append(self.section_of[index])
            if turn.pinned:
                self.pinned.add(item)
        else:
            self._refresh(item)

    def _section(self, index: int, turn: Turn) -> int:
        if index in self.groups.call_of:
            return self.section_of[self.groups.call_of[index]]
        if turn.date is not None and (turn.session, turn.date) != self._run:
            self._run = (turn.session, turn.date)
            piece = header_piece(turn.date)
            self.dates.append(piece)
            self.header.append(self._renderer.cost(piece, self._counter))
            self.total += self.header[-1]
        return -1 if turn.date is None else len(self.header) - 1

    def _refresh(self, item: int) -> None:
        self.grouped = True
        members = self.groups.members[item]
        self.section[item] = self.section_of[members[0]]
        further = {self.section_of[member] for member in members} - {self.section[item], -1}
        self.cost[item] = sum(self.costs[member] for member in members) + sum(self.header[s] for s in further)
        if any(self.turns[member].pinned for member in members):
            self.pinned.add(item)

    def _regroup(self) -> None:
        items = len(self.groups.members)
        self.cost, self.section = [0] * items, [-1] * items
        self.pinned.clear()
        for item in range(items):
            self._refresh(item)

    def _shorten_turn(self, index: int, summarizer: Summarizer, ratio: float, hint: str) -> tuple[Piece, float, str]:
        """The cheaper piece of a turn, what it retains and its note; the full piece and 1.0 where there is none."""
        full = self.pieces[index]
        text = _words(full.turn)
        if not text:
            return full, 1.0, ""
        shorter = summarizer.compress(text, max(1, int(self._counter.count(text) * ratio)), hint)
        if shorter is None:
            return full, 1.0, ""
        piece = Piece("turn", replace(full.turn, content=_with_words(full.turn, shorter.text)))
        if self._renderer.cost(piece, self._counter) >= self.costs[index]:
            return full, 1.0, ""
        return piece, min(1.0, max(0.0, shorter.retention)), shorter.note


def _words(turn: Turn) -> str:
    if turn.content is None or isinstance(turn.content, str):
        return turn.content or ""
    return "\n".join(part.text for part in turn.content if part.kind == "text")


def _with_words(turn: Turn, text: str) -> str | tuple[Part, ...]:
    """The content with its text parts replaced by one text; other parts stay as they are."""
    if turn.content is None or isinstance(turn.content, str):
        return text
    others = tuple(part for part in turn.content if part.kind != "text")
    return (Part("text", text), *others)
