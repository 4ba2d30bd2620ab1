"""Cookies: the session, and the values that one page passes to the next."""

from typing import NamedTuple
from urllib.parse import quote, unquote

from retainer.kernel.http import Request

SESSION = "session"


class Cookie(NamedTuple):
    """A cookie for the pages below a path, with its lifetime in seconds; 0 deletes it."""

    name: str
    value: str = ""
    seconds: int = 0
    path: str = "/"


class Cookies:
    """The cookies of a request, and the headers that set them: `HttpOnly` and `SameSite=Lax`.

    Under https, those of the whole console have the prefix `__Host-`, so that no other host can set them.
    """

    def __init__(self, request: Request) -> None:
        self._is_secure = request.origin.startswith("https:")
        self._sent = parsed(request.header("COOKIE") or "")

    def get(self, name: str, path: str = "/") -> str | None:
        return self._sent.get(self._name(name, path))

    def header(self, cookie: Cookie) -> tuple[str, str]:
        secure = "; Secure" if self._is_secure else ""
        pair = f"{self._name(cookie.name, cookie.path)}={quote(cookie.value, safe='')}"
        limits = f"Path={cookie.path}; Max-Age={cookie.seconds}"
        return "set-cookie", f"{pair}; {limits}; HttpOnly; SameSite=Lax{secure}"

    def _name(self, name: str, path: str) -> str:
        prefix = "" if not self._is_secure else "__Host-" if path == "/" else "__Secure-"
        return f"{prefix}retainer-{name}"


def parsed(header: str) -> dict[str, str]:
    """Return the cookies of a request; of two with the same name the first, which has the longer path."""
    pairs = [part.strip().partition("=") for part in header.split(";")]
    return {name: unquote(text) for name, _, text in reversed(pairs)}
