"""A packed context for human eyes, in the terminal: tiers in colour, what was left out folded, the budget as a bar."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.console import Console
from rich.text import Text

from foveate.core.packed import Packed, TurnTrace
from foveate.core.tiers import Importance, Tier

TIER_NAMES = {Tier.FULL: "full", Tier.COMPRESSED: "compressed", Tier.PLACEHOLDER: "stub", Tier.DROP: "dropped"}
_COLOURS = {Tier.FULL: "green", Tier.COMPRESSED: "yellow", Tier.PLACEHOLDER: "magenta", Tier.DROP: "bright_black"}
_WORDS_AND_GAPS = re.compile(r"\s+|\w+|[^\w\s]")
_MOST_PIECES = 3000


@dataclass(frozen=True, slots=True)
class View:
    """What is shown.

    Attributes:
        packed: the context with its trace.
        query: what was asked.
        preamble: the system text before it, None where there is none.
        title: names the conversation.
        scorer: the name of what scored it.
        counter: the name of what counted its tokens.
    """

    packed: Packed
    query: str
    preamble: str | None
    title: str
    scorer: str
    counter: str


@dataclass(frozen=True, slots=True)
class Share:
    """A part of the budget: its name and tokens."""

    name: str
    tokens: int


def shares(view: View) -> list[Share]:
    """The budget in parts: turns by tier, what stands around them, and what is free. They add up to the budget."""
    packed = view.packed
    spent = {tier: sum(turn.cost for turn in packed.trace if turn.tier is tier) for tier in TIER_NAMES}
    around = max(0, packed.tokens - sum(spent.values()))
    kept = [Share(TIER_NAMES[tier], spent[tier]) for tier in (Tier.FULL, Tier.COMPRESSED, Tier.PLACEHOLDER)]
    return [Share("preamble, query, headers", around), *kept, Share("free", max(0, packed.budget - packed.tokens))]


def runs(trace: Sequence[TurnTrace]) -> Iterator[tuple[bool, list[TurnTrace]]]:
    """Consecutive turns, those that left no word in the context together: (kept, turns)."""
    for kept, turns in groupby(trace, key=lambda turn: turn.tier is not Tier.DROP):
        yield kept, list(turns)


def marked(source: str, emitted: str) -> list[tuple[bool, str]]:
    """The source in pieces, each with whether the compressed text still says it.

    Where the compressed text has words of its own, as a model's has, it comes first and the source whole after it.
    """
    a, b = _WORDS_AND_GAPS.findall(source), _WORDS_AND_GAPS.findall(emitted)
    if len(a) > _MOST_PIECES:
        return [(True, emitted)]
    pieces: list[tuple[bool, str]] = []
    for kind, start, end, said, until in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind != "equal" and "".join(b[said:until]).strip():
            return [(True, emitted), (False, f" {source}")]
        if start < end:
            pieces.append((kind == "equal", "".join(a[start:end])))
    return pieces


def summary(view: View) -> str:
    """One line: tokens, share of the history, tiers, policy."""
    stats = view.packed.stats
    saved = 100 * (1 - stats.ratio)
    tiers = ", ".join(
        f"{count} {name}"
        for name, count in (
            ("full", stats.full),
            ("compressed", stats.compressed),
            ("stub", stats.placeholder),
            ("dropped", stats.dropped),
        )
        if count
    )
    gap = f", gap {100 * stats.gap:.3g} %" if stats.gap is not None else ""
    return (
        f"{stats.tokens} of {stats.budget} tokens; history {stats.history_tokens} tokens, {saved:.1f} % saved; "
        f"{stats.turns} turns: {tiers or 'none'}; scorer {view.scorer}, policy {stats.policy} ({stats.method}{gap})"
    )


def print_view(view: View, console: Console) -> None:
    """Prints the packed conversation: tier, who spoke, the words; compressed turns with what was cut struck out."""
    console.print(_bar(view, max(20, min(console.width, 100) - 2)))
    console.print(_legend(view), soft_wrap=True)
    console.print()
    if view.preamble is not None:
        console.print(_line("always", "cyan", "system", view.preamble), soft_wrap=True)
    date = None
    for kept, turns in runs(view.packed.trace):
        if not kept:
            console.print(_left_out(turns), soft_wrap=True)
            continue
        for turn in turns:
            if turn.date is not None and turn.date != date:
                date = turn.date
                console.print(Text(f"── {date} ", style="bold bright_black"))
            console.print(_turn(turn), soft_wrap=True)
    console.print(_line("query", "cyan", "user", view.query), soft_wrap=True)


def _bar(view: View, width: int) -> Text:
    styles = ("cyan", *(_COLOURS[tier] for tier in (Tier.FULL, Tier.COMPRESSED, Tier.PLACEHOLDER)), "bright_black")
    budget, done, text = max(1, view.packed.budget), 0, Text()
    for share, style in zip(shares(view), styles, strict=True):
        start, done = done, done + share.tokens
        cells = round(width * done / budget) - round(width * start / budget)
        text.append(("░" if share.name == "free" else "█") * cells, style=style)
    return text


def _legend(view: View) -> Text:
    stats = view.packed.stats
    text = Text(f"{stats.tokens} of {stats.budget} tokens   ")
    counts = {Tier.FULL: stats.full, Tier.COMPRESSED: stats.compressed, Tier.PLACEHOLDER: stats.placeholder}
    for tier, count in (*counts.items(), (Tier.DROP, stats.dropped)):
        text.append("■ ", style=_COLOURS[tier]).append(f"{TIER_NAMES[tier]} {count}   ")
    return text


def _line(label: str, colour: str, who: str, words: str) -> Text:
    return Text.assemble((f"{label:>10} ", f"bold {colour}"), (f"{who}: ", "bold"), _shown(words))


def _turn(turn: TurnTrace) -> Text:
    colour, label = _COLOURS[turn.tier], TIER_NAMES[turn.tier]
    mark = "!" if turn.importance is Importance.CRITICAL else " "
    text = Text.assemble((f"{label:>10}", f"bold {colour}"), (mark, "bold red"), (f"{who(turn)}: ", "bold"))
    if turn.tier is not Tier.COMPRESSED:
        return text.append(_shown(turn.emitted), style="italic" if turn.tier is Tier.PLACEHOLDER else "")
    for kept, piece in marked(turn.text, turn.emitted):
        text.append(_shown(piece), style="" if kept else "strike bright_black")
    return text


def _left_out(turns: Sequence[TurnTrace]) -> Text:
    tokens = sum(turn.tokens["full"] for turn in turns)
    ids = turns[0].turn_id if len(turns) == 1 else f"{turns[0].turn_id} … {turns[-1].turn_id}"
    plural = "s" if len(turns) > 1 else ""
    return Text(f"{'':>10} ⋯ {len(turns)} turn{plural} left out, {tokens} tokens ({ids})", style=_COLOURS[Tier.DROP])


def who(turn: TurnTrace) -> str:
    """The speaker, or the role where none is known."""
    return turn.speaker or turn.role


def _shown(words: str) -> str:
    """Words that no terminal takes for a command: control characters and unpaired surrogates replaced."""
    return re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", "\ufffd", words)
