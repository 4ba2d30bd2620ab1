"""Bodies of POST, PUT and PATCH, read as records."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, BinaryIO, Generic, Self, TypeVar, get_type_hints

import msgspec

from retainer.errors import BodyErrors, FieldErrors, Refusal
from retainer.kernel import uploads
from retainer.kernel.http import Request
from retainer.store.row_mapper import R
from retainer.store.tx import Tx
from retainer.values.reading import complete, fixed_errors, read_fields
from retainer.values.strict_json import read_object

T = TypeVar("T")
WHOLE = re.compile(r"[1-9][0-9]{0,15}")
NEW = object()
New = Annotated[T, NEW]
"""The record that a POST describes: `body: New[Client]` is a Client."""


class RequestBody:
    """The fields of a body, read before the transaction begins, so that no write waits for it.

    Its errors are raised when the fields are used: a missing record (404) or another state (412) comes first.
    """

    def __init__(
        self, fields: dict[str, object], model: type[msgspec.Struct], use: str, refusal: Refusal | None = None
    ) -> None:
        self.model, self.fields, self.refusal = model, fields, refusal
        self.errors = FieldErrors()
        self.values = read_fields(model, self.fields, self.errors, use=use)

    @classmethod
    def read(cls, request: Request, raw: bytes, model: type[msgspec.Struct], use: str) -> Self:
        """Return the body of a request; an unreadable one has no fields, and the refusal of it."""
        try:
            content_type, encoding = request.environ.get("CONTENT_TYPE", ""), request.header("CONTENT_ENCODING")
            return cls(read_object(raw, content_type, encoding), model, use)
        except Refusal as refusal:
            return cls({}, model, use, refusal)

    @classmethod
    def read_form(cls, request: Request, model: Any) -> Self:
        """Return the body that a form with a file describes; the file has its name, unless a field has another."""
        try:
            pairs, files = uploads.read_form(request)
            refuse_repeated(name for name, _ in pairs)
            refuse_texts({name for name, _ in pairs}, model)
        except Refusal as refusal:
            return cls({}, model, "Create", refusal)
        fields: dict[str, object] = {
            name: int(text) if name.endswith("_id") and WHOLE.fullmatch(text) else text for name, text in pairs
        }
        for name, file in files.items():
            fields = {"name": file.name, **fields, name: file.stream}
        return cls(fields, model, "Create")

    def new(self, errors: BodyErrors) -> Any:
        """Return the record that the fields describe; note their errors. Raises the refusal of an unreadable body."""
        record = complete(self.model, self.values, self.fields, self.errors)
        self.note_errors(errors)
        return record

    def note_errors(self, errors: BodyErrors) -> None:
        """Add the parse errors to `errors`, which raise them together with those of rules."""
        if self.refusal:
            raise self.refusal
        errors.sent = frozenset(self.fields)
        errors.note_unreadable(self.errors)


def refuse_repeated(names: Iterable[str]) -> None:
    """Raise `bad_request` for a field that a form has several times, as JSON is refused."""
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise Refusal("bad_request", f"The form has {repeated[0][:100]} more than once. Send it once.")


def refuse_texts(names: Iterable[str], model: type[msgspec.Struct]) -> None:
    """Raise `bad_request` for a file that a form sends as text: some texts would pass for Base64."""
    hints = get_type_hints(model)
    if texts := [name for name in names if hints.get(name) is BinaryIO]:
        raise Refusal("bad_request", f"The form has {texts[0]} as text. Send it as a file, with a file name.")


class Patch(Generic[R]):
    """The fields that a PUT or PATCH sends."""

    def __init__(self, tx: Tx, body: RequestBody) -> None:
        self.tx, self.body = tx, body
        self.given = dict.fromkeys(body.values, "sent")

    def apply_to(self, current: R) -> R:
        """Return the current record with the readable fields of the body. Raises the refusal of an unreadable body."""
        self.body.note_errors(self.tx)
        values = dict(self.body.values)
        for name, message in fixed_errors(current, values).items():
            self.tx.error(name, message)
        return msgspec.structs.replace(current, **values)
