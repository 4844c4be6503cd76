"""A model's functions as ONNX graphs: encoder, mixer, head, and importance and NLI where it has those. Batch, length
and turns are dynamic.

Names of inputs and outputs are the contract with `serving.onnx_scorer`.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
import torch
from torch import Tensor, nn
from torch.export import Dim

from foveate.learned.model import FoveateModel


class _Encode(nn.Module):
    def __init__(self, model: FoveateModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        return self.model.encode(ids, mask)


class _Head(nn.Module):
    def __init__(self, model: FoveateModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, vectors: Tensor, mixed: Tensor, query: Tensor, signals: Tensor) -> Tensor:
        return self.model.probability(self.model.fuse(vectors, mixed, query[None], signals[None]))[0]


class _Contradiction(nn.Module):
    def __init__(self, model: FoveateModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, vectors: Tensor, reply: Tensor) -> Tensor:
        return self.model.contradiction(vectors, reply)


class _Importance(nn.Module):
    def __init__(self, model: FoveateModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, vectors: Tensor) -> Tensor:
        return self.model.importance_of(vectors)


def export_graphs(model: FoveateModel, folder: Path) -> None:
    """Write encoder.onnx, mixer.onnx, head.onnx and, where the model has these heads, importance.onnx and nli.onnx."""
    model = model.eval().cpu()
    turns, batch, length = Dim("turns"), Dim("batch"), Dim("length")
    signals = len(model.config.signal_names or ())
    vectors = torch.nn.functional.normalize(torch.randn(24, model.dim), dim=-1)
    ids, mask = torch.ones(3, 12, dtype=torch.long), torch.ones(3, 12, dtype=torch.long)
    mask[1:, 8:] = 0  # a mask of ones alone would be traced as no mask at all
    _export(
        _Encode(model), (ids, mask), folder / "encoder.onnx", [{0: batch, 1: length}] * 2, ["ids", "mask"], "vectors"
    )
    _export(model.mixer, (vectors,), folder / "mixer.onnx", [{0: turns}], ["vectors"], "mixed")
    inputs = (vectors, model.mix(vectors).detach(), vectors[0], torch.randn(24, signals))
    shapes = [{0: turns}, {0: turns}, None, {0: turns}]
    _export(_Head(model), inputs, folder / "head.onnx", shapes, ["vectors", "mixed", "query", "signals"], "probability")
    if model.nli is not None:
        pair = (vectors, vectors[0])
        graph = folder / "nli.onnx"
        _export(_Contradiction(model), pair, graph, [{0: turns}, None], ["vectors", "reply"], "contradiction")
    if model.importance is not None:
        graph = folder / "importance.onnx"
        _export(_Importance(model), (vectors,), graph, [{0: turns}], ["vectors"], "probabilities")


def _export(
    module: nn.Module, inputs: tuple[Tensor, ...], path: Path, shapes: list, names: list[str], output: str
) -> None:
    with _quiet(), torch.no_grad():
        torch.onnx.export(
            module.eval(),
            inputs,
            str(path),
            dynamo=True,
            external_data=False,
            dynamic_shapes=tuple(shapes),
            input_names=names,
            output_names=[output],
            verbose=False,
        )
    _forget_where(path)


def _forget_where(path: Path) -> None:
    """Takes out what the exporter notes of the source: stack traces with this machine's paths, unlike everywhere."""
    model = onnx.load(path)
    graph = model.graph
    for part in (model, graph, *graph.node, *graph.value_info, *graph.input, *graph.output, *graph.initializer):
        del part.metadata_props[:]
        part.doc_string = ""
    for function in model.functions:
        for part in (function, *function.node, *function.value_info):
            del part.metadata_props[:]
            part.doc_string = ""
    onnx.save(model, path)


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter's own warnings are about its internals and say nothing a user could act on."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
