"""Count the instructions of a request in one process, without HTTP: python -m bench.instructions [--requests N].

Valgrind's callgrind counts what the process does, the same on a busy machine as on a quiet one. Retainer and the
yardstick (bare.py) answer the same requests; each count is one line, beside what it is compared with: the same request
of the yardstick, or another one of Retainer.
"""

import argparse
import gc
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from retainer.settings import BASE_PATH, Settings

WARM = 30
COUNTED = 100
NOTHING, LINES, LOGGED = "nothing", "write log lines", "and the request log"
TARGETS = {"read one": 1.20, "list 25 with total": 1.08, "create client": 1.35}
"""At most so many times what the yardstick does."""
COMPARED = {
    "create time entry": ("create client", 1.5),
    "update client": ("create client", 1.5),
    "update time entry": ("create time entry", 1.5),
    "log a read": ("read one", 0.08),
}
"""Requests of Retainer alone: another one of its own, and at most so many times what that takes."""
REQUESTS = "requests.json"
PATIENCE_SECONDS = 3600
"""Time limit of a request and of a transaction: with valgrind, they take fifty times as long."""
WRITTEN = 1000
"""So many reads are logged at once: twice, and with the other requests, that is less than the limit of a minute."""
TRIGGER = re.compile(r"^desc: Trigger: (.*)$", re.MULTILINE)
SUMMARY = re.compile(r"^summary: (\d+)", re.MULTILINE)  # the totals also hold what ran before the counts were zeroed


def requests(count: int) -> dict[str, list[tuple[str, str, str]]]:
    """Return the requests of each scenario, as many as are needed: method, path and body."""
    from bench.data import CLIENTS, ENTRIES, describe, describe_time  # noqa: PLC0415

    rng = random.Random(3)
    many = range(count)
    entries = [f"/time-entries/{rng.randint(1, ENTRIES)}" for _ in many]
    clients = [f"/clients/{rng.randint(1, CLIENTS)}" for _ in many]
    return {
        NOTHING: [("GET", client, "") for client in clients],
        "read one": [("GET", client, "") for client in clients],
        "list 25 with total": [("GET", "/clients", "")] * count,
        "create client": [("POST", "/clients", describe(rng, CLIENTS + n).decode()) for n in many],
        "create time entry": [("POST", "/time-entries", describe_time(rng).decode()) for _ in many],
        "update client": [("PATCH", clients[n], json.dumps({"notes": f"Called {n}"})) for n in many],
        "update time entry": [("PATCH", entries[n], json.dumps({"description": f"Call {n}"})) for n in many],
    }


def send(app: Callable[..., Any], key: str, method: str, path: str, text: str) -> None:
    """Send a request as the HTTP server does, and end with an error when it is refused."""
    body = text.encode()
    environ = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": BASE_PATH + path,
        "QUERY_STRING": "",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "bench.example",
        "HTTP_AUTHORIZATION": f"Bearer {key}",
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
    }
    if body:
        environ |= {"CONTENT_LENGTH": str(len(body)), "CONTENT_TYPE": "application/json"}
    statuses: list[str] = []
    answer = b"".join(app(environ, lambda status, _headers: statuses.append(status)))
    if not statuses[0].startswith("20"):
        raise SystemExit(f"{method} {path}: {statuses[0]} {answer.decode()}")


def child(side: str, database: Path, key: str) -> None:
    """Answer the requests of each scenario, and let callgrind write its counts between them."""
    app, idle = OPENED[side](database)
    scenarios = json.loads(database.with_name(REQUESTS).read_bytes())
    gc.freeze()  # as a serving process does
    gc.set_threshold(20_000, 20, 50)
    for scenario, made in scenarios.items():
        if side == "bare" and scenario in COMPARED:
            continue
        answering = idle if scenario == NOTHING else app
        for request in made[:WARM]:
            send(answering, key, *request)
        control("--zero")
        for request in made[WARM:]:
            send(answering, key, *request)
        control(f"--dump={scenario}")
    if side == "Retainer":
        log_reads(app, key, scenarios["read one"])


def log_reads(app: Any, key: str, reads: list[tuple[str, str, str]]) -> None:
    """Write the log lines of reads, without the request log and with it."""
    recorder = app.log.recorder
    app.log.flush()
    recorder.write(app.store)  # so that the statements are prepared
    for scenario, each in ((LINES, None), (LOGGED, recorder)):
        for place in range(WRITTEN):
            send(app, key, *reads[place % len(reads)])
        app.log.recorder = each
        control("--zero")
        app.log.flush()
        if each is not None:
            each.write(app.store)
        control(f"--dump={scenario}")


def retainer(database: Path) -> tuple[Any, Any]:
    """Return the application, and one that does nothing: what is counted of it is the way to it, without a server."""
    from testing.wsgi import wsgi  # noqa: PLC0415

    from retainer.app import App  # noqa: PLC0415
    from retainer.server.http import gate  # noqa: PLC0415

    gate.REQUEST_SECONDS = PATIENCE_SECONDS
    app = App(Settings(database_url=f"sqlite:///{database}"), io.BytesIO())
    app.store.seconds = PATIENCE_SECONDS
    answer: Any = wsgi(app)
    answer.log, answer.store = app.log, app.store
    idle: Any = SimpleNamespace(take=lambda watcher: watcher.proto.response_bytes(200, [], b""))
    return answer, wsgi(idle)


def bare(database: Path) -> tuple[Any, Any]:
    """Return the yardstick, in a process without anything that the application tells the driver; and one that idles."""
    from bench.bare import Bare, Database  # noqa: PLC0415

    return Bare(Database(str(database))), lambda _, start_response: (start_response("200 OK", []), [b""])[1]


OPENED = {"Retainer": retainer, "bare": bare}


def control(command: str) -> None:
    """Tell callgrind what to do with the counts of this process."""
    subprocess.run(["callgrind_control", command, str(os.getpid())], check=True, capture_output=True)


def count(side: str, database: Path, key: str, each: int) -> dict[str, float]:
    """Return the instructions of one request of each scenario."""
    folder = database.parent / side
    folder.mkdir()
    copy = shutil.copy(database, folder / "bench.db")
    shutil.copy(database.with_name(REQUESTS), folder)
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", "--quiet"]
    command = [sys.executable, "-m", "bench.instructions", "--child", side, "--database", str(copy), "--key", key]
    subprocess.run([*valgrind, *command], check=True, env=os.environ | {"PYTHONHASHSEED": "0"})
    found = {}
    for part in folder.glob("out.*"):
        text = part.read_text(encoding="utf-8", errors="replace")
        trigger = TRIGGER.search(text)
        for scenario in (NOTHING, *TARGETS, *COMPARED, LINES, LOGGED):
            if trigger and trigger[1].endswith(scenario):
                found[scenario] = int(SUMMARY.findall(text)[-1])
    logged = (found.pop(LOGGED, 0) - found.pop(LINES, 0)) / WRITTEN
    overhead = found.pop(NOTHING)
    return {scenario: (total - overhead) / each for scenario, total in found.items()} | {"log a read": logged}


def report(ours: dict[str, float], theirs: dict[str, float]) -> None:
    """Print a line for each scenario: thousands of instructions, and their ratio to what it is compared with."""
    line = "{:<20}{:>12}{:>20}{:>9}{:>9}"
    print(line.format("k instructions", "Retainer", "compared with", "ratio", "target"))
    for scenario in (*TARGETS, *COMPARED):
        name, target = COMPARED.get(scenario, ("bare", TARGETS.get(scenario)))
        other = ours[name] if scenario in COMPARED else theirs[scenario]
        told = name if scenario in COMPARED else f"bare {other / 1000:.0f}"
        cells = (f"{ours[scenario] / 1000:.1f}", told, f"{ours[scenario] / other:.3f}", f"{target:.2f}")
        print(line.format(scenario, *cells))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--requests", type=int, default=COUNTED, help="how many requests are counted")
    options.add_argument("--child", choices=OPENED, help=argparse.SUPPRESS)
    options.add_argument("--database", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--key", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.child:
        child(given.child, given.database, given.key)
        return
    if not shutil.which("valgrind"):
        raise SystemExit("valgrind is missing, which counts the instructions: apt install valgrind.")
    with tempfile.TemporaryDirectory() as made:
        from bench.data import fill  # noqa: PLC0415

        database = Path(made) / "made.db"
        key = fill(database)[0]
        database.with_name(REQUESTS).write_text(json.dumps(requests(WARM + given.requests)), encoding="utf-8")
        report(*(count(side, database, key, given.requests) for side in OPENED))


if __name__ == "__main__":
    main()
