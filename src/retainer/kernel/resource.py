"""Resources and operations, all from the signatures and docstrings of handlers.

Only this module inspects signatures. An incomplete declaration fails at import.
"""

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Annotated, Any, NamedTuple, NewType, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from sqlalchemy import Table

from retainer.errors import not_found
from retainer.kernel import body as bodies
from retainer.kernel import etag, uploads
from retainer.kernel.answers import List, SummedList, answer_of
from retainer.kernel.batch import Batch, BatchResult, Performer
from retainer.kernel.caller import Caller
from retainer.kernel.http import Request
from retainer.kernel.limits import Allowance
from retainer.kernel.paging import ListPage, Page, listing, page_readers, take_page
from retainer.kernel.query import Filter, Query, others_of, read_pairs, read_query
from retainer.kernel.representations import Representation
from retainer.kernel.selection import Selectable, Selection, VisibleTo
from retainer.settings import Network
from retainer.store.constraints import singular
from retainer.store.tx import Tx
from retainer.values.kinds import MAX_INTEGER, Id
from retainer.values.records import Record

Handler = TypeVar("Handler", bound=Callable[..., Any])
ID = re.compile(r"[1-9][0-9]{0,15}")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


class Call(msgspec.Struct):
    """A request whose stages have passed, when its operation is called."""

    request: Request
    caller: Caller
    allowance: Allowance
    bound: "Bound"
    ids: dict[str, str]
    query: tuple[Query, Page | None]
    form: Representation | None
    """The form of the response other than JSON."""
    selection: Selection | None = None
    """What the response includes, and the fields that it is limited to; None: whole records alone."""
    sent: bodies.RequestBody | None = None
    perform: Callable[["Call", Tx, Batch], list[BatchResult]] | None = None
    """Performs the operations of an atomic batch in a transaction."""
    seconds: int | None = None
    """Time limit of its transaction, if it is not the usual one."""

    def read(self, body: bytes) -> None:
        """Read the body if the operation has one; once more for each retry."""
        operation = self.bound.operation
        if operation.body and operation.resource.takes_files and uploads.is_upload(self.request):
            self.sent = bodies.RequestBody.read_form(self.request, operation.body)
        elif operation.body is not None:
            self.sent = bodies.RequestBody.read(self.request, body, operation.body, operation.use)


BaseUrl = NewType("BaseUrl", str)
"""The address of the API, as the request has reached it."""

FollowedUrl = NewType("FollowedUrl", str)
"""The address of a followed list with its parameters as sent, to which the position is added."""

AllowedNetworks = NewType("AllowedNetworks", tuple[Network, ...])
"""The private networks to which the operator lets the server send."""

PublicAddress = NewType("PublicAddress", str)
"""The public address of the server that the operator has set, or an empty text."""

ArgumentFactory = Callable[[Tx, Call], object]
ARGUMENT_FACTORIES: dict[Any, ArgumentFactory] = {
    Tx: lambda tx, _: tx,
    Allowance: lambda _, call: call.allowance,
    Caller: lambda _, call: call.caller,
    Page: lambda _, call: call.query[1],
    BaseUrl: lambda _, call: call.request.base_url,
    AllowedNetworks: lambda _, call: call.request.settings.monitor_allow,
    PublicAddress: lambda _, call: call.request.settings.base_url,
    FollowedUrl: lambda _, call: (
        f"{call.request.base_url}{call.request.path}?{others_of(read_pairs(call.request), 'after')}"
    ),
    Performer: lambda tx, call: call.perform and partial(call.perform, call, tx),
}


class Declaration(NamedTuple):
    """A handler, with its name, a sentence about it, and the types of its arguments and its result."""

    name: str
    about: str
    arguments: dict[str, Any]
    answers: Any
    handler: Callable[..., Any]


class Operation:
    """A method on a path, as it is declared."""

    def __init__(
        self,
        resource: "Resource",
        method: str,
        path: str,
        declared: Declaration,
        representations: Sequence[Representation] = (),
        *,
        creates: bool = True,
    ) -> None:
        self.resource = resource
        self.representations = representations
        self.method = method
        self.path = resource.path + path
        self.declared = declared
        self.handler, self.about = declared.handler, declared.about
        self.writes = method != "GET"
        self.scope = None if resource.scope is None else f"{resource.scope}:{'write' if self.writes else 'read'}"
        self.created = method == "POST" and creates
        self.upserts = False
        """Whether it creates a record, or changes it if there is one."""
        self.by_id: Operation | None = None
        """The operation that does the same by id, if this one finds the record by its external id."""
        self.batched = Performer in declared.arguments.values()
        self.use = "Create" if method == "POST" else "Update"
        self.answer = answer_of(
            declared.answers, is_read=not self.writes, creates=self.created, location=resource.location
        )
        self.paged = isinstance(self.answer, List)
        self.query: Any = Query
        self.body: Any = None
        self.parameters = re.findall(r"\{(\w+)\}", self.path)
        self._arguments = [self._argument(name, hint) for name, hint in declared.arguments.items()]
        verb, _, noun = declared.name.partition("_")
        words = ["replace" if method == "PUT" else verb, *noun.split("_")]
        self.id = words[0] + "".join(word.title() for word in words[1:])

    def __repr__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def introduction(self) -> str:
        """The text of the module that declares it, with which its page of the reference begins.

        Empty for a plain read, which is declared with its list.
        """
        module = (self.query if self.paged else self.handler).__module__
        return "" if module == __name__ else inspect.getdoc(sys.modules[module]) or self.resource.tag

    @property
    def target(self) -> Table | None:
        """Return the table of the existing record that the operation writes to, which is the last one in its path."""
        parent = self.resource.parent
        is_of_parent = parent is not None and len(self.parameters) == self.resource.path.count("{")
        return None if not (self.writes and self.parameters) else parent if is_of_parent else self.resource.table

    @property
    def preconditions(self) -> list[str]:
        """Return the headers with preconditions that the operation honours; it refuses others."""
        reads_one = self.answer.reads is not None and not self.paged
        honoured = {"If-Match": self.target is not None, "If-None-Match": self.upserts or reads_one}
        return [name for name in honoured if honoured[name]]

    def call(self, tx: Tx, call: Call) -> object:
        """Call the handler, after the parent in the path was found, and the record is in the state that If-Match names.

        Raises `not_found` and `precondition_failed`.
        """
        parent = self.resource.parent
        if parent is not None:
            tx.snapshot()
            tx.require(parent, read_id(call.ids[self.parameters[0]], parent))
        if_match = call.request.environ.get("HTTP_IF_MATCH")
        if if_match is not None:
            guarded = call.bound.guarded
            if self.target is None or guarded is None:
                raise TypeError(f"{self} has no record for If-Match.")
            ids = {name: read_id(call.ids[name], self.target) for name in self.parameters}
            _, record_id = ids.popitem()
            etag.check_unchanged(if_match, tx.get(self.target, record_id, guarded, **ids))
        arguments = self._arguments
        if len(arguments) == 2:
            return self.handler(arguments[0](tx, call), arguments[1](tx, call))
        return self.handler(*[argument(tx, call) for argument in arguments])

    def _argument(self, name: str, hint: Any) -> ArgumentFactory:
        if hint in ARGUMENT_FACTORIES:
            return ARGUMENT_FACTORIES[hint]
        if isinstance(hint, type) and issubclass(hint, Query):
            self.query = hint
            return lambda _, call: call.query[0]
        if name in self.parameters and hint == Id:
            return lambda _, call: read_id(call.ids[name], self.resource.table)
        if get_origin(hint) is bodies.Patch:
            (self.body,) = get_args(hint)
            return lambda tx, call: bodies.Patch(tx, call.sent) if call.sent else None
        if get_origin(hint) is Annotated and bodies.NEW in hint.__metadata__:
            model = hint.__origin__
            self.body = model
            return lambda tx, call: call.sent and call.sent.new(tx)
        raise TypeError(f"{self.declared.name} has the argument {name}: {hint}, which no request provides.")


class Bound:
    """An operation in an API, and what follows from the other operations of that API."""

    def __init__(
        self,
        operation: Operation,
        selectable: Selectable | None,
        guarded: type[Record] | None,
        media_types_of_others: Sequence[str],
    ) -> None:
        self.operation = operation
        self.selectable = selectable
        """What a request can select, if the operation reads records."""
        self.guarded = guarded
        """The type of the record whose state If-Match names."""
        self.media_types_of_others = media_types_of_others
        """The media types that only other operations offer."""
        is_summed = isinstance(operation.answer, SummedList)
        of_page = page_readers(operation.query, is_summed=is_summed) if operation.paged else {}
        self.readers: dict[str, Callable[[str], object]] = {**of_page, **(selectable.readers if selectable else {})}
        """The parsers of its parameters besides those of the query."""

    def read_query(self, request: Request) -> tuple[Query, Page | None, Selection | None]:
        """Return the query, the page of a list, and the selection. Raises `unknown_parameter`, `validation_failed`."""
        operation = self.operation
        if not operation.paged and not request.query:
            return operation.query(), None, None
        pairs = read_pairs(request)
        query, found = read_query(pairs, operation.query, self.readers)
        page = take_page(request, query, pairs, found) if operation.paged else None
        return query, page, Selection(**found) if found else None


def read_id(text: str, table: Table | None) -> int:
    """Return an id of a path: no sign, no leading zeros, at most 2^53-1. Raises `not_found` for other text."""
    if not ID.fullmatch(text) or int(text) > MAX_INTEGER:
        raise not_found("record" if table is None else singular(table))
    return int(text)


@dataclass(eq=False)
class Resource:
    """A path, its scope (None: any valid key), its table, and the table of the parent in its path.

    Handlers register here.
    """

    path: str
    _: KW_ONLY
    tag: str
    scope: str | None
    table: Table | None = None
    parent: Table | None = None
    location: str | None = None
    """The path of new records if it differs."""
    advice: str = ""
    """Advice in the response to a POST without a handler."""
    needs: str = ""
    """What a key needs, if that depends on the record: the handlers then require the scope."""
    takes_files: bool = False
    """Whether the bodies of its operations may be forms with a file."""
    visible_to: VisibleTo | None = None
    """Returns a record with what the caller may see; None: everything."""
    operations: "list[Operation]" = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.get, self.post, self.put, self.patch, self.delete = (partial(self._register, method) for method in METHODS)

    def _register(
        self, method: str, path: str = "", *, representations: Sequence[Representation] = (), creates: bool = True
    ) -> Callable[[Handler], Handler]:
        """Return a decorator that registers a handler and returns it unchanged.

        `representations` are the forms in which a GET of a record answers besides JSON. A POST creates a record, unless
        it says otherwise.
        """

        def register(handler: Handler) -> Handler:
            where, about = f"{handler.__module__}.{handler.__name__}", inspect.getdoc(handler)
            hints = get_type_hints(handler, include_extras=True)
            if not about:
                raise TypeError(f"{where} has no docstring: its first line is the summary of the operation.")
            if "return" not in hints:
                raise TypeError(f"{where} does not say what it returns.")
            arguments = {name: hints.get(name) for name in inspect.signature(handler).parameters}
            declared = Declaration(handler.__name__, about, arguments, hints["return"], handler)
            self.operations.append(Operation(self, method, path, declared, representations, creates=creates))
            return handler

        return register

    def lists(self, record: type[Record], filters: type[Filter], about: str) -> None:
        """Register the list of the records, within the parent in its path."""
        table: Any = self.table
        parents = re.findall(r"\{(\w+)\}", self.path)

        def handle(tx: Tx, *arguments: Any) -> ListPage[Record]:
            *ids, sent, page = arguments
            found = listing(tx, table, record, sent, page, **dict(zip(parents, ids, strict=True)))
            if self.visible_to is not None:
                found.data = [self.visible_to(tx, each) for each in found.data]
            return found

        arguments = {"tx": Tx, **dict.fromkeys(parents, Id), "filters": filters, "page": Page}
        answers = ListPage[record]  # type: ignore[valid-type]
        declared = Declaration(f"list_{table.name}", about, arguments, answers, handle)
        self.operations.append(Operation(self, "GET", "", declared))

    def reads(self, path: str, record: type[Record], about: str) -> None:
        """Register the operation that reads a record by the id in the path."""
        table: Any = self.table

        def handle(tx: Tx, record_id: int) -> Record:
            found = tx.get(table, record_id, record)
            return found if self.visible_to is None else self.visible_to(tx, found)

        name, arguments = f"get_{singular(table).replace(' ', '_')}", {"tx": Tx, path.strip("/{}"): Id}
        self.operations.append(Operation(self, "GET", path, Declaration(name, about, arguments, record, handle)))
