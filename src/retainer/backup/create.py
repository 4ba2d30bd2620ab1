"""Create a backup: copy one state of the database, check the copy, and compress it into a file."""

from pathlib import Path

from retainer import __version__
from retainer.backup import BackupError, Progress, archive, embedded
from retainer.backup.archive import FORMAT, PRODUCT, Manifest
from retainer.backup.staging import move, staging_dir
from retainer.schema.migrations import current
from retainer.store.engines import Sqlite
from retainer.store.tx import Store


def create(database: Path, file: Path, progress: Progress, *, force: bool = False) -> Manifest:
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
        copy, partial = folder / "copy.db", folder / "partial"
        made_at = embedded.snapshot(database, copy, progress)
        progress("Checking", 0, 0)
        if damage := embedded.damage(copy, thorough=False):
            raise BackupError(f"No backup was made of {database}: {damage}. Restore the last good backup.")
        manifest = Manifest(
            FORMAT, PRODUCT, __version__, _schema(copy), made_at, copy.stat().st_size, archive.digest(copy)
        )
        archive.write(partial, manifest, copy, progress)
        move(partial, file)
    return manifest


def _schema(copy: Path) -> str:
    engine = Sqlite(copy)
    try:
        schema = current(Store(engine))
    finally:
        engine.close()
    if schema is None:
        raise BackupError("The database is empty: there is nothing to back up.")
    return schema
