"""Protection against cross-site requests: forms are accepted from pages of the console only."""

from urllib.parse import urlsplit

from retainer.kernel.http import Request

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
PORTS = {"http": 80, "https": 443}


def is_refused(request: Request) -> bool:
    """Whether a request with an unsafe method comes from another origin.

    Browsers send `Sec-Fetch-Site`. If it is missing or `none`, `Origin` must be the public address of this server,
    scheme included.
    """
    site = request.header("SEC_FETCH_SITE")
    is_own = site == "same-origin" or (site in {None, "none"} and _names_this_server(request))
    return request.method not in SAFE and not is_own


def _names_this_server(request: Request) -> bool:
    """Whether `Origin` is the public address of this server."""
    sent = _origin(request.header("ORIGIN") or "")
    return sent is not None and sent == _origin(request.origin)


def _origin(address: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port of a URL; None for an invalid one."""
    try:
        url = urlsplit(address)
        port = url.port or PORTS.get(url.scheme)
    except ValueError:
        return None
    return (url.scheme, url.hostname, port) if url.hostname and port else None
