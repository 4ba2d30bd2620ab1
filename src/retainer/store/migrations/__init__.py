"""Bringing a database's schema up to date: once, under a lock, and only when it is behind."""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, NullPool, create_engine, event, text

from retainer.store.engines import Sqlite, Unavailable
from retainer.store.store import Store

MIGRATIONS = Path(__file__).parent
NETWORK_FILE_SYSTEMS = re.compile(r"nfs\d?|cifs|smb\w*|9p|fuse\.sshfs|ceph|glusterfs")


def private(name: str, flags: int) -> int:
    """Open a file; one that is made is for its owner alone."""
    return os.open(name, flags, 0o600)


def exposed(path: Path) -> list[Path]:
    """What of a database others on this machine may read or change: its folder, and the files beside it."""
    found = [path.parent, path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))]
    return [each for each in found if each.exists() and each.stat().st_mode & 0o077]


def head() -> str:
    """The newest revision that this version of the program knows."""
    return max(path.stem.split("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))


def current(store: Store) -> str | None:
    """The revision of a database; None when it is empty."""
    with store.unscoped("the schema is nobody's") as tx:
        if tx.one(text("SELECT name FROM sqlite_master WHERE name = 'alembic_version'")) is None:
            return None
        revision: str | None = tx.value(text("SELECT version_num FROM alembic_version"))
        return revision


def migrate(engine: Sqlite) -> tuple[str | None, str]:
    """Bring the schema up to date; answers the revisions before and after.

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


def schema_engine(engine: Sqlite) -> Engine:
    """An engine for schema changes: the same driver and promises, its transactions begun as writes."""
    changing = create_engine("sqlite://", creator=engine.connect, module=engine.driver, poolclass=NullPool)
    event.listen(changing, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return changing


def _upgrade(engine: Sqlite) -> None:
    from alembic import command  # noqa: PLC0415  # a fifth of a second that a start without migration need not spend
    from alembic.config import Config  # noqa: PLC0415

    configuration = Config()
    configuration.set_main_option("script_location", str(MIGRATIONS))
    configuration.attributes["engine"] = schema_engine(engine)
    command.upgrade(configuration, "head")


def _prepare(path: Path) -> None:
    for folder in [*reversed(path.parent.parents), path.parent]:
        folder.mkdir(mode=0o700, exist_ok=True)
    kind = _file_system(path.parent.resolve())
    if NETWORK_FILE_SYSTEMS.fullmatch(kind):
        raise Unavailable(f"{path.parent} is on a network share ({kind}), where SQLite loses data. Use a local disk.")
    if not path.exists():  # SQLite gives the files beside it the same mode
        path.touch(mode=0o600)


def _file_system(folder: Path) -> str:
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "unknown"
    found = [line.split()[1:3] for line in mounts.read_text(encoding="utf-8").splitlines()]
    over = [(len(place), kind) for place, kind in found if folder.is_relative_to(place)]
    return max(over, default=(0, "unknown"))[1]


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with open(path.with_suffix(".lock"), "w", opener=private) as file:  # Path.open takes no opener
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
