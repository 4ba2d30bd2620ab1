"""What the HTTP server knows of a request, under the names of WSGI (PEP 3333)."""

from functools import lru_cache
from typing import Any

UNPREFIXED = {"content-type": "CONTENT_TYPE", "content-length": "CONTENT_LENGTH"}
NO_TEXT = "\ufffd"
"""What the server has put for bytes of a path that are no UTF-8."""


def environ_of(scope: Any) -> dict[str, Any]:
    """Return the environ of a request; without headers whose names have underscores (decision 5)."""
    path, query = scope.path, scope.query_string
    environ = {
        "REQUEST_METHOD": scope.method,
        "PATH_INFO": path if path.isascii() else as_latin_1(path),
        "QUERY_STRING": query if query.isascii() else as_latin_1(query),
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "REMOTE_ADDR": scope.client.rpartition(":")[0].strip("[]"),
        "wsgi.url_scheme": scope.scheme,
    }
    headers = scope.headers
    sent = headers.items()
    for header, value in sent:
        name = name_of(header)
        if name in environ:
            environ[name] += f"{';' if name == 'HTTP_COOKIE' else ','}{value}"
        elif name is not None:
            environ[name] = value
    if "HTTP_HOST" not in environ and scope.authority:
        environ["HTTP_HOST"] = scope.authority
    if len(dict(sent)) < len(headers):  # the server leaves out values that are no text: a precondition must not vanish
        for name in filter(None, map(name_of, headers)):
            environ.setdefault(name, "")
    return environ


@lru_cache(maxsize=1024)
def name_of(header: str) -> str | None:
    if "_" in header:
        return None
    return UNPREFIXED.get(header) or "HTTP_" + header.upper().replace("-", "_")


def as_latin_1(text: str) -> str:
    """Return the bytes of a text as WSGI shows them; those that were no UTF-8 still are none."""
    return text.encode().replace(NO_TEXT.encode(), b"\xff").decode("latin-1")
