"""Restore a backup: unpack, check and migrate it in a separate folder, then replace the database."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from retainer.backup import BackupError, Progress, archive, embedded
from retainer.backup.archive import Manifest
from retainer.backup.staging import staging_dir
from retainer.identity.people import tokens
from retainer.outbound import pause
from retainer.rollups import doctor
from retainer.schema.migrations import head, migrate
from retainer.store.engines import Sqlite
from retainer.store.tx import Store


class Restorable(msgspec.Struct):
    """A backup that was checked: its manifest, its unpacked and migrated database, and the wrong sums in it."""

    manifest: Manifest
    database: Path
    schema: str
    wrong_sums: list[str]


def check(file: Path, folder: Path, progress: Progress) -> Restorable:
    """Unpack a backup into a folder, migrate its database there, and check that it can be restored.

    Raises BackupError for the first error. Wrong sums are only returned: the doctor repairs them.
    """
    database = folder / "restored.db"
    manifest = archive.unpack(file, database, lambda manifest: _accept(manifest, file, folder), progress)
    progress("Checking", 0, 0)
    if damage := embedded.damage(database, thorough=True):
        raise BackupError(f"{file} holds no sound database: {damage}. Take another backup.")
    engine = Sqlite(database)
    try:
        before, after = migrate(engine)
        if before != manifest.schema:
            raise BackupError(f"The manifest of {file} names schema {manifest.schema}, but its database has {before}.")
        progress("Adding up", 0, 0)
        return Restorable(manifest, database, after, doctor.inspect(Store(engine), repair=False))
    finally:
        engine.close()


def _accept(manifest: Manifest, file: Path, folder: Path) -> None:
    """Raise BackupError if the schema is newer than this version knows, or the disk has too little room."""
    newest = head()
    if manifest.schema > newest:
        schemas = f"Its schema is {manifest.schema}, and this version knows schemas up to {newest}"
        raise BackupError(f"{file} was written by a newer version, {manifest.version}. {schemas}: install that one.")
    needed, free = 2 * manifest.database_bytes, shutil.disk_usage(folder).free  # a migration may write it again
    if free < needed:
        raise BackupError(f"{folder} has room for {free} bytes; to unpack {file} takes {needed}. Make room first.")


def restore(file: Path, database: Path, progress: Progress, *, force: bool = False) -> tuple[Restorable, Path | None]:
    """Replace the database with that of a backup; return the path of the former one, if there was one.

    Its background work is paused. Its sessions and password links are void, since some may have ended after the backup.
    Without `force`, a database with accounts is not replaced. Raises BackupError; then nothing has changed.
    """
    if not force and not embedded.is_empty(database):
        raise BackupError(
            f"{database} is not empty. Configure another database, or replace it with --force, which keeps the old one."
        )
    now = datetime.now(UTC)
    former = database.with_name(f"{database.stem}.before-restore-{now:%Y%m%dT%H%M%SZ}{database.suffix}")
    with staging_dir(database.parent) as folder:
        restorable = check(file, folder, progress)
        engine = Sqlite(restorable.database)
        try:
            reason = f"restored from a backup of {restorable.manifest.made_at}"
            for work in pause.EVERY:
                pause.pause(Store(engine), work, reason)
            tokens.revoke_all(Store(engine))
        finally:
            engine.close()
        embedded.replace(database, restorable.database, former)
    return restorable, former if former.exists() else None
