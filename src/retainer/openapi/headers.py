"""Headers of requests and responses in the document."""

from collections.abc import Collection
from typing import Any

from retainer.kernel.idempotency import KEY_PATTERN

Json = dict[str, Any]
RESPONSE_HEADERS: dict[str, tuple[str, int | str]] = {
    "X-RateLimit-Limit": ("Number of requests allowed in any 60 seconds.", 600),
    "X-RateLimit-Remaining": ("Number of requests left.", 599),
    "X-RateLimit-Reset": (
        "Unix time in seconds at which the whole limit is available again, if no more requests are sent.",
        1774967460,
    ),
    "X-Request-Id": ("The id of the request in the logs: the client's, or one from the server.", "req_5f2b8c0d"),
    "ETag": ("The version of the record, for If-Match and If-None-Match.", '"5f2b8c0d"'),
    "Location": ("The address of the new record.", "https://agency.example/1"),
    "Idempotency-Replayed": ("`true` on the stored response to an earlier request.", "true"),
    "Content-Disposition": ("The name of a file in another form than JSON.", 'inline; filename="INV-2026-0001.pdf"'),
    "Allow": ("The methods of the path.", "GET, HEAD, POST, OPTIONS"),
    "Preference-Applied": ("The `Prefer` that was followed; absent if no place to wait was left.", "wait=20"),
    "Retry-After": ("Seconds to wait before trying again.", 2),
    "WWW-Authenticate": ("How to authenticate.", 'Bearer realm="Retainer"'),
}
REQUEST_HEADERS: dict[str, tuple[str, Json]] = {
    "Idempotency-Key": (
        "A unique value for this write, like a UUID. Within 24 hours, a retry with it gets the first response.",
        {"pattern": f"^{KEY_PATTERN.pattern}$", "minLength": 1, "maxLength": 255},
    ),
    "If-Match": ("Refuse the write with 412 unless the last record in the path still has this ETag.", {}),
    "Prefer": (
        "`wait=20`: if there is nothing new, wait for it, up to 20 seconds (RFC 7240). The server may answer at once.",
        {"examples": ["wait=20"]},
    ),
    "If-None-Match": ("Return 304 without a body if the record still has this ETag.", {}),
}
"""What has one use, like a key or an ETag, has no example: a tool that sends examples would send the same each time."""
ONLY_CREATES = "If-None-Match-Any"
"""The name in the document of the `If-None-Match` of an operation that creates or changes."""
ANY: Json = {"title": "AnyETag", "type": "string", "enum": ["*"], "x-enum-varnames": ["any"]}


def request_headers(any_etag: Json) -> Json:
    """Return the shared parameters in headers; `any_etag` is the schema of the only ETag of `ONLY_CREATES`."""
    shared = {
        name: {"name": name, "in": "header", "description": text, "schema": {"type": "string", **schema}}
        for name, (text, schema) in REQUEST_HEADERS.items()
    }
    description = "`*`: only create, and refuse with 412 if there is a record with this external id."
    only_creates = {"name": "If-None-Match", "in": "header", "description": description, "schema": any_etag}
    return shared | {ONLY_CREATES: only_creates}


def header_of(description: str, example: str | int) -> Json:
    """Return the Header Object of a response."""
    kind = "integer" if isinstance(example, int) else "string"
    return {"description": description, "schema": {"type": kind, "examples": [example]}}


def always_and(names: Collection[str]) -> Json:
    carried = [name for name in RESPONSE_HEADERS if name in names or name.startswith("X-")]
    return {name: {"$ref": f"#/components/headers/{name}"} for name in carried}
