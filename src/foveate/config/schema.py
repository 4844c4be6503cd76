"""The configuration of a training run: frozen dataclasses, each owned by the part it configures.

Precedence: defaults here < the YAML file < dotted arguments on the command line. Every value is checked when the
dataclass is built; what contradicts raises `ConfigError` before anything is loaded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from foveate.core.errors import ConfigError

Tune = Literal["frozen", "top", "lora", "full"]
BudgetForm = Literal["fixed", "paper", "prose", "price"]


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


@dataclass(frozen=True)
class DataConfig:
    """Which conversations train, and which choose the checkpoint.

    Attributes:
        train: sources, each "synthetic:FILE.jsonl", "qmsum:train", "friendsqa:dev" or "locomo" (the training
            conversations of `fold`, P1 of the evaluation protocol); or "cloze:" and one of these, whose own questions
            are then replaced by sentences taken out of turns (inverse cloze).
        validation: sources of the same form; "locomo" stands for the validation conversations of `fold`.
        fold: P1 fold, 0 to 4; needed where "locomo" is named.
        max_turns: longer conversations are cut into pieces of this many turns that keep their own questions.
        max_conversations: at most this many training conversations, the first ones; 0 takes all.
        validation_questions: at most this many validation questions a conversation, evenly spaced; 0 takes all.
        cloze_conversations: at most this many pieces of a "cloze:" source, evenly spaced; 0 takes all.
        cloze_questions: questions a piece of it.
        cloze_turns: turns a piece of it.
    """

    train: tuple[str, ...] = ("synthetic:data/synthetic/train.jsonl",)
    validation: tuple[str, ...] = ("synthetic:data/synthetic/validation.jsonl",)
    fold: int | None = None
    max_turns: int = 1200
    max_conversations: int = 0
    validation_questions: int = 0
    cloze_conversations: int = 40
    cloze_questions: int = 32
    cloze_turns: int = 512

    def __post_init__(self) -> None:
        _require(bool(self.train), "data.train is empty: name at least one source, such as synthetic:FILE.jsonl")
        _require(self.fold is None or 0 <= self.fold <= 4, f"data.fold={self.fold}: folds are 0 to 4")
        wants_fold = any(name.removeprefix("cloze:") == "locomo" for name in (*self.train, *self.validation))
        _require(not wants_fold or self.fold is not None, "data names locomo: give data.fold, 0 to 4")
        _require(self.max_turns >= 8, f"data.max_turns={self.max_turns}: give at least 8")
        _require(self.max_conversations >= 0, f"data.max_conversations={self.max_conversations}: give 0 or more")
        _require(self.validation_questions >= 0, f"data.validation_questions={self.validation_questions}: 0 or more")
        _require(self.cloze_conversations >= 0, f"data.cloze_conversations={self.cloze_conversations}: give 0 or more")
        _require(self.cloze_questions >= 1, f"data.cloze_questions={self.cloze_questions}: give at least 1")
        _require(self.cloze_turns >= 8, f"data.cloze_turns={self.cloze_turns}: give at least 8")


@dataclass(frozen=True)
class EncoderConfig:
    """The text encoder.

    Attributes:
        name: "minilm" (packaged all-MiniLM-L6-v2), a folder, a hub id, or a finished run, whose encoder is taken.
        tune: "frozen" trains none of it, "top" the last layers, "lora" adapters of the last layers, "full" everything.
        top_layers: how many of the last layers "top" and "lora" reach.
        lora_rank: rank of the adapters; alpha is twice the rank.
        lora_dropout: dropout inside the adapters.
        max_length: tokens a window; longer turns are the mean of their windows.
        fresh_turns: turns a step encodes with gradients where the encoder trains; the vectors of the rest are refreshed
            at every epoch, and with `fusion: cosine` they are left out.
    """

    name: str = "minilm"
    tune: Tune = "frozen"
    top_layers: int = 3
    lora_rank: int = 8
    lora_dropout: float = 0.0
    max_length: int = 128
    fresh_turns: int = 48

    def __post_init__(self) -> None:
        _require(bool(self.name), "model.encoder.name is empty: give minilm, a folder or a hub id")
        _require(self.max_length >= 8, f"model.encoder.max_length={self.max_length}: give at least 8")
        _require(self.top_layers >= 1, f"model.encoder.top_layers={self.top_layers}: give at least 1")
        _require(self.lora_rank >= 1, f"model.encoder.lora_rank={self.lora_rank}: give at least 1")
        _require(0 <= self.lora_dropout < 1, f"model.encoder.lora_dropout={self.lora_dropout}: give 0 <= dropout < 1")
        _require(self.fresh_turns >= 2, f"model.encoder.fresh_turns={self.fresh_turns}: give at least 2")


@dataclass(frozen=True)
class ModelConfig:
    """The scorer on top of the encoder.

    Attributes:
        encoder: see `EncoderConfig`.
        fusion: "linear" is Eq. 1, a non-negative weighted sum of signals; "mlp" adds the contextual network; "cosine"
            is the encoder alone, to fine-tune it before a scorer is trained on its vectors.
        width: hidden size.
        mixer_window: turns on each side that the mixer attends to.
        mixer_layers: layers of the mixer; its reach is window x layers.
        context_layers: question-dependent layers over neighbouring turns.
        context_kernel: turns such a layer sees, odd.
        hops: 1 scores every turn with its neighbours; 2 scores again in the light of what the first pass chose.
        dropout: between layers.
        lexical: whether the word-matching signals are read.
        half_life: turns after which the recency signal halves when training begins; it is learned from there.
        tier_values: what a compressed form is worth: "prior", retention squared, or "fit", on validation evidence; the
            heuristic compressor's forms are worth next to nothing by that measure, so that they are not used.
    """

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    fusion: Literal["linear", "mlp", "cosine"] = "mlp"
    width: int = 96
    mixer_window: int = 3
    mixer_layers: int = 1
    context_layers: int = 2
    context_kernel: int = 7
    hops: int = 1
    dropout: float = 0.2
    lexical: bool = True
    half_life: float = 12.0
    tier_values: Literal["prior", "fit"] = "prior"

    def __post_init__(self) -> None:
        _require(0 < self.half_life < math.inf, f"model.half_life={self.half_life}: give a positive number of turns")
        _require(self.width >= 8 and self.width % 4 == 0, f"model.width={self.width}: give a multiple of 4, at least 8")
        _require(self.context_kernel % 2 == 1, f"model.context_kernel={self.context_kernel}: give an odd number")
        _require(self.hops in (1, 2), f"model.hops={self.hops}: give 1 or 2")
        _require(0 <= self.dropout < 1, f"model.dropout={self.dropout}: give 0 <= dropout < 1")
        _require(
            self.fusion != "cosine" or self.encoder.tune != "frozen",
            "model.fusion=cosine with model.encoder.tune=frozen: nothing would train; give tune: top, lora or full",
        )
        _require(
            min(self.mixer_window, self.mixer_layers, self.context_layers) >= 0, "model: layer counts are 0 or more"
        )


@dataclass(frozen=True)
class ObjectiveConfig:
    """L = L_task + eta1 L_coh + eta2 L_token + eta3 L_rec (Eq. 9), and the packing that all of it is taken through.

    Attributes:
        task: "evidence" learns from the evidence turns alone, "reader" from the answers that a frozen language model
            gives (`ReaderConfig`), "both" from both.
        listwise: weight of the ranking term of L_task.
        binary: weight of its calibration term.
        packing: weight of its term -log P(evidence stays readable) under the relaxed packer.
        eta1: weight of L_coh.
        eta2: weight of L_token, the expected ratio r_t of Eq. 7; as a constraint it is `budget` that holds it.
        eta3: weight of L_rec.
        reconstruction: what L_rec is 1 minus: "bleu" of Eq. 8 over expected counts, "precision", that without its
            brevity penalty, or "self_critical", sacrebleu of a drawn rendering, by REINFORCE.
        candidates: L_rec reconstructs this many turns, those scored highest and the evidence; of a whole long
            conversation a packed context has a BLEU of 0 in every digit.
        budgets: tokens of the packings; one is drawn a batch.
        temperature: T of the relaxation, in units of probability.
    """

    task: Literal["evidence", "reader", "both"] = "evidence"
    listwise: float = 1.0
    binary: float = 0.5
    packing: float = 0.25
    eta1: float = 0.0
    eta2: float = 0.0
    eta3: float = 0.0
    reconstruction: Literal["bleu", "precision", "self_critical"] = "bleu"
    candidates: int = 32
    budgets: tuple[int, ...] = (256, 512, 1024)
    temperature: float = 0.05

    def __post_init__(self) -> None:
        task = {"listwise": self.listwise, "binary": self.binary, "packing": self.packing}
        for name, weight in {**task, "eta1": self.eta1, "eta2": self.eta2, "eta3": self.eta3}.items():
            _require(0 <= weight < math.inf, f"objective.{name}={weight}: give a finite number, 0 or more")
        learns = self.task == "reader" or sum(task.values()) > 0
        _require(learns, "every weight of objective's task is 0: there is nothing to train")
        _require(self.candidates >= 1, f"objective.candidates={self.candidates}: give at least 1")
        least = min(self.budgets, default=0)
        _require(least > 0, f"objective.budgets={list(self.budgets)}: give positive tokens")
        warm = 0 < self.temperature < math.inf
        _require(warm, f"objective.temperature={self.temperature}: give a positive finite one")

    @property
    def packs(self) -> bool:
        """Whether any part needs the packing."""
        return max(self.packing, self.eta1, self.eta2, self.eta3) > 0


@dataclass(frozen=True)
class BudgetConfig:
    """How much of the budget a question may use while training, with a multiplier learned by dual ascent.

    Attributes:
        form: "fixed" uses all of it; "paper" and "prose" are the two signs of Eq. 3, "price" a constant price of a
            token (see `learned.budget`).
        target: mean share of the budget that the multiplier is raised to meet.
        least: least share of the budget a question is given.
        rate: how far one step moves the multiplier for a relative excess of 1.
    """

    form: BudgetForm = "fixed"
    target: float = 0.75
    least: float = 0.125
    rate: float = 0.02

    def __post_init__(self) -> None:
        _require(0 < self.target <= 1, f"budget.target={self.target}: give a share above 0, 1 at most")
        _require(0 < self.least <= 1, f"budget.least={self.least}: give a share above 0, 1 at most")
        _require(0 < self.rate < math.inf, f"budget.rate={self.rate}: give a positive finite number")


@dataclass(frozen=True)
class ReaderConfig:
    """The frozen language model whose negative log-likelihood of the gold answer is a part of the task loss; read only
    with `objective.task` "reader" or "both".

    Attributes:
        name: "smollm2" (packaged SmolLM2-135M-Instruct), or the folder or hub id of a causal language model.
        max_tokens: tokens of conversation it is shown, by its own tokenizer: the evidence and the turns of highest
            score. The gates are those of a packing in half as many, so that what is shown competes for its place.
        weight: of the part, which is in nats a token of the answer.
        questions: most questions a batch that are read; each costs a forward and a backward pass of the reader.
    """

    name: str = "smollm2"
    max_tokens: int = 256
    weight: float = 1.0
    questions: int = 1

    def __post_init__(self) -> None:
        _require(bool(self.name), "reader.name is empty: give smollm2, a folder or a hub id")
        _require(self.max_tokens >= 32, f"reader.max_tokens={self.max_tokens}: give at least 32")
        _require(0 < self.weight < math.inf, f"reader.weight={self.weight}: give a positive finite number")
        _require(self.questions >= 1, f"reader.questions={self.questions}: give at least 1")


@dataclass(frozen=True)
class OptimConfig:
    """AdamW with warm-up and cosine decay.

    Attributes:
        lr: learning rate of the scorer's own layers.
        encoder_lr: learning rate of what trains in the encoder.
        weight_decay: decoupled; not on biases, norms and embeddings of position.
        warmup_steps: steps of linear warm-up.
        epochs: passes over the training questions.
        questions: questions a batch; they share one conversation and its turn vectors.
        accumulate: batches a step; the loss is summed over them and divided by their questions.
        clip: largest gradient norm.
    """

    lr: float = 2e-3
    encoder_lr: float = 3e-5
    weight_decay: float = 0.05
    warmup_steps: int = 50
    epochs: int = 10
    questions: int = 4
    accumulate: int = 1
    clip: float = 1.0

    def __post_init__(self) -> None:
        for name, value in {"lr": self.lr, "encoder_lr": self.encoder_lr, "clip": self.clip}.items():
            _require(0 < value < math.inf, f"optim.{name}={value}: give a positive finite number")
        decay = self.weight_decay
        _require(0 <= decay < math.inf, f"optim.weight_decay={decay}: give a finite number, 0 or more")
        for name, count in {"epochs": self.epochs, "questions": self.questions, "accumulate": self.accumulate}.items():
            _require(count >= 1, f"optim.{name}={count}: give at least 1")
        _require(self.warmup_steps >= 0, f"optim.warmup_steps={self.warmup_steps}: give 0 or more")


@dataclass(frozen=True)
class RunConfig:
    """How the loop runs and what it leaves behind.

    Attributes:
        evaluate_every: epochs between validations; the best one is kept.
        save_every: optimizer steps between checkpoints, 0 for one an epoch.
        keep: newest checkpoints kept beside the best.
        patience: validations without a better one before the run stops; 0 never stops early.
        wandb: "off", "offline" or "online"; metrics.jsonl is the record either way.
        cache: folder of turn vectors shared by runs; they are keyed by encoder, tokens and text.
        resume: continue from the newest whole checkpoint in the run folder, where there is one.
    """

    evaluate_every: int = 2
    save_every: int = 0
    keep: int = 1
    patience: int = 0
    wandb: Literal["off", "offline", "online"] = "off"
    cache: str = "runs/cache"
    resume: bool = True

    def __post_init__(self) -> None:
        _require(self.evaluate_every >= 1, f"run.evaluate_every={self.evaluate_every}: give at least 1")
        _require(self.keep >= 1, f"run.keep={self.keep}: give at least 1")
        _require(min(self.save_every, self.patience) >= 0, "run.save_every and run.patience are 0 or more")


@dataclass(frozen=True)
class NliConfig:
    """P(contradiction) of Eq. 5 from sentence pairs.

    Attributes:
        form: "off"; "bi" is a head on the sentence vectors of a frozen encoder; "cross" fine-tunes the encoder on both
            sentences at once.
        sources: sets that train and choose: snli, counterfactual, breaking, conjnli, negation.
        pairs: pairs a batch.
        max_pairs: at most this many training pairs of a set, evenly spaced; 0 takes all.
        validation_pairs: at most this many validation pairs, evenly spaced; 0 takes all.
        turn_share: share of the sentences that are read as turns are ("date speaker: text"), drawn by their text.
        unrelated: for each pair, this many pairs of a premise and another pair's hypothesis are added as neutral ones,
            in training and validation.
        width: hidden size of the head (form bi).
        dropout: between its layers (form bi).
        max_length: tokens of a pair; longer ones are cut (form cross).
    """

    form: Literal["off", "bi", "cross"] = "off"
    sources: tuple[str, ...] = ("snli", "counterfactual", "breaking", "conjnli", "negation")
    pairs: int = 64
    max_pairs: int = 0
    validation_pairs: int = 0
    turn_share: float = 0.5
    unrelated: float = 0.5
    width: int = 256
    dropout: float = 0.2
    max_length: int = 128

    def __post_init__(self) -> None:
        known = ("snli", "counterfactual", "breaking", "conjnli", "negation")
        odd = next((name for name in self.sources if name not in known), None)
        _require(odd is None, f"nli.sources names {odd!r}: known are {', '.join(known)}")
        _require(bool(self.sources), f"nli.sources is empty: name at least one of {', '.join(known)}")
        _require(self.pairs >= 2, f"nli.pairs={self.pairs}: give at least 2")
        _require(self.max_pairs >= 0, f"nli.max_pairs={self.max_pairs}: give 0 or more")
        _require(self.validation_pairs >= 0, f"nli.validation_pairs={self.validation_pairs}: give 0 or more")
        _require(0 <= self.turn_share <= 1, f"nli.turn_share={self.turn_share}: give a share, 0 to 1")
        _require(0 <= self.unrelated <= 10, f"nli.unrelated={self.unrelated}: give 0 to 10")
        _require(self.width >= 8, f"nli.width={self.width}: give at least 8")
        _require(0 <= self.dropout < 1, f"nli.dropout={self.dropout}: give 0 <= dropout < 1")
        _require(self.max_length >= 8, f"nli.max_length={self.max_length}: give at least 8")


@dataclass(frozen=True)
class ImportanceConfig:
    """The head for AFM's importance classes, trained beside the scorer.

    Attributes:
        weight: of its loss; 0 trains no such head.
        turns: labelled turns a batch.
    """

    weight: float = 0.0
    turns: int = 64

    def __post_init__(self) -> None:
        _require(0 <= self.weight < math.inf, f"importance.weight={self.weight}: give a finite number, 0 or more")
        _require(self.turns >= 2, f"importance.turns={self.turns}: give at least 2")


@dataclass(frozen=True)
class TrainConfig:
    """One training run.

    Attributes:
        out: the run folder; what it needs to be understood and resumed lies in it.
        seed: of initial weights, sample order and dropout.
        stage: "evidence" learns which turns a question needs, "nli" whether a sentence contradicts another.
    """

    out: str
    seed: int = 13
    stage: Literal["evidence", "nli"] = "evidence"
    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    budget: BudgetConfig = field(default_factory=BudgetConfig)
    nli: NliConfig = field(default_factory=NliConfig)
    importance: ImportanceConfig = field(default_factory=ImportanceConfig)
    reader: ReaderConfig = field(default_factory=ReaderConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    run: RunConfig = field(default_factory=RunConfig)

    def __post_init__(self) -> None:
        _require(bool(self.out), "out is empty: name the run folder")
        tune = self.model.encoder.tune
        _require(
            tune == "frozen" or not (self.with_nli or self.importance.weight),
            f"nli.form=bi or importance.weight > 0 with model.encoder.tune={tune}: these heads train on a frozen "
            "encoder; fine-tune it in a run of its own and name that run as model.encoder.name",
        )
        _require(
            self.objective.task == "evidence" or self.model.fusion != "cosine",
            f"objective.task={self.objective.task} with model.fusion=cosine: a cosine is no probability that the "
            "packer could weigh; give fusion: linear or mlp, or task: evidence",
        )
        form = self.nli.form
        if self.stage == "evidence":
            _require(form != "cross", "nli.form=cross trains a model of its own: give stage: nli")
            return
        _require(form != "off", "stage=nli with nli.form=off: give nli.form bi or cross")
        _require(form != "bi" or tune == "frozen", f"nli.form=bi with model.encoder.tune={tune}: give tune: frozen")
        _require(
            form != "cross" or tune != "frozen",
            "nli.form=cross with model.encoder.tune=frozen: nothing would train; give tune: top, lora or full",
        )

    @property
    def with_nli(self) -> bool:
        """Whether an NLI head trains beside the scorer: L_coh has a weight, and the form is "bi"."""
        return self.stage == "evidence" and self.nli.form == "bi" and self.objective.eta1 > 0
