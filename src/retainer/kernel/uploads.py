"""Uploads: forms with a file, which may be larger than other bodies; they come to disk in pieces (RFC 7578)."""

from collections.abc import Callable
from io import BytesIO
from itertools import chain
from tempfile import TemporaryFile
from typing import BinaryIO, NamedTuple, cast

from multipart import MultipartSegment, PushMultipartParser, parse_options_header

from retainer.errors import Refusal
from retainer.kernel.http import MAX_BODY_BYTES, Request

FORM = "multipart/form-data"
"""How browsers send a form with a file."""
MAX_FILE_BYTES = 25 * 1024 * 1024
MAX_UPLOAD_BYTES = MAX_FILE_BYTES + 64 * 1024
"""Bytes of a form with a file of the maximum size, and of its other fields."""
MAX_FIELDS = 2000
"""Fields of a form: an invoice of 200 lines has nine for each."""
PIECE_BYTES = 64 * 1024
PATHS = ("/files", "/console/records/")
"""The paths that take files: that of the API as the pipeline knows it, and the beginning of those of the console."""


class SentFile(NamedTuple):
    """A file of a form: its name on the computer of the person, and its bytes."""

    name: str
    stream: BinaryIO


def is_upload(request: Request) -> bool:
    content_type: str = request.environ.get("CONTENT_TYPE", "")
    return content_type.partition(";")[0].strip().lower() == FORM


def may_be_large(request: Request) -> bool:
    """Return whether a request may have a body of up to MAX_UPLOAD_BYTES."""
    api, console = PATHS
    return request.method == "POST" and (request.path == api or request.path.startswith(console)) and is_upload(request)


def temporary_file(request: Request) -> BinaryIO:
    """Return a file that the response of a request closes, and that has no name: a kill leaves nothing.

    It is beside the embedded database, because the folder for temporary files is often in memory.
    """
    folder = request.settings.database_path.parent if request.settings.database_path else None
    file = cast("BinaryIO", TemporaryFile(dir=folder))  # noqa: SIM115  # the response closes it
    request.opened.append(file)
    return file


class Texts:
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
            raise ValueError
        self.parts[-1][1].extend(piece)

    def pairs(self) -> list[tuple[str, str]]:
        return [(name, text.decode()) for name, text in self.parts if name is not None]


def read_form(request: Request) -> tuple[list[tuple[str, str]], dict[str, SentFile]]:
    """Return the fields and the files of a form. Raises `bad_request` if it cannot be read."""
    stream, size = (BytesIO(request.body), len(request.body)) if request.upload is None else request.upload
    stream.seek(0)
    boundary = parse_options_header(request.environ.get("CONTENT_TYPE", ""))[1].get("boundary", "")
    texts, files = Texts(), dict[str, SentFile]()
    write: Callable[[bytes], object] = texts.add
    pieces = iter(lambda: stream.read(PIECE_BYTES), b"")
    try:
        with PushMultipartParser(boundary, size, max_segment_count=MAX_FIELDS) as parser:
            for event in chain.from_iterable(map(parser.parse, pieces)):
                if isinstance(event, MultipartSegment) and event.filename:
                    file = BytesIO() if request.upload is None else temporary_file(request)
                    files[event.name or ""] = SentFile(event.filename, file)
                    write = file.write
                elif isinstance(event, MultipartSegment):  # the name of a file is empty if none was chosen
                    write = texts.begin(event.name if event.filename is None else None)
                elif event:
                    write(event)
        for sent in files.values():
            sent.stream.seek(0)
        return texts.pairs(), files
    except ValueError:
        raise Refusal("bad_request", "The form cannot be read. Send it again, as multipart/form-data.") from None
