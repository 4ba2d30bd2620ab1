"""Bodies: what a POST, PUT or PATCH sends, as the record that it describes."""

from typing import Annotated, Any, Generic, TypeVar

import msgspec
from sqlalchemy import Table

from retainer.domain.members import complete, read_members
from retainer.errors import Refusal
from retainer.kernel import etag
from retainer.kernel.http import Request
from retainer.kernel.strict_json import malformed, read_json
from retainer.store import rules
from retainer.store.records import R
from retainer.store.tx import Tx

T = TypeVar("T")
NEW = object()
New = Annotated[T, NEW]
"""The record that a POST describes: `body: New[Client]` is a Client."""


def read_object(request: Request, raw: bytes) -> dict[str, Any]:
    """The members of a body. Raises `unsupported_media_type` and `malformed_json`."""
    media = request.environ.get("CONTENT_TYPE", "").split(";")[0].strip().lower()
    if media != "application/json":
        named = f"not {media}" if media else "which is missing"
        raise Refusal("unsupported_media_type", f"Send the header Content-Type: application/json, {named}.")
    if request.header("CONTENT_ENCODING") not in {None, "identity"}:
        raise Refusal("unsupported_media_type", "Send the body without Content-Encoding.")
    members = read_json(raw)
    if not isinstance(members, dict):
        raise malformed('it must be an object, like {"name": "..."}')
    return members


def new(tx: Tx, table: Table, shape: type[R], given: dict[str, Any]) -> R:
    """A record from the members of a body. Raises `validation_failed` with every fault that can be told."""
    values = read_members(shape, given, tx.faults)
    record = complete(shape, values, given, tx.faults)
    if record is None:
        refuse(tx, table, shape, values, None)
    return record  # type: ignore[return-value]


def refuse(tx: Tx, table: Table, shape: type[Any], values: dict[str, Any], own: int | None) -> None:
    """Refuse a faulty body; the references and unique values that could be read are judged with it."""
    rules.check(tx, table, shape, tx.with_folded(table, values), own)
    tx.refuse_faults()


class Change(Generic[R]):
    """The members that a PUT or PATCH sends; read only after the record was found and its state compared."""

    __slots__ = ("raw", "request", "shape", "table", "tx")

    def __init__(self, tx: Tx, table: Table, shape: type[R], request: Request, raw: bytes) -> None:
        self.tx = tx
        self.table = table
        self.shape = shape
        self.request = request
        self.raw = raw

    def onto(self, current: R) -> R:
        """The whole that results: members sent replace, members left out keep their value (contract 1.4).

        Raises `precondition_failed` and the refusals of a body.
        """
        etag.unchanged(self.tx, current)
        values = read_members(self.shape, read_object(self.request, self.raw), self.tx.faults)
        if self.tx.faults:
            refuse(self.tx, self.table, self.shape, values, current.id)
        return msgspec.structs.replace(current, **values)
