"""A chat endpoint on this machine that answers as a script says: faults included, every request recorded."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    """One HTTP answer; `hold` leaves the request unanswered until the server stops."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    hold: bool = False


def says(content: Any, **choice: Any) -> Reply:
    """A completion with that content."""
    return Reply(
        body=json.dumps({"choices": [{"message": {"role": "assistant", "content": content}, **choice}]}).encode()
    )


Script = Callable[[int, dict[str, Any]], Reply]


def in_turn(*replies: Reply) -> Script:
    """The replies one after the other, the last one from then on."""
    return lambda number, _: replies[min(number, len(replies) - 1)]


class ChatServer:
    """Records what it was asked; `script` is given the number of the request, from 0, and its JSON."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.most_at_once = 0
        self.stopping = threading.Event()
        self._at_once = 0
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    @contextmanager
    def running(self) -> Iterator[ChatServer]:
        thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            self.stopping.set()
            self._http.shutdown()
            thread.join()
            self._http.server_close()

    def answer(self, path: str, headers: dict[str, str], asked: dict[str, Any]) -> Reply:
        with self._lock:
            number = len(self.asked)
            self.asked.append(asked)
            self.headers.append(headers)
            self.paths.append(path)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return self.script(number, asked)
        finally:
            with self._lock:
                self._at_once -= 1

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                reply = server.answer(self.path, dict(self.headers.items()), asked)
                if reply.hold:
                    server.stopping.wait(30)
                    self.close_connection = True
                    return
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler
