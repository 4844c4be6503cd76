"""One question to an OpenAI-compatible chat endpoint: retries with back-off and jitter, few requests at once.

What may pass by itself is asked again: 408, 429, 5xx, time-outs, broken connections, answers that cannot be read.
What cannot (400, 401, 403, 404 and other refusals) is not. The key lives in the client's header alone: it is in no
config, message, log or repr.
"""

from __future__ import annotations

import json
import logging
import os
import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from foveate.core.errors import ConfigError, MissingExtraError
from foveate.core.tokens import without_surrogates

if TYPE_CHECKING:
    import httpx
    from tenacity import RetryCallState, Retrying

Message = dict[str, str]

_LOG = logging.getLogger(__name__)
_MOST_BYTES = 4_000_000
_MOST_CHARACTERS = 120
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class LlmConfig:
    """Where the model is and how it is asked.

    Attributes:
        base_url: what stands before "/chat/completions", for instance "http://localhost:8000/v1"; no key in it.
        model: as the endpoint calls it.
        key_env: the environment variable that holds the key; None sends none.
        timeout: seconds one request may take, as a whole.
        attempts: requests one question may take, the first included.
        concurrency: requests under way at once, over all threads.
        temperature: None leaves it to the endpoint; some models refuse any.
        back_off: seconds before the second attempt, doubled each time; a random half of it is taken off.
        longest_wait: seconds between two attempts at most, whatever Retry-After says.
        pause: seconds in which nothing is asked after the endpoint could not be used (unreachable, overloaded, a wrong
            key or address), so that a long conversation does not wait for each of its turns; 0 asks every time.
        language: what the answer is to be written in, as the prompt words it.
        cache: answers kept in memory; 0 keeps none.
    """

    base_url: str
    model: str
    key_env: str | None = None
    timeout: float = 30.0
    attempts: int = 4
    concurrency: int = 4
    temperature: float | None = 0.0
    back_off: float = 0.5
    longest_wait: float = 20.0
    pause: float = 30.0
    language: str = "in the language of the text"
    cache: int = 4096

    def __post_init__(self) -> None:
        _require(_is_endpoint(self.base_url), "base_url: give http(s)://HOST/PATH without user, key, ? or #")
        _require(bool(self.model.strip()), "model is empty: give the name the endpoint knows it by")
        _require(self.key_env != "", "key_env is empty: name an environment variable, or give None")
        _require(self.timeout > 0, f"timeout={self.timeout}: give seconds above 0")
        _require(self.temperature is None or self.temperature >= 0, f"temperature={self.temperature}: give 0 or more")
        for name, value, least in (
            ("attempts", self.attempts, 1),
            ("concurrency", self.concurrency, 1),
            ("back_off", self.back_off, 0),
            ("longest_wait", self.longest_wait, 0),
            ("pause", self.pause, 0),
            ("cache", self.cache, 0),
        ):
            _require(value >= least, f"{name}={value}: give at least {least}")


class ChatFailure(Exception):
    """A question without a usable answer; the message is one short phrase for the trace.

    Attributes:
        again: whether asking again may help.
        after: seconds the endpoint asked to wait, None where it did not say.
        unusable: whether it is the endpoint that fails, not this question.
    """

    def __init__(self, why: str, *, again: bool = True, after: float | None = None, unusable: bool = False) -> None:
        super().__init__(why)
        self.again = again
        self.after = after
        self.unusable = unusable


class _Resting(ChatFailure):
    """Nothing was asked: the endpoint could not be used a moment ago."""


class ChatClient:
    """Asks; safe to use from several threads.

    Args:
        config: see `LlmConfig`.
        sleep: waits between attempts.
        clock: seconds that only grow.
        jitter: draws what is taken off a wait.

    Raises:
        ConfigError: the key's variable is not set or holds no key, or the address cannot be used.
        MissingExtraError: httpx or tenacity is not installed.
    """

    def __init__(
        self,
        config: LlmConfig,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        jitter: random.Random | None = None,
    ) -> None:
        self._config = config
        self._sleep = sleep
        self._clock = clock
        self._jitter = jitter or random.Random()
        self._http = _http_client(config)
        self._under_way = threading.BoundedSemaphore(config.concurrency)
        self._lock = threading.Lock()
        self._reported: set[str] = set()
        self._resting: tuple[float, str] | None = None

    def close(self) -> None:
        """Closes the connections; nothing can be asked afterwards."""
        self._http.close()

    def ask(self, messages: Sequence[Message]) -> str:
        """The text of the answer, without white space around it and never empty. No message holds a lone surrogate.

        Raises:
            ChatFailure: refused, or no usable answer in the attempts allowed.
        """
        tried = 0

        def attempt() -> str:
            nonlocal tried
            with self._under_way:
                self._check_rest()
                tried += 1
                return self._once(messages)

        try:
            return self._retrying()(attempt)
        except _Resting:
            raise
        except ChatFailure as failure:
            why = f"{failure} after {tried} attempts" if tried > 1 else str(failure)
            self._note(why, failure)
            raise ChatFailure(why, again=False) from None

    def _retrying(self) -> Retrying:
        from tenacity import Retrying, retry_if_exception, stop_after_attempt

        return Retrying(
            sleep=self._sleep,
            stop=stop_after_attempt(self._config.attempts),
            wait=self._wait,
            retry=retry_if_exception(lambda error: isinstance(error, ChatFailure) and error.again),
            reraise=True,
        )

    def _wait(self, state: RetryCallState) -> float:
        """Seconds before the next attempt: what the endpoint asked for, else a doubling back-off, halved at random."""
        failure = state.outcome.exception() if state.outcome else None
        if isinstance(failure, ChatFailure) and failure.after is not None:
            return min(self._config.longest_wait, failure.after)
        full = min(self._config.longest_wait, self._config.back_off * 2 ** min(30, state.attempt_number - 1))
        return full * self._jitter.uniform(0.5, 1.0)

    def _once(self, messages: Sequence[Message]) -> str:
        import httpx

        asked: dict[str, Any] = {"model": self._config.model, "messages": list(messages)}
        if self._config.temperature is not None:
            asked["temperature"] = self._config.temperature
        deadline = self._clock() + self._config.timeout
        try:
            with self._http.stream("POST", "chat/completions", json=asked) as response:
                body = self._body(response, deadline)
        except httpx.TimeoutException:
            raise self._too_slow() from None
        except httpx.RequestError as error:
            raise ChatFailure(f"connection failed ({type(error).__name__})", unusable=True) from None
        if response.status_code != 200:
            raise _refusal(response, body)
        return _content(body)

    def _body(self, response: httpx.Response, deadline: float) -> bytes:
        """All of it; a time-out of httpx is for each piece, so that the whole is timed here."""
        body = bytearray()
        for piece in response.iter_bytes():
            body += piece
            if self._clock() > deadline:
                raise self._too_slow()
            if len(body) > _MOST_BYTES:
                raise ChatFailure(f"an answer above {_MOST_BYTES} bytes", again=False)
        return bytes(body)

    def _too_slow(self) -> ChatFailure:
        return ChatFailure(f"no answer in {self._config.timeout:g} s", unusable=True)

    def _check_rest(self) -> None:
        with self._lock:
            if self._resting is not None and self._clock() < self._resting[0]:
                raise _Resting(f"{self._resting[1]} just before", again=False)

    def _note(self, why: str, failure: ChatFailure) -> None:
        """Warns once of each status or kind of failure, and lets an unusable endpoint rest."""
        kind = str(failure).partition(":")[0]
        with self._lock:
            if failure.unusable:
                self._resting = (self._clock() + self._config.pause, why)
            known = kind in self._reported
            self._reported.add(kind)
        if not known:
            _LOG.warning("foveate: the llm summarizer got no answer from %s: %s", self._config.model, why)


def _http_client(config: LlmConfig) -> httpx.Client:
    try:
        import httpx
        import tenacity  # noqa: F401  (used at the first question)
    except ImportError as error:
        raise MissingExtraError(error.name or "httpx", "llm") from None
    key = _key(config.key_env)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    limits = httpx.Limits(max_connections=config.concurrency)
    try:
        return httpx.Client(base_url=config.base_url, headers=headers, timeout=config.timeout, limits=limits)
    except (httpx.InvalidURL, ValueError) as error:
        raise ConfigError(f"base_url {config.base_url!r} cannot be used: {error}") from None


def _key(variable: str | None) -> str:
    """The key in that variable. A value that no header can carry is refused here: httpx would quote it."""
    if variable is None:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(f"the environment variable {variable} is not set: put the endpoint's key there")
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"the environment variable {variable} holds what no key does: give printable ASCII")
    return key


def _is_endpoint(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    plain = "@" not in parts.netloc and not parts.query and not parts.fragment
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0 and plain and url.isprintable()


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


def _refusal(response: httpx.Response, body: bytes) -> ChatFailure:
    """What a status other than 200 means. The key, where the endpoint quotes it, is taken out of its words."""
    status = response.status_code
    if status in (408, 429) or status >= 500:
        return ChatFailure(str(status), after=_retry_after(response.headers.get("Retry-After")), unusable=True)
    match status:
        case 401 | 403:
            return ChatFailure(f"{status}: the key is not accepted", again=False, unusable=status == 401)
        case 404:
            return ChatFailure("404: no such model or address", again=False, unusable=True)
        case _:
            key = response.request.headers.get("Authorization", "Bearer ").removeprefix("Bearer ")
            said = _said(body).replace(key, "[key]") if key else _said(body)
            return ChatFailure(f"{status}: {said:.{_MOST_CHARACTERS}}" if said else str(status), again=False)


def _said(body: bytes) -> str:
    """The endpoint's error message on one line; "" where it sent none in OpenAI form."""
    try:
        error = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    match error:
        case {"error": {"message": str(message)}} | {"error": str(message)} | {"message": str(message)}:
            return " ".join(without_surrogates(message).split())
        case _:
            return ""


def _retry_after(value: str | None) -> float | None:
    """Seconds from now that a Retry-After header names, as a number or a date; None where it is neither."""
    if value is None:
        return None
    if re.fullmatch(r"\d{1,9}(?:\.\d+)?", value.strip()):
        return float(value)
    try:
        when = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _content(body: bytes) -> str:
    """The words of the first choice; what a reasoning model thought before them is no part of the answer."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise ChatFailure("an answer that is no JSON") from None
    match answer:
        case {"choices": [{"finish_reason": "length"}, *_]}:
            raise ChatFailure("an answer cut off by the endpoint", again=False)
        case {"choices": [{"message": {"content": str(content)}}, *_]}:
            text = _THOUGHT.sub("", without_surrogates(content)).strip()
        case {"choices": [{"message": {"content": None}}, *_]}:
            text = ""
        case _:
            raise ChatFailure("an answer without choices")
    if not text:
        raise ChatFailure("an empty answer")
    return text
