"""Answers as gzip, for callers who ask for it."""

import zlib
from functools import lru_cache

from retainer.kernel.etag import GZIP_SUFFIX
from retainer.kernel.http import Request, Response

SMALLEST = 1024  # what is smaller fits into one packet anyway
LEVEL = 3
LONGEST_ASKED = 256  # characters of Accept-Encoding that are read, and remembered
GZIP_FORMAT = 31


def compressed(request: Request, response: Response) -> Response:
    """The answer as it is, or as gzip if that is asked for and worth it.

    A strong entity tag names bytes: that of the compressed answer has a suffix, which preconditions may hold too.
    """
    asked = request.header("ACCEPT_ENCODING")
    if asked is None or len(asked) > LONGEST_ASKED or not accepts_gzip(asked):
        return response
    headers, body = response.headers, response.body
    if response.status == 304:
        known = request.header("IF_NONE_MATCH") or ""
        return response._replace(headers=[(name, marked(name, value, known)) for name, value in headers])
    if len(body) <= SMALLEST:
        return response
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP_FORMAT)
    body = packer.compress(body) + packer.flush()
    changed = {"content-length": str(len(body))}
    headers = [(name, changed.get(name) or marked(name, value)) for name, value in headers]
    return Response(response.status, [*headers, ("content-encoding", "gzip")], body)


def marked(name: str, value: str, known: str | None = None) -> str:
    """The value of a header; an entity tag with the suffix, if the caller knows it so."""
    tag = f'{value[:-1]}{GZIP_SUFFIX}"'
    return tag if name == "etag" and (known is None or tag in known) else value


@lru_cache(maxsize=256)
def accepts_gzip(header: str) -> bool:
    """Whether an Accept-Encoding prefers gzip to the plain bytes (RFC 9110, 12.5.3)."""
    weights: dict[str, str] = {}
    for part in header.lower().split(","):
        coding, *parameters = (piece.strip() for piece in part.split(";"))
        weights[coding] = next((each[2:].strip() for each in parameters if each.startswith("q=")), "1")
    gzip = thousandths(weights.get("gzip", weights.get("x-gzip", weights.get("*", "0"))))
    return gzip > 0 and gzip >= thousandths(weights.get("identity", "0"))


def thousandths(weight: str) -> int:
    """A weight like 0.5 in thousandths; what is none counts as nothing."""
    whole, _, places = weight.partition(".")
    text = whole + places[:3].ljust(3, "0")
    return int(text) if text.isascii() and text.isdecimal() else 0
