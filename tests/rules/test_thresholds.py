"""tau(t) of Eq. 2 against the packer's own Algorithm 1, and on problems whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from foveate.core.context import ContextBuilder
from foveate.core.errors import DataError
from foveate.core.packer import pack_columns
from foveate.core.protocols import Compressed, Scores
from foveate.core.render import TranscriptRenderer
from foveate.core.schema import Turn
from foveate.core.tiers import OrdinalThresholds, Tier, TierValues
from foveate.core.tokens import ChapterCounter
from foveate.rules.thresholds import LOWEST, Case, case_of, fit_thresholds, spends

VALUES = TierValues(8.0, -4.0)


class Shorter:
    """Half of a text of even length; none of others."""

    name = "shorter"

    def compress(self, text: str, max_tokens: int, hint: str = "") -> Compressed | None:
        words = text.split()
        return None if len(words) % 2 else Compressed(" ".join(words[: len(words) // 2]), 0.5)


def histories(seed: int, count: int = 12) -> list[tuple[ContextBuilder, list[float], set[int]]]:
    """Histories of 10 to 60 turns with dated sections, probabilities, and the items that are needed."""
    rng = np.random.default_rng(seed)
    found: list[tuple[ContextBuilder, list[float], set[int]]] = []
    for _ in range(count):
        n = int(rng.integers(10, 60))
        turns = [
            Turn(str(i), "user", "word " * int(rng.integers(4, 20)), session=str(i // 7), date=f"day {i // 7}")
            for i in range(n)
        ]
        builder = ContextBuilder(
            counter=ChapterCounter(), renderer=TranscriptRenderer(), summarizer=Shorter(), tier_values=VALUES
        )
        builder.append(turns)
        probabilities = rng.beta(0.4, 3.0, n).tolist()
        needed = {int(i) for i in rng.choice(n, size=2, replace=False, p=np.array(probabilities) / sum(probabilities))}
        found.append((builder, probabilities, needed))
    return found


def cases_of(made: list[tuple[ContextBuilder, list[float], set[int]]]) -> list[Case]:
    return [case_of(builder.problem(Scores(p)), len(p), needed) for builder, p, needed in made]


@pytest.mark.parametrize(
    "tau", [OrdinalThresholds(-2.0, 0.0, 1.0), OrdinalThresholds(-1.0, 0.7, 0.0), OrdinalThresholds(-3.0, -0.5, 2.5)]
)
def test_it_counts_what_the_packer_spends_and_keeps(tau: OrdinalThresholds) -> None:
    made = histories(1)
    tokens, kept = 0.0, 0.0
    for builder, p, needed in made:
        packed = pack_columns(builder.problem(Scores(p)), 1 << 30, "topk", thresholds=tau.at(len(p)))
        tokens += packed.cost
        worth = {Tier.FULL: 1.0, Tier.COMPRESSED: VALUES.carried(0.5), Tier.DROP: 0.0}
        kept += sum(worth[packed.choice[i]] for i in needed) / len(needed)
    found = spends(cases_of(made), tau)
    assert found == (pytest.approx(tokens / len(made)), pytest.approx(kept / len(made)))


@pytest.mark.parametrize("tokens", [30.0, 80.0, 150.0])
def test_the_mean_cost_is_met_and_nothing_on_the_grid_is_better(tokens: float) -> None:
    cases = cases_of(histories(2))
    found = fit_thresholds(cases, tokens)
    assert 0.6 * tokens < found.tokens <= tokens
    assert (found.tokens, found.kept) == spends(cases, found.thresholds)
    for rate, gap in [(0.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (1.0, 2.0)]:
        other = fit_thresholds(cases, tokens, rates=(rate,), gaps=(gap,))
        assert other.tokens <= tokens
        assert other.kept <= found.kept


def test_where_everything_fits_everything_is_kept() -> None:
    found = fit_thresholds(cases_of(histories(3, 3)), 1e9)
    assert found.thresholds.level == LOWEST
    assert found.kept == 1.0


def plain(turns: int, logit: list[float], needed: int) -> Case:
    """Items of one token without forms or headers, filled up with hopeless ones."""
    n = turns
    logits = np.array([*logit, *[-30.0] * (n - len(logit))])
    weight = np.zeros(n)
    weight[needed] = 1.0
    none = np.zeros(0)
    return Case(n, logits, np.ones(n), np.full(n, np.inf), np.zeros(n), np.full(n, -1), none, weight)


def test_thresholds_fall_with_the_length_where_probabilities_do() -> None:
    """Long histories spread what is needed over more turns: the evidence stands at -1 in short ones, at -4 in long."""
    short = [plain(64, [-1.0, -1.5, -2.0, -3.0], 0) for _ in range(4)]
    long = [plain(640, [-4.0, -4.5, -5.0, -6.0], 0) for _ in range(4)]
    learned = fit_thresholds([*short, *long], 1.0)
    fixed = fit_thresholds([*short, *long], 1.0, rates=(0.0,))
    assert (learned.kept, learned.tokens) == (1.0, 1.0)
    assert learned.thresholds.rate < 0
    assert fixed.kept == 0.5
    assert learned.thresholds.at(640).high < learned.thresholds.at(64).high


def test_what_there_is_no_gain_in_stays_simple() -> None:
    found = fit_thresholds([plain(64, [2.0, -2.0], 0) for _ in range(3)], 1.0)
    assert (found.thresholds.rate, found.thresholds.gap) == (0.0, 0.0)


def test_nothing_to_learn_from_is_an_error() -> None:
    with pytest.raises(DataError, match="no question to learn thresholds from"):
        fit_thresholds([], 100.0)
    builder, p, _ = histories(1, 1)[0]
    with pytest.raises(DataError, match="without evidence"):
        case_of(builder.problem(Scores(p)), len(p), set())
