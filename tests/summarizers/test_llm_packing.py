"""The abstractive compressor inside `FocusManager` and `foveate compress`, with the endpoint up and down."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, Reply, in_turn, says

from foveate.cli import main as cli
from foveate.core.errors import ConfigError
from foveate.core.packed import Packed
from foveate.core.tiers import Tier
from foveate.core.tokens import load_counter
from foveate.memory import FocusManager
from foveate.summarizers.llm import LlmConfig, LlmSummarizer

CHAT = "data/examples/long_chat.json"
QUESTION = "What should I keep in mind when I order food?"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ChatServer(in_turn(says("No peanuts."))).running() as running:
        yield running


def packed_with(url: str, chat: list[dict[str, Any]], policy: Any = "newest") -> tuple[Packed, list[float]]:
    waits: list[float] = []
    counter = load_counter("minilm")
    config = LlmConfig(url, "tiny", attempts=3)
    llm = LlmSummarizer(config, counter, sleep=waits.append, jitter=random.Random(0))
    memory = FocusManager("chat", counter=counter, summarizer=llm, policy=policy)
    memory.add_messages(chat)
    return memory.build_context(QUESTION, 400), waits


@pytest.fixture
def chat(repo_root: Path) -> list[dict[str, Any]]:
    return json.loads((repo_root / CHAT).read_text(encoding="utf-8"))["messages"]


@pytest.mark.parametrize("policy", ["score", "newest", "afm", "optimal"])
def test_the_manager_takes_the_instance(server: ChatServer, chat: list[dict[str, Any]], policy: str) -> None:
    packed, _ = packed_with(server.url, chat, policy)
    assert packed.tokens <= 400
    shortened = [row for row in packed.trace if row.tier is Tier.COMPRESSED]
    assert all(row.emitted == "No peanuts." and "llm" not in row.reason for row in shortened)
    assert len(shortened) == packed.stats.compressed
    assert policy == "optimal" or shortened
    assert bool(shortened) <= bool(server.asked)


def test_an_endpoint_that_is_down_costs_one_question_and_is_named_in_the_trace(
    server: ChatServer, chat: list[dict[str, Any]]
) -> None:
    server.script = in_turn(Reply(429, headers={"Retry-After": "7"}))
    packed, waits = packed_with(server.url, chat, "afm")
    assert packed.tokens <= 400
    notes = {row.reason.partition("; ")[2] for row in packed.trace if row.tier is Tier.COMPRESSED}
    assert notes <= {
        "llm failed: 429 after 3 attempts; heuristic used",
        "llm failed: 429 after 3 attempts just before; heuristic used",
    }
    assert notes
    assert not [row for row in packed.trace if row.tier is not Tier.COMPRESSED and "llm" in row.reason]
    assert (len(server.asked), waits) == (3, [7.0, 7.0])


def test_a_name_alone_is_no_llm_summarizer() -> None:
    with pytest.raises(ConfigError, match="an LlmSummarizer"):
        FocusManager("chat", summarizer="llm")  # type: ignore[arg-type]


def run(capsys: pytest.CaptureFixture[str], root: Path, *arguments: object) -> tuple[int, str, str]:
    given = (root / CHAT, "--query", QUESTION, "--budget", 512, "--scorer", "chat", *arguments)
    code = cli.main(["compress", *map(str, given)])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_the_verb_on_the_shipped_conversation(
    server: ChatServer, repo_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.setenv("TEST_LLM_KEY", "sk-very-secret")
    trace, page = tmp_path / "trace.json", tmp_path / "page.html"
    endpoint = ("--summarizer", "llm", "--llm-base-url", server.url, "--llm-model", "tiny")
    options = ("--policy", "newest", "--trace", trace, "--html", page, "--llm-key-env", "TEST_LLM_KEY")
    code, out, err = run(capsys, repo_root, *endpoint, *options)
    assert (code, err.count("\n")) == (0, 1)
    assert "No peanuts." in [message["content"] for message in json.loads(out)]
    assert server.asked[0]["model"] == "tiny"
    assert server.headers[0]["Authorization"] == "Bearer sk-very-secret"
    assert "No peanuts." in page.read_text(encoding="utf-8")
    assert "sk-very" not in trace.read_text(encoding="utf-8") + page.read_text(encoding="utf-8") + out + err


def test_the_verb_with_a_wrong_key_packs_and_says_so(
    server: ChatServer, repo_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.script = in_turn(Reply(401))
    trace = tmp_path / "trace.json"
    endpoint = ("--summarizer", "llm", "--llm-base-url", server.url, "--llm-model", "tiny")
    code, _, err = run(capsys, repo_root, *endpoint, "--policy", "afm", "--trace", trace)
    assert code == 0
    assert re.match(r"foveate: \d+ of 512 tokens", err.splitlines()[-1])
    reasons = [row["reason"] for row in json.loads(trace.read_text())["turns"] if row["tier"] == "COMPRESSED"]
    assert reasons
    assert all("llm failed: 401: the key is not accepted" in reason for reason in reasons)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--summarizer", "llm"), "--summarizer llm needs --llm-base-url"),
        (("--summarizer", "llm", "--llm-base-url", "http://a/v1"), "--summarizer llm needs --llm-model"),
        (("--summarizer", "llm", "--llm-model", "m"), "--summarizer llm needs --llm-base-url"),
        (("--summarizer", "llm", "--llm-base-url", "a/v1", "--llm-model", "m"), "base_url: give http"),
        (("--summarizer", "llm", "--llm-base-url", "http://a/v1", "--llm-model", ""), "model is empty"),
        (("--llm-model", "m"), "--llm-model says nothing without --summarizer llm"),
        (("--summarizer", "none", "--llm-key-env", "K"), "--llm-key-env says nothing without"),
        (
            (
                "--summarizer",
                "llm",
                "--llm-base-url",
                "http://a/v1",
                "--llm-model",
                "m",
                "--llm-key-env",
                "NO_SUCH_KEY",
            ),
            "NO_SUCH_KEY is not set",
        ),
    ],
)
def test_a_half_given_endpoint_is_one_line_and_exit_2(
    repo_root: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = run(capsys, repo_root, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("foveate: error: ")
    assert said in err
