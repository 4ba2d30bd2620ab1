"""The embedded database as a file: copy it while it is written, check it, and replace it."""

import contextlib
import os
from pathlib import Path

from sqlalchemy import text

from retainer.background import Progress
from retainer.backup import BackupError
from retainer.backup.staging import move
from retainer.identity.accounts import has_accounts
from retainer.schema.migrations import current
from retainer.store.engines import Sqlite
from retainer.store.engines.base import Unavailable
from retainer.store.engines.files import exclusive, sync
from retainer.store.tx import Store
from retainer.values.exact import utcnow

PAGES = 256  # copied at a time
ANYTHING = text("SELECT name FROM sqlite_master")


def snapshot(database: Path, copy: Path, progress: Progress) -> str:
    """Write the state of a database to a new file; return its moment. Raises BackupError.

    A reading transaction keeps that state while pages are copied. Writers continue, and the copy never starts over, as
    SQLite's backups do without such a transaction (decision 8).
    """

    def show(_: int, left: int, total: int) -> None:
        progress("Copying", total - left, total)

    with contextlib.closing(Sqlite(database, is_limited=False)) as engine:
        try:
            with (
                contextlib.closing(engine.driver.connect(str(copy), isolation_level=None)) as target,
                Store(engine).unscoped() as tx,
            ):
                target.execute("PRAGMA synchronous=OFF")  # it is checked afterwards, and only the backup must last
                tx.value(ANYTHING)
                moment = utcnow()
                tx.connection.backup(target, pages=PAGES, progress=show, sleep=0)
        except engine.driver.Error as error:
            raise BackupError(f"{database} could not be copied to {copy.parent.parent}: {error}.") from None
    return moment


def damage(database: Path, *, thorough: bool) -> str | None:
    """Return the first error in the structure of a database, or None; `thorough` compares indexes with tables, too."""
    with contextlib.closing(Sqlite(database, is_limited=False)) as engine:
        try:
            found = engine.damage(thorough=thorough)
        except Unavailable as error:
            return f"it cannot be read: {error}"
    return f"it is corrupt: {found[0]}" if found else None


def schema_of(database: Path) -> str | None:
    """Return the schema of a sound database, `unknown` if it says nothing; None for one without tables."""
    with contextlib.closing(Sqlite(database)) as engine:
        store = Store(engine)
        return current(store) or ("unknown" if store.unscoped_one(ANYTHING) else None)


def is_empty(database: Path) -> bool:
    if not database.exists() or not database.stat().st_size:
        return True
    with contextlib.closing(Sqlite(database)) as engine:
        store = Store(engine)
        try:
            return store.unscoped_one(ANYTHING) is None if current(store) is None else not has_accounts(store)
        except Unavailable:
            return False


def replace(database: Path, new: Path, former: Path) -> None:
    """Replace a database, if there is one, with a new one; keep the former under another name.

    At every moment the name belongs to a complete database. Raises Unavailable if a process has the old one open.
    """
    if os.geteuid() == 0:  # for a server that runs as another user
        owner = (database if database.exists() else database.parent).stat()
        os.chown(new, owner.st_uid, owner.st_gid)
    sync(new)
    with exclusive(database, Sqlite.driver) if database.exists() else contextlib.nullcontext():
        if database.exists():
            os.link(database, former)
        for suffix in ("-wal", "-journal"):  # SQLite would apply those of a damaged database to the new one
            with contextlib.suppress(FileNotFoundError):
                database.with_name(database.name + suffix).rename(former.with_name(former.name + suffix))
        database.with_name(f"{database.name}-shm").unlink(missing_ok=True)
        move(new, database)
