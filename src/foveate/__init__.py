"""foveate: a trained compressor for long conversations under a strict token budget.

Importing this package imports neither torch nor numpy; the names below are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foveate.core.context import ContextBuilder, Packed
    from foveate.core.errors import FoveateError
    from foveate.core.protocols import Scorer, Scores, Summarizer
    from foveate.core.schema import Conversation, Query, Turn
    from foveate.core.tiers import Importance, Thresholds, Tier
    from foveate.memory import FocusManager
    from foveate.summarizers.retention import audit

__version__ = "0.1.0"

__all__ = [
    "ContextBuilder",
    "Conversation",
    "FocusManager",
    "FoveateError",
    "Importance",
    "Packed",
    "Query",
    "Scorer",
    "Scores",
    "Summarizer",
    "Thresholds",
    "Tier",
    "Turn",
    "__version__",
    "audit",
]

_HOME = {
    "ContextBuilder": "foveate.core.context",
    "Conversation": "foveate.core.schema",
    "FocusManager": "foveate.memory",
    "FoveateError": "foveate.core.errors",
    "Importance": "foveate.core.tiers",
    "Packed": "foveate.core.context",
    "Query": "foveate.core.schema",
    "Scorer": "foveate.core.protocols",
    "Scores": "foveate.core.protocols",
    "Summarizer": "foveate.core.protocols",
    "Thresholds": "foveate.core.tiers",
    "Tier": "foveate.core.tiers",
    "Turn": "foveate.core.schema",
    "audit": "foveate.summarizers.retention",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'foveate' has no attribute {name!r}")
    return vars(import_module(_HOME[name]))[name]


def __dir__() -> list[str]:
    return list(__all__)
