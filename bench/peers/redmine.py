"""Measure Retainer beside Redmine on one core, with one client: python -m bench.peers.redmine.

It needs Debian's packages redmine, redmine-sqlite and puma, and root, which owns their files. Redmine gets a copy of
its database; the installation does not change. The README of bench/ says what each of the two does for a request.
"""

import argparse
import contextlib
import http.client
import itertools
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from testing.ports import free_port
from testing.process import running, until, with_database

from retainer.settings import BASE_PATH

HOME = Path("/usr/share/redmine")
DATABASE = Path("/var/lib/dbconfig-common/sqlite3/redmine/instances/default/redmine_default")
SEED = Path(__file__).with_suffix(".rb")
BATCH = 100


class Request(NamedTuple):
    """A request of a scenario."""

    method: str
    path: str
    body: Any = None


class Peer(NamedTuple):
    """A running server, the header with the key of its API, and an endless stream of requests for each scenario."""

    port: int
    header: tuple[str, str]
    scenarios: dict[str, Iterator[Request]]


@contextlib.contextmanager
def redmine(folder: Path, count: int) -> Iterator[Peer]:
    """Redmine with some issues, each with a time entry."""
    if not HOME.is_dir() or not DATABASE.exists() or not shutil.which("puma"):
        raise SystemExit(
            "Redmine is not installed: apt-get install --no-install-recommends redmine redmine-sqlite puma"
        )
    database, port = folder / "redmine.db", free_port()
    shutil.copy(DATABASE, database)
    environment = os.environ | {
        "RAILS_ENV": "production",
        "REDMINE_INSTANCE": "default",
        "DATABASE_URL": f"sqlite3:{database}",
    }
    seed = ["ruby", "bin/rails", "runner", str(SEED), str(count)]
    printed = subprocess.run(seed, cwd=HOME, env=environment, check=True, capture_output=True, text=True).stdout
    made = json.loads(printed.splitlines()[-1])
    server = ["puma", "--threads", "1:1", "--bind", f"tcp://127.0.0.1:{port}", "config.ru"]
    with (folder / "redmine.log").open("wb") as log:
        process = subprocess.Popen(server, cwd=HOME, env=environment, stdout=log, stderr=log)
    issue = {"project_id": made["project"], "subject": "Write the texts"}
    entry = {"issue_id": made["first"], "hours": 1.5, "activity_id": made["activity"], "spent_on": "2026-03-02"}
    report = "/projects/peer/time_entries/report.csv?criteria%5B%5D=user&columns=month&f%5B%5D="
    scenarios = {
        "read one": (Request("GET", f"/issues/{made['first'] + n % count}.json") for n in itertools.count()),
        "list 25 with total": itertools.repeat(Request("GET", "/issues.json?limit=25")),
        "create": itertools.repeat(Request("POST", "/issues.json", {"issue": issue})),
        "create time entry": itertools.repeat(Request("POST", "/time_entries.json", {"time_entry": entry})),
        "report of the year": itertools.repeat(Request("GET", report)),
    }
    peer = Peer(port, ("X-Redmine-API-Key", made["key"]), scenarios)
    try:
        until(lambda: answers(peer), "Redmine answers", seconds=120)
        yield peer
    finally:
        process.terminate()
        process.wait(30)


@contextlib.contextmanager
def retainer(folder: Path, count: int) -> Iterator[Peer]:
    """Retainer with some tasks of a project, each with a time entry."""
    with running(with_database(folder), "--threads", 1, "--no-monitor", "--no-webhooks") as server:
        agency = server.agency("Peer", "enterprise")
        with server.client(agency["key"]) as client:
            project = client.insist("POST", "/projects", {"name": "Peer", "hourly_rate": "90"}).data["id"]
            for first in range(0, count, BATCH):
                numbers = range(first, min(first + BATCH, count))
                tasks = [{"project_id": project, "title": f"Task {number}"} for number in numbers]
                send_all(client, "/tasks", tasks)
                days = (f"2026-{1 + number % 12:02}-{1 + number % 28:02}" for number in numbers)
                send_all(client, "/time-entries", [entry_of(project, day) for day in days])
            oldest = client.get("/tasks?sort=id&per_page=1").data[0]["id"]
        report = "/reports/utilisation?from=2026-01-01&to=2026-12-31"
        task = {"project_id": project, "title": "Write the texts"}
        scenarios = {
            "read one": (Request("GET", f"{BASE_PATH}/tasks/{oldest + n % count}") for n in itertools.count()),
            "list 25 with total": itertools.repeat(Request("GET", f"{BASE_PATH}/tasks")),
            "create": itertools.repeat(Request("POST", f"{BASE_PATH}/tasks", task)),
            "create time entry": itertools.repeat(
                Request("POST", f"{BASE_PATH}/time-entries", entry_of(project, "2026-03-02") | {"duration_minutes": 1})
            ),
            "report of the year": itertools.repeat(Request("GET", BASE_PATH + report)),
        }
        yield Peer(server.port, ("Authorization", f"Bearer {server.new_key(agency)}"), scenarios)


def entry_of(project: int, day: str) -> dict[str, Any]:
    """Return the body of a time entry."""
    return {"project_id": project, "duration_minutes": 5, "date": day}


def send_all(client: Any, path: str, bodies: list[Any]) -> None:
    """Create records in one batch."""
    operations = [{"method": "POST", "path": path, "body": body} for body in bodies]
    answer = client.insist("POST", "/batch", {"operations": operations})
    wrong = [each for each in answer.data["results"] if each["status"] != 201]
    if wrong:
        raise SystemExit(f"Retainer refused a record of the measurement: {wrong[0]}")


def answers(peer: Peer) -> bool:
    """Return whether a server answers a read."""
    with contextlib.suppress(OSError, SystemExit):
        send(http.client.HTTPConnection("127.0.0.1", peer.port, timeout=30), peer, next(peer.scenarios["read one"]))
        return True
    return False


def send(connection: http.client.HTTPConnection, peer: Peer, request: Request) -> None:
    """Send a request and read its response. Raises SystemExit unless it succeeds."""
    body = None if request.body is None else json.dumps(request.body)
    headers = dict([peer.header]) | ({"Content-Type": "application/json"} if body else {})
    connection.request(request.method, request.path, body, headers)
    response = connection.getresponse()
    content = response.read()
    if response.status not in {200, 201}:
        raise SystemExit(f"{request.method} {request.path}: {response.status} {content[:500]!r}")


def measure(peer: Peer, scenario: str, count: int) -> float:
    """Return the median of the milliseconds of some requests, on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", peer.port, timeout=60)
    times = []
    for request in itertools.islice(peer.scenarios[scenario], count):
        began = time.perf_counter()
        send(connection, peer, request)
        times.append((time.perf_counter() - began) * 1000)
    connection.close()
    return statistics.median(times)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--records", type=int, default=1000, help="issues or tasks, and time entries, of each")
    options.add_argument("--requests", type=int, default=200, help="of each scenario and round")
    options.add_argument("--rounds", type=int, default=2)
    given = options.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.sched_setaffinity(0, {cores[0]})  # which the servers inherit
        ours = stack.enter_context(retainer(folder, given.records))
        theirs = stack.enter_context(redmine(folder, given.records))
        os.sched_setaffinity(0, {cores[-1]})
        print(f"{'median, milliseconds':<22}{'Retainer':>10}{'Redmine':>10}")
        for scenario in ours.scenarios:
            rounds = [[measure(peer, scenario, given.requests) for peer in (ours, theirs)] for _ in range(given.rounds)]
            print(f"{scenario:<22}" + "".join(f"{min(side):>10.2f}" for side in zip(*rounds, strict=True)))


if __name__ == "__main__":
    main()
