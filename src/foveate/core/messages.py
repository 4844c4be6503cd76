"""Chat messages in OpenAI form to turns and back, and which turns must move together.

Keys that are foveate's own in a message: `id`, `session`, `date`, `pinned`, `link`. They are read and not sent on.
Every key that is not known is kept in `Turn.extra` and sent on untouched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from foveate.core.errors import ConversationError
from foveate.core.schema import Part, PartKind, Turn

ROLES = ("system", "developer", "user", "assistant", "tool")

_PART_KINDS: dict[str, tuple[PartKind, str]] = {
    "text": ("text", "text"),
    "refusal": ("text", "refusal"),
    "image_url": ("image", "image_url"),
    "input_audio": ("audio", "input_audio"),
    "file": ("file", "file"),
}
_KNOWN_KEYS = frozenset(
    ("role", "content", "name", "tool_calls", "tool_call_id", "id", "session", "date", "pinned", "link")
)
_NOT_IN_NAMES = re.compile(r"[\s<|\\/>]+")


def read_messages(data: object) -> tuple[Turn, ...]:
    """Turns from a list of messages in OpenAI form.

    A message without `id` gets "m" and its index. System and developer messages that open the list are pinned, since
    they instruct the model rather than belong to the talk; `"pinned": false` undoes that. `name` becomes the speaker.

    Args:
        data: a list of mappings with `role` and `content` (a string, a list of parts or None; absent only in an
            assistant's); `[]` is legal. They are copied: what the caller changes later changes no turn.

    Raises:
        ConversationError: names the index of the message, the key and the value that cannot be read.
    """
    if not isinstance(data, Sequence) or isinstance(data, str | bytes):
        raise ConversationError(f"a conversation is a list of messages, not {_kind(data)}")
    messages = [_mapping(message, f"message {index}") for index, message in enumerate(cast(Sequence[object], data))]
    given = {message["id"] for message in messages if isinstance(message.get("id"), str)}
    turns: list[Turn] = []
    seen: set[str] = set()
    opening = True
    for index, message in enumerate(messages):
        opening = opening and message.get("role") in ("system", "developer")
        turn = _turn(message, index, given, opening)
        if turn.id in seen:
            raise ConversationError(f"message {index}: id {turn.id!r} is already taken: give each message its own id")
        seen.add(turn.id)
        turns.append(turn)
    return tuple(turns)


def load_conversation(path: Path | str) -> tuple[Turn, ...]:
    """Turns from a .json file (a list of messages, or an object with `messages`) or a .jsonl file (a message a line).

    Raises:
        ConversationError: names the file, the place and what is wrong, also where the file holds no message at all.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConversationError(f"{path}: no such file: give a .json or .jsonl conversation") from None
    except UnicodeDecodeError as error:
        raise ConversationError(f"{path}: not UTF-8 at byte {error.start}: save the conversation as UTF-8") from None
    except OSError as error:
        raise ConversationError(f"{path}: cannot be read: {error.strerror}") from None
    data = _json_lines(text, path) if path.suffix == ".jsonl" else _json_document(text, path)
    try:
        turns = read_messages(data)
    except ConversationError as error:
        raise ConversationError(f"{path}: {error}") from None
    if not turns:
        raise ConversationError(f"{path}: holds no messages: give at least one message with a role and a content")
    return turns


def to_message(turn: Turn, content: str | None = None) -> dict[str, Any]:
    """The chat message of a turn, in OpenAI form; `content` stands in for the turn's own where given.

    The speaker becomes `name`, with the characters the API refuses replaced by "_". Parts without any payload (a
    caption for an image that is not at hand) are joined into one text; parts with a payload are sent on as they came.
    """
    message: dict[str, Any] = {"role": turn.role, "content": _content_of(turn) if content is None else content}
    if turn.speaker is not None:
        message["name"] = _NOT_IN_NAMES.sub("_", turn.speaker)
    if turn.tool_calls:
        message["tool_calls"] = [dict(call) for call in turn.tool_calls]
    if turn.tool_call_id is not None:
        message["tool_call_id"] = turn.tool_call_id
    message.update(turn.extra)
    return message


def spoken(turn: Turn) -> str:
    """The words of a turn for reading: its text, a marker for each part that is no text, and its tool calls.

    A part with words renders as `[image: caption]`, one without as `[image]`; a call as `[call name(arguments)]`.
    """
    if turn.content is None or isinstance(turn.content, str):
        words = [turn.content] if turn.content else []
    else:
        words = [marker for part in turn.content if (marker := _marker(part))]
    for call in turn.tool_calls:
        target = call.get("function") or call.get("custom") or call
        words.append(f"[call {target.get('name', '')}({target.get('arguments', target.get('input', ''))})]")
    return "\n".join(words)


class Grouper:
    """Assigns turns to atomic groups as they arrive: a group moves as a whole.

    A tool result joins the latest earlier assistant message that made its call, so call ids may be used again. A
    result whose call is not there (`orphan`) is a group of its own. Turns with the same link share a group. Where one
    turn ties two groups together they become one.

    Attributes:
        members: the turn indices of each group, ascending; groups stand in the order of their first turn.
        group_of: the group of each turn.
        call_of: for each tool result, the index of the turn that made the call.
    """

    def __init__(self) -> None:
        self.members: list[tuple[int, ...]] = []
        self.group_of: list[int] = []
        self.call_of: dict[int, int] = {}
        self._callers: dict[str, int] = {}
        self._linked: dict[str, int] = {}

    def add(self, turn: Turn) -> bool:
        """Adds the next turn. True where groups were merged, after which group numbers may have changed."""
        index = len(self.group_of)
        ties: list[int] = []
        if turn.role == "tool" and turn.tool_call_id in self._callers:
            self.call_of[index] = self._callers[turn.tool_call_id]
            ties.append(self.call_of[index])
        if turn.link is not None:
            ties.append(self._linked.setdefault(turn.link, index))
        for call in turn.tool_calls:
            if isinstance(call_id := call.get("id"), str):
                self._callers[call_id] = index
        groups = sorted({self.group_of[tie] for tie in ties if tie < index})
        if not groups:
            self.group_of.append(len(self.members))
            self.members.append((index,))
            return False
        self.group_of.append(groups[0])
        self.members[groups[0]] += (index,)
        for absorbed in reversed(groups[1:]):
            self._merge(absorbed, groups[0])
        return len(groups) > 1

    def orphan(self, index: int, turn: Turn) -> bool:
        """Whether the turn is a tool result without a call before it."""
        return turn.role == "tool" and index not in self.call_of

    def _merge(self, absorbed: int, into: int) -> None:
        self.members[into] = tuple(sorted(self.members[into] + self.members[absorbed]))
        del self.members[absorbed]
        for group in range(absorbed, len(self.members)):
            for member in self.members[group]:
                self.group_of[member] = group
        for member in self.members[into]:
            self.group_of[member] = into


def atomic_groups(turns: Sequence[Turn]) -> list[tuple[int, ...]]:
    """Turn indices in groups that move together (see `Grouper`), each turn in exactly one, ordered by first turn."""
    grouper = Grouper()
    for turn in turns:
        grouper.add(turn)
    return grouper.members


def _turn(message: Mapping[str, Any], index: int, given: set[str], opening: bool) -> Turn:
    where = f"message {index}"
    role = message.get("role")
    if role not in ROLES:
        raise ConversationError(f"{where}: role {role!r} is unknown: give one of {', '.join(ROLES)}")
    pinned = message.get("pinned", opening)
    if not isinstance(pinned, bool):
        raise ConversationError(f"{where}: pinned is {_kind(pinned)}: give true or false")
    if "content" not in message and role != "assistant":
        raise ConversationError(f"{where}: a {role} message without content: give a string, a list of parts or null")
    return Turn(
        id=_text(message, "id", where) or _fresh_id(index, given),
        role=role,
        content=_content(message.get("content"), where),
        speaker=_text(message, "name", where),
        session=_text(message, "session", where),
        date=_text(message, "date", where),
        tool_calls=_tool_calls(message.get("tool_calls"), where),
        tool_call_id=_text(message, "tool_call_id", where),
        link=_text(message, "link", where),
        pinned=pinned,
        extra={key: _copied(value) for key, value in message.items() if key not in _KNOWN_KEYS},
    )


def _fresh_id(index: int, given: set[str]) -> str:
    fresh = f"m{index}"
    while fresh in given:
        fresh += "'"
    return fresh


def _text(message: Mapping[str, Any], key: str, where: str) -> str | None:
    value = message.get(key)
    if value is not None and not isinstance(value, str):
        raise ConversationError(f"{where}: {key} is {_kind(value)}: give a string")
    return value


def _content(content: object, where: str) -> str | tuple[Part, ...] | None:
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, Sequence) or isinstance(content, bytes):
        raise ConversationError(f"{where}: content is {_kind(content)}: give a string, a list of parts or null")
    return tuple(_part(part, f"{where}, part {k}") for k, part in enumerate(cast(Sequence[object], content)))


def _part(data: object, where: str) -> Part:
    part = cast(Mapping[str, Any], _copied(_mapping(data, where)))
    known = _PART_KINDS.get(part["type"]) if isinstance(part.get("type"), str) else None
    if known is None:
        raise ConversationError(f"{where}: type {part.get('type')!r} is unknown: give one of {', '.join(_PART_KINDS)}")
    kind, key = known
    if key not in part or (kind == "text" and not isinstance(part[key], str)):
        raise ConversationError(f"{where}: {key!r} is {_kind(part.get(key))}: a {part['type']} part needs it")
    return Part(kind, part[key] if kind == "text" else "", part)


def _tool_calls(calls: object, where: str) -> tuple[Mapping[str, Any], ...]:
    if calls is None:
        return ()
    if not isinstance(calls, Sequence) or isinstance(calls, str | bytes):
        raise ConversationError(f"{where}: tool_calls is {_kind(calls)}: give a list of calls")
    return tuple(_tool_call(call, f"{where}, tool call {k}") for k, call in enumerate(cast(Sequence[object], calls)))


def _tool_call(data: object, where: str) -> Mapping[str, Any]:
    call = cast(Mapping[str, Any], _copied(_mapping(data, where)))
    if not isinstance(call.get("id"), str | None):
        raise ConversationError(f"{where}: id is {_kind(call['id'])}: give a string")
    for key in ("function", "custom"):
        if call.get(key) is not None:
            _mapping(call[key], f"{where}: {key}")
    return call


def _copied(value: object) -> object:
    """JSON values copied all the way down; anything else as it is."""
    if isinstance(value, Mapping):
        return {key: _copied(inner) for key, inner in cast(Mapping[object, object], value).items()}
    if isinstance(value, list | tuple):
        return [_copied(inner) for inner in cast(Sequence[object], value)]
    return value


def _mapping(data: object, where: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise ConversationError(f"{where} is {_kind(data)}: give an object")
    return cast(Mapping[str, Any], data)


def _kind(value: object) -> str:
    match value:
        case None:
            return "missing or null"
        case bool():
            return f"the boolean {str(value).lower()}"
        case str():
            return f"the string {value[:40]!r}"
        case int() | float():
            return f"the number {value}"
        case bytes():
            return "bytes"
        case Mapping():
            return "an object"
        case Sequence():
            return "a list"
        case _:
            return f"a {type(value).__name__}"


def _content_of(turn: Turn) -> str | list[Any] | None:
    if turn.content is None or isinstance(turn.content, str):
        return turn.content
    if all(part.payload is None for part in turn.content):
        return "\n".join(marker for part in turn.content if (marker := _marker(part)))
    return [
        dict(part.payload) if part.payload is not None else {"type": "text", "text": _marker(part)}
        for part in turn.content
    ]


def _marker(part: Part) -> str:
    if part.kind == "text":
        return part.text
    return f"[{part.kind}: {part.text}]" if part.text else f"[{part.kind}]"


def _json_document(text: str, path: Path) -> object:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConversationError(f"{path}: not valid JSON: {error}") from None
    if isinstance(data, dict):
        document = cast(dict[str, object], data)
        if "messages" not in document:
            raise ConversationError(f"{path}: an object without 'messages': give a list, or an object with 'messages'")
        return document["messages"]
    return cast(object, data)


def _json_lines(text: str, path: Path) -> list[object]:
    records: list[object] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                records.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise ConversationError(f"{path}: line {number}: not valid JSON: {error}") from None
    return records
