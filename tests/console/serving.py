"""The application of a test behind a real socket, with its chores beside requests, for a browser."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from socketserver import ThreadingMixIn
from threading import Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from testing.wsgi import wsgi

from retainer.app import App


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


@contextmanager
def serving(app: App) -> Iterator[str]:
    """The address of a server of the application."""

    def whole(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer with a body that ends where it says, as the server of the product hands it over."""
        environ["wsgi.input"] = BytesIO(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
        return wsgi(app)(environ, start_response)

    app.housekeeping.start()
    with make_server("127.0.0.1", 0, whole, server_class=Server, handler_class=Quiet) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
    app.housekeeping.stop()
