"""Uploads: forms with a file, as browsers send them (multipart/form-data, RFC 7578)."""

from io import BytesIO

from falcon import HTTPError
from falcon.media import MultipartFormHandler

from retainer.console.forms import MAX_FIELDS, Form, build_form
from retainer.errors import Refusal

CONTENT_TYPE = "multipart/form-data"
HANDLER = MultipartFormHandler()
HANDLER.parse_options.max_body_part_count = MAX_FIELDS


def parse_upload(body: bytes, content_type: str) -> Form:
    """Return the fields and files of a form. Raises `bad_request`, and `validation_failed` for invalid text."""
    pairs, files = list[tuple[str, str]](), dict[str, bytes]()
    try:
        for part in HANDLER.deserialize(BytesIO(body), content_type, len(body)):
            name, data = str(part.name), part.get_data()
            if part.filename is None:
                pairs.append((name, data.decode()))
            else:
                files[name] = data
    except (HTTPError, ValueError):
        raise Refusal("bad_request", "The form cannot be read. Send it again from its page.") from None
    form = build_form(pairs)
    form.files = files
    return form
