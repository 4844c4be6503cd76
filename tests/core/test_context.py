"""The context builder on conversations worked out by hand."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from packing_histories import POLICIES, Shortener, counter

from foveate.core import (
    BudgetError,
    ChapterCounter,
    ChatRenderer,
    Compressed,
    ConfigError,
    ContextBuilder,
    ConversationError,
    EncodeCounter,
    Importance,
    MessageCosts,
    Packed,
    Part,
    PolicyName,
    Query,
    Renderer,
    Scores,
    Thresholds,
    Tier,
    TranscriptRenderer,
    Turn,
)
from foveate.core.history import History

WORDS = EncodeCounter(lambda text: text.split(), "words")  # type: ignore[arg-type]
PLAIN = ChatRenderer(MessageCosts(per_message=0, per_context=0))


def build(turns: list[Turn], score: list[float], budget: int, policy: PolicyName = "score", **arguments: Any) -> Packed:
    builder = ContextBuilder(
        counter=arguments.pop("counter", WORDS),
        renderer=arguments.pop("renderer", PLAIN),
        summarizer=arguments.pop("summarizer", None),
        stub_value=arguments.pop("stub_value", 0.0),
        compress_ratios=arguments.pop("compress_ratios", (0.5,)),
    )
    builder.append(turns)
    importance = arguments.pop("importance", None)
    return builder.build(Scores(score, importance), budget, policy=policy, **arguments)


def says(text: str, index: int = 0, **fields: Any) -> Turn:
    return Turn(f"m{index}", fields.pop("role", "user"), text, **fields)


DATED = [
    says("one two", 0, session="1", date="8 May 2023", speaker="Ann"),
    says("three", 1, session="1", date="8 May 2023", speaker="Bob", role="assistant"),
    says("four", 2, session="2", date="9 May 2023", speaker="Ann"),
]


def test_a_transcript_has_one_header_a_session() -> None:
    packed = build(DATED, [1, 1, 1], 99, renderer=TranscriptRenderer())
    assert packed.text == "[8 May 2023]\nAnn: one two\nBob: three\n[9 May 2023]\nAnn: four"
    assert packed.messages == [{"role": "user", "content": packed.text}]
    assert packed.tokens == packed.stats.history_tokens == 13
    assert packed.stats.ratio == 1.0


def test_a_chat_dates_sessions_with_system_messages() -> None:
    packed = build(DATED, [0.1, 0.9, 0.5], 12, preamble="Be kind.")
    assert packed.messages == [
        {"role": "system", "content": "Be kind."},
        {"role": "system", "content": "[8 May 2023]"},
        {"role": "assistant", "content": "three", "name": "Bob"},
        {"role": "system", "content": "[9 May 2023]"},
        {"role": "user", "content": "four", "name": "Ann"},
    ]
    assert packed.tokens == 12
    assert [trace.tier for trace in packed.trace] == [Tier.DROP, Tier.FULL, Tier.FULL]
    assert packed.trace[0].reason == "skipped: 3 tokens, 0 left"
    assert packed.tiers == tuple(trace.tier for trace in packed.trace)


def test_the_query_costs_only_where_it_is_included() -> None:
    query = Query("five six")
    assert build(DATED[:1], [1], 99, query=query).tokens == 6
    packed = build(DATED[:1], [1], 8, query=query, include_query=True)
    assert packed.messages[-1] == {"role": "user", "content": "five six"}
    assert packed.tokens == 8


@pytest.mark.parametrize("renderer", [ChatRenderer(), TranscriptRenderer()])
def test_an_empty_history_is_legal(renderer: Renderer) -> None:
    for policy in POLICIES:
        empty = build([], [], 3, policy, renderer=renderer)
        assert (empty.messages, empty.text, empty.trace) == ([], "", ())
        assert (empty.stats.turns, empty.stats.ratio) == (0, 1.0)
        opened = build([], [], 30, policy, renderer=renderer, preamble="Hi", query=Query("Who?"), include_query=True)
        assert opened.text == "Hi\nWho?"


@pytest.mark.parametrize("content", [None, "", (), (Part("text", ""),), (Part("image"),)])
@pytest.mark.parametrize("renderer", [ChatRenderer(), TranscriptRenderer()])
def test_a_turn_without_words_is_kept_like_any_other(content: Any, renderer: Renderer) -> None:
    for policy in ("newest", "score"):
        packed = build([Turn("m0", "user", content)], [1.0], 99, policy, renderer=renderer)
        assert packed.stats.full == 1
        assert len(packed.messages) == 1


@pytest.mark.parametrize(
    ("arguments", "least", "named"),
    [
        ({}, 0, "an empty context"),
        ({"preamble": "a b"}, 2, "the preamble"),
        ({"query": Query("c"), "include_query": True}, 1, "the query"),
        (
            {"preamble": "a", "query": Query("c"), "include_query": True, "reserve": 5},
            7,
            "the query and a reserve of 5",
        ),
    ],
)
def test_the_least_budget_is_exact(arguments: dict[str, Any], least: int, named: str) -> None:
    assert build([says("x y z")], [0.5], least, **arguments).stats.dropped == 1
    with pytest.raises(
        BudgetError, match=f"a budget of {least - 1} tokens is too small for .*{named}.*least budget is {least}"
    ):
        build([says("x y z")], [0.5], least - 1, **arguments)


def test_pinned_turns_are_full_or_the_call_fails() -> None:
    turns = [*DATED[:2], says("four", 2, session="2", date="9 May 2023", pinned=True)]
    packed = build(turns, [0.9, 0.8, -1.0], 4)
    assert packed.text == "[9 May 2023]\nuser: four"
    assert [trace.reason for trace in packed.trace] == [
        "skipped: 3 tokens, 0 left",
        "skipped: 2 tokens, 0 left",
        "pinned",
    ]
    with pytest.raises(BudgetError, match="1 pinned turn: the least budget is 4"):
        build(turns, [0.9, 0.8, -1.0], 3)


def test_a_header_that_a_pinned_turn_paid_is_paid() -> None:
    turns = [
        says("four", 0, session="2", date="9 May 2023", pinned=True),
        says("six", 1, session="2", date="9 May 2023"),
    ]
    assert build(turns, [0.5, 0.5], 5).stats.full == 2


def test_a_reserve_is_set_aside() -> None:
    assert build(DATED, [1, 1, 1], 99, reserve=86).tokens <= 13
    with pytest.raises(ConfigError, match="reserve=-1"):
        build(DATED, [1, 1, 1], 99, reserve=-1)


TOOLS = [
    says("weather in both cities please", 0, session="1", date="8 May 2023"),
    Turn(
        "m1",
        "assistant",
        None,
        tool_calls=(
            {"id": "a", "type": "function", "function": {"name": "sky", "arguments": '{"city": "Paris"}'}},
            {"id": "b", "type": "function", "function": {"name": "sky", "arguments": '{"city": "Rome"}'}},
        ),
    ),
    Turn("m2", "tool", "sun all day long with a light wind", tool_call_id="a", session="2", date="9 May 2023"),
    Turn("m3", "tool", "rain", tool_call_id="b", session="2", date="9 May 2023"),
]


def test_a_tool_exchange_is_one_item_with_one_stub() -> None:
    packed = build(TOOLS, [0.1, 0.1, 0.9, 0.1], 9, "optimal", stub_value=0.2)
    assert packed.text == "[m1,m2,m3 assistant: 21 tokens omitted]"
    assert [trace.tier for trace in packed.trace] == [Tier.DROP] + [Tier.PLACEHOLDER] * 3
    assert [trace.cost for trace in packed.trace] == [0, 5, 0, 0]
    assert [trace.emitted for trace in packed.trace] == ["", packed.text, "", ""]
    assert packed.messages == [{"role": "assistant", "content": packed.text}]


def test_compression_shortens_texts_and_keeps_calls_and_ids() -> None:
    packed = build(TOOLS, [0.1, 0.9, 0.1, 0.1], 18, summarizer=Shortener(WORDS))
    assert [trace.tier for trace in packed.trace] == [Tier.DROP] + [Tier.COMPRESSED] * 3
    assert packed.messages[0]["tool_calls"] == [dict(call) for call in TOOLS[1].tool_calls]
    assert packed.messages[1] == {"role": "tool", "content": "sun all day long", "tool_call_id": "a"}
    assert packed.messages[2] == {"role": "tool", "content": "rain", "tool_call_id": "b"}
    assert packed.tokens == 17 == sum(trace.cost for trace in packed.trace)
    assert packed.stats.value == pytest.approx(0.9 * ((10 + 9 * 4 / 8 + 2) / 21) ** 2)


def test_no_header_falls_between_a_call_and_its_result() -> None:
    packed = build(TOOLS, [1, 1, 1, 1], 99)
    assert [message["role"] for message in packed.messages] == ["system", "user", "assistant", "tool", "tool"]


def test_a_turn_that_interrupts_a_call_waits_for_its_header() -> None:
    call = Turn("m1", "assistant", "", tool_calls=({"id": "a"},), session="1", date="8 May 2023")
    interruption = says("wait", 2, session="2", date="9 May 2023")
    turns = [call, interruption, Turn("m3", "tool", "sun", tool_call_id="a"), says("thanks", 4)]
    assert _roles(build(turns, [1, 1, 1, 1], 99)) == ["system", "assistant", "user", "tool", "user"]
    turns.append(says("bye", 5, session="2", date="9 May 2023"))
    packed = build(turns, [1, 1, 1, 1, 1], 99)
    assert _roles(packed) == ["system", "assistant", "user", "tool", "user", "system", "user"]
    assert packed.messages[5]["content"] == "[9 May 2023]"
    assert _roles(build(turns, [-1, 1, -1, -1, -1], 4)) == ["system", "user"]


def _roles(packed: Packed) -> list[str]:
    return [message["role"] for message in packed.messages]


def test_an_orphaned_result_is_written_as_a_user_message() -> None:
    packed = build([Turn("m0", "tool", "42", tool_call_id="gone")], [1.0], 9)
    assert packed.messages == [{"role": "user", "content": "42", "name": "tool"}]


def test_linked_turns_of_two_sessions_pay_both_headers() -> None:
    turns = [DATED[0], DATED[2], says("no, five", 3, session="2", date="9 May 2023", link="k", speaker="Ann")]
    turns[0] = Turn("m0", "user", "one two", "Ann", "1", "8 May 2023", link="k")
    packed = build(turns, [0.9, 0.1, 0.1], 12)
    assert packed.text == "[8 May 2023]\nAnn: one two\n[9 May 2023]\nAnn: no, five"
    assert packed.tokens == 12
    assert build(turns, [0.9, 0.1, 0.1], 11).text == "[9 May 2023]\nAnn: four"


def test_further_headers_are_charged_to_the_group_that_needs_them() -> None:
    history = History(WORDS, PLAIN)
    history.append([replace(turn, link="k", speaker=None) for turn in DATED])
    assert history.cost == [2 + 1 + 1 + 3]
    assert history.section == [0]


def test_a_group_that_grows_by_a_later_append_moves_together() -> None:
    builder = ContextBuilder(counter=WORDS, renderer=PLAIN)
    builder.append(TOOLS[:3])
    before = builder.build(Scores([0.1, 0.9, 0.1]), 99, policy="score")
    builder.append([TOOLS[3], says("thanks", 4)])
    after = builder.build(Scores([0.1, 0.9, 0.1, 0.1, 0.5]), 22, policy="score")
    assert [trace.tier for trace in after.trace] == [Tier.DROP, Tier.FULL, Tier.FULL, Tier.FULL, Tier.FULL]
    assert len(before.trace) == len(before.tiers) == 3


def test_appending_one_by_one_equals_appending_at_once() -> None:
    turns = [*TOOLS, *[Turn(f"x{k}", "user", f"word {k}", link="k" if k % 3 else None) for k in range(9)]]
    score = [k % 5 / 5 for k in range(len(turns))]
    step = ContextBuilder(counter=WORDS, renderer=PLAIN)
    for turn in turns:
        step.append([turn])
    together = build(turns, score, 30, "optimal")
    assert step.build(Scores(score), 30, policy="optimal").messages == together.messages


def test_a_stub_leads_back_to_the_original() -> None:
    builder = ContextBuilder(counter=WORDS, renderer=PLAIN)
    builder.append(TOOLS)
    packed = builder.build(Scores([0.1] * 4), 20, policy="afm")
    assert packed.text == "[8 May 2023]\nuser: weather in both cities please\n[m1,m2,m3 assistant: 21 tokens omitted]"
    assert builder.expand("m2") is TOOLS[2]
    with pytest.raises(ConversationError, match="no turn 'm9' in this conversation of 4 turns"):
        builder.expand("m9")


def test_a_taken_id_changes_nothing() -> None:
    builder = ContextBuilder(counter=WORDS, renderer=PLAIN)
    builder.append(DATED)
    for bad in ([says("x", 9), says("y", 1)], [says("x", 9), says("y", 9)]):
        with pytest.raises(ConversationError, match=r"turn id 'm[19]' is already taken"):
            builder.append(bad)
        assert len(builder.turns) == 3


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        (Scores([0.1]), "1 values of score for 3 turns"),
        (Scores([0.1] * 3, [Importance.CRITICAL]), "1 values of importance for 3 turns"),
        (Scores([0.1] * 3, None, {"bm25": [1.0]}), "1 values of bm25 for 3 turns"),
        (Scores([0.1, float("nan"), 0.1]), "the score of turn 'm1' is nan: give a finite number"),
        (Scores([0.1, 0.1, float("inf")]), "the score of turn 'm2' is inf"),
    ],
)
def test_bad_scores_are_named(scores: Scores, said: str) -> None:
    builder = ContextBuilder(counter=WORDS, renderer=PLAIN)
    builder.append(DATED)
    with pytest.raises(ConfigError, match=said):
        builder.build(scores, 99, policy="score")


def test_bad_arguments_are_named() -> None:
    for name, value in (
        ("stub_value", -0.1),
        ("stub_value", 2),
        ("compress_ratios", (0.0,)),
        ("compress_ratios", (1.0,)),
    ):
        with pytest.raises(ConfigError, match=re.escape(f"{name}={value}")):
            ContextBuilder(counter=WORDS, renderer=PLAIN, **{name: value})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="include_query=True without a query"):
        build(DATED, [1, 1, 1], 99, include_query=True)


def test_the_trace_says_what_was_known_and_why() -> None:
    builder = ContextBuilder(counter=WORDS, renderer=PLAIN, thresholds=Thresholds(0.8, 0.3))
    builder.append(DATED)
    scores = Scores(
        [0.9, 0.5, 0.1], [Importance.CRITICAL, Importance.TRIVIAL, Importance.RELEVANT], {"bm25": [1, 2, 3]}
    )
    first, second, third = builder.build(scores, 6, policy="optimal").trace
    assert (first.turn_id, first.role, first.speaker, first.date, first.text) == (
        "m0",
        "user",
        "Ann",
        "8 May 2023",
        "one two",
    )
    assert (first.tier, first.intended, first.cost, first.emitted) == (Tier.FULL, Tier.FULL, 3, "one two")
    assert first.reason == "critical: kept for 3 tokens"
    assert first.tokens == {"full": 3, "placeholder": 5}
    assert second.intended is Tier.COMPRESSED
    assert second.reason == "dropped: value 0.50 for 2 tokens is worth less than what was kept"
    assert (second.importance, second.signals, second.score) == (Importance.TRIVIAL, {"bm25": 2.0}, 0.5)
    assert (third.tier, third.cost, third.emitted, third.intended) == (Tier.DROP, 0, "", Tier.PLACEHOLDER)


def test_turns_outside_a_critical_shortage_are_told_so() -> None:
    critical = [Importance.CRITICAL, Importance.CRITICAL, Importance.RELEVANT]
    packed = build(DATED, [0.9, 0.8, 0.9], 7, importance=critical)
    assert [trace.tier for trace in packed.trace] == [Tier.FULL, Tier.DROP, Tier.DROP]
    assert packed.trace[2].reason == "dropped: not even the critical turns all fit"


def test_the_trace_survives_later_appends_and_pickling() -> None:
    builder = ContextBuilder(counter=WORDS, renderer=PLAIN, summarizer=Shortener(WORDS))
    builder.append(TOOLS[:3])
    early, late = (builder.build(Scores([0.9, 0.5, 0.1]), 17, policy="score") for _ in range(2))
    trace = early.trace
    builder.append([TOOLS[3], *DATED[:0]])
    builder.build(Scores([0.1] * 4), 17, policy="score")
    assert late.trace == trace
    assert pickle.loads(pickle.dumps(late)).trace == trace


class Recorder:
    """A summarizer that remembers what it was asked."""

    name = "recorder"

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, str]] = []

    def compress(self, text: str, max_tokens: int, hint: str = "") -> Compressed | None:
        self.asked.append((text, max_tokens, hint))
        return Compressed(" ".join(text.split()[:max_tokens]), 0.5)


def recorded(policy: PolicyName, budget: int, **options: Any) -> tuple[ContextBuilder, Recorder, Scores]:
    recorder = Recorder()
    builder = ContextBuilder(counter=WORDS, renderer=PLAIN, summarizer=recorder, **options)
    builder.append([says("one two three four five six", k) for k in range(50)])
    scores = Scores([(k * 7 % 50 + 1) / 50 for k in range(50)])
    builder.build(scores, budget, policy=policy, query=Query("why?"))
    return builder, recorder, scores


def test_summaries_are_made_only_where_asked_for_and_once() -> None:
    builder, recorder, scores = recorded("score", 300)
    assert recorder.asked == []
    builder.build(scores, 33, policy="score")
    assert recorder.asked == [("one two three four five six", 3, "")]
    builder.build(scores, 33, policy="score", query=Query("what?"))
    assert len(recorder.asked) == 1
    _, recorder, _ = recorded("optimal", 12)
    assert 0 < len(recorder.asked) <= 4 * 12 // 6 + 1


def test_of_several_forms_the_policy_takes_what_fits_and_pays() -> None:
    for policy in ("score", "newest", "optimal"):
        found: dict[int, tuple[str, int]] = {}
        for budget in (6, 5, 4, 3, 2):
            ratios = {"summarizer": Shortener(WORDS), "compress_ratios": (0.8, 0.5, 0.25)}
            packed = build([Turn("m0", "user", "one two three four five six")], [1.0], budget, policy, **ratios)
            trace = packed.trace[0]
            assert packed.tokens <= budget
            assert trace.cost == (trace.tokens[trace.tier.name.lower()] if trace.tier else 0)
            found[budget] = trace.emitted, trace.cost
        assert found[6][0] == "one two three four five six"
        lengths = [len(found[budget][0].split()) for budget in (6, 5, 4, 3, 2)]
        assert lengths == sorted(lengths, reverse=True)
        assert set(lengths) >= {6, 4, 3}, policy


def test_summaries_know_the_query_only_where_told() -> None:
    _, recorder, _ = recorded("newest", 33, query_aware_compression=True, compress_ratios=(0.4,))
    assert recorder.asked == [("one two three four five six", 2, "why?")]


def test_a_summary_that_is_not_cheaper_is_not_offered() -> None:
    class Echo:
        name = "echo"

        def compress(self, text: str, max_tokens: int, hint: str = "") -> Compressed | None:
            return Compressed(text + " indeed", 1.0)

    packed = build(DATED, [0.9, 0.5, 0.1], 7, summarizer=Echo())
    assert packed.stats.compressed == 0
    assert all("compressed" not in trace.tokens for trace in packed.trace)


class Noted:
    """Halves a text and says how, as a summarizer does that had to fall back."""

    name = "noted"

    def compress(self, text: str, max_tokens: int, hint: str = "") -> Compressed | None:
        return Compressed(" ".join(text.split()[:max_tokens]), 0.5, f"made by {len(text.split())} words")


def test_a_summarizers_note_stands_in_the_trace_of_what_was_shortened_alone() -> None:
    packed = build([says("a b c d e f", 0), says("one two three four five six", 1)], [0.9, 0.5], 9, summarizer=Noted())
    full, compressed = packed.trace
    assert (full.tier, compressed.tier) == (Tier.FULL, Tier.COMPRESSED)
    assert "made by" not in full.reason
    assert compressed.reason.startswith("compressed: 3 of 6 tokens")
    assert compressed.reason.endswith("; made by 6 words")
    assert pickle.loads(pickle.dumps(packed)).trace == packed.trace


def test_a_group_says_each_note_once() -> None:
    pair = [Turn(f"m{k}", "user", text, link="x") for k, text in enumerate(["a b c d", "e f g h", "i j k l m n"])]
    packed = build(pair, [0.9] * 3, 7, summarizer=Noted())
    assert {trace.reason.partition("; ")[2] for trace in packed.trace} == {"made by 4 words; made by 6 words"}


def test_captions_stay_when_a_turn_is_compressed() -> None:
    turn = Turn("m0", "user", (Part("text", "one two three four five six"), Part("image", "a red car")))
    packed = build([turn], [1.0], 8, summarizer=Shortener(WORDS))
    assert packed.messages == [{"role": "user", "content": "one two three\n[image: a red car]"}]


class Counting:
    """The chapter's rule, counting how often it is asked."""

    name = "counting"

    def __init__(self) -> None:
        self.calls = 0

    def count(self, text: str) -> int:
        self.calls += 1
        return ChapterCounter().count(text)


@pytest.mark.parametrize("policy", POLICIES)
def test_counting_is_linear_and_builds_count_only_what_they_write(policy: PolicyName) -> None:
    calls: dict[int, tuple[int, int]] = {}
    for n in (250, 1000):
        counting = Counting()
        builder = ContextBuilder(counter=counting, renderer=PLAIN)
        builder.append([says(f"turn number {k} says something", k) for k in range(n)])
        appended = counting.calls
        scores = Scores([0.5] * n)
        builder.build(scores, 100, policy=policy)
        counting.calls = 0
        builder.build(scores, 100, policy=policy)
        calls[n] = appended, counting.calls
    assert calls[1000][0] == 4 * calls[250][0]
    assert calls[1000][1] == calls[250][1] < 60


@pytest.mark.parametrize("renderer", [ChatRenderer(), TranscriptRenderer()])
def test_builders_in_eight_threads_share_counter_and_renderer(renderer: Renderer) -> None:
    shared = counter("minilm")

    def one(seed: int) -> list[Any]:
        turns = [says(f"peanut {seed} and {k * 31 % 17} 明天", k) for k in range(60)]
        return build(turns, [k % 7 / 7 for k in range(60)], 200, "optimal", counter=shared, renderer=renderer).messages

    alone = [one(seed) for seed in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(8))) == alone


SCRIPT = """
import json, sys
from packing_histories import POLICIES, Shortener, counter
from foveate.core import *
turns = read_messages(json.loads(sys.argv[1]))
scores = Scores([k * 37 % 11 / 11 for k in range(len(turns))], [Importance(k % 4 % 3) for k in range(len(turns))])
for policy in POLICIES:
    for renderer in (ChatRenderer(), TranscriptRenderer()):
        counting = counter("minilm")
        builder = ContextBuilder(counter=counting, renderer=renderer, summarizer=Shortener(counting), stub_value=0.2)
        builder.append(turns)
        packed = builder.build(scores, 170, policy=policy)
        print(json.dumps([packed.messages, packed.text, repr(packed.stats), repr(packed.trace)]))
"""


def test_equal_inputs_give_equal_bytes_under_any_hash_seed() -> None:
    talk = [
        {
            "role": "user",
            "content": f"turn {k} of peanuts 明天",
            "session": str(k // 4),
            "date": f"{k // 4 + 1} May 2023",
        }
        | ({"link": f"l{k % 5}"} if k % 7 == 0 else {})
        for k in range(40)
    ]
    path = os.pathsep.join([os.path.dirname(__file__), *[entry for entry in sys.path if entry]])
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT, json.dumps(talk)],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(outputs) == 1
    assert len(outputs.pop().splitlines()) == 10
