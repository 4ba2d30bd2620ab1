"""Forms: reads submitted fields by the same rules as bodies, and shows them again with their errors."""

from collections.abc import Iterable, Sequence
from urllib.parse import parse_qsl

from retainer.errors import FieldErrors, InvalidValue, Refusal
from retainer.kernel import uploads
from retainer.kernel.http import Request
from retainer.kernel.uploads import MAX_FIELDS, SentFile
from retainer.values.texts import clean

CONTENT_TYPE = "application/x-www-form-urlencoded"
YES_OR_NO = {"yes": True, "no": False}
"""The values of a box: a hidden field before it says no, which the box replaces."""


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

    def refuse(self, refusal: Refusal, message: str) -> None:
        """Take in the errors of a refusal; without any, what the page says of it."""
        self.errors = refusal.members.get("errors", {})
        self.message = "" if self.errors else message
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


def parse_body(request: Request) -> Form:
    """Return the fields of the form that a request brings. Raises the errors of `parse`, also for a compressed one."""
    request.check_plain()
    return parse(request.body.decode(errors="replace"))


def parse_upload(request: Request) -> Form:
    """Return the fields and files of a form. Raises `bad_request`, and `validation_failed` for invalid text."""
    pairs, files = uploads.read_form(request)
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


def compare_passwords(password: object, again: object) -> FieldErrors:
    """Return the error of two inputs of a new password that differ."""
    return FieldErrors() if password == again else FieldErrors(again=["Passwords don't match."])
