"""What `foveate bench` measures: the machine's matrix product, packing, solving, encoding, training. No printing here.

Every measurement warms up first and reports the median (and p95 where it repeats). Times are wall-clock seconds.
"""

from __future__ import annotations

import importlib.util
import json
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import median
from typing import get_args

import numpy as np

from foveate.core.errors import CheckpointError
from foveate.core.knapsack import blocks_of, solve_exactly
from foveate.core.packer import Instance, Item, Option, columns_of, pack_columns
from foveate.core.policies import Walk, guard
from foveate.core.protocols import PolicyName
from foveate.core.schema import Turn
from foveate.core.tiers import Thresholds, Tier
from foveate.corpora import synthetic
from foveate.memory import FocusManager
from foveate.memory.choices import load_scorer
from foveate.metrics.efficiency import percentile
from foveate.serving.onnx_scorer import OnnxVectorModel, Precision
from foveate.signals.batches import Windows, length_batches, pad, padding_waste
from foveate.signals.vectors import VectorModel, turn_text

WARM_UPS = 3
_SECONDS = 3.0
_SEED = 20
_BATCH_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of repeated runs."""

    p50: float
    p95: float
    repeats: int


@dataclass(frozen=True, slots=True)
class PackSpeed:
    """`FocusManager` on one history.

    Attributes:
        turns: in the history.
        append: seconds to add all of them, tokens counted, nothing scored.
        first: seconds of the first build, which indexes and, where the scorer has vectors, encodes.
        cached: builds after that, each with another question.
        grown: adding one turn and building.
        tokens: of the last context.
    """

    turns: int
    append: float
    first: float
    cached: Times
    grown: Times
    tokens: int


@dataclass(frozen=True, slots=True)
class PolicySpeed:
    """One policy on the solver's problem, its value as a share of the best known bound."""

    policy: PolicyName
    times: Times
    share_of_optimum: float


@dataclass(frozen=True, slots=True)
class SolverSpeed:
    """`optimal` against the dynamic program on one problem, in one run.

    Attributes:
        items, budget: the problem.
        method: what `optimal` chose.
        seconds, exact_seconds: medians of `optimal` and of the dynamic program alone.
        loss: (optimum - value) / optimum.
        gap: what `optimal` itself proved.
        policies: the other policies on the same problem.
    """

    items: int
    budget: int
    method: str
    seconds: float
    exact_seconds: float
    loss: float
    gap: float
    policies: tuple[PolicySpeed, ...]


@dataclass(frozen=True, slots=True)
class EncodeSpeed:
    """One backend over the same turns.

    Attributes:
        backend: "torch", "onnx fp32", "onnx int8", or "torch training".
        turns_per_second, tokens_per_second: special tokens included, padding not.
        gflops: weight products a second, 2 a weight a token (three times that in training); None where the weights are
            not at hand. Attention scores and padding are not counted.
    """

    backend: str
    turns_per_second: float
    tokens_per_second: float
    gflops: float | None


@dataclass(frozen=True, slots=True)
class StepSpeed:
    """One step of the head over cached vectors, of the standard configuration.

    Attributes:
        reader_tokens: of conversation that the reader is shown; 0 without a reader.
        questions: in the batch.
        read: of them, through the reader.
        times: of a step.
        peak_mib: the most memory the process has held so far, in MiB.
    """

    reader_tokens: int
    questions: int
    read: int
    times: Times
    peak_mib: float


def repeated(run: Callable[[int], object], seconds: float = _SECONDS, most: int = 200) -> Times:
    """Times `run(i)` after warm-ups, at least 5 times and until `seconds` have passed."""
    for i in range(WARM_UPS):
        run(i)
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while len(taken) < 5 or (len(taken) < most and time.perf_counter() < end):
        start = time.perf_counter()
        run(WARM_UPS + len(taken))
        taken.append(time.perf_counter() - start)
    return Times(median(taken), percentile(taken, 0.95) or 0.0, len(taken))


def once(run: Callable[[], object]) -> float:
    """Seconds of one run."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def numpy_peak(size: int = 1024) -> float:
    """GF/s of numpy's single-precision matrix product: the best of the repeats, since a peak is what is asked."""
    a, b = (np.random.default_rng(_SEED).standard_normal((size, size), dtype=np.float32) for _ in range(2))
    return _peak(lambda: a @ b, size)


def torch_peak(size: int = 1024) -> float | None:
    """The same in torch; None where it is not installed."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    a, b = torch.rand(size, size), torch.rand(size, size)
    return _peak(lambda: a @ b, size)


def _peak(product: Callable[[], object], size: int) -> float:
    product()
    return 2 * size**3 / min(once(product) for _ in range(20)) / 1e9


def history(turns: int) -> tuple[list[Turn], list[str]]:
    """A history of so many synthetic turns, and questions about it."""
    told: list[Turn] = []
    questions: list[str] = []
    seed = _SEED
    base = synthetic.generate(min(24, 1 + turns // 200), seed)
    while len(told) < turns:
        for number, conversation in enumerate(base):
            start = len(told)
            for i, turn in enumerate(conversation.turns, start):
                told.append(replace(turn, id=f"t{i}", session=f"{start}.{number}.{turn.session}"))
            questions += [question.query.text for question in conversation.questions]
    return told[:turns], questions


def pack_speed(turns: int, budget: int, scorer: str, counter: str, seconds: float = _SECONDS) -> PackSpeed:
    """Measures `FocusManager` on a history of `turns` turns."""
    told, questions = history(turns + 1)
    manager = FocusManager(load_scorer(scorer), counter=counter)
    append = once(lambda: manager.add_turns(told[:turns]))
    first = once(lambda: manager.build_context(questions[0], budget))
    cached = repeated(lambda i: manager.build_context(questions[i % len(questions)], budget), seconds)
    tokens = manager.build_context(questions[0], budget).tokens

    def grow(i: int) -> None:
        manager.add_turns([replace(told[turns], id=f"new{i}")])
        manager.build_context(questions[i % len(questions)], budget)

    return PackSpeed(turns, append, first, cached, repeated(grow, seconds), tokens)


def problem(items: int, seed: int = _SEED) -> Instance:
    """A problem as a calibrated scorer makes them: few likely turns, a compressed form each, dated sessions."""
    rng = Random(seed)
    sections = max(1, items // 25)
    listed: list[Item] = []
    for i in range(items):
        cost, score = rng.randint(6, 80), rng.random() ** 4
        short = max(3, round(cost * rng.uniform(0.35, 0.7)))
        options = (Option(Tier.FULL, cost, score), Option(Tier.COMPRESSED, short, score * rng.uniform(0.1, 0.6)))
        section = i * sections // items
        listed.append(Item(options, score, Thresholds().intended(score), section=section))
    return Instance(tuple(listed), tuple(rng.randint(5, 9) for _ in range(sections)), fixed_cost=40)


def solver_speed(items: int, budget: int, seconds: float = _SECONDS) -> SolverSpeed:
    """`optimal` and the dynamic program on one problem, interleaved in one process, and the walking policies."""
    columns = columns_of(problem(items))
    exact: list[float] = []
    taken: list[float] = []
    optimum = 0.0
    end = time.perf_counter() + seconds
    packing = pack_columns(columns, budget, "optimal")
    while len(exact) < 3 or (len(exact) < 20 and time.perf_counter() < end):
        start = time.perf_counter()
        guarded, walk = guard(columns, budget), Walk(columns, budget)
        blocks, unit = blocks_of(columns, guarded, walk, budget)
        picks = solve_exactly(blocks, walk.left)
        exact.append(time.perf_counter() - start)
        optimum = unit * sum(pick[1] for chosen in picks for pick in chosen if pick is not None)
        taken.append(once(lambda: pack_columns(columns, budget, "optimal")))
    policies = tuple(
        PolicySpeed(
            name,
            repeated(lambda _, name=name: pack_columns(columns, budget, name), seconds / 5),
            pack_columns(columns, budget, name).value / optimum if optimum else 1.0,
        )
        for name in get_args(PolicyName)
    )
    loss = max(0.0, 1 - packing.value / optimum) if optimum else 0.0
    return SolverSpeed(items, budget, packing.method, median(taken), median(exact), loss, packing.gap or 0.0, policies)


def encode_speeds(folder: Path, turns: int, seconds: float = _SECONDS) -> list[EncodeSpeed]:
    """Encoding (and, in torch, training) speed of an export over the same turns, sorted by length in each backend.

    Raises:
        CheckpointError: the folder is no export.
        MissingExtraError: onnxruntime or tokenizers is not installed.
    """
    texts = [turn_text(turn) for turn in history(turns)[0]]
    weights = matrix_weights(folder)
    precisions: tuple[Precision, ...] = ("fp32", "int8")
    speeds: list[EncodeSpeed] = []
    tokens = _tokens(folder, texts)
    for precision in precisions:
        if precision == "int8" and not (folder / "encoder.int8.onnx").is_file():
            continue
        model = OnnxVectorModel(folder, precision)
        speeds.append(_encode_speed(f"onnx {precision}", model, texts, tokens, weights, seconds))
    if importlib.util.find_spec("torch") is not None and weights is not None:
        speeds += _torch_speeds(folder, texts, tokens, weights, seconds)
    return speeds


def _encode_speed(
    backend: str, model: VectorModel, texts: list[str], tokens: int, weights: int | None, seconds: float
) -> EncodeSpeed:
    took = repeated(lambda _: model.encode(texts), seconds).p50
    gflops = 2 * weights * tokens / took / 1e9 if weights else None
    return EncodeSpeed(backend, len(texts) / took, tokens / took, gflops)


def _torch_speeds(folder: Path, texts: list[str], tokens: int, weights: int, seconds: float) -> list[EncodeSpeed]:
    import torch

    from foveate.learned.scorer import TorchVectorModel, load_model

    model, tokenizer = load_model(folder)
    encoding = _encode_speed("torch", TorchVectorModel(model, tokenizer, "torch"), texts, tokens, weights, seconds)
    model.train()
    for parameter in model.encoder.parameters():
        parameter.requires_grad_(True)
    optimizer = torch.optim.AdamW(model.encoder.parameters(), lr=1e-6)
    rows, groups = batches(Windows(tokenizer, model.config.max_length), texts)

    def epoch(_: int) -> None:
        for group in groups:
            ids, mask = (torch.from_numpy(x) for x in pad([rows[i] for i in group]))
            model.encode(ids, mask).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    took = repeated(epoch, seconds).p50
    gflops = 6 * weights * tokens / took / 1e9
    return [encoding, EncodeSpeed("torch training", len(texts) / took, tokens / took, gflops)]


def batches(windows: Windows, texts: Sequence[str]) -> tuple[list[list[int]], list[list[int]]]:
    """Token rows of the texts' windows, and their indices in batches of similar length."""
    rows = [row for parts in windows.split(texts) for row in parts]
    return rows, length_batches([len(row) for row in rows], _BATCH_TOKENS)


def padding(folder: Path, turns: int) -> tuple[float, float]:
    """The share of padding in batches sorted by length, and in batches of 32 turns as they come."""
    rows, groups = batches(_windows(folder), [turn_text(turn) for turn in history(turns)[0]])
    lengths = [len(row) for row in rows]
    unsorted = [list(range(i, min(i + 32, len(rows)))) for i in range(0, len(rows), 32)]
    return padding_waste(lengths, groups), padding_waste(lengths, unsorted)


def _tokens(folder: Path, texts: Sequence[str]) -> int:
    return sum(len(row) for row in batches(_windows(folder), texts)[0])


def _windows(folder: Path) -> Windows:
    from tokenizers import Tokenizer

    manifest = json.loads((folder / "foveate.json").read_text(encoding="utf-8"))
    return Windows(Tokenizer.from_file(str(folder / "tokenizer.json")), int(manifest["max_length"]))


def matrix_weights(folder: Path) -> int | None:
    """Weights of the encoder that take part in a product for every token: its matrices without the embeddings.

    Read from the header of the safetensors file; None where the folder has none.

    Raises:
        CheckpointError: the file is damaged.
    """
    places = (folder / "model.safetensors", folder / "model" / "model.safetensors")
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(size))
    except (ValueError, struct.error, MemoryError, OverflowError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from None
    shapes = [
        entry["shape"]
        for name, entry in header.items()
        if name != "__metadata__" and name.startswith("encoder.") and "embeddings" not in name
    ]
    return sum(shape[0] * shape[1] for shape in shapes if len(shape) == 2) or None
