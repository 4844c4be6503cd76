"""Errors a user can act on: each message names the value, the limit and the way out.

The command line prints the message on one line and exits with `exit_code`; a library caller catches `FoveateError`.
"""

from __future__ import annotations


class FoveateError(Exception):
    """Base of every error foveate raises on purpose."""

    exit_code = 2


class ConfigError(FoveateError):
    """A configuration value is unknown, of the wrong type, or contradicts another."""


class DataError(FoveateError):
    """A data file is missing, changed, or not in the form its corpus documents."""


class ConversationError(FoveateError):
    """A conversation, message or tool history cannot be read as one."""


class CheckpointError(FoveateError):
    """A folder that should hold a checkpoint or an export does not, or is damaged."""


class MissingExtraError(FoveateError):
    """An optional package is needed for what was asked."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: run pip install 'foveate[{extra}]'")
        self.package = package
        self.extra = extra


class BudgetError(FoveateError):
    """Even the required part (preamble, query, pinned turns) does not fit.

    Attributes:
        budget: the tokens that were allowed.
        least: the smallest budget under which the same call succeeds.
    """

    def __init__(self, budget: int, least: int, what: str) -> None:
        super().__init__(f"a budget of {budget} tokens is too small for {what}: the least budget is {least} tokens")
        self.budget = budget
        self.least = least
