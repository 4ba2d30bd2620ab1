"""Private files and folders of a database on a local disk."""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any

from retainer.settings import SettingsError
from retainer.store.engines.base import WAIT_SECONDS, Unavailable

NETWORK_FILE_SYSTEMS = re.compile(r"nfs\d?|cifs|smb\w*|9p|fuse\.sshfs|ceph|glusterfs")


def private(name: str, flags: int) -> int:
    """Open a file; a new one can be read and written only by its owner."""
    return os.open(name, flags, 0o600)


def sync(path: Path) -> None:
    """Write a file or the names in a folder to the disk, so that they outlast a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_local_folder(folder: Path) -> None:
    for each in [*reversed(folder.parents), folder]:
        each.mkdir(mode=0o700, exist_ok=True)
    folder, mounts = folder.resolve(), Path("/proc/mounts")
    if not mounts.exists():  # the operating system does not say
        return
    lines = [line.split()[1:3] for line in mounts.read_text(encoding="utf-8").splitlines()]
    parents = [(len(mount_point), kind) for mount_point, kind in lines if folder.is_relative_to(mount_point)]
    _, kind = max(parents, default=(0, ""))
    if NETWORK_FILE_SYSTEMS.fullmatch(kind):
        raise Unavailable(f"{folder} is on a network share ({kind}), where SQLite loses data. Use a local disk.")


def free_bytes(folder: Path) -> int | None:
    """Return the room on the disk of a folder; None if it cannot be asked."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def lock_file(path: Path) -> IO[str] | None:
    """Open a file that one process may have, and that it deletes at its end; None if another one has it.

    Raises OSError if it cannot be written.
    """
    file = open(path, "w", opener=private)  # noqa: SIM115  # its holder closes it
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_held = os.fstat(file.fileno()).st_nlink == 0  # its holder has ended between open and flock
    except OSError:
        is_held = True
    if is_held:
        file.close()
    return None if is_held else file


@contextmanager
def served_alone(database: Path) -> Iterator[bool]:
    """Keep other processes from serving a database during a block; yield whether the last one ended cleanly.

    The file `.serving` has the lock. It is deleted at the end, so a kill or a power failure leaves it. A block that
    fails leaves it only if it was left before. Raises SettingsError if another process has it, and Unavailable.
    """
    marker = database.with_suffix(".serving")
    was_left = marker.exists()
    try:
        file = lock_file(marker)
    except OSError as error:
        reason = f"{marker.name} cannot be written: {str(error.strerror).lower()}"
        raise Unavailable(f"{database} cannot be served. {reason}. Check its folder and its disk.") from None
    if file is None:
        raise SettingsError(f"Another server serves {database}. Stop it first, or serve another database.")
    with file:
        sync(marker.parent)
        try:
            yield not was_left
        except BaseException:
            if not was_left:
                marker.unlink(missing_ok=True)
            raise
        marker.unlink(missing_ok=True)


def is_served(database: Path) -> bool:
    """Return whether a server of this machine serves a database now, as far as this user can see."""
    try:
        with database.with_suffix(".serving").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


@contextmanager
def exclusive(database: Path, driver: Any) -> Iterator[None]:
    """Keep other processes from opening a database while it is replaced. Raises Unavailable if one has it open."""
    with closing(driver.connect(str(database), WAIT_SECONDS, isolation_level=None)) as connection:
        try:
            connection.execute("PRAGMA journal_mode=DELETE").fetchall()
            connection.execute("BEGIN EXCLUSIVE")
            is_open = connection.execute("PRAGMA journal_mode").fetchone() != ("delete",)  # opened between both
        except driver.Error as error:  # a file that SQLite cannot open is not in use
            is_open = error.sqlite_errorname.startswith("SQLITE_BUSY")
        if is_open:
            raise Unavailable(f"Another process uses {database}. Stop servers, monitors and commands first.")
        yield


def accessible_files(database: Path) -> list[Path]:
    """Return the folder of a database, and those of its files, that other users of this machine may access."""
    sidecars = (database.with_name(f"{database.name}-{end}") for end in ("wal", "shm"))
    paths = [database.parent, database, *sidecars]
    return [path for path in paths if path.exists() and path.stat().st_mode & 0o077]
