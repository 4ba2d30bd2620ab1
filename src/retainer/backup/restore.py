"""Restore a backup: unpack, check and migrate it in a separate folder, then replace the database."""

import errno
import gzip
import os
import shutil
import zlib
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from retainer.background import Progress
from retainer.backup import CHUNK, BackupError, embedded, former
from retainer.backup.create import Backup
from retainer.backup.staging import staging_dir
from retainer.identity.people import sessions
from retainer.jobs.loop import stop_all
from retainer.mail.sender.schedule import cancel_queued
from retainer.outbound import pause
from retainer.schema.migrations import migrate
from retainer.store.engines import Sqlite
from retainer.store.engines.files import private
from retainer.store.tx import Store
from retainer.values.exact import as_instant

MEGABYTE = 1_000_000
Examine = Callable[[Sqlite, Progress], list[str]]
"""Returns what is wrong in a database or was not checked. Raises BackupError for what no restored database may have."""
PROBABLY_ENDED = (
    "The database was restored from a backup of {}. At that time this job was running, and has probably ended since. "
    "Compare before you continue it."
)
PROBABLY_SENT = (
    "The database was restored from a backup of {}. At that time this message was about to be sent, so it has probably "
    "arrived. Send it again if it has not."
)


class Restorable(msgspec.Struct):
    """A backup that was checked: its unpacked and migrated database, the new schema, and what the doctor found."""

    backup: Backup
    database: Path
    schema: str
    wrong: list[str]
    """What is wrong or was not checked, each with its check."""


def check(file: Path, folder: Path, examine: Examine, progress: Progress) -> Restorable:
    """Unpack a backup into a folder, migrate its database there, and check that it can be restored.

    Raises BackupError for a damaged file and as `examine` does, Unavailable for a database of another version that
    cannot be migrated. All else that is wrong is only returned: the backup may be the best that there is.
    """
    database = folder / "restored.db"
    made_at = unpack(file, database, progress)
    progress("Checking", 0, 0)
    if damage := embedded.damage(database, thorough=True):
        raise BackupError(f"{file} holds no sound database: {damage}. Take another backup.")
    if (before := embedded.schema_of(database)) is None:
        raise BackupError(f"{file} holds no database of Retainer. Take another backup.")
    backup = Backup(before, made_at, database.stat().st_size)
    with closing(Sqlite(database, is_limited=False)) as engine:
        engine.location = str(file)  # as messages name it
        _, schema = migrate(engine)
        return Restorable(backup, database, schema, examine(engine, progress))


def unpack(file: Path, database: Path, progress: Progress) -> str:
    """Write the database of a backup to a new file, and return its moment. Raises BackupError if a byte was changed."""
    if not file.is_file():
        raise BackupError(f"There is no file {file}.")
    size = file.stat().st_size
    try:
        with file.open("rb") as source, gzip.open(source) as packed, open(database, "xb", opener=private) as target:
            for chunk in iter(partial(packed.read, CHUNK), b""):
                target.write(chunk)
                progress("Unpacking", source.tell(), size)
            made_at = as_instant(datetime.fromtimestamp(packed.mtime or 0, UTC))
        return former.unwrap(database, file) if former.is_former(database) else made_at
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        reason = f"is damaged, or no backup of Retainer: {error}"
        raise BackupError(f"{file} {reason}. Take another backup, or fetch this one again.") from None
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        free = (shutil.disk_usage(database.parent).free + database.stat().st_size) // MEGABYTE
        room = f"{file} unpacks to {unpacked_size(file) // MEGABYTE + 1:,} MB, and its disk has {free:,} MB free"
        raise BackupError(f"{room}. Nothing was changed: free space, then run the command again.") from None


def unpacked_size(file: Path) -> int:
    """Return the size of the database in a backup in bytes, up to 4 GB: the last four bytes of gzip."""
    with file.open("rb") as packed:
        packed.seek(-4, os.SEEK_END)
        return int.from_bytes(packed.read(), "little")


def restore(
    file: Path, database: Path, examine: Examine, progress: Progress, *, force: bool = False
) -> tuple[Restorable, Path | None]:
    """Replace the database with that of a backup; return the path of the former one, if there was one.

    Its background work is paused. Its sessions and password links are void, since some may have ended after the backup.
    Without `force`, a database with accounts is not replaced. Raises what `check` raises; then nothing has changed.
    """
    if not force and not embedded.is_empty(database):
        raise BackupError(
            f"{database} is not empty. Configure another database, or replace it with --force, which keeps the old one."
        )
    now = datetime.now(UTC)
    former = database.with_name(f"{database.stem}.before-restore-{now:%Y%m%dT%H%M%SZ}{database.suffix}")
    with staging_dir(database.parent) as folder:
        restorable = check(file, folder, examine, progress)
        with closing(Sqlite(restorable.database)) as engine:
            for work in pause.EVERY:
                pause.pause(Store(engine), work, f"restored from a backup of {restorable.backup.made_at}")
            cancel_queued(Store(engine), PROBABLY_SENT.format(restorable.backup.made_at))
            stop_all(Store(engine), PROBABLY_ENDED.format(restorable.backup.made_at))
            sessions.revoke_all(Store(engine))
        embedded.replace(database, restorable.database, former)
    return restorable, former if former.exists() else None
