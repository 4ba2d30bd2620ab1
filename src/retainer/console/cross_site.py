"""Requests from other sites: whatever changes something is taken from the console's pages alone."""

from urllib.parse import urlsplit

from retainer.kernel.http import Request

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
PORTS = {"http": 80, "https": 443}


def is_refused(request: Request) -> bool:
    """Whether a request with an unsafe method does not come from a page of this origin.

    Browsers say so in `Sec-Fetch-Site`; where that is missing, or says that nobody's page has sent it, `Origin` must
    be the public address of this server: a page that came without TLS is another site, too.
    """
    site = request.header("SEC_FETCH_SITE")
    is_own = site == "same-origin" or (site in {None, "none"} and _names_this_server(request))
    return request.method not in SAFE and not is_own


def _names_this_server(request: Request) -> bool:
    """Whether `Origin` is where the server is reached, as it is known here or behind a proxy."""
    sent = _origin(request.header("ORIGIN") or "")
    return sent is not None and sent == _origin(request.origin)


def _origin(address: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port of an address; None where it has none."""
    try:
        url = urlsplit(address)
        port = url.port or PORTS.get(url.scheme)
    except ValueError:
        return None
    return (url.scheme, url.hostname, port) if url.hostname and port else None
