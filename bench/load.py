"""Measure Retainer against the hand-written yardstick: python bench/load.py [--seconds S] [--rounds N]."""

import argparse
import contextlib
import itertools
import os
import random
import re
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

import bare
from retainer.domain import accounts
from retainer.settings import BASE_PATH
from retainer.store.engines import Sqlite
from retainer.store.migrate import migrate
from retainer.store.tx import Store

HERE = Path(__file__).resolve().parent
CLIENTS, CONTACTS, TAGS, KEYS = 10_000, 2_500, 12, 500
CONNECTIONS, THREADS = 16, 16
TARGETS = {"read one": 0.70, "list 25 with total": 0.75, "create": 0.70}
TICK = os.sysconf("SC_CLK_TCK")
STAMPS = re.compile(rb'"(?:created_at|updated_at)":"[^"]*",')
CITIES = ("Zürich", "Lyon", "Porto", "Gdańsk", "Leeds", "Austin")

INSERT_TAG = """
INSERT INTO tags (account_id, created_at, updated_at, name, name_folded, search)
SELECT ?1, created_at, created_at, ?2, ?3, ?3 FROM accounts WHERE id = ?1"""
INSERT_CONTACT = """
INSERT INTO external_contacts (account_id, created_at, updated_at, client_id, name, email, role, is_primary, status,
                               last_name_folded, email_folded, search)
SELECT ?1, created_at, created_at, ?2, ?3, ?3, 'general', 0, 'active', ?3, ?3, ?3 FROM accounts WHERE id = ?1"""


@dataclass
class Server:
    """A running server, and the requests that are measured on it."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    requests: dict[str, Iterator[bytes]]


@dataclass
class Turn:
    """What a server did in one turn: requests, wall seconds, its CPU seconds and the load generator's."""

    answered: int
    wall: float
    server: float
    load: float

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.answered / self.wall


class Connection:
    """One keep-alive connection and the part of a response that has arrived."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray(1 << 20)
        self.view = memoryview(self.buffer)
        self.have = 0

    def receive(self, expected: bytes) -> bool:
        """Take what has arrived; answers whether a response is complete."""
        got = self.socket.recv_into(self.view[self.have :])
        self.have += got
        head = self.buffer.find(b"\r\n\r\n", 0, self.have)
        if got and head < 0:
            return False
        at = self.buffer.find(b"content-length: ", 0, head) + 16
        if not got or at < 16 or not self.buffer.startswith(expected):
            raise SystemExit(f"Unexpected response: {bytes(self.view[: self.have])[:2000]!r}")
        return self.have == head + 4 + int(self.buffer[at : self.buffer.find(b"\r", at)])

    def body(self) -> bytes:
        """The body of the response that is complete."""
        return bytes(self.view[self.buffer.find(b"\r\n\r\n") + 4 : self.have])


def request(method: str, path: str, key: str, body: bytes = b"") -> bytes:
    """The bytes of a request; the same Host for both servers, so that links are the same too."""
    head = f"{method} {BASE_PATH}{path} HTTP/1.1\r\nHost: bench.example\r\nAuthorization: Bearer {key}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def ask(port: int, sent: bytes) -> bytes:
    """The body that answers one request."""
    connection = Connection(port)
    connection.socket.sendall(sent)
    while not connection.receive(b"HTTP/1.1 20"):
        pass
    connection.socket.close()
    return connection.body()


def drive(port: int, requests: Iterator[bytes], seconds: float) -> int:
    """Keep every connection busy for a time; answers how many responses came."""
    answered = 0
    with selectors.EpollSelector() as selector:
        connections = [Connection(port) for _ in range(CONNECTIONS)]
        for connection in connections:
            connection.socket.settimeout(0)
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            connection.socket.sendall(next(requests))
        end = time.perf_counter() + seconds
        waiting = CONNECTIONS
        while waiting:
            ready = selector.select(10)
            if not ready:
                raise SystemExit("The server has not answered for 10 seconds.")
            sending = time.perf_counter() < end
            for entry, _ in ready:
                connection = entry.data
                if connection.receive(b"HTTP/1.1 20"):
                    answered += 1
                    connection.have = 0
                    if sending:
                        connection.socket.sendall(next(requests))
                    else:
                        waiting -= 1
        for connection in connections:
            connection.socket.close()
    return answered


def measure(server: Server, scenario: str, seconds: float) -> Turn:
    """One turn: the server runs while the other is stopped; the first tenth is not counted."""
    os.killpg(server.process.pid, signal.SIGCONT)
    drive(server.port, server.requests[scenario], seconds / 10)
    began, server_cpu, load_cpu = time.perf_counter(), cpu_seconds(server), time.process_time()
    answered = drive(server.port, server.requests[scenario], seconds)
    turn = Turn(
        answered,
        time.perf_counter() - began,
        cpu_seconds(server) - server_cpu,
        time.process_time() - load_cpu,
    )
    os.killpg(server.process.pid, signal.SIGSTOP)
    return turn


def tree(root: int) -> list[int]:
    """A process and its descendants, the root first."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(fields[1])
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def cpu_seconds(server: Server) -> float:
    """User and system time of the server's processes."""
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in tree(server.process.pid)]
    return sum(int(fields[11]) + int(fields[12]) for fields in stats) / TICK


def fill(path: Path) -> list[str]:
    """Make the database: one enterprise account with clients, contacts, tags and keys; answers the keys."""
    engine = Sqlite(path)
    migrate(engine)
    store = Store(engine)
    details = accounts.AccountDetails(name="North Agency", plan="enterprise")
    admin = accounts.UserDetails(name="Ana Lima", email="ana@north.example", role="admin")
    account, user, _ = accounts.create_account(store, details, admin)
    accounts.switch_api(store, account, on=True)
    scopes = ["clients:read", "clients:write"]
    keys = [accounts.create_key(store, account, accounts.KeyDetails(f"key {n}", user, scopes))[1] for n in range(KEYS)]
    connection = bare.connect(str(path))
    caller = connection.execute(bare.KEY, (accounts.key_hash(keys[0]),)).fetchone()
    chance = random.Random(1)
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(INSERT_TAG, [(account, f"Tag {n}", f"tag {n}") for n in range(TAGS)])
    for n in range(CLIENTS):
        bare.insert(connection, caller, bare.decode(describe(chance, n)))
    rows = [(account, chance.randint(1, CLIENTS), f"bo.{n}@example.com") for n in range(CONTACTS)]
    connection.executemany(INSERT_CONTACT, rows)
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return keys


def describe(chance: random.Random, n: int) -> bytes:
    """The body of a create."""
    members = {
        "name": f"{chance.choice(CITIES)} Studio {chance.randrange(10**6)}",
        "status": chance.choice(("active", "active", "prospect", "archived")),
        "email": f"office.{n}@example.com",
        "phone": f"+41 44 {n:07}",
        "website": f"https://client-{n}.example.com",
        "address_line1": f"{chance.randint(1, 200)} Long Street",
        "city": chance.choice(CITIES),
        "postal_code": f"{chance.randint(1000, 99999)}",
        "country": "CH",
        "hourly_rate": f"{chance.randrange(50, 200)}.50" if n % 2 else None,
        "tax_rate": "7.5" if n % 3 else None,
        "notes": "Met at the fair; prefers e-mail." if n % 4 == 0 else None,
        "tag_ids": chance.sample(range(1, TAGS + 1), n % 3),
    }
    return msgspec.json.encode(members)


def prepare(keys: list[str]) -> dict[str, Iterator[bytes]]:
    """An endless stream of requests for each scenario, spread evenly over the keys; the same for each server."""
    chance = random.Random(2)
    made = [describe(chance, n) for n in range(4 * KEYS)]
    streams = {
        "read one": [request("GET", f"/clients/{chance.randint(1, CLIENTS)}", key) for key in keys * 8],
        "list 25 with total": [request("GET", "/clients", key) for key in keys],
        "create": [request("POST", "/clients", key, body) for key, body in zip(keys * 4, made, strict=True)],
    }
    return {scenario: itertools.cycle(requests) for scenario, requests in streams.items()}


def start(name: str, folder: Path, core: int, keys: list[str]) -> Server:
    """Start a server on a copy of the database, pinned to a core, and wait until it listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    database = folder / f"{name}.db"
    database.write_bytes((folder / "made.db").read_bytes())
    paths = [str(HERE), str(HERE.parent / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "BENCH_DATABASE": str(database),
        "RETAINER_DATA_DIR": str(folder),
        "RETAINER_DATABASE_URL": f"sqlite:///{database}",
    }
    command = [sys.executable, str(HERE / "bare.py"), str(port), str(THREADS)]
    if name == "Retainer":
        command = [sys.executable, "-m", "retainer", "serve", "--port", str(port), "--threads", str(THREADS)]
    quiet = subprocess.DEVNULL
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    process = subprocess.Popen(command, env=environment, cwd=folder, stdout=quiet, stderr=quiet, start_new_session=True)
    os.sched_setaffinity(0, before)
    server = Server(name, port, process, prepare(keys))
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except ConnectionRefusedError:
            time.sleep(0.1)
        else:
            return server
    stop(server)
    raise SystemExit(f"{name} does not listen.")


def stop(server: Server) -> None:
    """End a server and its descendants: ask first, kill what is left."""
    group = server.process.pid
    os.killpg(group, signal.SIGCONT)
    os.killpg(group, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.process.wait(5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    server.process.wait(5)


def compare(retainer: Server, yardstick: Server) -> None:
    """Both must answer the same bytes to reads, and the same members to a create; anything else is no comparison."""
    for scenario in TARGETS:
        for _ in range(50):
            sent = next(retainer.requests[scenario])
            if sent != next(yardstick.requests[scenario]):
                raise SystemExit("The two servers are not asked the same.")
            bodies = [ask(server.port, sent) for server in (retainer, yardstick)]
            if scenario == "create":
                bodies = [STAMPS.sub(b"", body) for body in bodies]
            if bodies[0] != bodies[1]:
                raise SystemExit(f"{scenario}: the answers differ.\nRetainer: {bodies[0]!r}\nBare:     {bodies[1]!r}")


def report(turns: dict[str, list[tuple[Turn, Turn]]]) -> None:
    """Print a line for each scenario: medians over the rounds."""
    columns = (
        "scenario",
        "Retainer/s",
        "bare/s",
        "ratio",
        "target",
        "Retainer CPU",
        "bare CPU",
        "server core",
        "load core",
    )
    print(("{:<18}" + "{:>14}" * 8).format(*columns))
    for scenario, rounds in turns.items():
        ours, theirs = zip(*rounds, strict=True)
        ratio = statistics.median(a.rate / b.rate for a, b in rounds)
        cells = [
            *(f"{statistics.median(turn.rate for turn in side):.0f}" for side in (ours, theirs)),
            *(f"{ratio:.2f}", f"{TARGETS[scenario]:.2f}"),
            *(
                f"{statistics.median(turn.server / turn.answered for turn in side) * 1e6:.0f} us"
                for side in (ours, theirs)
            ),
            " / ".join(f"{statistics.median(turn.server / turn.wall for turn in side):.0%}" for side in (ours, theirs)),
            " / ".join(f"{statistics.median(turn.load / turn.wall for turn in side):.0%}" for side in (ours, theirs)),
        ]
        print(("{:<18}" + "{:>14}" * 8).format(scenario, *cells))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=2.0, help="how long each server is measured at a time")
    options.add_argument("--rounds", type=int, default=5, help="how often each scenario is measured on each server")
    given = options.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        print("One core only: servers and load generator share it, and the figures mean little.")
    os.sched_setaffinity(0, {cores[-1]})
    servers: list[Server] = []
    turns: dict[str, list[tuple[Turn, Turn]]] = {scenario: [] for scenario in TARGETS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        keys = fill(folder / "made.db")
        try:
            servers = [start(name, folder, cores[0], keys) for name in ("Retainer", "bare")]
            compare(*servers)
            for server in servers:
                os.killpg(server.process.pid, signal.SIGSTOP)
            for _ in range(given.rounds):
                for scenario in TARGETS:
                    first, second = (measure(server, scenario, given.seconds) for server in servers)
                    turns[scenario].append((first, second))
        finally:
            for server in servers:
                stop(server)
    report(turns)


if __name__ == "__main__":
    main()
