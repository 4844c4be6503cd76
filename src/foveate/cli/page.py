"""A packed context as one HTML page: no script, no network, light and dark, and it prints.

Filters are check boxes that style sheets read, what was left out is folded into `details`, and every text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from foveate import __version__
from foveate.cli.style import STYLE
from foveate.cli.view import TIER_NAMES, View, marked, runs, shares, who
from foveate.core.packed import PackStats, TurnTrace
from foveate.core.tiers import Importance, Tier

_MOST_BARS = 240
_KEPT = (Tier.FULL, Tier.COMPRESSED, Tier.PLACEHOLDER)
_MEANING = {
    Tier.FULL: "word for word",
    Tier.COMPRESSED: "shortened; what was cut is struck out",
    Tier.PLACEHOLDER: "a short trace with the turn's id",
    Tier.DROP: "not in the context",
}


def html_page(view: View) -> str:
    """The page. Unpaired surrogates are replaced, so that it can be written as UTF-8."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{_text(view.title)} · foveate</title>",
        f"<style>{STYLE}</style></head><body>",
        *_header(view),
        "<main>",
        *_conversation(view),
        "</main>",
        *_footer(view),
        "</body></html>",
    ]
    return "\n".join(parts).encode("utf-8", "replace").decode("utf-8")


def _header(view: View) -> Iterator[str]:
    stats = view.packed.stats
    yield "<header>"
    yield f'<p class="eyebrow">foveate · packed context</p><h1>{_text(view.title)}</h1>'
    yield f'<p class="question"><span>Question</span>{_text(view.query)}</p>'
    yield from _facts(stats, view)
    yield from _budget_bar(view)
    yield from _map(view.packed.trace)
    yield from _filters(stats)
    yield "</header>"


def _facts(stats: PackStats, view: View) -> Iterator[str]:
    used = 100 * stats.tokens / stats.budget if stats.budget else 0.0
    facts = [
        (f"{stats.tokens:,}", f"of {stats.budget:,} tokens · {used:.0f} %"),
        (f"{100 * (1 - stats.ratio):.1f} %", f"saved on a history of {stats.history_tokens:,} tokens"),
        (f"{stats.turns - stats.dropped:,}", f"of {stats.turns:,} turns kept"),
        (stats.policy, _how(stats)),
        (view.scorer, f"scores · {view.counter} counts"),
    ]
    yield '<dl class="facts">'
    for value, meaning in facts:
        yield f"<div><dt>{_text(meaning)}</dt><dd>{_text(value)}</dd></div>"
    yield "</dl>"


def _how(stats: PackStats) -> str:
    if stats.gap is None:
        return f"policy · {stats.method}"
    return f"policy · {stats.method}, at most {100 * stats.gap:.2g} % below the optimum"


def _budget_bar(view: View) -> Iterator[str]:
    total = max(1, sum(share.tokens for share in shares(view)))
    parts = list(zip(("around", "full", "compressed", "stub", "free"), shares(view), strict=True))
    yield '<div class="bar" role="img" aria-label="the budget in parts">'
    for kind, share in parts:
        if share.tokens:
            title = f"{share.name}: {share.tokens:,} tokens"
            yield f'<i class="{kind}" style="flex:{share.tokens / total:.5f}" title="{_text(title)}"></i>'
    yield '</div><ul class="key">'
    for kind, share in parts:
        if share.tokens:
            yield f'<li><i class="{kind}"></i>{_text(share.name)} <b>{share.tokens:,}</b></li>'
    yield "</ul>"


def _map(trace: Sequence[TurnTrace]) -> Iterator[str]:
    """The conversation at a glance: a bar a turn, or a stretch of turns, as high as its best score."""
    if not trace:
        return
    top = max(turn.score for turn in trace)
    step = -(-len(trace) // _MOST_BARS)
    unit = "a turn" if step == 1 else f"{step} turns"
    yield f'<figure class="map"><figcaption>Score, oldest turn to newest; a bar is {unit}</figcaption><div>'
    for start in range(0, len(trace), step):
        stretch = trace[start : start + step]
        best = max(stretch, key=lambda turn: (turn.tier, turn.score))
        height = max(4, _percent(max(turn.score for turn in stretch), top))
        title = f"{best.turn_id}: {TIER_NAMES[best.tier]}, score {best.score:.3f}"
        target = f'href="#turn-{_text(best.turn_id)}" title="{_text(title)}"'
        yield f'<a class="{TIER_NAMES[best.tier]}" style="height:{height}%" {target}></a>'
    yield "</div></figure>"


def _filters(stats: PackStats) -> Iterator[str]:
    counts = {
        Tier.FULL: stats.full,
        Tier.COMPRESSED: stats.compressed,
        Tier.PLACEHOLDER: stats.placeholder,
        Tier.DROP: stats.dropped,
    }
    yield '<fieldset class="filters"><legend>Show</legend>'
    for tier, count in counts.items():
        name = TIER_NAMES[tier]
        disabled = "" if count else " disabled"
        yield (
            f'<label class="chip {name}" title="{_MEANING[tier]}">'
            f'<input type="checkbox" id="show-{name}" checked{disabled}>{name} <b>{count:,}</b></label>'
        )
    yield "</fieldset>"


def _conversation(view: View) -> Iterator[str]:
    if view.preamble is not None:
        yield _frame("system", "preamble, always kept", view.preamble)
    top = max((turn.score for turn in view.packed.trace), default=0.0)
    date = None
    for kept, turns in runs(view.packed.trace):
        if not kept:
            yield from _folded(turns, top)
            continue
        for turn in turns:
            if turn.date is not None and turn.date != date:
                date = turn.date
                yield f'<p class="date"><span>{_text(date)}</span></p>'
            yield from _card(turn, top)
    yield _frame("user", "query, always kept", view.query)


def _frame(who: str, label: str, words: str) -> str:
    return (
        f'<article class="turn around"><div class="head"><b>{who}</b><span class="badge around">{label}</span></div>'
        f'<p class="words">{_text(words)}</p></article>'
    )


def _folded(turns: Sequence[TurnTrace], top: float) -> Iterator[str]:
    tokens = sum(turn.tokens["full"] for turn in turns)
    dates = list(dict.fromkeys(turn.date for turn in turns if turn.date is not None))
    when = "" if not dates else f" · {dates[0]}" if len(dates) == 1 else f" · {dates[0]} – {dates[-1]}"
    plural = "s" if len(turns) > 1 else ""
    said = f"{len(turns)} turn{plural} left out · {tokens:,} tokens{when}"
    yield f'<details class="fold dropped"><summary>{_text(said)}</summary>'
    for turn in turns:
        yield from _card(turn, top)
    yield "</details>"


def _card(turn: TurnTrace, top: float) -> Iterator[str]:
    name = TIER_NAMES[turn.tier]
    yield f'<article class="turn {name}" id="turn-{_text(turn.turn_id)}"><div class="head"><b>{_text(who(turn))}</b>'
    yield f'<a class="id" href="#turn-{_text(turn.turn_id)}">{_text(turn.turn_id)}</a>'
    if turn.importance is Importance.CRITICAL:
        yield '<span class="badge critical">critical</span>'
    yield f'<span class="badge {name}">{name}</span><span class="cost">{_cost(turn)}</span>'
    width = _percent(turn.score, top)
    yield f'<span class="score" title="score {turn.score:.4f}"><i style="width:{width}%"></i></span></div>'
    yield _words(turn)
    yield from _why(turn)
    yield "</article>"


def _cost(turn: TurnTrace) -> str:
    full = turn.tokens["full"]
    return f"{full:,} tokens" if turn.tier is Tier.FULL else f"{turn.cost:,} of {full:,} tokens"


def _words(turn: TurnTrace) -> str:
    match turn.tier:
        case Tier.COMPRESSED:
            pieces = marked(turn.text, turn.emitted)
            body = "".join(_text(piece) if kept else f"<del>{_text(piece)}</del>" for kept, piece in pieces)
            return f'<p class="words">{body}</p>'
        case Tier.PLACEHOLDER:
            original = f'<p class="words">{_text(turn.text)}</p>' if turn.text else ""
            stub = f'<p class="words stub-text">{_text(turn.emitted)}</p>' if turn.emitted else ""
            return f"{stub}<details><summary>what it stands for</summary>{original}</details>" if original else stub
        case Tier.FULL:
            return f'<p class="words">{_text(turn.emitted or turn.text)}</p>'
        case Tier.DROP:
            return f'<p class="words">{_text(turn.text)}</p>'


def _why(turn: TurnTrace) -> Iterator[str]:
    yield f"<details><summary>{_text(turn.reason)}</summary><table>"
    rows = [("score", f"{turn.score:.4f}"), ("importance", turn.importance.name.lower())]
    rows.append(("intended", TIER_NAMES[turn.intended]))
    rows += [(f"tokens, {option}", f"{tokens:,}") for option, tokens in turn.tokens.items()]
    for name, value in rows:
        yield f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>"
    for name, value in turn.signals.items():
        yield f'<tr class="signal"><th>{_text(name)}</th><td>{value:.4f}</td></tr>'
    yield "</table></details>"


def _footer(view: View) -> Iterator[str]:
    tiers = " · ".join(f"{TIER_NAMES[tier]}: {_MEANING[tier]}" for tier in (*_KEPT, Tier.DROP))
    yield f"<footer><p>{_text(tiers)}</p>"
    yield f"<p>Written by foveate {__version__}. This page holds the whole conversation.</p></footer>"


def _percent(score: float, top: float) -> int:
    return round(100 * max(0.0, min(1.0, score / top))) if top > 0 else 0


def _text(words: str) -> str:
    return escape(words, quote=True)
