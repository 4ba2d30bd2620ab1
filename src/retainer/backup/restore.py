"""Restoring a backup: unpacked, examined and migrated beside the database before it takes its place."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from retainer.backup import BackupError, Progress, archive, embedded
from retainer.backup.archive import Manifest
from retainer.backup.workplace import workplace
from retainer.identity.people import expiry
from retainer.rollups import doctor
from retainer.schema.migrations import head, migrate
from retainer.sites.monitor import pause
from retainer.store.engines import Sqlite
from retainer.store.tx import Store


class Restorable(msgspec.Struct):
    """A backup that was read through: its manifest, and what became of its database, unpacked into a file."""

    manifest: Manifest
    database: Path
    schema: str
    wrong_sums: list[str]


def check(file: Path, folder: Path, progress: Progress) -> Restorable:
    """Unpack a backup into a folder and prove that it can be restored; its database is migrated there if it is older.

    Raises BackupError for the first thing that cannot be. Sums that are wrong are none: the doctor repairs them.
    """
    database = folder / "restored.db"
    manifest = archive.unpack(file, database, lambda manifest: _accept(manifest, file, folder), progress)
    progress("Examining", 0, 0)
    if damage := embedded.damage(database, thorough=True):
        raise BackupError(f"{file} holds no sound database: {damage}. Take another backup.")
    engine = Sqlite(database)
    try:
        before, after = migrate(engine)
        if before != manifest.schema:
            raise BackupError(f"{file} says that its schema is {manifest.schema}, but it is {before}.")
        progress("Adding up", 0, 0)
        return Restorable(manifest, database, after, doctor.inspect(Store(engine), repair=False))
    finally:
        engine.close()


def _accept(manifest: Manifest, file: Path, folder: Path) -> None:
    """Raise BackupError for a backup of a newer schema than this version knows, and for one that has no room."""
    newest = head()
    if manifest.schema > newest:
        wrote = f"It has revision {manifest.schema} of the schema, this version knows those up to {newest}"
        raise BackupError(f"{file} was written by a newer version, {manifest.version}. {wrote}: install that version.")
    needed, free = 2 * manifest.database_bytes, shutil.disk_usage(folder).free  # a migration writes it once more
    if free < needed:
        raise BackupError(f"{folder} has room for {free} bytes; to unpack {file} takes {needed}. Make room first.")


def restore(file: Path, database: Path, progress: Progress, *, force: bool = False) -> tuple[Restorable, Path | None]:
    """Put the database of a backup in place; return where the former one is, if there was one.

    Its monitor is paused, and no session and no link to set a password is valid: some may have ended since.
    It takes the place of a database with accounts only by `force`. Raises BackupError, and then nothing has changed.
    """
    if not force and not embedded.is_empty(database):
        raise BackupError(f"{database} is not empty. Configure another database, or keep it aside with --force.")
    now = datetime.now(UTC)
    former = database.with_name(f"{database.stem}.before-restore-{now:%Y%m%dT%H%M%SZ}{database.suffix}")
    with workplace(database.parent) as folder:
        restorable = check(file, folder, progress)
        engine = Sqlite(restorable.database)
        try:
            reason = f"restored from a backup of {restorable.manifest.made_at}"
            pause.pause(Store(engine), reason)
            expiry.revoke_all(Store(engine))
        finally:
            engine.close()
        embedded.replace(database, restorable.database, former)
    return restorable, former if former.exists() else None
