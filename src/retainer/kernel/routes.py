"""Routes: the operations of all resources by path and method."""

from collections.abc import Callable
from functools import partial

from retainer.errors import Refusal, method_not_allowed
from retainer.kernel import external_ids
from retainer.kernel.http import Request
from retainer.kernel.paths import Paths
from retainer.kernel.resource import METHODS, Operation, Resource
from retainer.kernel.selection import Selectable, Source
from retainer.kernel.signposts import Signposts


class Routes:
    """The operations by path and method."""

    def __init__(self, resources: list[Resource]) -> None:
        self.operations = [
            operation
            for resource in resources
            for operation in (*resource.operations, *external_ids.operations_of(resource))
        ]
        relate(self.operations)
        by_path: dict[str, dict[str, Operation]] = {}
        for operation in self.operations:
            by_path.setdefault(operation.path, {})[operation.method] = operation
        instead = {part: sentence for resource in resources for part, sentence in resource.instead.items()}
        self._signposts = Signposts({path: methods.keys() for path, methods in by_path.items()}, instead)
        advise = self._signposts.of_method
        self._paths = Paths({path: Methods(methods, partial(advise, path)) for path, methods in by_path.items()})

    def is_batch(self, path: str) -> bool:
        found = self._paths.find(path)
        return found is not None and any(each.batched for each in found[0].operations.values())

    def find(self, request: Request) -> tuple["Methods", dict[str, str]]:
        """Return the methods of a request's path, and the ids in it as text. Raises `not_found`."""
        path = request.path
        found = self._paths.find(path)
        if found is None:
            is_near = path.endswith("/") and self._paths.find(path.rstrip("/")) is not None
            advice = "Remove the trailing slash." if is_near else self._signposts.of_path(path)
            raise Refusal(
                "not_found", f"There is nothing at this path. {advice or 'The paths of the API are at /docs.'}"
            )
        return found


def relate(operations: list[Operation]) -> None:
    """Let operations know what they can include, what only others offer, and the type of the guarded record."""
    found = [(each, each.resource.table, each.reads) for each in operations]
    reads = [(each, table, model) for each, table, model in found if table is not None and model is not None]
    sources = {
        table.name: Source(table, model, each.scope, each.resource.visible_to)
        for each, table, model in sorted(reads, key=lambda read: not read[0].paged)  # the read of one record wins
    }
    for each, table, model in reads:
        each.selectable = Selectable(table, model, sources, is_list=each.paged)
    made = {each.resource.table: each.record for each in operations if each.created}  # a line cannot be read alone
    forms = dict.fromkeys(form.media_type for each in operations for form in each.representations)
    for each in operations:
        each.elsewhere = [form for form in forms if form not in {own.media_type for own in each.representations}]
        if each.target is not None:
            source = sources.get(each.target.name)
            each.guarded = source.model if source else made[each.target]


class Methods:
    """The operations of one path, and the methods that it allows."""

    def __init__(self, operations: dict[str, Operation], advice: Callable[[str], str]) -> None:
        self.advice = advice
        self.operations = operations | ({"HEAD": operations["GET"]} if "GET" in operations else {})
        allowed = [method for method in ("GET", "HEAD", *METHODS[1:]) if method in self.operations]
        self.allow = ", ".join([*allowed, "OPTIONS"])

    def get(self, method: str) -> Operation:
        operation = self.operations.get(method)
        if operation is None:
            raise method_not_allowed(method, self.allow, self.advice(method))
        return operation
