"""Signposts: advice for requests with a wrong path or method."""

import difflib
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from retainer.kernel.paths import PARAMETER

NUMBER = re.compile(r"(?<=/)[0-9]+(?=/|$)")
MAX_PATH_LENGTH = 200  # characters; longer paths get no advice
NEAR = 0.6


class Signposts:
    """All paths with their methods; `instead` has advice for parts of paths that clients may expect."""

    def __init__(self, methods: Mapping[str, AbstractSet[str]], instead: Mapping[str, str]) -> None:
        self.methods, self.instead = methods, instead
        self.by_shape = {PARAMETER.sub("{}", path): path for path in methods}

    def of_path(self, path: str) -> str:
        """Return advice for a path that does not exist; empty if no path is similar."""
        if len(path) > MAX_PATH_LENGTH or not path.strip("/"):
            return ""
        for part in path.split("/"):
            if part in self.instead:
                return self.instead[part]
        shape = NUMBER.sub("{}", path.lower().replace("_", "-"))
        ending = (other for other in self.by_shape if shape.endswith(other) or other.endswith(shape))
        near = next(ending, None) or next(iter(difflib.get_close_matches(shape, self.by_shape, 1, NEAR)), None)
        ids = iter(NUMBER.findall(path))
        return f"Did you mean {PARAMETER.sub(lambda name: next(ids, name[0]), self.by_shape[near])}?" if near else ""

    def of_method(self, path: str, method: str) -> str:
        """Return the nearest path that supports a method: above for GET and POST, below for others; empty if none."""
        if method == "POST" and path.rpartition("/")[2] in self.instead:
            return self.instead[path.rpartition("/")[2]]
        taking = [other for other in self.methods if method in self.methods[other]]
        if method in {"GET", "POST"}:
            found = [other for other in taking if path.startswith(f"{other}/") or other.endswith(path)]
        else:
            found = [other for other in taking if PARAMETER.fullmatch(other.removeprefix(f"{path}/"))]
        return f"Send {method} {max(found, key=len)} instead." if found else ""
