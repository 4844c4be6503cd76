"""`foveate compress`: messages out, statistics on stderr, views that escape and show all, one line for bad input."""

import io
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from foveate.cli import main as cli
from foveate.cli.page import html_page
from foveate.cli.view import View, marked, shares
from foveate.memory import FocusManager

ALLERGY = "I'm allergic to peanuts, please remember."
HOSTILE = "<script>alert('x')</script> & \"quoted\" [bold]markup[/bold] \x1b[31m \ud800"


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": ALLERGY, "id": "a1", "session": "1", "date": "8 May 2023"},
        {"role": "assistant", "content": "Noted.", "session": "1", "date": "8 May 2023"},
        *({"role": "user", "content": f"We talked about the garden and rose number {i}."} for i in range(30)),
        {"role": "user", "content": HOSTILE, "session": "2", "date": "9 May 2023"},
    ]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(messages), encoding="utf-8")
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = cli.main(["compress", *map(str, arguments)])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_packed_messages_go_to_stdout_and_one_line_to_stderr(chat: Path, capsys) -> None:
    code, out, err = run(capsys, chat, "--query", "What am I allergic to?", "--budget", 150, "--scorer", "chat")
    messages = json.loads(out)
    assert code == 0
    assert messages[0] == {"role": "system", "content": "Be brief."}
    assert messages[-1] == {"role": "user", "content": "What am I allergic to?"}
    assert ALLERGY in [m["content"] for m in messages]
    assert err.count("\n") == 1
    assert re.match(r"foveate: \d+ of 150 tokens; .* scorer chat, policy score", err)


def test_jsonl_and_stdin_say_the_same_as_json(chat: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    lines = tmp_path / "chat.jsonl"
    lines.write_text("\n".join(map(json.dumps, json.loads(chat.read_text()))), encoding="utf-8")
    options = ("--query", "roses", "--budget", 200)
    expected = run(capsys, chat, *options)[1]
    assert run(capsys, lines, *options)[1] == expected
    for text in (chat.read_text(), lines.read_text(), json.dumps({"messages": json.loads(chat.read_text())})):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        assert run(capsys, "-", *options)[1] == expected


def test_without_a_query_the_last_user_message_is_the_query(tmp_path: Path, capsys) -> None:
    path = tmp_path / "chat.json"
    path.write_text(
        json.dumps([{"role": "user", "content": "I like tea."}, {"role": "user", "content": "What do I like?"}])
    )
    code, out, _ = run(capsys, path, "--budget", 100)
    assert code == 0
    assert [m["content"] for m in json.loads(out)] == ["I like tea.", "What do I like?"]
    path.write_text(json.dumps([{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]))
    code, _, err = run(capsys, path, "--budget", 100)
    assert code == 2
    assert "give --query" in err


def test_text_and_transcript(chat: Path, capsys) -> None:
    options = (chat, "--query", "allergic?", "--budget", 120, "--render", "transcript", "--format", "text")
    _, out, _ = run(capsys, *options)
    assert "[8 May 2023]" in out
    assert f"user: {ALLERGY}" in out


def test_the_trace_explains_every_turn(chat: Path, tmp_path: Path, capsys) -> None:
    path = tmp_path / "new" / "trace.json"
    run(capsys, chat, "--query", "allergic?", "--budget", 150, "--trace", path, "--preamble", "P", "--scorer", "chat")
    trace = json.loads(path.read_text(encoding="utf-8"))
    assert len(trace["turns"]) == 34 == trace["stats"]["turns"]
    turn = next(t for t in trace["turns"] if t["turn_id"] == "a1")
    assert (turn["tier"], turn["importance"], turn["text"]) == ("FULL", "CRITICAL", ALLERGY)
    assert turn["reason"]
    assert set(turn["signals"]) == {"bm25", "recency"}
    assert trace["preamble"] == "P"


@pytest.mark.parametrize("scorer", ["chat", "afm", "acc", "acc-guard", "afm-paper-offline"])
def test_the_page_is_whole_escaped_and_alone(chat: Path, tmp_path: Path, capsys, scorer: str) -> None:
    path = tmp_path / "view.html"
    options = ("--query", HOSTILE, "--preamble", HOSTILE, "--summarizer", "heuristic-loose")
    run(capsys, chat, *options, "--budget", 400, "--scorer", scorer, "--html", path)
    page = path.read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert "script" not in reader.seen
    assert reader.open == []
    assert not re.search(r"(?:src|href)=\"(?!#)", page)
    assert reader.seen.count("article") == 34 + 2
    assert ALLERGY in reader.text
    assert "<script>alert('x')</script> &" in reader.text
    for i in range(30):
        assert f"rose number {i}." in reader.text


class Reader(HTMLParser):
    VOID = ("meta", "input")

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_colour_shows_tiers_and_folds_what_was_left_out(chat: Path, capsys, monkeypatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    options = (chat, "--query", "allergic?", "--budget", 130, "--color")
    _, out, _ = run(capsys, *options)
    assert "\x1b[" in out
    assert "turns left out" in out
    assert ALLERGY in re.sub(r"\x1b\[[0-9;]*m", "", out)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run(capsys, *options)[1]


def test_control_characters_do_not_reach_the_terminal(chat: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    _, out, _ = run(capsys, chat, "--query", "quoted markup", "--budget", 2000, "--color")
    assert "[bold]markup[/bold]" in out
    assert "\x1b" not in out


def test_marked_pieces_are_the_source_and_the_kept_ones_the_extract() -> None:
    source, extract = "I ate. We do not eat peanuts. It rained.", "We do not eat peanuts."
    pieces = marked(source, extract)
    assert "".join(piece for _, piece in pieces) == source
    assert "".join(piece for kept, piece in pieces if kept) == extract


def test_a_rewritten_turn_shows_the_new_words_and_then_the_source() -> None:
    source, written = "We really do not eat any peanuts.", "They eat no peanuts."
    assert marked(source, written) == [(True, written), (False, f" {source}")]


def test_the_shares_add_up_to_the_budget() -> None:
    manager = FocusManager("afm-paper-offline")
    manager.add_messages([{"role": "user", "content": "word " * 30}] * 5)
    packed = manager.build_context("q", 150)
    view = View(packed, "q", None, "t", "s", "c")
    assert sum(share.tokens for share in shares(view)) == 150
    assert {share.name: share.tokens for share in shares(view)}["stub"] > 0
    assert "stub" in html_page(view)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", "holds no messages"),
        ("", "not valid JSON"),
        ("{nope", "not valid JSON"),
        ("{}", "without 'messages'"),
        ('"x"', "a list of messages"),
        ('[{"role": "robot", "content": "x"}]', "message 0: role 'robot' is unknown"),
        ('[{"role": "user", "content": 5}]', "message 0: content is the number 5"),
    ],
)
def test_a_bad_conversation_is_one_line_and_exit_2(tmp_path: Path, capsys, content: str, said: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    code, out, err = run(capsys, path, "--query", "q", "--budget", 100)
    assert (code, out) == (2, "")
    assert err.startswith("foveate: error: ")
    assert err.count("\n") == 1
    assert said in err
    assert str(path) in err


@pytest.mark.parametrize(
    ("text", "said"), [("", "stdin is empty"), ("[]", "holds no messages"), ("{x", "not valid JSON")]
)
def test_bad_stdin_is_one_line_and_exit_2(capsys, monkeypatch, text: str, said: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    code, _, err = run(capsys, "-", "--query", "q", "--budget", 100)
    assert code == 2
    assert said in err


def test_other_bad_input_is_one_line_and_exit_2(chat: Path, tmp_path: Path, capsys) -> None:
    good = (chat, "--query", "q")
    cases = [
        (("missing.json", "--query", "q", "--budget", 100), "no such file"),
        ((*good, "--budget", 5), "a budget of 5 tokens is too small .* the least budget is \\d+ tokens"),
        ((*good, "--budget", 100, "--scorer", "nope"), "no scorer 'nope'"),
        ((*good, "--budget", 100, "--scorer", tmp_path), re.escape(str(tmp_path))),
        ((*good, "--budget", 100, "--counter", "nope"), "no token counter 'nope'"),
        ((*good, "--budget", 100, "--html", tmp_path), "cannot be written"),
        ((*good, "--budget", 100, "--reserve", -1), "reserve=-1"),
    ]
    for arguments, said in cases:
        code, _, err = run(capsys, *arguments)
        assert code == 2, arguments
        assert err.startswith("foveate: error: ")
        assert err.count("\n") == 1
        assert re.search(said, err), err


def test_colour_on_a_terminal_that_knows_ascii_alone(chat: Path, monkeypatch) -> None:
    shown = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", shown)
    assert cli.main(["compress", str(chat), "--query", "allergic?", "--budget", "130", "--color"]) == 0
    assert ALLERGY.encode() in re.sub(rb"\x1b\[[0-9;]*m", b"", shown.buffer.getvalue())


@pytest.mark.parametrize("budget", [200, 200_000])
@pytest.mark.parametrize("words", [[], ["--color"], ["--format", "text"]])
def test_a_full_disk_behind_stdout_is_one_line(tmp_path: Path, budget: int, words: list[str]) -> None:
    path = tmp_path / "long.json"
    path.write_text(json.dumps([{"role": "user", "content": f"rose {i} " * 30} for i in range(100)]), encoding="utf-8")
    command = ["compress", str(path), "--query", "q", "--budget", str(budget), *words]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "foveate.cli.main", *command], stdout=full, stderr=subprocess.PIPE, text=True
        )
    errors = [line for line in done.stderr.splitlines() if not re.match(r"foveate: \d+ of", line)]
    assert errors == ["foveate: error: the output cannot be written: No space left on device"]
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("data", "said"), [(b"[" * 200_000, "nested too deeply"), (b'["\xff"]', "not UTF-8 at byte 2")]
)
def test_stdin_that_no_reader_takes_is_one_line(capsys, monkeypatch, data: bytes, said: str) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
    code, out, err = run(capsys, "-", "--query", "q", "--budget", 100)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"stdin: {said}" in err or said in err


def test_stdin_is_utf8_whatever_the_terminal_says(capsys, monkeypatch) -> None:
    data = json.dumps([{"role": "user", "content": "Zoë ☕"}], ensure_ascii=False).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="ascii"))
    code, out, _ = run(capsys, "-", "--query", "q", "--budget", 100)
    assert (code, json.loads(out)[0]["content"]) == (0, "Zoë ☕")


def test_empty_values_are_named(chat: Path, capsys) -> None:
    for arguments, said in ((("",), "FILE ''"), ((chat, "--scorer", ""), "no scorer ''")):
        code, _, err = run(capsys, *arguments, "--query", "q", "--budget", 100)
        assert (code, err.count("\n")) == (2, 1)
        assert said in err
