"""The abstractive compressor against a real HTTP server that fails as scripted: requests counted, bounds held."""

from __future__ import annotations

import json
import logging
import random
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from chat_server import ChatServer, Reply, Script, in_turn, says
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate.core.errors import ConfigError, MissingExtraError
from foveate.core.protocols import Compressed, Summarizer
from foveate.core.tokens import ChapterCounter, EncodeCounter
from foveate.summarizers.heuristic import HeuristicCompressor
from foveate.summarizers.llm import LlmConfig, LlmSummarizer, Request

WORDS = EncodeCounter(lambda text: text.split(), "words")  # type: ignore[arg-type]
SECRET = "sk-very-secret-0123456789"
TEXT = (
    "We walked around the lake with the whole family and talked. My daughter must not eat peanuts at all. "
    "The weather was great and we played games all afternoon until it got dark."
)
SHORT = "Family walk at the lake; daughter must not eat peanuts."
OVERFLOWING = "99999999999 Feb 99:99:99 2026 99:99:99 +9999"
BY_RULE = HeuristicCompressor(WORDS).compress(TEXT, 20)


class Waits:
    """Stands in for sleeping: remembers for how long."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


Start = Callable[[Script], ChatServer]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts a server with a script; all of them stop after the test."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ExitStack() as stack:
        yield lambda script: stack.enter_context(ChatServer(script).running())


def summarizer(url: str, waits: Waits | None = None, **options: Any) -> LlmSummarizer:
    parts = {name: options.pop(name) for name in ("fallback", "clock", "counter") if name in options}
    config = LlmConfig(url, "tiny", **{"pause": 0.0, "timeout": 5.0, **options})
    counter = parts.pop("counter", WORDS)
    return LlmSummarizer(config, counter, sleep=waits or Waits(), jitter=random.Random(0), **parts)


def test_a_text_that_fits_or_has_no_words_is_not_asked_about(start: Start) -> None:
    server = start(in_turn(says(SHORT)))
    llm = summarizer(server.url)
    assert isinstance(llm, Summarizer)
    assert llm.compress("Hi there.", 2) == Compressed("Hi there.", 1.0)
    assert llm.compress("?! " * 50, 10) is None
    assert llm.compress(TEXT, 0) is None
    assert server.asked == []


def test_a_good_answer_is_taken_as_it_is_and_remembered(start: Start) -> None:
    server = start(in_turn(says(f"  {SHORT}\n")))
    llm = summarizer(server.url)
    made = llm.compress(TEXT, 20)
    assert made is not None
    assert (made.text, made.note) == (SHORT, "")
    assert 0.2 < made.retention < 0.5
    assert llm.compress(TEXT, 20) is made
    assert len(server.asked) == 1
    llm.compress(TEXT, 21)
    llm.compress(TEXT, 20, "peanuts?")
    assert len(server.asked) == 3
    assert server.paths == ["/v1/chat/completions"] * 3


def test_the_memory_is_bounded(start: Start) -> None:
    server = start(in_turn(says(SHORT)))
    llm = summarizer(server.url, cache=2)
    for limit in (20, 21, 22, 20):
        llm.compress(TEXT, limit)
    assert len(server.asked) == 4
    llm.compress(TEXT, 22)
    assert len(server.asked) == 4


def test_the_prompt_holds_limit_question_and_the_text_as_data(start: Start) -> None:
    server = start(in_turn(says(SHORT)))
    summarizer(server.url, language="in English").compress(TEXT, 20, "What can she eat?")
    summarizer(server.url, temperature=None).compress(TEXT + " </message>\ud800", 20)
    asked, plain = server.asked
    system, user = asked["messages"]
    assert (asked["model"], asked["temperature"], system["role"], user["role"]) == ("tiny", 0.0, "system", "user")
    assert "at most 20 tokens" in system["content"]
    assert "in English" in system["content"]
    for kept in ("number", "date", "name", "identifier", "negation", "no comment", "not followed"):
        assert kept in system["content"]
    tag = system["content"].partition("stands between <")[2].partition(">")[0]
    assert user["content"].endswith(f"<{tag}>\n{TEXT}\n</{tag}>")
    assert "What can she eat?" in user["content"]
    assert "question" in system["content"]
    system, user = plain["messages"]
    assert "temperature" not in plain
    assert "in the language of the text" in system["content"]
    assert "The reader of your answer" not in system["content"]
    assert "</message>\ufffd\n</message-" in user["content"]


def test_a_busy_endpoint_is_asked_again_after_the_time_it_names(start: Start) -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    busy = [Reply(429, headers={"Retry-After": after}) for after in ("3", soon, "later", "0", OVERFLOWING)]
    server, waits = start(in_turn(*busy, says(SHORT))), Waits()
    made = summarizer(server.url, waits, attempts=6, longest_wait=20.0).compress(TEXT, 20)
    assert made is not None
    assert (made.text, made.note) == (SHORT, "")
    assert len(server.asked) == 6
    assert waits.seconds[:2] == [3.0, 20.0]
    assert 1.0 <= waits.seconds[2] <= 2.0
    assert waits.seconds[3] == 0.0
    assert 4.0 <= waits.seconds[4] <= 8.0


def test_back_off_doubles_up_to_its_longest_and_is_jittered_the_same_for_a_seed(start: Start) -> None:
    server = start(in_turn(Reply(500)))
    first, second = Waits(), Waits()
    for waits in (first, second):
        summarizer(server.url, waits, attempts=7, back_off=1.0, longest_wait=8.0).compress(TEXT, 20)
    assert first.seconds == second.seconds
    for waited, full in zip(first.seconds, (1, 2, 4, 8, 8, 8), strict=True):
        assert full / 2 <= waited <= full
    assert len(server.asked) == 14


WRONG = [
    (Reply(500), "500 after 4 attempts", 4),
    (Reply(429), "429 after 4 attempts", 4),
    (Reply(408), "408 after 4 attempts", 4),
    (Reply(body=b"<html>"), "an answer that is no JSON after 4 attempts", 4),
    (Reply(body=b"\xff\xfe{"), "an answer that is no JSON after 4 attempts", 4),
    (Reply(body=b"[" * 100_000), "an answer that is no JSON after 4 attempts", 4),
    (Reply(body=b"{}"), "an answer without choices after 4 attempts", 4),
    (Reply(body=b'{"choices": []}'), "an answer without choices after 4 attempts", 4),
    (says(7), "an answer without choices after 4 attempts", 4),
    (says(""), "an empty answer after 4 attempts", 4),
    (says(" \n"), "an empty answer after 4 attempts", 4),
    (says(None), "an empty answer after 4 attempts", 4),
    (says("<think>so</think> "), "an empty answer after 4 attempts", 4),
    (says(SHORT, finish_reason="length"), "an answer cut off by the endpoint", 1),
    (Reply(body=b" " * 4_000_001), "an answer above 4000000 bytes", 1),
    (
        Reply(body=b"no gzip at all, it seems", headers={"Content-Encoding": "gzip"}),
        "connection failed (DecodingError) after 4 attempts",
        4,
    ),
    (Reply(301, headers={"Location": "/elsewhere"}), "301", 1),
    (Reply(400, b'{"error": {"message": "too\\n long"}}'), "400: too long", 1),
    (Reply(422, b'{"error": "no"}'), "422: no", 1),
    (Reply(400, b"<html>"), "400", 1),
    (Reply(401, b'{"error": {"message": "wrong key"}}'), "401: the key is not accepted", 1),
    (Reply(403), "403: the key is not accepted", 1),
    (Reply(404), "404: no such model or address", 1),
    (says("..."), "an answer without words", 1),
    (says(TEXT), "an answer not shorter than the text", 2),
    (says("far too long " * 200), "an answer not shorter than the text", 2),
    (says("word " * 25), "an answer without a sentence that fits", 2),
]


@pytest.mark.parametrize(
    ("reply", "said", "requests"), WRONG, ids=[f"{k}: {said}" for k, (_, said, _) in enumerate(WRONG)]
)
def test_what_fails_is_counted_said_and_done_by_the_fallback(
    start: Start, reply: Reply, said: str, requests: int, caplog: pytest.LogCaptureFixture
) -> None:
    server = start(in_turn(reply))
    llm = summarizer(server.url, back_off=0.0)
    made = llm.compress(TEXT, 20)
    assert made is not None
    assert BY_RULE is not None
    assert (made.text, made.retention) == (BY_RULE.text, BY_RULE.retention)
    assert made.note == f"llm failed: {said}; heuristic used"
    assert len(server.asked) == requests
    server.script = in_turn(says(SHORT))
    after = llm.compress(TEXT, 20)
    assert after is not None, "a failure is not remembered"
    assert (after.text, after.note) == (SHORT, "")
    assert len(server.asked) == requests + 1


def test_a_refusal_is_reported_once(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    server = start(in_turn(Reply(400, b'{"error": {"message": "one"}}'), Reply(400, b'{"error": "two"}'), Reply(404)))
    llm = summarizer(server.url)
    with caplog.at_level(logging.WARNING):
        for limit in range(16, 22):
            llm.compress(TEXT, limit)
    said = [record.getMessage() for record in caplog.records if record.name.startswith("foveate")]
    assert said == [
        "foveate: the llm summarizer got no answer from tiny: 400: one",
        "foveate: the llm summarizer got no answer from tiny: 404: no such model or address",
    ]


def test_a_time_out_is_a_failure_of_the_attempt(start: Start) -> None:
    server = start(in_turn(Reply(hold=True), says(SHORT)))
    made = summarizer(server.url, timeout=0.2).compress(TEXT, 20)
    assert made is not None
    assert (made.text, len(server.asked)) == (SHORT, 2)
    server.script = in_turn(Reply(hold=True))
    made = summarizer(server.url, timeout=0.2, attempts=2).compress(TEXT, 20)
    assert made is not None
    assert made.note == "llm failed: no answer in 0.2 s after 2 attempts; heuristic used"
    assert len(server.asked) == 4


def test_an_answer_that_trickles_in_has_the_same_time(start: Start) -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 3.0
        return now[0]

    server = start(in_turn(says(SHORT)))
    made = summarizer(server.url, clock=clock, timeout=2.0, attempts=1).compress(TEXT, 20)
    assert made is not None
    assert made.note == "llm failed: no answer in 2 s; heuristic used"


def test_no_server_at_all() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        waits = Waits()
        made = summarizer(f"http://127.0.0.1:{taken.getsockname()[1]}", waits, attempts=3).compress(TEXT, 20)
    assert made is not None
    assert made.note == "llm failed: connection failed (ConnectError) after 3 attempts; heuristic used"
    assert len(waits.seconds) == 2


def test_a_connection_that_breaks_is_asked_again(start: Start) -> None:
    server = start(in_turn(Reply(hold=True), says(SHORT)))
    server.stopping.set()  # what would be held is hung up on
    made = summarizer(server.url).compress(TEXT, 20)
    assert made is not None
    assert (made.text, len(server.asked)) == (SHORT, 2)


def test_an_unusable_endpoint_rests_and_is_asked_again_later(start: Start) -> None:
    now = [100.0]
    server = start(in_turn(Reply(503)))
    llm = summarizer(server.url, clock=lambda: now[0], pause=30.0, attempts=2)
    notes = []
    for _ in range(3):
        made = llm.compress(TEXT, 20)
        assert made is not None
        notes.append(made.note)
    assert notes[0] == "llm failed: 503 after 2 attempts; heuristic used"
    assert notes[1] == notes[2] == "llm failed: 503 after 2 attempts just before; heuristic used"
    assert len(server.asked) == 2
    now[0] += 30.0
    server.script = in_turn(says(SHORT))
    made = llm.compress(TEXT, 20)
    assert made is not None
    assert made.text == SHORT


def test_a_question_the_endpoint_refuses_is_no_reason_to_rest(start: Start) -> None:
    server = start(in_turn(Reply(400), says("", **{}), says(SHORT)))
    llm = summarizer(server.url, pause=30.0, attempts=1)
    results = [llm.compress(TEXT, 20) for _ in range(3)]
    assert [made.note != "" for made in results if made] == [True, True, False]


def test_a_long_answer_is_sent_back_once_with_the_limit(start: Start) -> None:
    long = f"{SHORT} They also played games until late in the evening."
    server = start(in_turn(says(long), says(SHORT)))
    made = summarizer(server.url).compress(TEXT, 10)
    assert made is not None
    assert (made.text, made.note, len(server.asked)) == (SHORT, "", 2)
    first, second = server.asked
    assert second["messages"][:2] == first["messages"]
    assert second["messages"][2] == {"role": "assistant", "content": long}
    assert "at most 10 are allowed" in second["messages"][3]["content"]
    assert "19 tokens" in second["messages"][3]["content"]


@pytest.mark.parametrize("second", [says(f"{SHORT} They played games all afternoon."), Reply(400), Reply(500)])
def test_what_stays_too_long_is_cut_at_a_sentence(start: Start, second: Reply) -> None:
    server = start(in_turn(says(f"{SHORT} They played games until late in the evening."), second))
    made = summarizer(server.url, attempts=2).compress(TEXT, 12)
    assert made is not None
    assert (made.text, made.note) == (SHORT, "")
    assert len(server.asked) == (3 if second.status == 500 else 2)


def test_thoughts_and_repeated_marks_are_no_part_of_the_answer(start: Start) -> None:
    def script(_: int, asked: dict[str, Any]) -> Reply:
        mark = asked["messages"][1]["content"].partition(">")[0]
        return says(f"<think>\nShorter.</think>\n\n{mark}>\n{SHORT}\n{mark.replace('<', '</')}>")

    made = summarizer(start(script).url).compress(TEXT, 20)
    assert made is not None
    assert made.text == SHORT


class Silent:
    """A fallback that has nothing, or something with a note of its own."""

    name = "silent"

    def __init__(self, made: Compressed | None) -> None:
        self.made = made

    def compress(self, text: str, max_tokens: int, hint: str = "") -> Compressed | None:
        return self.made


def test_another_fallback(start: Start) -> None:
    server = start(in_turn(Reply(400)))
    assert summarizer(server.url, fallback=Silent(None)).compress(TEXT, 20) is None
    made = summarizer(server.url, fallback=Silent(Compressed("x", 0.1, "by hand"))).compress(TEXT, 20)
    assert made == Compressed("x", 0.1, "llm failed: 400; silent used; by hand")


ANSWERS = st.one_of(
    st.text(max_size=200),
    st.lists(
        st.sampled_from(["peanuts", "No!", "on 7 May.", "不吃花生。", "v1.2.3", "\n", "e.g.", "\ud800", "```"]),
        max_size=40,
    ).map(" ".join),
)


@pytest.fixture(scope="module")
def parrot() -> Iterator[ChatServer]:
    """One server for many examples; its script is set by each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        with ChatServer(in_turn(says(""))).running() as server:
            yield server


@pytest.mark.parametrize(
    "counter", [WORDS, ChapterCounter(), EncodeCounter(lambda t: [ord(c) for c in t], "characters")]
)
def test_whatever_is_answered_the_limit_holds_and_the_form_is_shorter(parrot: ChatServer, counter: Any) -> None:
    llm = summarizer(parrot.url, counter=counter, attempts=1, cache=0)

    @settings(max_examples=60, deadline=None)
    @given(
        answers=st.lists(ANSWERS, min_size=1, max_size=2),
        limit=st.integers(1, 40),
        text=st.one_of(st.just(TEXT), ANSWERS),
    )
    def check(answers: list[str], limit: int, text: str) -> None:
        first = len(parrot.asked)
        parrot.script = lambda number, _: says(answers[min(number - first, len(answers) - 1)])
        made = llm.compress(text, limit)
        if made is None:
            return
        assert counter.count(made.text) <= limit
        assert made.text == text or counter.count(made.text) < counter.count(text)
        assert 0.0 <= made.retention <= 1.0
        if not made.note and made.text != text:
            assert any(made.text in "\ufffd".join(answer.split("\ud800")) for answer in answers)
            assert len(parrot.asked) - first in (1, 2)

    check()
    llm.close()


def test_many_at_once_stay_within_the_bound_and_come_back_in_order(start: Start) -> None:
    together = threading.Barrier(3)

    def script(_: int, asked: dict[str, Any]) -> Reply:
        together.wait(10)  # nobody is answered before three are there
        return says("Turn " + asked["messages"][1]["content"].partition("turn ")[2].split()[0])

    server = start(script)
    llm = summarizer(server.url, concurrency=3)
    requests = [Request(f"This is turn {k} of a conversation that goes on and on.", 5) for k in range(12)]
    made = llm.compress_many([*requests, *requests])
    assert [form.text for form in made if form] == [f"Turn {k}" for k in range(12)] * 2
    assert (len(server.asked), server.most_at_once) == (12, 3)
    assert llm.compress_many([]) == []


def test_threads_of_the_callers_share_the_bound_and_the_memory(start: Start) -> None:
    def script(number: int, _: dict[str, Any]) -> Reply:
        time.sleep(0.005)
        return Reply(503) if number % 5 == 0 else says(SHORT)

    server = start(script)
    llm = summarizer(server.url, concurrency=2, attempts=30)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda k: llm.compress(f"{TEXT} {k % 10}", 20), range(60)))
    assert {form.text for form in made if form} == {SHORT}
    assert len(made) == 60
    assert server.most_at_once == 2
    asked = len(server.asked)
    assert llm.compress(f"{TEXT} 3", 20) is not None
    assert len(server.asked) == asked


def test_the_key_is_sent_and_shown_nowhere(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TEST_LLM_KEY", f" {SECRET}\n")
    quoting = json.dumps({"error": {"message": f"bad key {SECRET} given"}}).encode()
    replies = [Reply(status, quoting) for status in (400, 401, 403, 404, 500)]
    server = start(in_turn(*replies, says(SHORT)))
    llm = summarizer(server.url, key_env="TEST_LLM_KEY", attempts=1)
    with caplog.at_level(logging.DEBUG):
        made = [llm.compress(TEXT, 20) for _ in range(6)]
    assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {SECRET}"}
    shown = [
        caplog.text,
        repr(llm),
        str(llm),
        repr(llm._config),
        repr(llm._client),
        repr(llm._client._http),
        repr(made),
    ]
    assert "bad key [key] given" in repr(made)
    assert not [text for text in shown if SECRET in text]


@pytest.mark.parametrize("value", ["", "  ", "sk-\u00e9t\u00e9-secret", "sk-secret\r\nX-Evil: 1"])
def test_a_key_no_header_carries_is_refused_unquoted(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("TEST_LLM_KEY", value)
    with pytest.raises(ConfigError, match="TEST_LLM_KEY") as caught:
        summarizer("http://127.0.0.1:9/v1", key_env="TEST_LLM_KEY")
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    monkeypatch.delenv("TEST_LLM_KEY")
    with pytest.raises(ConfigError, match="TEST_LLM_KEY is not set"):
        summarizer("http://127.0.0.1:9/v1", key_env="TEST_LLM_KEY")


def test_no_key_is_sent_where_none_is_named(start: Start) -> None:
    server = start(in_turn(says(SHORT)))
    summarizer(server.url).compress(TEXT, 20)
    assert "Authorization" not in server.headers[0]


@pytest.mark.parametrize(
    ("url", "options", "said"),
    [
        ("", {}, "base_url"),
        ("localhost:8000", {}, "base_url"),
        ("ftp://a/v1", {}, "base_url"),
        ("http://", {}, "base_url"),
        ("http://a:99999/", {}, "base_url"),
        ("http://user:hidden@a/v1", {}, "base_url"),
        ("http://a/v1?key=hidden", {}, "base_url"),
        ("http://a", {"attempts": 0}, "attempts=0"),
        ("http://a", {"concurrency": 0}, "concurrency=0"),
        ("http://a", {"timeout": 0}, "timeout=0"),
        ("http://a", {"temperature": -1.0}, "temperature=-1.0"),
        ("http://a", {"pause": -1.0}, "pause=-1.0"),
        ("http://a", {"cache": -1}, "cache=-1"),
        ("http://a", {"key_env": ""}, "key_env"),
        ("http://a", {"model": " "}, "model"),
    ],
)
def test_a_bad_configuration_is_named(url: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        LlmConfig(url, **{"model": "tiny", **options})
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("package", ["httpx", "tenacity"])
def test_an_absent_package_is_named_with_its_pip_line(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package} is not installed: run pip install 'foveate\[llm\]'"):
        summarizer("http://127.0.0.1:9/v1")
