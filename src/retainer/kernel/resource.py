"""Resources, operations and routes, all from the signatures and docstrings of handlers.

Only this module inspects signatures. An incomplete declaration fails at import.
"""

import inspect
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Generic, NamedTuple, NewType, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from falcon.routing import CompiledRouter
from sqlalchemy import Table

from retainer.errors import Refusal, Unreadable, invalid, method_not_allowed, not_found
from retainer.kernel import body as bodies
from retainer.kernel.batch import Batch, BatchResult, Performer
from retainer.kernel.caller import Caller
from retainer.kernel.following import Followed, Following, read_following
from retainer.kernel.http import Request
from retainer.kernel.limits import Allowance
from retainer.kernel.paging import Page, Paged, Summed, read_list
from retainer.kernel.query import Query, parameters, read_query
from retainer.kernel.representations import Representation
from retainer.kernel.selection import Selectable, Selection, Shown, Source
from retainer.kernel.signposts import Signposts
from retainer.settings import Network
from retainer.store.constraints import singular
from retainer.store.tx import Tx
from retainer.values.kinds import MAX_INTEGER, Id
from retainer.values.reading import writable_fields
from retainer.values.records import Record
from retainer.values.texts import CODE, clean

Handler = TypeVar("Handler", bound=Callable[..., Any])
T = TypeVar("T")
M = TypeVar("M")
ID = re.compile(r"[1-9][0-9]{0,15}")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


class Call(msgspec.Struct):
    """A request whose stages have passed, when its operation is called."""

    request: Request
    caller: Caller
    allowance: Allowance
    operation: "Operation"
    ids: dict[str, str]
    query: tuple[Query, Page | None]
    selection: Selection | None = None
    """What the response includes, and the fields that it is limited to; None: whole records alone."""
    sent: bodies.RequestBody | None = None
    perform: Callable[[Tx, Batch], list[BatchResult]] | None = None
    """Performs the operations of an atomic batch in a transaction."""
    seconds: int | None = None
    """Time limit of its transaction, if it is not the usual one."""

    def read(self, body: bytes) -> None:
        """Read the body if the operation has one; once more for each retry."""
        if self.operation.body is not None:
            self.sent = bodies.RequestBody.read(self.request, body, self.operation.body, self.operation.use)


class ExternalKey(str):
    """The external id in a path."""

    __slots__ = ()


class Created(NamedTuple):
    """The result of an operation that has created a record, where it could have changed one."""

    result: object


class WithMeta(msgspec.Struct, Generic[T, M]):
    """A result with more information under `meta`."""

    data: T
    meta: M


BaseUrl = NewType("BaseUrl", str)
"""The address of the API, as the request has reached it."""

AllowedNetworks = NewType("AllowedNetworks", tuple[Network, ...])
"""The private networks to which the operator lets the server send."""

ArgumentFactory = Callable[[Tx, Call], object]
ARGUMENT_FACTORIES: dict[Any, ArgumentFactory] = {
    Tx: lambda tx, _: tx,
    Allowance: lambda _, call: call.allowance,
    Caller: lambda _, call: call.caller,
    Page: lambda _, call: call.query[1],
    BaseUrl: lambda _, call: call.request.base_url,
    AllowedNetworks: lambda _, call: call.request.settings.monitor_allow,
    Following: lambda _, call: read_following(call.request),
    Performer: lambda tx, call: call.perform and partial(call.perform, tx),
}


class Operation:
    """A method on a path, as its handler declares it."""

    def __init__(
        self,
        resource: "Resource",
        method: str,
        path: str,
        handler: Callable[..., Any],
        representations: Sequence[Representation] = (),
        *,
        creates: bool = True,
    ) -> None:
        self.resource = resource
        self.representations = representations
        self.method = method
        self.path = resource.path + path
        self.handler = handler
        self.writes = method != "GET"
        self.scope = None if resource.scope is None else f"{resource.scope}:{'write' if self.writes else 'read'}"
        self.created = method == "POST" and creates
        self.upserts = False
        """Whether it creates a record, or changes it if there is one."""
        where = f"{handler.__module__}.{handler.__name__}"
        hints = get_type_hints(handler, include_extras=True)
        if not handler.__doc__:
            raise TypeError(f"{where} has no docstring: its first line is the summary of the operation.")
        if "return" not in hints:
            raise TypeError(f"{where} does not say what it returns.")
        self.answers = hints.pop("return")
        self.batched = Performer in hints.values()
        self.use = "Create" if method == "POST" else "Update"
        self.summed = get_origin(self.answers) is Summed
        self.paged = self.summed or get_origin(self.answers) is Paged
        self.followed = get_origin(self.answers) is Followed
        self.record = get_args(self.answers)[0] if get_origin(self.answers) is WithMeta else self.answers
        self.selectable: Selectable | None = None
        """What a request can select, if the operation reads records; `Routes` fills it in."""
        self.query: Any = Query
        self.body: Any = None
        self.parameters = re.findall(r"\{(\w+)\}", self.path)
        self._arguments = [
            self._argument(where, name, hints.get(name)) for name in inspect.signature(handler).parameters
        ]
        verb, _, noun = handler.__name__.partition("_")
        words = ["replace" if method == "PUT" and not self.upserts else verb, *noun.split("_")]
        self.id = words[0] + "".join(word.title() for word in words[1:])

    def __repr__(self) -> str:
        return f"{self.method} {self.path}"

    def read_query(self, request: Request) -> tuple[Query, Page | None, Selection | None]:
        """Return the query, the page of a list, and the selection. Raises `unknown_parameter`, `validation_failed`."""
        page, others = None, self.selectable.readers if self.selectable else {}
        query: Query
        if self.paged:
            query, page, found = read_list(request, self.query, others, is_summed=self.summed)
        else:
            query, found = read_query(request, self.query, others)
        return query, page, Selection(**found) if found else None

    @property
    def reads(self) -> type[Record] | None:
        """Return the type of the records that the operation reads, alone or as a list."""
        model = get_args(self.answers)[0] if self.paged else self.record
        is_read = not self.writes and not self.followed and isinstance(model, type) and issubclass(model, Record)
        return model if is_read else None

    def call(self, tx: Tx, call: Call) -> object:
        """Call the handler, after the parent in the path was found."""
        parent = self.resource.parent
        if parent is not None:
            tx.snapshot()
            tx.require(parent, read_id(call.ids[self.parameters[0]], parent))
        return self.handler(*[argument(tx, call) for argument in self._arguments])

    def _argument(self, where: str, name: str, hint: Any) -> ArgumentFactory:
        """Return the factory of an argument of the handler."""
        if hint in ARGUMENT_FACTORIES:
            return ARGUMENT_FACTORIES[hint]
        if isinstance(hint, type) and issubclass(hint, Query):
            self.query = hint
            return lambda _, call: call.query[0]
        if name in self.parameters and hint == Id:
            return lambda _, call: read_id(call.ids[name], self.resource.table)
        if name in self.parameters and hint == ExternalKey:
            return lambda _, call: read_external_id(call.ids[name])
        if get_origin(hint) is bodies.Upsert:
            (self.body,) = get_args(hint)
            self.upserts = True
            return lambda _, call: bodies.Upsert(call.sent) if call.sent else None
        if get_origin(hint) is bodies.Patch:
            (model,) = get_args(hint)
            self.body = model
            table = self.resource.table
            if table is None:
                raise TypeError(f"{where} changes a record, and its resource has no table.")
            return lambda tx, call: bodies.Patch(tx, table, call.sent) if call.sent else None
        if get_origin(hint) is Annotated and bodies.NEW in hint.__metadata__:
            model = hint.__origin__
            self.body = model
            return lambda tx, call: call.sent and call.sent.new(tx)
        raise TypeError(f"{where} has the argument {name}: {hint}, which no request provides.")


def read_id(text: str, table: Table | None) -> int:
    """Return an id of a path: no sign, no leading zeros, at most 2^53-1. Raises `not_found` for other text."""
    if not ID.fullmatch(text) or int(text) > MAX_INTEGER:
        raise not_found("record" if table is None else singular(table))
    return int(text)


def read_external_id(text: str) -> ExternalKey:
    """Return an external id of a path, whose bytes WSGI passes as Latin-1.

    Raises `bad_request` unless it is UTF-8, and `validation_failed` for characters that no external id has.
    """
    try:
        return ExternalKey(clean(text.encode("latin-1").decode(), CODE))
    except UnicodeError:
        raise Refusal("bad_request", "The external id in the path must be UTF-8, percent-encoded.") from None
    except Unreadable as error:
        raise invalid({"external_id": [str(error)]}) from None


class Resource:
    """A path, its scope (None: any valid key), its table, and the table of the parent in its path.

    Handlers register here. `location` is the path of new records if it differs. `instead` has advice for parts of
    paths that clients may expect but that do not exist. `shown` returns a record with what the caller may see.
    """

    def __init__(
        self,
        path: str,
        *,
        tag: str,
        scope: str | None,
        table: Table | None = None,
        parent: Table | None = None,
        location: str | None = None,
    ) -> None:
        self.path = path
        self.tag = tag
        self.scope = scope
        self.table = table
        self.parent = parent
        self.location = location
        self.instead: dict[str, str] = {}
        self.shown: Shown = lambda _, record: record
        self.operations: list[Operation] = []
        self.get, self.post, self.put, self.patch, self.delete = (partial(self._register, method) for method in METHODS)

    def _register(
        self, method: str, path: str = "", *, representations: Sequence[Representation] = (), creates: bool = True
    ) -> Callable[[Handler], Handler]:
        """Return a decorator that registers a handler and returns it unchanged.

        `representations` are the forms in which a GET of a record answers besides JSON. A POST creates a record, unless
        it says otherwise.
        """

        def register(handler: Handler) -> Handler:
            self.operations.append(Operation(self, method, path, handler, representations, creates=creates))
            return handler

        return register


class Routes:
    """The operations by path and method."""

    def __init__(self, resources: list[Resource]) -> None:
        self.operations = [operation for resource in resources for operation in resource.operations]
        add_selections(self.operations)
        self._router = CompiledRouter()
        by_path: dict[str, dict[str, Operation]] = {}
        for operation in self.operations:
            by_path.setdefault(operation.path, {})[operation.method] = operation
        self._signposts = signposts_of(resources, by_path)
        for path, methods in by_path.items():
            self._router.add_route(path, Methods(methods, partial(self._signposts.of_method, path)))

    def is_batch(self, path: str) -> bool:
        """Return whether a path, however it is written, is that of batches."""
        found = self._match(path)
        return found is not None and any(each.batched for each in found[0].operations.values())

    def find(self, request: Request) -> tuple["Methods", dict[str, str]]:
        """Return the methods of a request's path, and the ids in it as text. Raises `not_found`."""
        path = request.path
        found = None if path.endswith("/") or path.startswith("//") else self._match(path)  # it strips those in front
        if found is None:
            is_near = path.endswith("/") and self._match(path.rstrip("/")) is not None
            advice = "Remove the trailing slash." if is_near else self._signposts.of_path(path)
            raise Refusal(
                "not_found", f"There is nothing at this path. {advice or 'The paths of the API are at /docs.'}"
            )
        return found

    def _match(self, path: str) -> tuple["Methods", dict[str, str]] | None:
        found: Any = self._router.find(path)
        return None if found is None else (found[0], found[2])


def signposts_of(resources: list[Resource], by_path: dict[str, dict[str, Operation]]) -> Signposts:
    """Return the signposts for all paths."""
    reads, changes = (
        {path: methods[method] for path, methods in by_path.items() if method in methods} for method in ("GET", "PATCH")
    )
    return Signposts(
        {path: methods.keys() for path, methods in by_path.items()},
        {path: parameters(operation.query).keys() for path, operation in reads.items()},
        {path: writable_fields(operation.body, "Update").keys() for path, operation in changes.items()},
        {resource.path: resource.location for resource in resources if resource.location},
        {part: sentence for resource in resources for part, sentence in resource.instead.items()},
    )


def add_selections(operations: list[Operation]) -> None:
    """Let each operation that reads records say what requests can select: references to all that can be read."""
    found = [(each, each.resource.table, each.reads) for each in operations]
    reads = [(each, table, model) for each, table, model in found if table is not None and model is not None]
    sources = {
        table.name: Source(table, model, each.scope, each.resource.shown)
        for each, table, model in sorted(reads, key=lambda read: not read[0].paged)  # the read of one record wins
    }
    for each, table, model in reads:
        each.selectable = Selectable(table, model, sources, is_list=each.paged)


class Methods:
    """The operations of one path, and the methods that it allows."""

    def __init__(self, operations: dict[str, Operation], advice: Callable[[str], str]) -> None:
        self.advice = advice
        self.operations = operations | ({"HEAD": operations["GET"]} if "GET" in operations else {})
        allowed = [method for method in ("GET", "HEAD", *METHODS[1:]) if method in self.operations]
        self.allow = ", ".join([*allowed, "OPTIONS"])

    def get(self, method: str) -> Operation:
        """Return the operation of a method. Raises `method_not_allowed`."""
        operation = self.operations.get(method)
        if operation is None:
            raise method_not_allowed(method, self.allow, self.advice(method))
        return operation
