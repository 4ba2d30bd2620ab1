"""Create a backup: copy one state of the database, check the copy, and compress it with gzip."""

import gzip
import os
from datetime import datetime
from functools import partial
from pathlib import Path

import msgspec

from retainer.background import Progress
from retainer.backup import CHUNK, BackupError, embedded
from retainer.backup.staging import move, staging_dir
from retainer.store.engines.files import private

LEVEL = 4


class Backup(msgspec.Struct, frozen=True):
    schema: str
    made_at: str
    database_bytes: int


def create(database: Path, file: Path, progress: Progress, *, force: bool = False) -> Backup:
    """Write a backup of a database, served or not, to a file; replace an existing file only with `force`.

    Raises BackupError, also for a corrupt database, so that a bad backup never replaces a good one.
    """
    if file.is_dir() or not file.parent.is_dir():
        raise BackupError(f"{file} cannot be written: name a file in an existing folder.")
    if file.resolve() in {database.resolve().with_name(database.name + suffix) for suffix in ("", "-wal", "-shm")}:
        raise BackupError(f"{file} is the database itself. Name another file.")
    with staging_dir(file.parent) as folder:
        if file.exists() and not force:
            raise BackupError(f"{file} exists. Choose another name, or replace it with --force.")
        copy, unfinished = folder / "copy.db", folder / "partial"
        made_at = embedded.snapshot(database, copy, progress)
        progress("Checking", 0, 0)
        if damage := embedded.damage(copy, thorough=False):
            raise BackupError(f"No backup was made of {database}: {damage}. Restore the last good backup.")
        if (schema := embedded.schema_of(copy)) is None:
            raise BackupError(f"{database} is empty: there is nothing to back up.")
        backup = Backup(schema, made_at, copy.stat().st_size)
        _compress(copy, unfinished, backup, progress)
        move(unfinished, file)
    return backup


def _compress(database: Path, file: Path, backup: Backup, progress: Progress) -> None:
    """Write a file that only its owner can read, and flush it to the disk. The header of gzip has the moment."""
    moment = datetime.fromisoformat(backup.made_at).timestamp()
    with open(file, "xb", opener=private) as target:
        with database.open("rb") as source, gzip.GzipFile("", "wb", LEVEL, target, moment) as packed:
            for chunk in iter(partial(source.read, CHUNK), b""):
                packed.write(chunk)
                progress("Compressing", source.tell(), backup.database_bytes)
        target.flush()
        os.fsync(target.fileno())
