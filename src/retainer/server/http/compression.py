"""Compression of responses with gzip."""

import zlib
from functools import lru_cache

from retainer.kernel.etag import GZIP_SUFFIX
from retainer.kernel.http import Request, Response

MIN_BYTES = 1024  # smaller responses fit into one packet
LEVEL = 3
MAX_HEADER_LENGTH = 256  # of Accept-Encoding; a longer one is ignored, because the cache keeps the text
GZIP_FORMAT = 31
MAX_KEPT = 128
_kept: dict[str, bytes] = {}
"""Compressed documents, by their tags."""


def compressed(request: Request, response: Response, *, keep: bool = False) -> Response:
    """Return the response as gzip if the client accepts it and the body is large enough, else unchanged.

    The ETag of a compressed response has a suffix, because a strong tag identifies bytes. With `keep`, the bytes of a
    response with an ETag are kept for the next one.
    """
    accepted = request.header("ACCEPT_ENCODING")
    if accepted is None or len(accepted) > MAX_HEADER_LENGTH or not accepts_gzip(accepted):
        return response
    headers, body = response.headers, response.body
    if response.status == 304:
        cached_tags = request.header("IF_NONE_MATCH") or ""
        return response._replace(headers=[(name, marked(name, value, cached_tags)) for name, value in headers])
    if len(body) <= MIN_BYTES:
        return response
    tag = next((value for name, value in headers if name == "etag"), None) if keep else None
    body = gzip(body) if tag is None else gzip_once(tag, body)
    changed = {"content-length": str(len(body))}
    headers = [(name, changed.get(name) or marked(name, value)) for name, value in headers]
    return Response(response.status, [*headers, ("content-encoding", "gzip")], body)


def gzip(body: bytes) -> bytes:
    """Return a body as gzip."""
    compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP_FORMAT)
    return compressor.compress(body) + compressor.flush()


def gzip_once(tag: str, body: bytes) -> bytes:
    """Return a document as gzip; it is compressed only if its bytes are not kept."""
    found = _kept.get(tag)
    if found is None:
        if len(_kept) >= MAX_KEPT:  # a client may send any host, and documents contain it
            _kept.clear()
        found = _kept[tag] = gzip(body)
    return found


def marked(name: str, value: str, cached_tags: str | None = None) -> str:
    """Return the value of a header; an ETag gets the suffix, in a 304 only if the client's `cached_tags` have it."""
    tag = f'{value[:-1]}{GZIP_SUFFIX}"'
    return tag if name == "etag" and (cached_tags is None or tag in cached_tags) else value


@lru_cache(maxsize=256)
def accepts_gzip(header: str) -> bool:
    """Return whether an Accept-Encoding prefers gzip to plain bytes (RFC 9110, 12.5.3)."""
    weights: dict[str, str] = {}
    for part in header.lower().split(","):
        coding, *parameters = (piece.strip() for piece in part.split(";"))
        weights[coding] = next((text[2:].strip() for text in parameters if text.startswith("q=")), "1")
    gzip = thousandths(weights.get("gzip", weights.get("x-gzip", weights.get("*", "0"))))
    return gzip > 0 and gzip >= thousandths(weights.get("identity", "0"))


def thousandths(weight: str) -> int:
    """Return a weight like 0.5 in thousandths, 0 for a malformed one."""
    whole, _, places = weight.partition(".")
    text = whole + places[:3].ljust(3, "0")
    return int(text) if text.isascii() and text.isdecimal() else 0
