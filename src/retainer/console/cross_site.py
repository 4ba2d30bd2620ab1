"""Requests from other sites: whatever changes something is taken from the console's pages alone."""

from urllib.parse import urlsplit

from retainer.kernel.http import Request

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def is_refused(request: Request) -> bool:
    """Whether a request with an unsafe method does not come from a page of this origin.

    Browsers say so in `Sec-Fetch-Site`; where that is missing, or says that nobody's page has sent it, `Origin` must
    name this host.
    """
    site = request.header("SEC_FETCH_SITE")
    is_own = site == "same-origin" or (site in {None, "none"} and _names_this_host(request))
    return request.method not in SAFE and not is_own


def _names_this_host(request: Request) -> bool:
    """Whether `Origin` names the host of the request, as it is known here or behind a proxy."""
    host = urlsplit(request.header("ORIGIN") or "").netloc
    return bool(host) and host in {request.header("HOST"), urlsplit(request.origin).netloc}
