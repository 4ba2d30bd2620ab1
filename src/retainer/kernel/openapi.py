"""The OpenAPI 3.1 document, from the declarations alone."""

from typing import Any

import msgspec

from retainer.kernel.resource import Operation


def document(operations: list[Operation], base_url: str) -> dict[str, Any]:
    """The document of these operations."""
    return {"openapi": "3.1.0", "servers": [{"url": base_url}]}


def render(operations: list[Operation], base_url: str) -> bytes:
    """The document as JSON."""
    return msgspec.json.encode(document(operations, base_url))
