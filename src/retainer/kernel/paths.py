"""Paths: what belongs to the path of a request, found by patterns like `/clients/{client_id}`."""

import re
from collections.abc import Mapping
from typing import Generic, TypeVar

T = TypeVar("T")
PARAMETER = re.compile(r"\{(\w+)\}")
LAST = "\uffff"


class Paths(Generic[T]):
    """Finds what belongs to a path. The literal parts of a pattern are preferred to the parameters of another one."""

    def __init__(self, patterns: Mapping[str, T]) -> None:
        self._by_first_part: dict[str, list[tuple[re.Pattern[str], T]]] = {}
        for pattern in sorted(patterns, key=lambda pattern: PARAMETER.sub(LAST, pattern)):
            expression = re.compile(PARAMETER.sub(r"(?P<\1>[^/]+)", pattern))
            self._by_first_part.setdefault(first_part(pattern), []).append((expression, patterns[pattern]))

    def find(self, path: str) -> tuple[T, dict[str, str]] | None:
        """Return what belongs to a path, and its parameters by name; None if no pattern matches."""
        for expression, target in self._by_first_part.get(first_part(path), ()):
            if found := expression.fullmatch(path):
                return target, found.groupdict()
        return None


def first_part(path: str) -> str:
    return path.partition("/")[2].partition("/")[0]
