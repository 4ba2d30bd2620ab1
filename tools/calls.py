"""Count the calls of our own functions that a request makes: python -m tools.calls.

A function that is called is a step on the way of a reader, and its module is a file to open. Built-in functions and
libraries are not counted.
"""

import io
import json
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from bench.data import open_agency
from bench.instructions import send
from testing.wsgi import wsgi

import retainer
from retainer.app import App
from retainer.settings import Settings

SRC = str(Path(retainer.__file__).parent)
WARM = 3
UNBILLED = {"client_id": 1, "unbilled_work": {"time": {}, "expenses": {}}}
NO_FUNCTIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
REQUESTS = {"GET /clients": ("GET", "/clients", ""), "POST /invoices": ("POST", "/invoices", json.dumps(UNBILLED))}


def prepare(app: App, key: str) -> None:
    """Create a client with work that an invoice can bill."""
    entry = {"client_id": 1, "duration_minutes": 90, "description": "Plan", "date": "2026-03-02"}
    expense = {"client_id": 1, "amount": "12.50", "date": "2026-03-02", "category": "travel", "billable": True}
    made = {"/time-entries": entry, "/expenses": expense}
    for path, body in made.items():
        send(wsgi(app), key, "POST", path, json.dumps(body))


def calls_of(app: App, key: str, request: tuple[str, str, str]) -> Counter[str]:
    """Return the number of calls by module."""
    modules: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SRC) and code.co_name not in NO_FUNCTIONS:
            modules[code.co_filename] += 1

    threading.setprofile(count)  # for the thread that a write begins
    sys.setprofile(count)
    try:
        send(wsgi(app), key, *request)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return modules


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "calls.db"
        key = open_agency(database, 1).keys[0]
        app = App(Settings(database_url=f"sqlite:///{database}"), io.BytesIO())
        for number in range(25):
            send(wsgi(app), key, "POST", "/clients", json.dumps({"name": f"Client {number}"}))
        for name, request in REQUESTS.items():
            for _ in range(WARM):
                prepare(app, key)
                send(wsgi(app), key, *request)
            prepare(app, key)
            modules = calls_of(app, key, request)
            print(f"{name}: {modules.total()} calls in {len(modules)} modules")
        app.store.engine.close()


if __name__ == "__main__":
    main()
