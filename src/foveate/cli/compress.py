"""`foveate compress`: one conversation, one question, one budget; the packed messages out."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from rich.console import Console

from foveate.cli.page import html_page
from foveate.cli.view import View, print_view, summary
from foveate.core.errors import ConfigError, ConversationError
from foveate.core.messages import load_conversation, read_messages
from foveate.core.packed import Packed, TurnTrace
from foveate.core.protocols import PolicyName, Summarizer
from foveate.core.schema import Turn
from foveate.core.tokens import TokenCounter
from foveate.memory import FocusManager
from foveate.memory.choices import RULE_NAMES, RendererName, SummarizerName, pick_counter
from foveate.summarizers.llm import LlmConfig, LlmSummarizer

_EPILOG = f"""\
scorers:
  {", ".join(RULE_NAMES)}
  auto     the checkpoint that comes with foveate where its extras are installed, else chat
  FOLDER   what `foveate export` wrote (needs foveate[onnx], no torch)

The conversation is a list of OpenAI messages, or an object with "messages" (.json), or one message a line (.jsonl). A
message may also carry id, session, date, pinned and link. Without --query the last message is the query, taken off the
history; it must be a user's. Packed messages go to stdout, one line of statistics to stderr.

With --summarizer llm the turns to shorten are sent to the endpoint (needs foveate[llm]); where it fails, the heuristic
takes over, and the trace says so.

examples:
  foveate compress chat.json --query "What am I allergic to?" --budget 500
  foveate compress chat.jsonl --query "And the hotel?" --budget 1000 --scorer runs/export --html view.html --color
  cat chat.json | foveate compress - --budget 2000 --counter tiktoken:o200k_base --trace trace.json > packed.json
  foveate compress chat.json --budget 2000 --summarizer llm --llm-base-url http://localhost:8000/v1 --llm-model my-model
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.epilog = _EPILOG
    parser.add_argument("conversation", metavar="FILE", help=".json or .jsonl, or - for stdin")
    parser.add_argument("--query", metavar="TEXT", help="what is asked (default: the last message)")
    parser.add_argument("--budget", type=int, required=True, metavar="N", help="tokens for the whole context")
    parser.add_argument("--reserve", type=int, default=0, metavar="N", help="tokens of the budget to leave free")
    parser.add_argument("--scorer", default="auto", metavar="NAME", help="a rule or a folder (default auto)")
    parser.add_argument("--policy", choices=get_args(PolicyName), help="how turns are chosen (default: the scorer's)")
    parser.add_argument(
        "--counter",
        default="cautious",
        metavar="SPEC",
        help="cautious (default; reads high), minilm, chapter, tiktoken:ENCODING, or the path of a tokenizer.json",
    )
    parser.add_argument("--preamble", metavar="TEXT", help="system text that opens the context, never dropped")
    parser.add_argument("--render", choices=get_args(RendererName), default="chat", help="messages or one text")
    parser.add_argument(
        "--summarizer",
        choices=("heuristic", "heuristic-loose", "llm", "none"),
        default="heuristic",
        help="how turns are shortened (default heuristic: facts survive, or the turn is not shortened)",
    )
    parser.add_argument("--llm-base-url", metavar="URL", help="for llm: what stands before /chat/completions")
    parser.add_argument("--llm-model", metavar="NAME", help="for llm: the model, as the endpoint calls it")
    parser.add_argument("--llm-key-env", metavar="VAR", help="for llm: the environment variable that holds the key")
    parser.add_argument("--format", choices=("messages", "text"), default="messages", help="what goes to stdout")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write every decision as JSON")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page to look at")
    parser.add_argument("--color", action="store_true", help="print the tiers in colour to stdout instead")


def run(args: argparse.Namespace) -> int:
    """Packs, and writes what was asked for."""
    counter = pick_counter(args.counter)
    manager = FocusManager(
        args.scorer,
        counter=counter,
        renderer=args.render,
        summarizer=_summarizer(args, counter),
        policy=args.policy,
        reserve=args.reserve,
    )
    turns = _read(args.conversation)
    if args.query is None:
        turns, query = _without_question(turns, args.conversation)
    else:
        query = args.query
    manager.add_turns(turns)
    packed = manager.build_context(query, args.budget, args.preamble)
    title = "conversation" if args.conversation == "-" else Path(args.conversation).name
    view = View(packed, query, args.preamble, title, manager.scorer.name, manager.counter.name)
    if args.trace is not None:
        _write(args.trace, json.dumps(_trace(view), ensure_ascii=False, indent=1) + "\n")
    if args.html is not None:
        _write(args.html, html_page(view))
    _print(args, view)
    print(f"foveate: {summary(view)}", file=sys.stderr)
    return 0


def _summarizer(args: argparse.Namespace, counter: TokenCounter) -> SummarizerName | Summarizer | None:
    endpoint = {"--llm-base-url": args.llm_base_url, "--llm-model": args.llm_model, "--llm-key-env": args.llm_key_env}
    given = [option for option, value in endpoint.items() if value is not None]
    if args.summarizer != "llm":
        if given:
            raise ConfigError(f"{given[0]} says nothing without --summarizer llm: add that, or leave it out")
        return None if args.summarizer == "none" else args.summarizer
    for option in ("--llm-base-url", "--llm-model"):
        if option not in given:
            raise ConfigError(f"--summarizer llm needs {option}: give --llm-base-url URL and --llm-model NAME")
    return LlmSummarizer(LlmConfig(args.llm_base_url, args.llm_model, args.llm_key_env), counter)


def _read(name: str) -> tuple[Turn, ...]:
    if not name:
        raise ConfigError("FILE '': give a .json or .jsonl conversation, or - for stdin")
    if name != "-":
        return load_conversation(name)
    try:
        turns = read_messages(_parsed(_stdin()))
    except RecursionError:
        raise ConversationError("stdin: JSON is nested too deeply: give messages with flat content") from None
    if not turns:
        raise ConversationError("stdin: holds no messages: give at least one message with a role and a content")
    return turns


def _stdin() -> str:
    """What is piped in, as UTF-8 whatever the terminal's encoding."""
    if not isinstance(sys.stdin, io.TextIOWrapper):
        return sys.stdin.read()
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConversationError(f"stdin: not UTF-8 at byte {error.start}: pipe the conversation in as UTF-8") from None


def _parsed(text: str) -> object:
    """A JSON document, or one JSON value a line."""
    try:
        data = json.loads(text)
    except ValueError as whole:
        lines = [line for line in text.split("\n") if line.strip()]
        if not lines:
            raise ConversationError("stdin is empty: pipe a conversation in, or name a file") from None
        try:
            return [json.loads(line) for line in lines]
        except ValueError:
            raise ConversationError(f"stdin: not valid JSON: {whole}") from None
    if isinstance(data, dict):
        return data.get("messages", [data] if "role" in data else data)
    return data


def _without_question(turns: tuple[Turn, ...], name: str) -> tuple[tuple[Turn, ...], str]:
    """The history before the last message, and that message, which must be a user's."""
    last = turns[-1]
    if last.role != "user" or not last.text:
        raise ConversationError(f"{name}: does not end with a user message to take as the query: give --query TEXT")
    return turns[:-1], last.text


def _print(args: argparse.Namespace, view: View) -> None:
    packed: Packed = view.packed
    if args.color:
        console = Console(force_terminal="NO_COLOR" not in os.environ, highlight=False, legacy_windows=False)
        print_view(view, console)
    elif args.format == "text":
        encoding = sys.stdout.encoding or "utf-8"
        print(packed.text.encode(encoding, "replace").decode(encoding))
    else:
        print(_json(packed.messages, sys.stdout.encoding or "utf-8"))


def _json(data: object, encoding: str) -> str:
    """As readable as the encoding allows: what it cannot write is escaped."""
    text = json.dumps(data, ensure_ascii=False, indent=1)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return json.dumps(data, indent=1)
    return text


def _trace(view: View) -> dict[str, Any]:
    return {
        "query": view.query,
        "preamble": view.preamble,
        "scorer": view.scorer,
        "counter": view.counter,
        "stats": asdict(view.packed.stats),
        "turns": [_turn(turn) for turn in view.packed.trace],
    }


def _turn(turn: TurnTrace) -> dict[str, Any]:
    names = {"tier": turn.tier.name, "intended": turn.intended.name, "importance": turn.importance.name}
    return {**asdict(turn), **names}


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from None
