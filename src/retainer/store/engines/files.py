"""Private files and folders of a database on a local disk."""

import os
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from retainer.store.engines.base import WAIT_SECONDS, Unavailable

NETWORK_FILE_SYSTEMS = re.compile(r"nfs\d?|cifs|smb\w*|9p|fuse\.sshfs|ceph|glusterfs")


def private(name: str, flags: int) -> int:
    """Open a file; a new one can be read and written only by its owner."""
    return os.open(name, flags, 0o600)


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
