"""PgBouncer before a PostgreSQL server, for tests."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict
from testing.ports import free_port
from testing.process import until

from tests.skips import find_program


@contextlib.contextmanager
def pooled(folder: Path, url: str, mode: str) -> Iterator[str]:
    """A PgBouncer with its files in an empty folder; the block gets the address of a database behind it."""
    program, port, target = find_program("pgbouncer"), free_port(), conninfo_to_dict(url)
    database = f"host={target['host']} dbname={target['dbname']} user={target['user']}"
    lines = ["[databases]", f"pooled = {database}", "[pgbouncer]", f"pool_mode = {mode}"]
    lines += ["listen_addr = 127.0.0.1", f"listen_port = {port}", "unix_socket_dir =", "auth_type = any"]
    (folder / "pgbouncer.ini").write_text("\n".join(lines), encoding="utf-8")
    owner = Path(str(target["host"])).stat().st_uid  # PgBouncer does not run as root
    for path in (folder, *folder.iterdir()):
        os.chown(path, owner, -1)
    process = subprocess.Popen([program, str(folder / "pgbouncer.ini")], stderr=subprocess.DEVNULL, user=owner)
    address = f"postgresql://{target['user']}@127.0.0.1:{port}/pooled"
    try:
        until(lambda: answers(address), "PgBouncer answers")
        yield address
    finally:
        process.terminate()
        process.wait()


def answers(address: str) -> bool:
    """Return whether a database can be reached."""
    with contextlib.suppress(psycopg.OperationalError), psycopg.connect(address):
        return True
    return False
