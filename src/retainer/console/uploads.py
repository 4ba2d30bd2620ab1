"""Uploads: forms with a file, as browsers send them (multipart/form-data, RFC 7578)."""

from io import BytesIO

from multipart import MultipartParser, parse_options_header

from retainer.console.forms import MAX_FIELDS, Form, build_form
from retainer.errors import Refusal

CONTENT_TYPE = "multipart/form-data"


def parse_upload(body: bytes, content_type: str) -> Form:
    """Return the fields and files of a form. Raises `bad_request`, and `validation_failed` for invalid text."""
    pairs, files = list[tuple[str, str]](), dict[str, bytes]()
    try:
        boundary = parse_options_header(content_type)[1].get("boundary", "")
        for part in MultipartParser(BytesIO(body), boundary, len(body), part_limit=MAX_FIELDS, spool_limit=len(body)):
            if part.filename is None:
                pairs.append((part.name, part.value))
            else:
                files[part.name] = part.raw
    except ValueError:
        raise Refusal("bad_request", "The form cannot be read. Send it again from its page.") from None
    form = build_form(pairs)
    form.files = files
    return form
