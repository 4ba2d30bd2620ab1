"""Pages for monitoring (health, metrics): without a key, a rate limit or a log line."""

import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import StartResponse, WSGIEnvironment

from retainer.kernel.http import Response

STATUS_LINES = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}
HEADERS = [("cache-control", "no-store"), ("x-content-type-options", "nosniff")]
TEXT = ("content-type", "text/plain")
REQUEST_SECONDS = 5
Page = Callable[[], Response]


class MonitoringPages:
    """The WSGI application of an address of its own, with pages by their paths."""

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self.pages = pages

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        page = self.pages.get(environ["PATH_INFO"], self._no_page)
        response = response_of(environ["REQUEST_METHOD"], page)
        start_response(STATUS_LINES[response.status], response.headers)
        return [response.body]

    def _no_page(self) -> Response:
        return Response(404, [TEXT], f"The pages here are {', '.join(self.pages)}.\n".encode())


def response_of(method: str, page: Page) -> Response:
    """Return the whole response to a request for a page."""
    is_read = method in {"GET", "HEAD"}
    response = page() if is_read else Response(405, [("allow", "GET, HEAD"), TEXT], b"Only GET and HEAD.\n")
    headers = [*response.headers, *HEADERS, ("content-length", str(len(response.body)))]
    return Response(response.status, headers, b"" if method == "HEAD" else response.body)


class QuietHandler(WSGIRequestHandler):
    """A request, with a short timeout and no line on standard error."""

    timeout = REQUEST_SECONDS

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name in the standard library
        pass


class MonitoringServer(ThreadingMixIn, WSGIServer):
    """Serves pages on a listening socket that all workers share; one of them gets each request."""

    daemon_threads = True


def serve_pages(listener: socket.socket, pages: MonitoringPages) -> None:
    address = listener.getsockname()[:2]
    server = MonitoringServer(address, QuietHandler, bind_and_activate=False)
    server.socket.close()
    server.socket, (server.server_name, server.server_port) = listener, address
    server.setup_environ()
    server.set_app(pages)
    threading.Thread(target=server.serve_forever, name="monitoring", daemon=True).start()
