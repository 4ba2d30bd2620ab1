"""Bodies: what a POST, PUT or PATCH sends, as the record that it describes."""

from typing import Annotated, Any, Generic, TypeVar

import msgspec

from retainer.errors import FieldErrors, Refusal
from retainer.kernel import etag
from retainer.kernel.http import Request
from retainer.store.records import R
from retainer.store.tx import Tx
from retainer.values.reading import complete, create_only, read_fields
from retainer.values.records import Record
from retainer.values.strict_json import read_object

T = TypeVar("T")
NEW = object()
New = Annotated[T, NEW]
"""The record that a POST describes: `body: New[Client]` is a Client."""


class RequestBody:
    """The members of a body, read before its transaction begins; what is wrong with them is told when they are used.

    So no write waits while a body is read, and yet a missing record (404) or another state (412) is told first.
    """

    def __init__(self, request: Request, raw: bytes, shape: type[Record], use: str) -> None:
        self.shape = shape
        self.given: dict[str, Any] = {}
        self.errors: FieldErrors = {}
        self.refusal: Refusal | None = None
        try:
            headers = request.environ.get("CONTENT_TYPE", ""), request.header("CONTENT_ENCODING")
            self.given = read_object(raw, *headers)
        except Refusal as refusal:
            self.refusal = refusal
        self.values = read_fields(shape, self.given, self.errors, use=use)

    def new(self, tx: Tx) -> Any:
        """The record that the members describe; what is wrong with them is noted. Raises what makes it unreadable."""
        record = complete(self.shape, self.values, self.given, self.errors)
        self.note(tx)
        return record

    def note(self, tx: Tx) -> None:
        """Let the transaction refuse with these faults and with those that rules find in the other members."""
        if self.refusal:
            raise self.refusal
        tx.note_unreadable(self.errors)


class Patch(Generic[R]):
    """The members that a PUT or PATCH sends."""

    def __init__(self, tx: Tx, sent: RequestBody) -> None:
        self.tx, self.sent = tx, sent
        self.given = dict.fromkeys(sent.values, "sent")

    def apply_to(self, current: R) -> R:
        """The whole that results: members sent replace, members left out keep their value (contract 1.4).

        So does a member that could not be read. Raises `precondition_failed` and what makes the body unreadable.
        """
        etag.check_unchanged(self.tx, current)
        self.sent.note(self.tx)
        values = dict(self.sent.values)
        for name in create_only(self.sent.shape) & values.keys():
            if (values.pop(name) or None) != (getattr(current, name) or None):
                self.tx.error(name, "Can be set only when the record is created. Leave it out.")
        return msgspec.structs.replace(current, **values)
