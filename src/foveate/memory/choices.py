"""Names to parts: what a string means where an application or command line names a scorer, counter or summarizer."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from foveate.core.errors import CheckpointError, ConfigError
from foveate.core.protocols import Scorer, Summarizer
from foveate.core.render import ChatRenderer, Renderer, TranscriptRenderer
from foveate.core.tiers import Thresholds
from foveate.core.tokens import TokenCounter, load_counter
from foveate.memory.counting import CautiousCounter
from foveate.rules.acc import AccScorer, acc_rule
from foveate.rules.afm import AfmScorer, afm_paper_offline, afm_public_offline, afm_rule
from foveate.rules.chat import ChatScorer
from foveate.rules.heuristic import HeuristicCompressor
from foveate.rules.ranking import Bm25Scorer, RecencyScorer

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


def load_scorer(spec: str | Path | Scorer) -> Scorer:
    """A scorer by the name of a rule, from the folder of an export, or as it is.

    Raises:
        ConfigError: neither a rule nor a folder; the message lists the rules.
        CheckpointError: the folder holds no export.
        MissingExtraError: an export needs onnxruntime and tokenizers.
    """
    if not isinstance(spec, str | Path):
        return spec
    text = str(spec)
    for name in RULE_NAMES:
        if name == text:
            return rule_scorer(name)
    folder = Path(spec)
    if not folder.exists():
        raise ConfigError(f"no scorer {text!r}: give the folder of an export, or one of {', '.join(RULE_NAMES)}")
    if not folder.is_dir():
        raise CheckpointError(
            f"{folder} is a file, not the folder of an export: give the folder `foveate export` wrote"
        )
    from foveate.serving.onnx_scorer import OnnxScorer

    return OnnxScorer(folder)


def pick_counter(spec: str | TokenCounter) -> TokenCounter:
    """`cautious`, whatever `core.tokens.load_counter` knows, or a counter as it is."""
    if not isinstance(spec, str):
        return spec
    return CautiousCounter() if spec == "cautious" else load_counter(spec)


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
            return spec


def pick_summarizer(spec: SummarizerName | Summarizer | None, counter: TokenCounter) -> Summarizer | None:
    """`heuristic` (facts survive or it declines), `heuristic-loose` (as in AFM), a summarizer as it is, or none."""
    match spec:
        case "heuristic":
            return HeuristicCompressor(counter)
        case "heuristic-loose":
            return HeuristicCompressor(counter, strict=False)
        case str():
            raise ConfigError(f"no summarizer {spec!r}: give 'heuristic', 'heuristic-loose' or None")
        case _:
            return spec


def thresholds_for(scorer: Scorer, n: int) -> Thresholds:
    """The thresholds that belong to a scorer for a history of n turns."""
    return scorer.thresholds_at(n) if isinstance(scorer, AfmScorer | AccScorer) else Thresholds()
