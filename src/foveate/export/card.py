"""The model card of an export: what it is, what it was trained on, how it was measured, what it may be used for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_LICENCES = {
    "synthetic": "foveate's own synthetic conversations (Apache-2.0)",
    "qmsum": "QMSum (MIT)",
    "friendsqa": "FriendsQA (Apache-2.0 annotations over TV transcripts: research only)",
    "locomo": "LoCoMo (CC BY-NC 4.0: not for commercial use)",
}
_OPEN = frozenset({"synthetic", "qmsum"})


def model_card(
    name: str, manifest: Mapping[str, Any], sources: Sequence[str], encoder: str, result: Mapping[str, Any]
) -> str:
    """Markdown with the front matter that model hubs read."""
    kinds = sorted({source.partition(":")[0] for source in sources})
    licence = "apache-2.0" if _OPEN.issuperset(kinds) else "other"
    trained = "\n".join(f"- {_LICENCES.get(kind, kind)}" for kind in kinds) or "- not recorded"
    measured = "\n".join(f"| {key} | {value:.4g} |" for key, value in sorted(_numbers(result).items()))
    parity = "\n".join(
        f"| {precision} | {found['max_abs']:.2g} | {found['agreement']:.3f} |"
        for precision, found in manifest["parity"].items()
    )
    return f"""---
library_name: foveate
license: {licence}
pipeline_tag: text-ranking
---

# {name}

Scores every turn of a conversation by the probability that it is needed to answer a question. foveate packs the
turns under a token budget with these probabilities.

```python
from foveate import FocusManager

manager = FocusManager(scorer="path/to/this/folder")
```

`onnxruntime` and `tokenizers` suffice (`pip install 'foveate[onnx]'`); torch is not needed. The same folder loads in
torch with `foveate.learned.scorer.load_scorer`.

## Trained on

{trained}

Text encoder it starts from: {encoder}. Policy chosen on validation data: `{manifest["policy"]}`.

## Measured on its validation data

| metric | value |
|---|---|
{measured}

## Export against the torch model

Largest difference of a probability, and mean agreement of the 20 best turns, over {manifest["parity_questions"]}
questions about synthetic conversations.

| precision | max abs | top-20 agreement |
|---|---|---|
{parity}

## Limits

English was trained and measured; other languages were not. A probability says what the training data's questions
needed, not what is true or safe. Facts that must never be lost should be pinned.
"""


def _numbers(result: Mapping[str, Any]) -> dict[str, float]:
    both = {**result, **result.get("metrics", {})}
    return {key: float(value) for key, value in both.items() if isinstance(value, int | float)}
