"""The core: turns, tokens, rendering, and the packer that decides how much of each turn is replayed. Standard library
only.
"""

from foveate.core.context import ContextBuilder
from foveate.core.errors import (
    BudgetError,
    CheckpointError,
    ConfigError,
    ConversationError,
    DataError,
    FoveateError,
    MissingExtraError,
)
from foveate.core.messages import atomic_groups, load_conversation, read_messages, to_message
from foveate.core.packed import Packed, PackStats, TurnTrace
from foveate.core.packer import Instance, Item, Option, Packing, pack
from foveate.core.protocols import (
    Compressed,
    Embedder,
    ImportanceClassifier,
    PolicyName,
    Scorer,
    ScorerIndex,
    Scores,
    Summarizer,
)
from foveate.core.render import ChatRenderer, Renderer, TranscriptRenderer
from foveate.core.schema import Conversation, Evidence, Part, Query, Question, Turn
from foveate.core.tiers import Importance, OrdinalThresholds, Thresholds, Tier, TierValues
from foveate.core.tokens import (
    ChapterCounter,
    DriftMonitor,
    EncodeCounter,
    MessageCosts,
    TokenCounter,
    load_counter,
    minilm_folder,
)

__all__ = [
    "BudgetError",
    "ChapterCounter",
    "ChatRenderer",
    "CheckpointError",
    "Compressed",
    "ConfigError",
    "ContextBuilder",
    "Conversation",
    "ConversationError",
    "DataError",
    "DriftMonitor",
    "Embedder",
    "EncodeCounter",
    "Evidence",
    "FoveateError",
    "Importance",
    "ImportanceClassifier",
    "Instance",
    "Item",
    "MessageCosts",
    "MissingExtraError",
    "Option",
    "OrdinalThresholds",
    "PackStats",
    "Packed",
    "Packing",
    "Part",
    "PolicyName",
    "Query",
    "Question",
    "Renderer",
    "Scorer",
    "ScorerIndex",
    "Scores",
    "Summarizer",
    "Thresholds",
    "Tier",
    "TierValues",
    "TokenCounter",
    "TranscriptRenderer",
    "Turn",
    "TurnTrace",
    "atomic_groups",
    "load_conversation",
    "load_counter",
    "minilm_folder",
    "pack",
    "read_messages",
    "to_message",
]
