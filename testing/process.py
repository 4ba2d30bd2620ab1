"""The product from outside: its processes, its command line, and HTTP over real sockets."""

import contextlib
import functools
import http.client
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self

import psycopg

import retainer
from retainer.identity.actors import operator_of
from retainer.identity.keys import keys
from retainer.identity.keys.keys import SCOPES, KeyDetails
from retainer.schema.migrations import migrate
from retainer.server.http.connections import IDLE_SECONDS
from retainer.settings import BASE_PATH
from retainer.store.engines import Sqlite, connect
from retainer.store.tx import Store
from testing.agencies import new_store, open_agency
from testing.ports import free_port
from testing.preloaded import Preloaded, Process

SOURCE = Path(retainer.__file__).resolve().parent.parent
COMMAND = [sys.executable, "-m", "retainer"]
PRELOADED: Preloaded | None = None
"""Set if commands begin as copies of a process that has loaded the product."""
PATIENCE = 60
START_PATIENCE = 300  # a demo fills its database first, which a busy machine may take minutes for
CRASH = re.compile(rf"ended with status -({signal.SIGABRT:d}|{signal.SIGBUS:d}|{signal.SIGSEGV:d})\b")
UNUSED_SECONDS = IDLE_SECONDS - 5  # before a server closes the connection
MAX_OUTPUT = 1 << 24
LIMIT_HEADERS = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")
LIVING_COLUMNS = {"last_used_at", "last_used_address"}
REQUEST_LOG = {"requests", "refusals", "request_hours", "operation_hours"}
Database = Path | str
"""The file of an embedded database, or the address of a PostgreSQL database."""


def environment(folder: Path, **settings: str) -> dict[str, str]:
    """Return the environment of a command: without our settings and those of Python, with its data in this folder."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("RETAINER_", "PYTHON"))}
    return inherited | {"PYTHONPATH": str(SOURCE), "RETAINER_DATA_DIR": str(folder / "data")} | settings


@dataclass
class Result:
    """The exit status and the output of a command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def command(folder: Path, *arguments: Any, **settings: str) -> Result:
    """Run a command to its end."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = spawn(folder, arguments, out, err, **settings)
        try:
            status = process.wait(PATIENCE * 2)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return Result(status, *(os.pread(file.fileno(), MAX_OUTPUT, 0).decode() for file in (out, err)))


def spawn(
    folder: Path, arguments: Iterable[Any], out: IO[bytes], err: IO[bytes], **settings: str
) -> subprocess.Popen[bytes] | Process:
    """Start a command in its own process group, with its output in files."""
    words, env = [str(argument) for argument in arguments], environment(folder, **settings)
    if PRELOADED is not None:
        return PRELOADED.start(words, folder, env, out, err)
    return subprocess.Popen([*COMMAND, *words], cwd=folder, env=env, stdout=out, stderr=err, start_new_session=True)


def tell(folder: Path, *arguments: Any, **settings: str) -> Any:
    """Run a command with --json, which must succeed; return the object on its standard output."""
    result = command(folder, *arguments, "--json", **settings)
    assert result.status == 0, result
    assert result.err == "", result
    assert isinstance(result.json, dict), result
    return result.json


@dataclass
class Answer:
    """A response over HTTP."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def data(self) -> Any:
        assert self.status in {200, 201}, self
        return self.json["data"]

    @property
    def code(self) -> str:
        return self.json["code"]

    @property
    def remaining(self) -> int:
        return int(self.headers["x-ratelimit-remaining"])

    def __repr__(self) -> str:
        return f"{self.status} {self.headers} {self.body[:500]!r}"


def checked(answer: Answer, method: str = "GET") -> Answer:
    """Return a response of the API, which must be JSON with the common headers, and no 5xx."""
    assert answer.status < 500, answer
    for name in LIMIT_HEADERS:
        assert re.fullmatch(r"\d+", answer.headers.get(name, "")), f"{name}: {answer}"
    assert answer.headers.get("x-request-id"), answer
    assert answer.headers.get("x-content-type-options") == "nosniff", answer
    if answer.status in {204, 304} or method == "HEAD":
        assert answer.body == b"", answer
        return answer
    assert answer.headers["content-type"] == "application/json; charset=utf-8", answer
    if answer.status >= 400:
        assert {"message", "code", "request_id", "docs_url"} <= set(answer.json), answer
        assert answer.json["request_id"] == answer.headers["x-request-id"], answer
    if answer.status == 401:
        assert answer.headers["www-authenticate"].startswith("Bearer"), answer
    return answer


class Client:
    """A keep-alive connection to the API, opened again after the server has closed it.

    Like the clients of integrators, it does not use a connection again that the server may just close as unused.
    """

    def __init__(
        self, port: int, key: str | None = None, address: str = "127.0.0.1", timeout: float = PATIENCE
    ) -> None:
        self.port = port
        self.timeout = timeout
        self.key = key
        self.address = address
        self._connection: http.client.HTTPConnection | None = None
        self._used_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def local_address(self) -> Any:
        """The address of this side of the connection: another one for another connection."""
        return self._connected().sock.getsockname()

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request with bytes, or with a value as JSON. Underscores in header names are dashes."""
        return checked(self.send(method, BASE_PATH + path, body, **headers), method)

    def send(self, method: str, target: str, body: Any = None, **headers: str) -> Answer:
        """Send a request to any target; its response is not checked."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.key is not None:
            sent.setdefault("Authorization", f"Bearer {self.key}")
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        if time.monotonic() - self._used_at > UNUSED_SECONDS:
            self.close()
        connection = self._connected()
        try:
            connection.request(method, target, body, sent)
            response = connection.getresponse()
            content = response.read()
        except Exception:
            self.close()
            raise
        self._used_at = time.monotonic()
        found = {name.lower(): value for name, value in response.getheaders()}
        if response.will_close:
            self.close()
        return Answer(response.status, found, content)

    def insist(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request again while it is refused with 503, as a write that waited too long for others may be."""
        end = time.monotonic() + PATIENCE
        while True:
            answer = self.send(method, BASE_PATH + path, body, **headers)
            if answer.status != 503 or time.monotonic() > end:
                return checked(answer, method)

    def get(self, path: str, **headers: str) -> Answer:
        return self.call("GET", path, **headers)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        return self.call("POST", path, body, **headers)

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            self._used_at = time.monotonic()
            source = (self.address, 0)
            self._connection = http.client.HTTPConnection(
                "127.0.0.1", self.port, timeout=self.timeout, source_address=source
            )
        return self._connection


@dataclass
class Server:
    """A running server with its own folder and process group."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | Process
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def database(self) -> Any:
        return self.settings.get("RETAINER_DATABASE_URL") or self.folder / "data" / "retainer.db"

    def client(self, key: str | None = None, address: str = "127.0.0.1", timeout: float = PATIENCE) -> Client:
        return Client(self.port, key, address, timeout)

    def agency(self, name: str, plan: str) -> dict[str, Any]:
        """Open an agency with an admin, a member, and a key with all scopes, while the server runs."""
        with opened(self.database) as store:
            return open_agency(store, name, plan)

    def new_key(self, agency: dict[str, Any]) -> str:
        """Create a key of an agency with all scopes; return it."""
        details = KeyDetails("More", agency["admin_id"], list(SCOPES))
        with opened(self.database) as store, store.begin(operator_of(store, agency["account_id"]), write=True) as tx:
            return keys.create_key(tx, details).value

    def tell(self, *arguments: Any) -> Any:
        return tell(self.folder, *arguments, **self.settings)

    def log(self) -> str:
        """Return the whole lines of the log: the server may be writing the next one."""
        lines, end, _ = (self.folder / "err.txt").read_text(encoding="utf-8").rpartition("\n")
        return lines + end

    def crashes(self) -> list[str]:
        """Return the lines of the log that tell of a worker's crash; none if the log is no file."""
        lines = self.log().splitlines() if (self.folder / "err.txt").is_file() else []
        return [line for line in lines if CRASH.search(line)]

    def processes(self) -> list[int]:
        """Return the ids of the server's processes, the main process first."""
        return [self.process.pid, *children(self.process.pid)]

    def resident(self) -> int:
        """Return the memory of all its processes, in bytes."""
        return sum(resident(pid) for pid in self.processes())

    def stop(self) -> int:
        """Send SIGTERM; return the exit status."""
        self.process.terminate()
        try:
            return self.process.wait(timeout=35)
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill the whole process group, and wait until its last process has let go of its files."""
        members = group(self.process.pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=PATIENCE)
        until(lambda: all(map(has_ended, members)), "its processes have ended")


class Servers:
    """Servers of one database with some workers each; new clients connect to them in turn."""

    def __init__(self, *each: Server, workers: int = 1) -> None:
        self.each, self.workers = each, workers
        self._turns = itertools.cycle(each)
        self.database = each[0].database
        self.agency, self.new_key, self.tell = each[0].agency, each[0].new_key, each[0].tell

    def client(self, key: str | None = None, address: str = "127.0.0.1") -> Client:
        return next(self._turns).client(key, address)

    def processes(self) -> list[int]:
        """Return the process ids of all servers and workers."""
        return [pid for server in self.each for pid in server.processes()]

    def clients(self, key: str) -> list[Client]:
        """Return clients of each server, enough to reach nearly every worker."""
        return [server.client(key) for server in self.each for _ in range(4 if self.workers > 1 else 1)]


def children(pid: int) -> list[int]:
    """Return the ids of all descendants of a process, whichever of its threads started them."""
    try:
        tasks = [path.read_text(encoding="utf-8") for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    return [each for child in map(int, " ".join(tasks).split()) for each in (child, *children(child))]


def group(pid: int) -> list[int]:
    """Return the ids of a process group, also of those whose parent has ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if status_of(path.name)[2] == str(pid):
                found.append(int(path.name))
    return found


def status_of(pid: int | str) -> list[str]:
    """Return the fields of a process after its name: its state, its parent, its group and more (proc(5))."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()


def has_ended(pid: int) -> bool:
    """Return whether no thread of a process runs, not even one that finishes a write to the disk and keeps its files.

    Nobody may have asked for its exit status yet.
    """
    try:
        return status_of(pid)[0] == "Z" and len([*Path(f"/proc/{pid}/task").iterdir()]) == 1
    except OSError:
        return True


def resident(pid: int) -> int:
    """Return the memory of a process, in bytes; 0 if it has ended."""
    with contextlib.suppress(OSError):
        if found := re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="utf-8")):
            return int(found[1]) * 1024
    return 0


@contextlib.contextmanager
def opened(database: Database) -> Iterator[Store]:
    """Open a database in this process, which is faster than commands."""
    store = Store(connect(database)) if isinstance(database, str) else new_store(database)
    try:
        yield store
    finally:
        store.engine.close()


@functools.cache
def migrated() -> bytes:
    """Return the file of an empty, migrated database."""
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder) / "retainer.db") as store:
        migrate(store.engine)
        store.engine.close()
        return (Path(folder) / "retainer.db").read_bytes()


def with_database(folder: Path) -> Path:
    """Write an empty, migrated database into a folder, so that agencies can be opened; return the folder."""
    database = folder / "data" / "retainer.db"
    database.parent.mkdir(mode=0o700, parents=True)
    database.touch(mode=0o600)
    database.write_bytes(migrated())
    return folder


def start(folder: Path, *options: Any, port: int | None = None, does: str = "serve", **settings: str) -> Server:
    """Start a server whose output goes to files in its folder; return it when it answers."""
    port = port or free_port()
    with (folder / "out.txt").open("ab") as out, (folder / "err.txt").open("ab") as err:
        process = spawn(folder, (does, "--port", port, *options), out, err, **settings)
    server = Server(folder, port, process, settings)
    try:
        until(lambda: answers(server), "the server answers", START_PATIENCE)
    except BaseException:
        server.kill()
        raise
    return server


def answers(server: Server) -> bool:
    """Return whether the server answers. Raises AssertionError with its log if it has ended."""
    if server.process.poll() is not None:
        message = f"The server ended with {server.process.returncode}: {server.log()[-3000:]}"
        raise AssertionError(message)
    with server.client(address="127.0.0.99") as client:
        try:
            return client.send("GET", BASE_PATH + "/me").status == 401
        except OSError:
            return False


@contextlib.contextmanager
def running_together(folder: Path, count: int, **settings: str) -> Iterator[Servers]:
    """Servers with two workers each, which share a PostgreSQL and a Valkey, until the block ends.

    They have few threads, because PostgreSQL has connections for two such pairs.
    """
    settings = {"RETAINER_THREADS": "8", **settings}
    with contextlib.ExitStack() as stack:
        servers = []
        for number in range(count):
            place = folder / f"server{number}"
            place.mkdir()
            servers.append(stack.enter_context(running(place, "--no-monitor", "--workers", 2, **settings)))
        yield Servers(*servers, workers=2)


@contextlib.contextmanager
def running(folder: Path, *options: Any, **more: Any) -> Iterator[Server]:
    """A server that ends with the block."""
    server = start(folder, *options, **more)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()
        server.kill()
    assert not server.crashes(), server.crashes()


def until(condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """Wait until a condition is true; return its value. Raises AssertionError after some seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    message = f"Waited {seconds} seconds in vain: {what}"
    raise AssertionError(message)


def at_once(threads: int, work: Callable[[int], Any], times: int | None = None) -> list[Any]:
    """Call a function in many threads; return the results."""
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, range(times or threads)))


def statuses(answers: list[Answer]) -> dict[int, int]:
    """Return the number of responses by status."""
    return dict(Counter(answer.status for answer in answers))


def query(database: Database, statement: str) -> list[tuple[Any, ...]]:
    """Run a statement in the database; return its rows."""
    if isinstance(database, str):
        with psycopg.connect(database, autocommit=True) as session:
            return session.execute(statement.encode()).fetchall()
    with contextlib.closing(Sqlite.driver.connect(str(database), timeout=10)) as connection:
        return connection.execute(statement).fetchall()


def contents(database: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables, except what reads change: the last use of keys, and the request log."""
    names = {name for (name,) in query(database, "SELECT name FROM sqlite_master WHERE type = 'table'")}
    found = {}
    for name in names - REQUEST_LOG:
        columns = [row[1] for row in query(database, f"PRAGMA table_info({name})") if row[1] not in LIVING_COLUMNS]
        quoted = ", ".join(f'"{column}"' for column in columns)
        found[name] = sorted(query(database, f"SELECT {quoted} FROM {name}"), key=repr)
    return found


def unsound(database: Database) -> list[Any]:
    """Return the errors that integrity checks and our counters find in a database."""
    wrong: list[Any] = []
    if isinstance(database, Path):
        wrong += [row for row in query(database, "PRAGMA integrity_check") if row != ("ok",)]
        wrong += query(database, "PRAGMA foreign_key_check")
    for account, name, count in query(database, "SELECT account_id, name, count FROM totals"):
        ((real,),) = query(database, f"SELECT count(*) FROM {name} WHERE account_id = {account}")
        wrong += [(account, name, count, real)] if count != real else []
    return wrong


def raw(
    server: Server, data: bytes, address: str = "127.0.0.1", wait: float = 2.0, patience: float = PATIENCE
) -> tuple[list[Answer], bool]:
    """Send bytes; return all responses, and whether the server then closed the connection.

    The first response may take `patience` seconds, another one `wait` seconds.
    """
    with socket.create_connection(("127.0.0.1", server.port), timeout=patience, source_address=(address, 0)) as link:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            link.sendall(data)
        link.settimeout(wait)
        received, closed = drained(link, patience)
    return parsed(received), closed


def drained(link: socket.socket, patience: float = PATIENCE) -> tuple[bytes, bool]:
    """Return all bytes that arrive, and whether the other side closed.

    Before a whole response it waits `patience` seconds, after it as long as the timeout of the socket.
    """
    received, quiet = b"", link.gettimeout()
    while True:
        link.settimeout(quiet if is_whole(received) else patience)
        try:
            part = link.recv(65536)
        except TimeoutError:
            return received, False
        except ConnectionResetError:
            return received, True
        if not part:
            return received, True
        received += part


def is_whole(received: bytes) -> bool:
    """Return whether bytes end with a whole response."""
    *before, last = re.split(rb"(?=HTTP/1\.[01] \d{3} )", received)
    head, separator, body = last.partition(b"\r\n\r\n")
    length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
    return bool(before and separator) and len(body) >= int(length[1] if length else 0)


def parsed(received: bytes) -> list[Answer]:
    """Return the responses in the bytes of a connection; no byte may be left over."""
    found = []
    while received:
        head, separator, rest = received.partition(b"\r\n\r\n")
        assert separator, f"no HTTP answer: {received[:300]!r}"
        first, *lines = head.decode("latin-1").split("\r\n")
        assert first.startswith("HTTP/1."), f"no HTTP answer: {received[:300]!r}"
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        found.append(Answer(int(first.split()[1]), headers, rest[:length]))
        received = rest[length:]
    return found
