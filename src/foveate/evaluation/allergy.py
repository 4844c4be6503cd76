"""AFM's allergy benchmark at scale: does a packed context still hold the allergy that was stated once?

A reconstruction of the paper's scenario (section 4.2; its scripts were not released), with many paraphrases, up to
hundreds of distractor messages, two places of the allergy and several budgets, since the paper has one run a cell. No
reader is run: what is measured is whether the turn that states the allergy is in the context in FULL, and metric (a) of
`metrics.allergy`. Only budgets that can hold preamble, that turn and the question are counted.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, Protocol

import numpy as np

from foveate.core.errors import ConfigError, DataError
from foveate.core.files import write_atomically
from foveate.core.packed import Packed
from foveate.core.protocols import PolicyName
from foveate.core.render import ChatRenderer, Piece, preamble_piece, query_piece
from foveate.core.schema import Turn
from foveate.core.tiers import Tier
from foveate.core.tokens import TokenCounter
from foveate.corpora.safety import filled
from foveate.evaluation import allergy_script as script
from foveate.evaluation.cache import code_digest, digest
from foveate.evaluation.progress import Progress
from foveate.evaluation.report import percent, table
from foveate.metrics.allergy import retention, states_allergy
from foveate.metrics.efficiency import percentile, saving_rate
from foveate.metrics.statistics import wilson
from foveate.signals.lexical import Floats
from foveate.signals.vectors import VectorModel

Position = Literal["first", "middle"]
Budget = int | Literal["least"]
Row = dict[str, Any]

DISTRACTORS = (0, 6, 20, 60, 500)
POSITIONS: tuple[Position, ...] = ("first", "middle")
BUDGETS: tuple[Budget, ...] = ("least", 128, 256, 512, 800)
BADGE = "reconstruction"
_TOPICS = (script.TRAVEL, script.SMALL_TALK, script.WORK)


class Memory(Protocol):
    """What is tested: a conversation's memory that packs (`memory.FocusManager`)."""

    def add_turns(self, turns: Sequence[Turn]) -> list[str]: ...

    def build_context(self, current_query: str, budget_tokens: int, system_preamble: str | None = None) -> Packed: ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A method of the benchmark.

    Attributes:
        name: in tables and rows.
        open: makes an empty memory.
        sees_turns: False for the stateless baseline, which is given no history.
        fingerprint: tells apart two scorers of one name; "" for rules.
        shares: whether dialogues share vectors of equal texts (`Remembering`), so that no index time can be stated.
    """

    name: str
    open: Callable[[], Memory]
    sees_turns: bool = True
    fingerprint: str = ""
    shares: bool = False


class Remembering:
    """A `signals.vectors.VectorModel` that encodes each text once: the dialogues say much the same."""

    def __init__(self, model: VectorModel) -> None:
        self._model = model
        self._known: dict[str, Floats] = {}
        self.name, self.dim, self.width = model.name, model.dim, model.width
        self.reach = model.reach
        self.policy: PolicyName = model.policy
        self.tier_values, self.thresholds = model.tier_values, model.thresholds
        self.mix, self.head = model.mix, model.head

    def encode(self, texts: Sequence[str]) -> Floats:
        """(n, dim) unit vectors."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known.update(zip(new, self._model.encode(new), strict=True))
        return np.stack([self._known[text] for text in texts])


@dataclass(frozen=True, slots=True)
class Cell:
    """One dialogue shape: how many distractor messages, and where the allergy stands among them."""

    distractors: int
    position: Position


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured.

    Attributes:
        cells: the shapes; see `cells_of`.
        budgets: token counts, and "least": what just holds preamble, allergy turn and question, for each dialogue.
        paraphrases: how many of `allergy_script.PARAPHRASES`, from the first on.
        counter: of the budgets.
        seed: of the distractors.
    """

    cells: tuple[Cell, ...]
    budgets: tuple[Budget, ...]
    paraphrases: int
    counter: TokenCounter
    seed: int = 13


@dataclass(frozen=True, slots=True)
class Trial:
    """One packed context.

    Attributes:
        paraphrase: which one.
        budget: as named in the plan.
        allowed: its tokens.
        full: whether the allergy turn is in the context in FULL.
        kept: metric (a); None where the paraphrase does not hold both words.
        tokens: of the whole context.
        replay: of preamble, whole history and question, uncompressed.
        seconds: of the call that packs, scoring included.
        index_seconds: of taking in the history and a first call, which embeds it.
    """

    paraphrase: int
    budget: Budget
    allowed: int
    full: bool
    kept: bool | None
    tokens: int
    replay: int
    seconds: float
    index_seconds: float


def cells_of(distractors: Sequence[int], positions: Sequence[Position]) -> tuple[Cell, ...]:
    """Every count with every position; without distractors there is only one."""
    return tuple(Cell(n, place) for n in distractors for place in (positions if n else positions[:1]))


def dialogue(paraphrase: int, cell: Cell, seed: int) -> tuple[tuple[Turn, ...], str]:
    """The turns, and the id of the one that states the allergy.

    Distractors are pairs of a user's and an assistant's message about travel, small talk and work; an odd count ends
    with a user's. "middle" puts half of them before the allergy.
    """
    rng = random.Random(f"allergy-{seed}-{cell.distractors}-{cell.position}-{paraphrase}")
    pairs = list(_exchanges((cell.distractors + 1) // 2, rng))
    before = 0 if cell.position == "first" else len(pairs) // 2
    allergy = (script.PARAPHRASES[paraphrase], script.REPLY)
    texts = [text for pair in (*pairs[:before], allergy, *pairs[before:]) for text in pair]
    texts = texts[: cell.distractors + 2]
    roles = ("user", "assistant")
    turns = tuple(Turn(f"m{i}", roles[i % 2], text) for i, text in enumerate(texts))
    return turns, f"m{2 * before}"


def _exchanges(count: int, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Exchanges of all topics in random order, each topic's templates used up before one comes again."""
    decks: list[list[tuple[str, str]]] = [[] for _ in _TOPICS]
    for _ in range(count):
        number = rng.randrange(len(_TOPICS))
        if not decks[number]:
            decks[number] = rng.sample(_TOPICS[number], len(_TOPICS[number]))
        said, answered = decks[number].pop()
        both = filled(f"{said}\n{answered}", script.SLOTS, rng).split("\n")
        yield both[0], both[1][:1].upper() + both[1][1:]


def tokens_of(turns: Sequence[Turn], counter: TokenCounter) -> int:
    """Tokens of preamble, these turns and the question as chat messages."""
    renderer = ChatRenderer()
    pieces = [Piece("turn", turn) for turn in turns]
    whole = [preamble_piece(script.PREAMBLE), *pieces, query_piece(script.QUESTION)]
    return renderer.count(renderer.render(whole), counter)


def run_cell(candidate: Candidate, cell: Cell, plan: Plan) -> list[Trial]:
    """The trials of one method and shape: each paraphrase at each budget that can hold it."""
    trials: list[Trial] = []
    for number in range(plan.paraphrases):
        turns, stated = dialogue(number, cell, plan.seed)
        place = next(i for i, turn in enumerate(turns) if turn.id == stated)
        least = tokens_of(turns[place : place + 1], plan.counter)
        replay = tokens_of(turns, plan.counter)
        memory, index_seconds = _filled(candidate, turns, max(least, replay))
        for budget in plan.budgets:
            allowed = least if budget == "least" else budget
            if allowed >= least:
                trials.append(_trial(memory, number, place, budget, allowed, replay, index_seconds))
    return trials


def _filled(candidate: Candidate, turns: Sequence[Turn], enough: int) -> tuple[Memory, float]:
    """A memory that has taken in the history and answered once, and the seconds that took."""
    memory = candidate.open()
    start = time.perf_counter()
    if candidate.sees_turns:
        memory.add_turns(turns)
    memory.build_context(script.QUESTION, enough, script.PREAMBLE)
    return memory, time.perf_counter() - start


def _trial(
    memory: Memory, number: int, place: int, budget: Budget, allowed: int, replay: int, index_seconds: float
) -> Trial:
    start = time.perf_counter()
    packed = memory.build_context(script.QUESTION, allowed, script.PREAMBLE)
    seconds = time.perf_counter() - start
    visible = states_allergy(script.PARAPHRASES[number])
    units = [str(message["content"]) for message in packed.messages]
    return Trial(
        paraphrase=number,
        budget=budget,
        allowed=allowed,
        full=place < len(packed.tiers) and packed.tiers[place] is Tier.FULL,
        kept=retention(units) if visible else None,
        tokens=packed.tokens,
        replay=replay,
        seconds=seconds,
        index_seconds=index_seconds,
    )


def run(candidates: Sequence[Candidate], plan: Plan, work: Path, progress: Progress) -> list[Row]:
    """The rows of all methods; cells that were measured before are read back from `work`.

    Raises:
        ConfigError: there are fewer paraphrases than asked for, or a budget is below what the fixed part takes.
    """
    if not 1 <= plan.paraphrases <= len(script.PARAPHRASES):
        raise ConfigError(f"{plan.paraphrases} paraphrases: give 1 to {len(script.PARAPHRASES)}")
    rows: list[Row] = []
    for candidate in candidates:
        for cell in plan.cells:
            progress.start(f"{candidate.name}, {cell.distractors} distractors, {cell.position}")
            path = work / "allergy" / f"{_key(candidate, cell, plan)[:24]}.json"
            kept = _read(path)
            trials = run_cell(candidate, cell, plan) if kept is None else kept
            if kept is None:
                write_atomically(path, json.dumps([asdict(trial) for trial in trials]))
            progress.advance(reused=kept is not None)
            rows += [_row(candidate, cell, budget, trials, plan) for budget in plan.budgets]
    return [row for row in rows if row["n"]]


def _read(path: Path) -> list[Trial] | None:
    if not path.exists():
        return None
    try:
        return [Trial(**value) for value in json.loads(path.read_text(encoding="utf-8"))]
    except (ValueError, TypeError) as error:
        raise DataError(f"{path} holds no trials ({error}): delete it and evaluate again") from error


def _key(candidate: Candidate, cell: Cell, plan: Plan) -> str:
    memory = Path(__file__).resolve().parents[1] / "memory"
    return digest(
        {
            "method": candidate.name,
            "fingerprint": candidate.fingerprint,
            "cell": asdict(cell),
            "budgets": plan.budgets,
            "paraphrases": plan.paraphrases,
            "counter": plan.counter.name,
            "seed": plan.seed,
            "code": code_digest(bool(candidate.fingerprint)),
            "memory": [path.read_text(encoding="utf-8") for path in sorted(memory.glob("*.py"))],
        }
    )


def _row(candidate: Candidate, cell: Cell, budget: Budget, trials: Sequence[Trial], plan: Plan) -> Row:
    found = [trial for trial in trials if trial.budget == budget]
    return {
        "dataset": "afm-allergy",
        "badge": BADGE,
        "method": candidate.name,
        "fingerprint": candidate.fingerprint,
        "budget": budget,
        "distractors": cell.distractors,
        "position": cell.position,
        "paraphrases": plan.paraphrases,
        "tokenizer_id": plan.counter.name,
        "seed": plan.seed,
        **measures(found),
        **({"index_p50": None} if candidate.shares else {}),
    }


def measures(trials: Sequence[Trial]) -> Row:
    """What the trials of one row show: counts, shares with Wilson's interval, tokens, seconds; None for no trial."""
    n = len(trials)
    visible = [trial.kept for trial in trials if trial.kept is not None]
    full, kept = wilson(sum(trial.full for trial in trials), n), wilson(sum(visible), len(visible))
    seconds = [trial.seconds for trial in trials]
    tokens = fmean(trial.tokens for trial in trials) if n else None
    replay = fmean(trial.replay for trial in trials) if n else None
    return {
        "n": n,
        "full": sum(trial.full for trial in trials),
        "full_share": [full.point, full.low, full.high] if n else None,
        "n_retention": len(visible),
        "retention": [kept.point, kept.low, kept.high] if visible else None,
        "budget_violations": sum(trial.tokens > trial.allowed for trial in trials),
        "tokens": tokens,
        "replay_tokens": replay,
        "csr_replay": saving_rate(replay, tokens) if replay and tokens is not None else None,
        "lat_p50": percentile(seconds, 0.5),
        "lat_p95": percentile(seconds, 0.95),
        "index_p50": percentile([trial.index_seconds for trial in trials], 0.5),
        "missed": sorted({trial.paraphrase for trial in trials if not trial.full}),
    }


def pooled(rows: Sequence[Row], method: str, budget: Budget, distractors: int) -> tuple[int, int]:
    """How often the allergy turn is FULL, and of how many, over the positions of one shape."""
    chosen = [r for r in rows if (r["method"], r["budget"], r["distractors"]) == (method, budget, distractors)]
    return sum(row["full"] for row in chosen), sum(row["n"] for row in chosen)


def markdown(rows: Sequence[Row]) -> str:
    """Tables: FULL by budget and distractors, metric (a) and position, tokens and latency."""
    if not rows:
        raise ConfigError("no budget can hold the allergy turn: give a larger one, or least")
    methods = list(dict.fromkeys(row["method"] for row in rows))
    budgets: list[Budget] = list(dict.fromkeys(row["budget"] for row in rows))
    counts = sorted({row["distractors"] for row in rows})
    head = rows[0]
    parts = [
        f"# Allergy benchmark (badge: {BADGE})",
        "The allergy is stated once, in one of "
        f"{head['paraphrases']} paraphrases, first or in the middle of a dialogue; the last question is about food and "
        "does not name it. The script is a reconstruction: the paper's was not released. "
        f"Tokens are counted with {head['tokenizer_id']}; budget `least` just holds preamble, allergy turn and "
        "question. Intervals are Wilson's, 95 %. No reader is run.",
    ]
    for budget in budgets:
        body = [[m, *(_share(*pooled(rows, m, budget, n)) for n in counts)] for m in methods]
        title = "that just holds it" if budget == "least" else f"of {budget} tokens"
        parts.append(
            f"## Allergy turn FULL in %, a budget {title}, by distractor messages\n\n"
            + table(["method", *map(str, counts)], body)
        )
    parts.append("## All budgets and counts together\n\n" + _whole(rows, methods))
    parts.append(
        f"## Tokens used, and ms to pack (p50 / p95), {counts[-1]} distractors\n\n"
        + table(
            ["method", *map(str, budgets)],
            [[m, *(_cost(_only(rows, m, b, counts[-1])) for b in budgets)] for m in methods],
        )
    )
    return "\n\n".join(parts) + "\n"


def _share(full: int, n: int) -> str:
    if not n:
        return "-"
    found = wilson(full, n)
    return f"{percent(found.point)} [{percent(found.low)}, {percent(found.high)}]"


def _whole(rows: Sequence[Row], methods: Sequence[str]) -> str:
    def line(method: str) -> list[str]:
        own = [row for row in rows if row["method"] == method]
        by_place = [[row for row in own if row["position"] == place] for place in POSITIONS]
        seen = [row for row in own if row["retention"] is not None]
        kept = sum(round(row["retention"][0] * row["n_retention"]) for row in seen)
        return [
            method,
            *(_share(sum(r["full"] for r in part), sum(r["n"] for r in part)) for part in (own, *by_place)),
            _share(kept, sum(row["n_retention"] for row in seen)),
            str(sum(row["budget_violations"] for row in own)),
        ]

    header = ["method", "FULL", *(f"FULL, {place}" for place in POSITIONS), "retention (a)", "over budget"]
    return table(header, [line(method) for method in methods])


def _only(rows: Sequence[Row], method: str, budget: Budget, distractors: int) -> list[Row]:
    return [r for r in rows if (r["method"], r["budget"], r["distractors"]) == (method, budget, distractors)]


def _cost(rows: Sequence[Row]) -> str:
    if not rows:
        return "-"
    tokens = fmean(row["tokens"] for row in rows)
    p50, p95 = (1000 * max(row[name] for row in rows) for name in ("lat_p50", "lat_p95"))
    return f"{tokens:.0f}, {p50:.1f} / {p95:.1f}"
