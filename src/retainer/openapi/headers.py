"""Headers: those that responses carry, and those that requests may carry."""

from typing import Any

from retainer.kernel.idempotency import KEY_PATTERN
from retainer.openapi.values import Json

RESPONSE_HEADERS: dict[str, tuple[str, int | str]] = {
    "X-RateLimit-Limit": ("How many requests are allowed in any 60 seconds.", 600),
    "X-RateLimit-Remaining": ("How many are left now.", 599),
    "X-RateLimit-Reset": ("The Unix second at which all are free again if nothing more is sent.", 1774967460),
    "X-Request-Id": ("Names the request in the logs: as it was sent, or made here.", "req_5f2b8c0d"),
    "ETag": ("The state of the record, for If-Match and If-None-Match.", '"5f2b8c0d"'),
    "Location": ("The address of the new record.", "https://agency.example/1"),
    "Idempotency-Replayed": ("`true` on the stored answer to an earlier request.", "true"),
    "Retry-After": ("How many seconds to wait before trying again.", 2),
    "WWW-Authenticate": ("How to authenticate.", 'Bearer realm="Retainer"'),
}
REQUEST_HEADERS: dict[str, tuple[str, str, Json]] = {
    "Idempotency-Key": (
        "A name of your own for this write, like a UUID: sent again within 24 hours, it is answered as the first time.",
        "0d9f6c1e-5b7a-4f0e-9a43-2f6c8e1b7d55",
        {"pattern": f"^{KEY_PATTERN.pattern}$", "minLength": 1, "maxLength": 255},
    ),
    "If-Match": ("Refuse the write with 412 unless the record still has this ETag.", '"5f2b8c0d"', {}),
    "If-None-Match": ("Answer 304 without a body if the record still has this ETag.", '"5f2b8c0d"', {}),
}


def response_headers() -> Json:
    """Return the headers of responses, by name."""
    return {name: described(*header) for name, header in RESPONSE_HEADERS.items()}


def parameters() -> Json:
    """Return the headers of requests as parameters, by name."""
    return {name: {"name": name, "in": "header", **described(*header)} for name, header in REQUEST_HEADERS.items()}


def described(description: str, example: str | int, more: Json | None = None) -> Json:
    """Return the Header Object; `more` goes into its schema."""
    kind = "integer" if isinstance(example, int) else "string"
    return {"description": description, "schema": {"type": kind, **(more or {}), "examples": [example]}}


def always_and(names: Any) -> Json:
    """Return references to the headers of every response, and to these."""
    carried = [name for name in RESPONSE_HEADERS if name in names or name.startswith("X-")]
    return {name: {"$ref": f"#/components/headers/{name}"} for name in carried}
