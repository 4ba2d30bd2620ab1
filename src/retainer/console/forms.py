"""Forms: reads submitted fields by the same rules as bodies, and shows them again with their errors."""

from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from typing import BinaryIO, NamedTuple
from urllib.parse import parse_qsl

from multipart import MultipartParser, parse_options_header

from retainer.errors import FieldErrors, InvalidValue, Refusal, invalid
from retainer.values.texts import clean

CONTENT_TYPE = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
"""How browsers send a form with a file (RFC 7578)."""
MAX_FIELDS = 2000
"""Fields of a form: an invoice of 200 lines has nine for each."""
YES_OR_NO = {"yes": True, "no": False}
"""The values of a box: a hidden field before it says no, which the box replaces."""


class SentFile(NamedTuple):
    """A file of a form: its name on the computer of the person, and its bytes."""

    name: str
    stream: BinaryIO


class Form:
    def __init__(self, pairs: Sequence[tuple[str, str]] = ()) -> None:
        self.texts: dict[str, list[str]] = {}
        for name, text in pairs:
            self.texts.setdefault(name, []).append(text)
        self.files: dict[str, SentFile] = {}
        self.errors = FieldErrors()
        self.message = ""
        self.status = 200

    def __contains__(self, name: str) -> bool:
        return name in self.texts

    def text(self, name: str, default: object = "") -> str:
        """Return the last text of a field, or the default if it was not sent."""
        if name in self.texts:
            return self.texts_of(name)[-1]
        return "" if default is None else str(default)

    def texts_of(self, name: str) -> list[str]:
        """Return the texts of a field. Browsers end lines with CR and LF."""
        return [text.replace("\r\n", "\n") for text in self.texts.get(name, [])]

    def refuse(self, refusal: Refusal) -> None:
        self.errors = refusal.members.get("errors", {})
        self.message = "" if self.errors else refusal.message
        self.status = refusal.status


def parse(text: str) -> Form:
    """Return the fields of an encoded form or query. Raises `bad_request`, and `validation_failed` for invalid text.

    So every value that a page reads can be used in a database query, as in the API.
    """
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except ValueError:
        raise Refusal(
            "bad_request", f"The form cannot be read. Send at most {MAX_FIELDS} fields, encoded as UTF-8."
        ) from None
    return build_form(pairs)


def parse_upload(body: bytes, content_type: str) -> Form:
    """Return the fields and files of a form. Raises `bad_request`, and `validation_failed` for invalid text."""
    pairs, files = list[tuple[str, str]](), dict[str, SentFile]()
    try:
        boundary = parse_options_header(content_type)[1].get("boundary", "")
        for part in MultipartParser(BytesIO(body), boundary, len(body), part_limit=MAX_FIELDS, spool_limit=len(body)):
            if part.filename is None:
                pairs.append((part.name, part.value))
            elif part.filename:  # empty if no file was chosen
                files[part.name] = SentFile(clean(part.filename), part.file)
    except ValueError:
        raise Refusal("bad_request", "The form cannot be read. Send it again from its page.") from None
    form = build_form(pairs)
    form.files = files
    return form


def build_form(pairs: Iterable[tuple[str, str]]) -> Form:
    """Return the form with these fields. Raises `validation_failed` for a text that cannot be stored."""
    errors, cleaned = FieldErrors(), list[tuple[str, str]]()
    for name, text in pairs:
        try:
            cleaned.append((clean(name), clean(text)))
        except InvalidValue as error:
            errors.note(name, str(error))
    errors.raise_errors()
    return Form(cleaned)


def check_same(fields: Mapping[str, object]) -> None:
    """Raise `validation_failed` if the two inputs of a new password differ."""
    if fields["password"] != fields["again"]:
        raise invalid({"again": ["Passwords don't match."]})
