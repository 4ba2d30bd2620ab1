"""Migrations: upgrade the schema of a database once, under a lock, and only when it is behind."""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import text

from retainer.store.engines import Sqlite, Unavailable
from retainer.store.tx import Store

MIGRATIONS = Path(__file__).parent
NETWORK_FILE_SYSTEMS = re.compile(r"nfs\d?|cifs|smb\w*|9p|fuse\.sshfs|ceph|glusterfs")


def private(name: str, flags: int) -> int:
    """Open a file; if it is created, only its owner may read and write it."""
    return os.open(name, flags, 0o600)


def exposed(path: Path) -> list[Path]:
    """Return the folder and files of a database that other users of this machine may access."""
    paths = [path.parent, path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))]
    return [file for file in paths if file.exists() and file.stat().st_mode & 0o077]


def head() -> str:
    """Return the newest revision of this version of the program."""
    return max(path.stem.split("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))


def current(store: Store) -> str | None:
    """Return the revision of a database; None when it is empty."""
    with store.unscoped("the schema is nobody's") as tx:
        if tx.one(text("SELECT name FROM sqlite_master WHERE name = 'alembic_version'")) is None:
            return None
        revision: str | None = tx.value(text("SELECT version_num FROM alembic_version"))
        return revision


def migrate(engine: Sqlite) -> tuple[str | None, str]:
    """Upgrade the schema to the newest revision. Return the revisions before and after.

    Raises Unavailable for a database that a newer version has written, and for files on network shares.
    """
    _prepare(engine.path)
    store = Store(engine)
    before, newest = current(store), head()
    if before == newest:
        return before, newest
    with _lock(engine.path):
        before = current(store)
        if before is not None and before > newest:
            raise Unavailable(f"The database has revision {before}, newer than {newest}: run the newer version.")
        if before != newest:
            engine.close()
            _upgrade(engine)
    return before, newest


def _upgrade(engine: Sqlite) -> None:
    from alembic import command  # noqa: PLC0415  # takes 0.2 s, which a start without migration saves
    from alembic.config import Config  # noqa: PLC0415

    configuration = Config()
    configuration.set_main_option("script_location", str(MIGRATIONS))
    configuration.attributes["engine"] = engine.schema_engine()
    command.upgrade(configuration, "head")


def _prepare(path: Path) -> None:
    for folder in [*reversed(path.parent.parents), path.parent]:
        folder.mkdir(mode=0o700, exist_ok=True)
    kind = _file_system(path.parent.resolve())
    if NETWORK_FILE_SYSTEMS.fullmatch(kind):
        raise Unavailable(f"{path.parent} is on a network share ({kind}), where SQLite loses data. Use a local disk.")
    if not path.exists():  # SQLite creates -wal and -shm with the same mode
        path.touch(mode=0o600)


def _file_system(folder: Path) -> str:
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "unknown"
    lines = [line.split()[1:3] for line in mounts.read_text(encoding="utf-8").splitlines()]
    parents = [(len(mount_point), kind) for mount_point, kind in lines if folder.is_relative_to(mount_point)]
    return max(parents, default=(0, "unknown"))[1]


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with open(path.with_suffix(".lock"), "w", opener=private) as file:  # Path.open takes no opener
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
