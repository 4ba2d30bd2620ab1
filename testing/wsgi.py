"""An application as WSGI, for tests and benches without a server, which hands requests over as the server does."""

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from retainer.app import App
from retainer.server.http.gate import LOOK_SECONDS
from retainer.server.monitoring.endpoints import STATUS_LINES

CHUNK_BYTES = 256 * 1024


class Headers(dict[str, str]):
    """Headers by their names, without those that are no ASCII when all are asked for."""

    def items(self) -> Any:
        return [(name, value) for name, value in super().items() if value.isascii()]


class Received:
    """What has come of a body, or the end of a connection that never ends."""

    def __init__(self, data: bytes | None) -> None:
        self.data = data

    def result(self) -> bytes | None:
        return self.data

    def add_done_callback(self, call: Callable[[Any], object]) -> None:
        if self.data is not None:
            call(self)

    def remove_done_callback(self, _: object) -> None: ...

    def cancel(self) -> None: ...


class Client:
    """A client that has sent its whole request, and waits for the response."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.response, self.answered = stream, (0, [], b""), threading.Event()

    def __call__(self) -> Received:
        return Received(self.stream.read(-1))

    def __aiter__(self) -> "Client":
        return self

    def __anext__(self) -> Received:
        return Received(self.stream.read(CHUNK_BYTES))

    def client_disconnect(self) -> Received:
        return Received(None)

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.response = status, headers, body
        self.answered.set()

    def response_file(self, status: int, headers: list[tuple[str, str]], file: str) -> None:
        self.response_bytes(status, headers, Path(file).read_bytes())

    def response_empty(self, status: int, headers: list[tuple[str, str]]) -> None:
        self.response_bytes(status, headers, b"")


def scope_of(environ: WSGIEnvironment) -> SimpleNamespace:
    """Return what the HTTP server tells of a request."""
    address = environ.get("REMOTE_ADDR", "127.0.0.1")
    headers = {
        name.removeprefix("HTTP_").replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith("HTTP_") or name in {"CONTENT_LENGTH", "CONTENT_TYPE"}
    }
    return SimpleNamespace(
        method=environ["REQUEST_METHOD"],
        path=environ["PATH_INFO"].encode("latin-1").decode(errors="replace"),
        query_string=environ["QUERY_STRING"],
        http_version=environ["SERVER_PROTOCOL"].partition("/")[2],
        client=f"[{address}]:1" if ":" in address else f"{address}:1",
        scheme=environ["wsgi.url_scheme"],
        authority=None,
        headers=Headers(headers),
    )


def wsgi(app: App) -> WSGIApplication:
    """Return the application as WSGI. Its waits end as on a server, while somebody waits for a response."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        client = Client(environ.get("wsgi.input"))
        app.take(SimpleNamespace(scope=scope_of(environ), proto=client))
        while not client.answered.wait(LOOK_SECONDS):
            app.gate.look()
        status, headers, body = client.response
        start_response(STATUS_LINES[status], headers)
        return [body]

    return answer
