"""Signposts: advice for requests with a wrong path or method."""

import difflib
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import partial

PARAMETER = re.compile(r"\{\w+\}")
NUMBER = re.compile(r"(?<=/)[0-9]+(?=/|$)")
MAX_PATH_LENGTH = 200  # characters; longer paths get no advice
VERY_NEAR, NEAR = 0.8, 0.6


class Signposts:
    """All paths: their methods, the `filters` of lists, and the fields that a PATCH changes.

    `location` has the list of the records that a path creates, if it differs; `instead` has advice for parts of paths
    that clients may expect but that do not exist, or do not accept a POST.
    """

    def __init__(
        self,
        methods: Mapping[str, AbstractSet[str]],
        filters: Mapping[str, AbstractSet[str]],
        fields: Mapping[str, AbstractSet[str]],
        location: Mapping[str, str],
        instead: Mapping[str, str],
    ) -> None:
        self.methods, self.filters, self.fields = methods, filters, fields
        self.location, self.instead = location, instead
        self.by_shape = {PARAMETER.sub("{}", path): path for path in methods}

    def of_path(self, path: str) -> str:
        """Return advice for a path that does not exist; empty if no path is similar."""
        if len(path) > MAX_PATH_LENGTH or not path.strip("/"):
            return ""
        for part in path.split("/"):
            if part in self.instead:
                return self.instead[part]
        ids, shape = NUMBER.findall(path), NUMBER.sub("{}", path.lower().replace("_", "-"))
        listed = self._list_below(shape)
        found = [listed] if listed else self._near(shape)
        names = [filled(name, ids) for name in found]
        if found and found == [self.by_shape.get(shape.rpartition("/")[0])] and "PATCH" in self.methods[found[0]]:
            return f"Did you mean PATCH {names[0]}?"  # an action like /quotes/7/accept is a PATCH here
        return f"Did you mean {', '.join(names[:-1])}{' or ' * (len(names) > 1)}{names[-1]}?" if names else ""

    def of_method(self, path: str, method: str) -> str:
        """Return advice for a method that a path does not support; empty if no path is similar."""
        if method == "GET":
            read = self._read(path)
            return f"Read it with GET {read}." if read else ""
        if method == "POST":
            places = [
                *(made for made, listed in self.location.items() if listed == path),
                path.rpartition("/{")[0] or path.rpartition("/")[0],
            ]
        else:
            places = [other for other in self.methods if is_below(other, path)]
        place = next((place for place in places if method in self.methods.get(place, ())), None)
        if method == "POST" and place is None and path.rpartition("/")[2] in self.instead:
            return self.instead[path.rpartition("/")[2]]
        if place:
            return f"Send {method} {place} instead."
        owner, _, part = path.partition("}/")
        part = part.partition("/")[0]
        changes = method in {"PUT", "PATCH"} - self.methods[path] and part in self.fields.get(f"{owner}}}", ())
        return f"Send {method} {owner}}} with `{part}` instead." if changes else ""

    def _list_below(self, shape: str) -> str | None:
        """Return the filtered list for a path that nests it below a record, like /clients/7/projects."""
        above, _, last = shape.rpartition("/")
        relation = self.by_shape.get(above, "").rpartition("{")[2].rstrip("}")
        return f"/{last}?{relation}={{{relation}}}" if relation in self.filters.get(f"/{last}", ()) else None

    def _near(self, shape: str) -> list[str]:
        """Return similar paths: the first of these choices that has any."""
        near = partial(difflib.get_close_matches, shape, self.by_shape, n=1)
        choices = (
            [shape],
            [other for other in self.by_shape if other.endswith(shape) or shape.endswith(other)],
            [other for other in self.by_shape if other.startswith(f"{shape}/")],
            near(cutoff=VERY_NEAR),
            [shape.rpartition("/")[0]],
            near(cutoff=NEAR),
        )
        found = ([self.by_shape[other] for other in choice if other in self.by_shape] for choice in choices)
        return next(filter(None, found), [])

    def _read(self, path: str) -> str | None:
        """Return where to read the records of a path that does not support GET."""
        collection, _, name = path.rpartition("/{")
        if path in self.location:
            relation = PARAMETER.findall(path)[-1]
            return f"{self.location[path]}?{relation.strip('{}')}={relation}"
        if name.endswith("}") and "GET" in self.methods.get(collection, ()):
            return f"{collection}?ids={{{name}"
        owner = f"{path.partition('}')[0]}}}"
        return owner if owner != path and "GET" in self.methods.get(owner, ()) else None


def is_below(path: str, collection: str) -> bool:
    """Return whether a path is that of a record in a collection."""
    return path.startswith(f"{collection}/{{") and path.count("/") == collection.count("/") + 1


def filled(path: str, ids: list[str]) -> str:
    """Return a path with the ids in place of its parameters, as far as there are any."""
    left = iter(ids)
    return PARAMETER.sub(lambda name: next(left, name[0]), path)
