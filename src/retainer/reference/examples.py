"""Examples and explanations: each operation with its response, and each error with what to do about it."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from retainer.values.decoding import decoder

TEXTS = tomllib.loads(Path(__file__).with_name("codes.toml").read_text(encoding="utf-8"))
ADVICE = {code: " ".join(text.split()) for code, text in TEXTS.items()}
"""What an error means and what to do, by code, in the order in which requests are checked."""
FILE = Path(__file__).parent / "examples.json"
RECORDED_ORIGIN = "http://agency.example"
ORIGIN = "https://retainer.invalid"
"""The placeholder for the public address of the server in cached pages."""


class Example(msgspec.Struct):
    """A request and its response; an error has no request."""

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
    text = FILE.read_text(encoding="utf-8").replace(RECORDED_ORIGIN, ORIGIN)
    return decoder(Examples)(text)


def json_text(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
