"""Messages in OpenAI form: read, written back, grouped; every malformed input named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.core import ConversationError, Part, Turn, atomic_groups, load_conversation, read_messages, to_message
from foveate.core.messages import spoken

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q": 1}'}}
TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Hi", "name": "Ann"},
    {"role": "user", "content": [{"type": "text", "text": "see", "cache_control": {"type": "ephemeral"}}]},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,x"}}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "refusal": None},
    {"role": "tool", "content": "42", "tool_call_id": "c1"},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
    {"role": "user", "content": ""},
    {"role": "user", "content": []},
]


def test_messages_survive_the_round_trip() -> None:
    assert [to_message(turn) for turn in read_messages(TALK)][:-1] == TALK[:-1]
    assert to_message(read_messages(TALK)[-1]) == {"role": "user", "content": ""}


_JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner), max_leaves=4)
_MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant"]), "content": st.text() | st.none()},
    optional={"x_custom": _JSON, "name": st.from_regex(r"[A-Za-z0-9_-]{1,9}", fullmatch=True)},
)


@given(st.lists(_MESSAGE, max_size=5))
def test_any_plain_conversation_survives_the_round_trip(messages: list[dict[str, Any]]) -> None:
    turns = read_messages(messages)
    assert [to_message(turn) for turn in turns] == messages
    assert read_messages([to_message(turn) for turn in turns]) == turns


def test_own_keys_are_read_and_not_sent() -> None:
    (turn,) = read_messages(
        [
            {
                "role": "user",
                "content": "x",
                "id": "D1:3",
                "session": "1",
                "date": "8 May 2023",
                "pinned": True,
                "link": "k",
            }
        ]
    )
    assert turn == Turn("D1:3", "user", "x", session="1", date="8 May 2023", link="k", pinned=True)
    assert to_message(turn) == {"role": "user", "content": "x"}


def test_system_messages_that_open_are_pinned() -> None:
    roles = ["system", "developer", "user", "system"]
    turns = read_messages([{"role": role, "content": "x"} for role in roles])
    assert [turn.pinned for turn in turns] == [True, True, False, False]
    assert not read_messages([{"role": "system", "content": "x", "pinned": False}])[0].pinned


def test_generated_ids_avoid_given_ones() -> None:
    turns = read_messages([{"role": "user", "content": "x", "id": "m1"}, {"role": "user", "content": "y"}])
    assert [turn.id for turn in turns] == ["m1", "m1'"]


def test_a_speaker_the_api_refuses_is_written_so_that_it_does_not() -> None:
    assert to_message(Turn("a", "user", "x", speaker="Dr. Ann <Lee>"))["name"] == "Dr._Ann_Lee_"


def test_captions_without_payload_are_text() -> None:
    turn = Turn("a", "user", (Part("text", "Look"), Part("image", "a red car"), Part("image")))
    assert to_message(turn)["content"] == "Look\n[image: a red car]\n[image]" == spoken(turn)
    mixed = Turn("a", "user", (Part("image", "a red car"), Part("image", "", {"type": "image_url", "image_url": {}})))
    assert to_message(mixed)["content"][0] == {"type": "text", "text": "[image: a red car]"}


def test_calls_are_spoken() -> None:
    assert spoken(read_messages(TALK)[4]) == '[call look({"q": 1})]'


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("hi", "a conversation is a list of messages, not the string 'hi'"),
        ({"role": "user"}, "not an object"),
        (None, "not missing or null"),
        ([3], "message 0 is the number 3"),
        ([{"content": "x"}], "message 0: role None is unknown"),
        ([{"role": "user"}], "message 0: a user message without content"),
        ([{"role": "function", "content": "x"}], "role 'function' is unknown: give one of system"),
        ([{"role": ["user"], "content": "x"}], r"role \['user'\] is unknown"),
        ([{"role": "user", "content": 3}], "message 0: content is the number 3: give a string"),
        ([{"role": "user", "content": ["x"]}], "message 0, part 0 is the string 'x'"),
        ([{"role": "user", "content": [{"type": "video"}]}], "part 0: type 'video' is unknown: give one of text"),
        ([{"role": "user", "content": [{"type": "text"}]}], "'text' is missing or null: a text part needs it"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "'image_url' is missing"),
        ([{"role": "user", "content": "x", "name": 3}], "message 0: name is the number 3"),
        ([{"role": "user", "content": "x", "pinned": "yes"}], "pinned is the string 'yes'"),
        ([{"role": "assistant", "tool_calls": "x"}], "tool_calls is the string 'x'"),
        ([{"role": "assistant", "tool_calls": [1]}], "message 0, tool call 0 is the number 1"),
        ([{"role": "assistant", "tool_calls": [{"function": "f"}]}], "tool call 0: function is the string 'f'"),
        ([{"role": "assistant", "tool_calls": [{"id": 5}]}], "tool call 0: id is the number 5"),
        ([{"role": "user", "content": b"x"}], "message 0: content is bytes"),
        ([{"role": "tool", "content": "x", "tool_call_id": 5}], "tool_call_id is the number 5"),
        (
            [{"role": "user", "id": "a", "content": "x"}, {"role": "user", "id": "a", "content": "y"}],
            "message 1: id 'a' is already taken",
        ),
    ],
)
def test_malformed_messages_are_named(data: object, said: str) -> None:
    with pytest.raises(ConversationError, match=said) as caught:
        read_messages(data)
    assert "\n" not in str(caught.value)


def test_files_of_both_forms(tmp_path: Path) -> None:
    listed, wrapped, lines = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "c.jsonl"
    listed.write_text(json.dumps(TALK))
    wrapped.write_text("\ufeff" + json.dumps({"messages": TALK, "model": "x"}), encoding="utf-8")
    lines.write_text("\n".join(json.dumps(message) for message in TALK) + "\n\n")
    assert load_conversation(listed) == load_conversation(wrapped) == load_conversation(lines) == read_messages(TALK)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.json", b"[", "a.json: not valid JSON: Expecting value: line 1 column 2"),
        ("a.json", b"[" * 200_000, "a.json: not valid JSON"),
        ("a.json", b'{"turns": []}', "a.json: an object without 'messages'"),
        ("a.json", b"[]", "a.json: holds no messages: give at least one"),
        ("a.json", b"3", "a.json: a conversation is a list of messages, not the number 3"),
        ("a.json", b'[{"role": "user", "content": 3}]', "a.json: message 0: content is the number 3"),
        ("a.json", b'"\xff"', "a.json: not UTF-8 at byte 1"),
        ("a.jsonl", b'{"role": "user"}\n{', "a.jsonl: line 2: not valid JSON"),
        ("a.jsonl", b"", "a.jsonl: holds no messages"),
    ],
)
def test_malformed_files_are_named(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConversationError, match=said):
        load_conversation(tmp_path / name)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConversationError, match="no such file"):
        load_conversation(tmp_path / "none.json")
    with pytest.raises(ConversationError, match="cannot be read"):
        load_conversation(tmp_path)


def _tools(*pattern: str) -> list[Turn]:
    """`c:x` calls x, `r:x` answers it, `u:k` is a user turn with link k."""
    turns: list[Turn] = []
    for index, spec in enumerate(pattern):
        kind, _, key = spec.partition(":")
        match kind:
            case "c":
                turn = Turn(f"m{index}", "assistant", None, tool_calls=tuple({"id": k} for k in key.split("+")))
            case "r":
                turn = Turn(f"m{index}", "tool", "x", tool_call_id=key)
            case _:
                turn = Turn(f"m{index}", "user", "x", link=key or None)
        turns.append(turn)
    return turns


@pytest.mark.parametrize(
    ("pattern", "groups"),
    [
        ([], []),
        (["u", "u"], [(0,), (1,)]),
        (["c:a+b", "r:a", "r:b", "u"], [(0, 1, 2), (3,)]),
        (["c:a", "u", "r:a"], [(0, 2), (1,)]),
        (["c:a", "r:a", "c:a", "r:a"], [(0, 1), (2, 3)]),
        (["r:a", "c:a"], [(0,), (1,)]),
        (["u:k", "u", "u:k", "u:l", "u:l"], [(0, 2), (1,), (3, 4)]),
    ],
)
def test_groups(pattern: list[str], groups: list[tuple[int, ...]]) -> None:
    assert atomic_groups(_tools(*pattern)) == groups


def test_a_link_can_tie_groups_together() -> None:
    turns = [
        Turn("m0", "user", "x", link="k"),
        Turn("m1", "user", "y"),
        Turn("m2", "assistant", None, tool_calls=({"id": "a"},)),
        Turn("m3", "user", "z"),
        Turn("m4", "tool", "r", tool_call_id="a", link="k"),
        Turn("m5", "user", "w", link="k"),
    ]
    assert atomic_groups(turns) == [(0, 2, 4, 5), (1,), (3,)]
