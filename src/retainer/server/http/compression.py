"""Compression of responses with gzip."""

import gzip
import re
from functools import lru_cache, partial

from retainer.kernel.etag import GZIP_SUFFIX
from retainer.kernel.http import Request, Response

MIN_BYTES = 1024  # smaller responses fit into one packet
LEVEL = 3
MAX_KEPT = 32  # documents of up to 1 MB, which contain the host: a client may send any
ACCEPTS_GZIP = re.compile(r"(?:^|,)\s*(?:x-)?gzip\s*(?:;\s*q=(?!0(?:\.0*)?\s*(?:,|$))[\d.]+\s*)?(?=,|$)", re.IGNORECASE)
"""Finds gzip in an Accept-Encoding (RFC 9110, 12.5.3), unless its weight is 0."""


def compressed(request: Request, response: Response, *, keep: bool = False) -> Response:
    """Return the response as gzip if the client accepts it and the body is large enough, else unchanged.

    The ETag of a compressed response has a suffix, because a strong tag identifies bytes. With `keep`, the bytes of a
    response with an ETag are kept for the next one.
    """
    accepted = request.environ.get("HTTP_ACCEPT_ENCODING")
    if accepted is None or not ACCEPTS_GZIP.search(accepted):
        return response
    headers, body = response.headers, response.body
    if response.status == 304:
        cached_tags = request.header("IF_NONE_MATCH") or ""
        return Response(304, [(name, marked(name, value, cached_tags)) for name, value in headers])
    if len(body) <= MIN_BYTES:
        return response
    body = compress_once(body) if keep and any(name == "etag" for name, _ in headers) else compress(body)
    changed = {"content-length": str(len(body))}
    headers = [(name, changed.get(name) or marked(name, value)) for name, value in headers]
    return Response(response.status, [*headers, ("content-encoding", "gzip")], body)


compress = partial(gzip.compress, compresslevel=LEVEL, mtime=0)
compress_once = lru_cache(MAX_KEPT)(compress)


def marked(name: str, value: str, cached_tags: str | None = None) -> str:
    """Return the value of a header; an ETag gets the suffix, in a 304 only if the client's `cached_tags` have it."""
    tag = f'{value[:-1]}{GZIP_SUFFIX}"'
    return tag if name == "etag" and (cached_tags is None or tag in cached_tags) else value
