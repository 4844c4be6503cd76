"""L_token of Eq. 4: what a packed context costs, as a penalty or as a constraint.

As a penalty it is the expected ratio r_t of Eq. 7, weighted by eta2. As a constraint, the mean cost over questions is
held to a target by a multiplier that dual ascent raises while the mean is above it and lowers, to 0 at least, while it
is below: nobody has to guess eta2 (Boyd & Vandenberghe, Convex Optimization, ch. 5; Achiam et al. 2017). The
multiplier is the lambda of Eq. 3, or the price of a token inside the packer (`learned.budget`).

The expected tokens are `learned.selection.Packed.cost`.

Shapes:  Q questions.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


def ratio_loss(expected: Tensor, history: float) -> Tensor:
    """(Q,) expected tokens -> (Q,) share of the history's tokens, r_t of Eq. 7.

    Raises:
        ValueError: the history has no tokens.
    """
    if history <= 0:
        raise ValueError(f"history={history} tokens: a ratio needs a history")
    return expected / history


def excess(expected: Tensor, target: float) -> Tensor:
    """(Q,) expected tokens -> (Q,) relative excess over the target; negative below it.

    Raises:
        ValueError: the target is not positive.
    """
    if target <= 0:
        raise ValueError(f"target={target} tokens: give a positive one")
    return expected / target - 1


@dataclass
class DualMultiplier:
    """The price of the constraint E[tokens] <= target.

    Attributes:
        rate: how far one step goes for a relative excess of 1.
        value: the multiplier, 0 or more; part of a run's state.
    """

    rate: float = 0.05
    value: float = 0.0

    def __post_init__(self) -> None:
        if not self.rate > 0 or self.value < 0:
            raise ValueError(f"rate={self.rate}, value={self.value}: give a positive rate and a value of 0 or more")

    def ascend(self, mean: float, target: float) -> float:
        """One step of dual ascent on the measured mean cost; returns the new value."""
        self.value = max(0.0, self.value + self.rate * (mean / target - 1))
        return self.value
