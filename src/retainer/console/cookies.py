"""Cookies: the session of a browser, and what one page hands to the next."""

from urllib.parse import quote, unquote

from retainer.kernel.http import Request

SESSION = "session"


class Cookies:
    """The cookies of a request, and those that its answer sets; out of reach of scripts, and of other sites' forms.

    Under https, those of the whole console have the prefix `__Host-`: no other host can have set them.
    """

    def __init__(self, request: Request) -> None:
        self._is_secure = request.origin.startswith("https:")
        self._sent = parsed(request.header("COOKIE") or "")
        self._set: dict[str, str] = {}

    def get(self, name: str) -> str | None:
        """Return the value of a cookie."""
        return self._sent.get(self._name(name, "/"))

    def take(self, name: str, path: str = "/") -> str | None:
        """Return the value of a cookie, which the browser then forgets."""
        value = self._sent.get(self._name(name, path))
        if value is not None:
            self.put(name, "", seconds=0, path=path)
        return value

    def put(self, name: str, value: str, *, seconds: int, path: str = "/") -> None:
        """Let the browser keep a value."""
        full = self._name(name, path)
        secure = "; Secure" if self._is_secure else ""
        text = quote(value, safe="")
        self._set[full] = f"{full}={text}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers of the answer."""
        return [("set-cookie", text) for text in self._set.values()]

    def _name(self, name: str, path: str) -> str:
        prefix = "" if not self._is_secure else "__Host-" if path == "/" else "__Secure-"
        return f"{prefix}retainer-{name}"


def parsed(header: str) -> dict[str, str]:
    """Return the cookies of a request; of those with the same name the first, whose path is the longest."""
    pairs = [part.strip().partition("=") for part in header.split(";")]
    return {name: unquote(text) for name, _, text in reversed(pairs)}
