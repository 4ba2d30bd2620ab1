"""Examples: for each operation a request and its answer, for each refusal its body, as tests have recorded them."""

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

FILE = Path(__file__).parent / "examples.json"
RECORDED_ORIGIN = "http://agency.example"
ORIGIN = "https://retainer.invalid"
"""Stands in pages that are kept for the public address of the server."""


class Example(msgspec.Struct):
    """What was sent, and what was answered; a refusal is kept without its request."""

    status: int
    headers: dict[str, str]
    method: str = ""
    path: str = ""
    request: dict[str, Any] | None = None
    response: dict[str, Any] | None = None


class Examples(msgspec.Struct):
    """Examples by operation and by code."""

    operations: dict[str, Example]
    errors: dict[str, Example]


@cache
def examples() -> Examples:
    """Return all examples, their addresses those of `ORIGIN`."""
    text = FILE.read_text(encoding="utf-8").replace(RECORDED_ORIGIN, ORIGIN)
    return msgspec.json.decode(text, type=Examples)


def json_text(value: Any) -> str:
    """Return a value as JSON that people read."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
