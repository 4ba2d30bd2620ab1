"""Contents of files: their type, by their first bytes, and their pieces in the database."""

import hashlib
from collections.abc import Iterable, Iterator
from io import SEEK_SET
from typing import BinaryIO, NamedTuple

from sqlalchemy import bindparam, insert, select

from retainer.errors import invalid
from retainer.kernel.uploads import MAX_FILE_BYTES
from retainer.schema.files import PIECE_BYTES, file_pieces
from retainer.store.engines.sql import INTEGER
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx

BYTES, PDF = "application/octet-stream", "application/pdf"
BEGINNINGS = {b"%PDF-": PDF, b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}
"""The types that browsers may show, by the first bytes of such a file. They cannot run a script."""
SHOWN = frozenset(BEGINNINGS.values())

ADD_PIECE = insert(file_pieces).values(
    account_id=ACCOUNT,
    file_id=bindparam("file_id", type_=INTEGER),
    position=bindparam("position", type_=INTEGER),
    content=bindparam("content", type_=file_pieces.c.content.type),
)
PIECE = select(file_pieces.c.content).where(
    file_pieces.c.file_id == bindparam("file_id"), file_pieces.c.position == bindparam("position")
)


class Content(NamedTuple):
    """A file that was received: a stream of its bytes, their number, their type and their digest."""

    stream: BinaryIO
    size: int
    media_type: str
    sha256: str


def examine(stream: BinaryIO) -> Content:
    """Read a stream from its beginning, before the transaction that stores it, and return what it is.

    Raises `validation_failed` for more bytes than a file may have.
    """
    stream.seek(0, SEEK_SET)
    found = Content(stream, *measure(iter(lambda: stream.read(PIECE_BYTES), b"")))
    if found.size > MAX_FILE_BYTES:
        raise invalid({"content": ["Is larger than 25 MiB."]})
    return found


def measure(pieces: Iterable[bytes]) -> tuple[int, str, str]:
    """Return the size, the type and the digest of a file in pieces."""
    digest, size, media_type = hashlib.sha256(), 0, BYTES
    for piece in pieces:
        if not size:
            media_type = next((found for begin, found in BEGINNINGS.items() if piece.startswith(begin)), BYTES)
        digest.update(piece)
        size += len(piece)
    return size, media_type, digest.hexdigest()


def store_pieces(tx: Tx, file_id: int, stream: BinaryIO) -> None:
    """Store the bytes of a stream piece by piece: PostgreSQL has each of them before the next one is read."""
    stream.seek(0, SEEK_SET)
    position = 0
    while piece := stream.read(PIECE_BYTES):
        tx.change(ADD_PIECE, file_id=file_id, position=position, content=piece)
        position += 1


def read_pieces(tx: Tx, file_id: int, size: int) -> Iterator[bytes]:
    """Yield the pieces of a file in a snapshot. Raises ValueError if one is missing."""
    for position in range(count_pieces(size)):
        content = tx.value(PIECE, file_id=file_id, position=position)
        if content is None:
            raise ValueError(f"Piece {position} of file {file_id} is missing.")
        yield bytes(content)


def count_pieces(size: int) -> int:
    return -(-size // PIECE_BYTES)
