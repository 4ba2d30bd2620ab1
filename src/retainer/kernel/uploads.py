"""Uploads: forms with a file, which may be larger than other bodies; they come to disk in pieces (RFC 7578)."""

import re
from collections.abc import Callable
from io import BytesIO
from itertools import chain
from tempfile import TemporaryFile
from typing import BinaryIO, NamedTuple, cast
from urllib.parse import unquote

from multipart import (
    MultipartSegment,
    ParserLimitReached,
    PushMultipartParser,
    content_disposition_unquote,
    parse_options_header,
)

from retainer.errors import Refusal
from retainer.kernel.downloads import needing_room
from retainer.kernel.http import MAX_BODY_BYTES, Request
from retainer.values.texts import without_path

FORM = "multipart/form-data"
"""How browsers send a form with a file."""
MAX_FILE_BYTES = 25 * 1024 * 1024
MAX_UPLOAD_BYTES = MAX_FILE_BYTES + 64 * 1024
"""Bytes of a form with a file of the maximum size, and of its other fields."""
MAX_FIELDS = 2000
"""Fields of a form: an invoice of 200 lines has nine for each."""
PIECE_BYTES = 64 * 1024
SEVERAL = "The form has more than one file. Send each file in a request of its own."
TOO_MUCH = f"The form has more than {MAX_FIELDS:,} fields, more than 1 MiB of text, or a file name of more than 4 KB."
UNREADABLE = (
    "The form cannot be read. Send it again, as multipart/form-data in UTF-8, with the boundary that its Content-Type "
    "names."
)
ENCODED = "The form has a part with Content-Transfer-Encoding. Send its bytes as they are."
PLAIN = frozenset({"", "7bit", "8bit", "binary"})
OPTION = re.compile(r"""; *([^=;" ]+) *= *("(?:\\.|[^"\\])*"|[^;"]*)""")
EXTENDED = re.compile(r"(utf-8|iso-8859-1)'[^']*'(.*)", re.IGNORECASE)
PATHS = ("/files", "/console/records/", "/console/import")
"""The paths that take files: that of the API as the pipeline knows it, and the beginnings of those of the console."""


class SentFile(NamedTuple):
    """A file of a form: its name on the computer of the person, and its bytes."""

    name: str
    stream: BinaryIO


class UnknownSender(Refusal):
    """A refusal of a large form whose sender has no valid key or session."""

    def __init__(self) -> None:
        reason = "A file of more than 1 MiB needs a valid key or session."
        super().__init__("body_too_large", f"{reason} Check the key, or sign in again.")


def is_upload(request: Request) -> bool:
    content_type: str = request.environ.get("CONTENT_TYPE", "")
    return content_type.partition(";")[0].strip().lower() == FORM


def may_be_large(request: Request) -> bool:
    """Return whether a request may have a body of up to MAX_UPLOAD_BYTES."""
    api, *console = PATHS
    is_known = request.path == api or request.path.startswith(tuple(console))
    return request.method == "POST" and is_known and is_upload(request)


def temporary_file(request: Request) -> BinaryIO:
    """Return a file that the response of a request closes, and that has no name: a kill leaves nothing.

    It is next to the embedded database, because the folder for temporary files is often in memory. Raises
    `unavailable`.
    """
    folder = request.settings.database_path.parent if request.settings.database_path else None
    with needing_room():
        file = cast("BinaryIO", TemporaryFile(dir=folder))  # noqa: SIM115  # the response closes it
    request.opened += (file,)
    return file


class FormTexts:
    """The fields of a form that are no files, which may take as much memory as a body without a file."""

    def __init__(self) -> None:
        self.parts: list[tuple[str | None, bytearray]] = []
        self.size = 0

    def begin(self, name: str | None) -> Callable[[bytes], object]:
        self.parts.append((name, bytearray()))
        return self.add

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > MAX_BODY_BYTES:
            raise ParserLimitReached
        self.parts[-1][1].extend(piece)

    def pairs(self) -> list[tuple[str, str]]:
        return [(name, text.decode()) for name, text in self.parts if name is not None]


def file_name_of(part: MultipartSegment) -> str | None:
    """Return the name of a file without its path; empty if none was chosen, None for a field that is no file.

    RFC 7578 forbids `filename*` (RFC 8187), but .NET sends it, together with a name encoded for mail. Names
    without quotes are read to their end. Raises ValueError for a name that is not encoded as it says.
    """
    options = {name.lower(): text.strip() for name, text in OPTION.findall(part.header("Content-Disposition") or "")}
    if extended := EXTENDED.fullmatch(options.get("filename*", "").strip('"')):
        name = unquote(extended[2], extended[1], errors="strict")
    elif "filename" in options:
        name = content_disposition_unquote(options["filename"], filename=True)
    else:
        return None
    return without_path(name)


def read_form(request: Request) -> tuple[list[tuple[str, str]], dict[str, SentFile]]:
    """Return the fields and the file of a form. Raises `bad_request`, and `unsupported_media_type` if it is encoded."""
    request.check_plain()
    stream, size = (BytesIO(request.body), len(request.body)) if request.upload is None else request.upload
    boundary = parse_options_header(request.environ.get("CONTENT_TYPE", ""))[1].get("boundary", "")
    texts, files = FormTexts(), dict[str, SentFile]()
    write: Callable[[bytes], object] = texts.add
    pieces = iter(lambda: stream.read(PIECE_BYTES), b"")
    try:
        with needing_room(), PushMultipartParser(boundary, size, max_segment_count=MAX_FIELDS) as parser:
            stream.seek(0)
            for event in chain.from_iterable(map(parser.parse, pieces)):
                if isinstance(event, MultipartSegment):
                    write = _begin(event, request, texts, files)
                elif event:
                    write(event)
            for sent in files.values():
                sent.stream.seek(0)
        return texts.pairs(), files
    except ParserLimitReached:
        raise Refusal("bad_request", TOO_MUCH) from None
    except ValueError:
        raise Refusal("bad_request", UNREADABLE) from None


def _begin(
    part: MultipartSegment, request: Request, texts: FormTexts, files: dict[str, SentFile]
) -> Callable[[bytes], object]:
    """Note a part of a form; return what takes its bytes. Raises the refusals of `read_form`."""
    if (part.header("Content-Transfer-Encoding") or "").strip().lower() not in PLAIN:
        raise Refusal("unsupported_media_type", ENCODED)
    file_name = file_name_of(part)
    if not file_name:
        return texts.begin(part.name if file_name is None else None)
    if files:
        raise Refusal("bad_request", SEVERAL)
    file = BytesIO() if request.upload is None else temporary_file(request)
    files[part.name] = SentFile(file_name, file)
    return file.write
