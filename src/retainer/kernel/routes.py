"""Routes: the operations of all resources by path and method."""

import difflib
import re
from collections.abc import Mapping
from typing import Generic, TypeVar

from retainer.errors import Refusal, method_not_allowed
from retainer.kernel import external_ids
from retainer.kernel.http import Request
from retainer.kernel.resource import METHODS, Bound, Operation, Resource
from retainer.kernel.selection import RecordSource, Selectable

T = TypeVar("T")
PARAMETER = re.compile(r"\{(\w+)\}")
ANY_ID, ANY_TEXT = "(?P<external_id>[^/]+)", "(?P<external_id>(?s:.*[^/]))"
LAST = "\uffff"
NUMBER = re.compile(r"(?<=/)[0-9]+(?=/|$)")
MAX_PATH_LENGTH = 200  # characters; longer paths get no advice
NEAR = 0.6


class Paths(Generic[T]):
    """Finds what belongs to a path. The literal parts of a pattern are preferred to the parameters of another one.

    Where no pattern matches, an external id is the rest of the path with its slashes, since the server has decoded
    %2F; not with a last one, which people add by mistake.
    """

    def __init__(self, patterns: Mapping[str, T]) -> None:
        self._by_shape: dict[tuple[str, int], list[tuple[re.Pattern[str], T]]] = {}  # first part, number of parts
        for pattern in sorted(patterns, key=lambda pattern: PARAMETER.sub(LAST, pattern)):
            expression = PARAMETER.sub(r"(?P<\1>[^/]+)", pattern).replace(ANY_ID, ANY_TEXT)
            shape = first_part(pattern), pattern.count("/")
            self._by_shape.setdefault(shape, []).append((re.compile(expression), patterns[pattern]))

    def find(self, path: str) -> tuple[T, dict[str, str]] | None:
        """Return what belongs to a path, and its parameters by name; None if no pattern matches."""
        found = self._find(path, path.count("/"))
        if found is None and external_ids.MARK in path:
            return self._find(path, path.partition(external_ids.MARK)[0].count("/") + 1)
        return found

    def _find(self, path: str, parts: int) -> tuple[T, dict[str, str]] | None:
        for expression, target in self._by_shape.get((first_part(path), parts), ()):
            if found := expression.fullmatch(path):
                return target, found.groupdict()
        return None


def first_part(path: str) -> str:
    return path.partition("/")[2].partition("/")[0]


class Routes:
    """The operations by path and method."""

    def __init__(self, resources: list[Resource]) -> None:
        self.operations: list[Operation] = []
        for resource in resources:
            own = resource.operations
            self.operations += [*own, *external_ids.operations_of(own, resource.table)]
        self.bound = bind(self.operations)
        by_path: dict[str, dict[str, Bound]] = {}
        for operation, bound in self.bound.items():
            by_path.setdefault(operation.path, {})[operation.method] = bound
        self._by_shape = {PARAMETER.sub("{}", path): path for path in by_path}
        self._paths = Paths({path: Methods(path, methods, by_path) for path, methods in by_path.items()})

    def is_batch(self, path: str) -> bool:
        found = self._paths.find(path)
        return found is not None and any(each.operation.batched for each in found[0].operations.values())

    def find(self, request: Request) -> tuple["Methods", dict[str, str]]:
        """Return the methods of a request's path, and the ids in it as text. Raises `not_found`."""
        path = request.path
        found = self._paths.find(path)
        if found is None:
            is_near = path.endswith("/") and self._paths.find(path.rstrip("/")) is not None
            advice = "Remove the trailing slash." if is_near else self._nearest(path, request.method)
            raise Refusal(
                "not_found", f"There is nothing at this path. {advice or 'The paths of the API are at /docs.'}"
            )
        return found

    def _nearest(self, path: str, method: str) -> str:
        """Return the path that an unknown one probably means; if that does not take a method, what does."""
        if len(path) > MAX_PATH_LENGTH or not path.strip("/"):
            return ""
        shape = NUMBER.sub("{}", path.lower().replace("_", "-"))
        ending = (other for other in self._by_shape if shape.endswith(other) or other.endswith(shape))
        near = next(ending, None) or next(iter(difflib.get_close_matches(shape, self._by_shape, 1, NEAR)), None)
        parent, _, part = shape.rpartition("/")
        if near and parent in self._by_shape and near.startswith(f"{parent}/"):
            is_other = not difflib.get_close_matches(part, [near.removeprefix(f"{parent}/")], 1, NEAR)
            near = parent if is_other else near  # `accept` is no misspelt `send`
        ids = iter(NUMBER.findall(path))
        if not near:
            return ""
        meant = PARAMETER.sub(lambda name: next(ids, name[0]), self._by_shape[near])
        methods = None if method == "GET" else self._paths.find(meant)
        return (methods and methods[0].advice(method)) or f"Did you mean {meant}?"


def bind(operations: list[Operation]) -> dict[Operation, Bound]:
    """Return what each operation can include, which record its If-Match guards, and what only others offer."""
    found = [(each, each.resource.table, each.answer.reads) for each in operations]
    reads = {each: (table, model) for each, table, model in found if table is not None and model is not None}
    sources = {
        table.name: RecordSource(table, model, each.scope, each.resource.visible_to)
        for each, (table, model) in sorted(reads.items(), key=lambda read: not read[0].paged)  # that of one record wins
    }
    models = {name: source.model for name, source in sources.items()}
    made = {each.resource.table: each.answer.model for each in operations if each.created}
    forms = dict.fromkeys(form.media_type for each in operations for form in each.representations)

    def bound(each: Operation) -> Bound:
        selectable = Selectable(*reads[each], sources, is_list=each.paged) if each in reads else None
        target = each.target
        guarded = None if target is None else models.get(target.name) or made[target]  # a line cannot be read alone
        own = {form.media_type for form in each.representations}
        return Bound(each, selectable, guarded, [form for form in forms if form not in own])

    return {each: bound(each) for each in operations}


class Methods:
    """The operations of one path, of `all_paths`, and the methods that it allows."""

    def __init__(self, path: str, operations: dict[str, Bound], all_paths: Mapping[str, Mapping[str, Bound]]) -> None:
        self._path, self._all_paths = path, all_paths
        self.operations = operations | ({"HEAD": operations["GET"]} if "GET" in operations else {})
        allowed = [method for method in ("GET", "HEAD", *METHODS[1:]) if method in self.operations]
        self.allow = ", ".join([*allowed, "OPTIONS"])

    def get(self, method: str) -> Bound:
        bound = self.operations.get(method)
        if bound is None:
            raise method_not_allowed(method, self.allow, self.advice(method))
        return bound

    def advice(self, method: str) -> str:
        """Return the nearest path that supports a method: above for GET and POST, below for others.

        Empty if there is none, or if this path supports it.
        """
        if method in self.operations:
            return ""
        own = next(iter(self.operations.values())).operation.resource.advice
        if own and method == "POST":
            return own
        path, taking = self._path, [other for other in self._all_paths if method in self._all_paths[other]]
        if method in {"GET", "POST"}:
            found = [other for other in taking if path.startswith(f"{other}/") or other.endswith(path)]
        else:
            found = [other for other in taking if PARAMETER.fullmatch(other.removeprefix(f"{path}/"))]
        if found and method == "POST" and "PATCH" in self.operations:
            return f"Send POST {max(found, key=len)} to create, or PATCH {path} to change."
        return f"Send {method} {max(found, key=len)} instead." if found else ""
