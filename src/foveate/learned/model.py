"""`FoveateModel`: encoder, mixer and fusion head as one Hugging Face model.

It saves and loads like any other (`save_pretrained`, `from_pretrained`, `push_to_hub`; safetensors) and is registered
with AutoConfig and AutoModel under the type "foveate".

Shapes:  N turns of one conversation, Q questions about it, T tokens, dim encoder width, D model width, S signals.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedModel

from foveate.config.schema import ModelConfig, NliConfig
from foveate.core.errors import ConfigError
from foveate.core.tiers import OrdinalThresholds, TierValues
from foveate.learned.encoder import load_encoder, pool, prepare
from foveate.learned.heads import COSINE_FEATURES, ContextFusion, CosineHead, LinearFusion, cosine_features
from foveate.learned.importance import ImportanceHead
from foveate.learned.mixer import Mixer
from foveate.learned.nli import NLI_LABELS, NliHead
from foveate.signals.features import HALF_LIFE, SIGNAL_NAMES, STANDARDISED

_RECENCY = SIGNAL_NAMES.index("recency")

Head = ContextFusion | LinearFusion | CosineHead


class FoveateConfig(PreTrainedConfig):
    """What a saved scorer needs to be rebuilt.

    Attributes:
        encoder: the encoder's own configuration, as a dictionary.
        signal_names: the signals it was trained on, in order; loading refuses other ones.
        max_length: tokens an encoder window.
        calibration_scale, calibration_shift: probability = sigmoid(scale * logit + shift), fitted on validation data.
        policy: the packing policy that did best on validation data.
        compressed_slope, compressed_shift: what a compressed form is worth (`core.tiers.TierValues`), fitted on
            validation data; a slope of None is the prior.
        tau_level, tau_rate, tau_gap: tau(t) of Eq. 2 (`core.tiers.OrdinalThresholds`), fitted on validation data; a
            level of None leaves AFM's thresholds.
        lexical: whether the word-matching signals are read; without them the head has vectors and plain signals only.
        half_life: turns after which the recency signal halves when training begins; it is learned from there.
        importance: whether there is a head for AFM's importance classes.
        trained_on, chosen_on: sources of all the data that trained it, and of the validation data that chose its
            checkpoints, those of an encoder it started from included; "locomo:1" is what P1 fold 1 trains on.
        nli: whether there is an NLI head, P(contradiction) of Eq. 5.
        nli_width, nli_dropout: of that head.
        nli_temperature: its logits are divided by this, fitted on validation data.
    """

    model_type = "foveate"

    encoder: dict[str, Any] | None = None
    signal_names: list[str] | None = None
    fusion: str = "mlp"
    width: int = 96
    mixer_window: int = 3
    mixer_layers: int = 1
    context_layers: int = 2
    context_kernel: int = 7
    hops: int = 1
    dropout: float = 0.2
    lexical: bool = True
    half_life: float = HALF_LIFE
    max_length: int = 128
    calibration_scale: float = 1.0
    calibration_shift: float = 0.0
    policy: str = "score"
    compressed_slope: float | None = None
    compressed_shift: float = 0.0
    tau_level: float | None = None
    tau_rate: float = 0.0
    tau_gap: float = 0.0
    importance: bool = False
    trained_on: list[str] | None = None
    chosen_on: list[str] | None = None
    nli: bool = False
    nli_width: int = 256
    nli_dropout: float = 0.2
    nli_temperature: float = 1.0


class Fresh(NamedTuple):
    """Texts to be encoded with gradients: F turns and the Q questions of a batch.

    Attributes:
        batches: token ids and masks, each (b, T), of texts of similar length.
        order: (F + Q,) the place of each text, turns first, in the concatenated batches.
        turns: (F,) the turns' rows.
    """

    batches: list[tuple[Tensor, Tensor]]
    order: Tensor
    turns: Tensor


class Outputs(NamedTuple):
    """What a training step needs of the model.

    Attributes:
        logits: (Q, N).
        nli: (B, 3) where pairs were given.
        importance: (B, 3) where turns were given.
    """

    logits: Tensor
    nli: Tensor | None = None
    importance: Tensor | None = None


class FoveateModel(PreTrainedModel):
    """Scores every turn of a conversation against questions. Source: docs/architecture.md; Eq. 1 for `fusion:
    linear`.
    """

    config_class = FoveateConfig
    base_model_prefix = "foveate"

    def __init__(self, config: FoveateConfig) -> None:
        super().__init__(config)
        # Where the encoder was loaded from is a path of one machine, and says nothing on another.
        config.encoder = {name: value for name, value in (config.encoder or {}).items() if name != "_name_or_path"}
        encoder_config = AutoConfig.for_model(**config.encoder)
        self.encoder: nn.Module = AutoModel.from_config(encoder_config)
        self.dim = int(encoder_config.hidden_size)
        features = len(config.signal_names or SIGNAL_NAMES) + COSINE_FEATURES
        self.mixer = Mixer(self.dim, config.width, config.mixer_window, config.mixer_layers, config.dropout)
        self.head: Head = _build_head(config, self.dim, features)
        self.log_half_life = nn.Parameter(torch.tensor(math.log(config.half_life)))
        self.mixer.requires_grad_(isinstance(self.head, ContextFusion))
        self.log_half_life.requires_grad_(not isinstance(self.head, CosineHead))
        self.nli = NliHead(self.dim, config.nli_width, config.nli_dropout) if config.nli else None
        self.importance = ImportanceHead(self.dim) if config.importance else None
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Layers keep PyTorch's own initialisation."""

    def encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(B, T) token ids and mask -> (B, dim) unit vectors."""
        return pool(self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state, mask)

    def mix(self, vectors: Tensor) -> Tensor:
        """(N, dim) -> (N, D), independent of the question."""
        return self.mixer(vectors)

    def fuse(self, vectors: Tensor, mixed: Tensor, queries: Tensor, signals: Tensor) -> Tensor:
        """(N, dim), (N, D), (Q, dim), (Q, N, S) -> (Q, N) logits; only the contextual head reads the mixed vectors."""
        if isinstance(self.head, CosineHead):
            return self.head(vectors, queries)
        features = torch.cat([self._read(signals), cosine_features(vectors, queries)], dim=-1)
        if isinstance(self.head, LinearFusion):
            return self.head(features)
        return self.head(vectors, mixed, queries, features)

    def forward(
        self,
        vectors: Tensor,
        queries: Tensor,
        signals: Tensor,
        fresh: Fresh | None = None,
        pairs: tuple[Tensor, Tensor] | None = None,
        turns: Tensor | None = None,
    ) -> Outputs:
        """(N, dim) turn vectors, (Q, dim) question vectors, (Q, N, S) signals -> (Q, N) logits.

        Where the encoder trains, `fresh` holds the tokens of some turns and of the Q questions: they are encoded here,
        with gradients, in place of the given vectors. `pairs` of (B, dim) vectors go to the NLI head, (B, dim) `turns`
        to the importance head.
        """
        if fresh is not None:
            encoded = torch.cat([self.encode(ids, mask) for ids, mask in fresh.batches])[fresh.order]
            count = len(fresh.turns)
            vectors, queries = vectors.index_copy(0, fresh.turns, encoded[:count]), encoded[count:]
        mixed = self.mix(vectors) if isinstance(self.head, ContextFusion) else vectors[:, :0]
        logits = self.fuse(vectors, mixed, queries, signals)
        nli = self.nli(*pairs) if self.nli is not None and pairs is not None else None
        importance = self.importance(turns) if self.importance is not None and turns is not None else None
        return Outputs(logits, nli, importance)

    def _read(self, signals: Tensor) -> Tensor:
        """The signals as the head reads them: 0.5^(k/h) with the learned h, words only where they are wanted."""
        before, recency, after = signals.split([_RECENCY, 1, signals.shape[-1] - _RECENCY - 1], dim=-1)
        if not self.config.lexical:
            words, rest = before.split([len(STANDARDISED), _RECENCY - len(STANDARDISED)], dim=-1)
            before = torch.cat([0 * words, rest], dim=-1)
        recency = recency.clamp(min=1e-30) ** (HALF_LIFE / self.log_half_life.exp())
        return torch.cat([before, recency, after], dim=-1)

    @property
    def tier_values(self) -> TierValues:
        """What a compressed form is worth."""
        return TierValues(self.config.compressed_slope, self.config.compressed_shift)

    @property
    def thresholds(self) -> OrdinalThresholds | None:
        """tau(t) of Eq. 2; None where it was not learned."""
        saved = self.config
        return None if saved.tau_level is None else OrdinalThresholds(saved.tau_level, saved.tau_rate, saved.tau_gap)

    def importance_of(self, vectors: Tensor) -> Tensor:
        """(N, dim) -> (N, 3) probabilities of TRIVIAL, RELEVANT and CRITICAL, independent of the question.

        Raises:
            ConfigError: the model has no importance head.
        """
        if self.importance is None:
            raise ConfigError("the model has no importance head: build it with importance=True and train it")
        return self.importance.probabilities(vectors)

    def contradiction(self, vectors: Tensor, reply: Tensor) -> Tensor:
        """(N, dim) turn vectors and the (dim,) vector of a reply -> (N,) calibrated P(contradiction) (Eq. 5).

        Raises:
            ConfigError: the model has no NLI head.
        """
        if self.nli is None:
            raise ConfigError("the model has no NLI head: train it with nli.form: bi and objective.eta1 above 0")
        logits = self.nli(vectors, reply.expand_as(vectors)) / self.config.nli_temperature
        return torch.softmax(logits, dim=-1)[:, NLI_LABELS.index("contradiction")]

    def probability(self, logits: Tensor) -> Tensor:
        """Calibrated probability that a turn is needed."""
        return torch.sigmoid(self.config.calibration_scale * logits + self.config.calibration_shift)


def _build_head(config: FoveateConfig, dim: int, features: int) -> Head:
    match config.fusion:
        case "linear":
            return LinearFusion(features)
        case "cosine":
            return CosineHead()
        case "mlp":
            return ContextFusion(
                dim, config.width, features, config.context_layers, config.context_kernel, config.dropout, config.hops
            )
        case other:
            raise ValueError(f"fusion={other!r}: linear, mlp or cosine")


def build_model(config: ModelConfig, nli: NliConfig | None = None, *, importance: bool = False) -> FoveateModel:
    """A fresh scorer on a pretrained encoder, or on that of a trained scorer; what trains is set by
    `config.encoder.tune`. With `nli.form: bi` it has an NLI head, too, with `importance` one for AFM's classes.
    """
    loaded = load_encoder(config.encoder.name)
    encoder, past = loaded, None
    if isinstance(loaded, FoveateModel):
        encoder, past = cast(PreTrainedModel, loaded.encoder), loaded.config
    model = FoveateModel(
        FoveateConfig(
            encoder=encoder.config.to_dict(),
            signal_names=list(SIGNAL_NAMES),
            fusion=config.fusion,
            width=config.width,
            mixer_window=config.mixer_window,
            mixer_layers=config.mixer_layers,
            context_layers=config.context_layers,
            context_kernel=config.context_kernel,
            hops=config.hops,
            dropout=config.dropout,
            lexical=config.lexical,
            half_life=config.half_life,
            max_length=config.encoder.max_length,
            trained_on=[] if past is None else past.trained_on,
            chosen_on=[] if past is None else past.chosen_on,
            importance=importance,
            **_head_fields(nli),
        )
    )
    model.encoder = prepare(encoder, config.encoder)
    return model


def with_nli_head(model: FoveateModel, nli: NliConfig) -> FoveateModel:
    """Gives a model a fresh NLI head in place; everything else stays as it is."""
    for name, value in _head_fields(nli).items():
        setattr(model.config, name, value)
    model.nli = NliHead(model.dim, nli.width, nli.dropout)
    return model


def _head_fields(nli: NliConfig | None) -> dict[str, Any]:
    if nli is None or nli.form != "bi":
        return {}
    return {"nli": True, "nli_width": nli.width, "nli_dropout": nli.dropout, "nli_temperature": 1.0}


AutoConfig.register("foveate", FoveateConfig)
AutoModel.register(FoveateConfig, FoveateModel)
