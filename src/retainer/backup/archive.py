"""The file format of backups: a compressed tar with a manifest and the database, which `tar xzf` opens too.

The manifest has the SHA-256 of the database; gzip has a checksum of everything.
"""

import gzip
import hashlib
import io
import os
import shutil
import tarfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec

from retainer.backup import BackupError, Progress
from retainer.store.engines.files import private
from retainer.values.decoding import decoder

FORMAT = 1
PRODUCT = "retainer"
MANIFEST, DATABASE = "manifest.json", "retainer.db"
LEVEL = 4
CHUNK = 1 << 20
MAX_MANIFEST_BYTES = 1 << 16
GZIP = b"\x1f\x8b"
FOREIGN = {
    b"SQLite format 3": "is a plain copy of a database, which may lack what its -wal file holds",
    b"PGDMP": "is a dump of PostgreSQL, for pg_restore",
}


class Manifest(msgspec.Struct, frozen=True):
    """The description of a backup: the program that wrote it, the state that it holds, and its checksum."""

    format: int
    product: str
    version: str
    schema: str
    made_at: str
    database_bytes: int
    sha256: str


def digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def write(path: Path, manifest: Manifest, database: Path, progress: Progress) -> None:
    """Write a backup that only its owner can read, and flush it to the disk."""
    with open(path, "xb", opener=private) as file:
        with (
            gzip.GzipFile("", "wb", LEVEL, file) as stream,
            tarfile.TarFile(mode="w", fileobj=stream, copybufsize=CHUNK) as tar,
            database.open("rb") as content,
        ):
            description = msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"
            tar.addfile(_entry(MANIFEST, len(description)), io.BytesIO(description))
            size = manifest.database_bytes
            tar.addfile(_entry(DATABASE, size), ProgressReader(content, "Compressing", size, progress))
        file.flush()
        os.fsync(file.fileno())


def unpack(path: Path, into: Path, accept: Callable[[Manifest], None], progress: Progress) -> Manifest:
    """Write the database of a backup to a new file, and return the manifest, which `accept` may refuse before.

    Raises BackupError unless everything is as it was written.
    """
    _check_kind(path)
    try:
        with gzip.open(path) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
            manifest = _manifest(path, tar)
            accept(manifest)
            content = ProgressReader(_content(path, tar, DATABASE), "Unpacking", manifest.database_bytes, progress)
            with open(into, "xb", opener=private) as file:
                shutil.copyfileobj(content, file, CHUNK)
            while stream.read(CHUNK):  # to the end, where gzip compares its checksum
                pass
    except (EOFError, ValueError, gzip.BadGzipFile, zlib.error, tarfile.TarError) as error:
        raise _damaged(path, str(error)) from None
    if into.stat().st_size != manifest.database_bytes or digest(into) != manifest.sha256:
        raise _damaged(path, "its database does not match its manifest")
    return manifest


class ProgressReader:
    """A file that reports how much of it has been read."""

    def __init__(self, file: IO[bytes], step: str, total: int, progress: Progress) -> None:
        self.file, self.step, self.total, self.progress, self.done = file, step, total, progress, 0

    def read(self, size: int = -1, /) -> bytes:
        chunk = self.file.read(size)
        self.done += len(chunk)
        self.progress(self.step, self.done, self.total)
        return chunk


def _check_kind(path: Path) -> None:
    if not path.is_file():
        raise BackupError(f"There is no file {path}.")
    with path.open("rb") as file:
        head = file.read(len(max(FOREIGN, key=len)))
    if not head.startswith(GZIP):
        kinds = [kind for magic, kind in FOREIGN.items() if head.startswith(magic)]
        raise BackupError(f"{path} is no backup of Retainer: it {kinds[0] if kinds else 'does not begin like one'}.")


def _damaged(path: Path, why: str) -> BackupError:
    return BackupError(f"{path} is damaged: {why}. Take another backup, or fetch this one again.")


def _manifest(path: Path, tar: tarfile.TarFile) -> Manifest:
    try:
        manifest = decoder(Manifest)(_content(path, tar, MANIFEST).read(MAX_MANIFEST_BYTES))
    except msgspec.DecodeError as error:
        raise _damaged(path, f"its manifest cannot be read: {error}") from None
    if (manifest.product, manifest.format) != (PRODUCT, FORMAT):
        writer = f"{manifest.product} {manifest.version}, in format {manifest.format}"
        raise BackupError(f"{path} was written by {writer}, which this version cannot read. Use that version.")
    return manifest


def _content(path: Path, tar: tarfile.TarFile, name: str) -> IO[bytes]:
    entry = tar.next()
    content = tar.extractfile(entry) if entry is not None and entry.name == name else None
    if content is None:
        raise _damaged(path, f"{name} is missing")
    return content


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = size, 0o600, int(time.time())
    return entry
