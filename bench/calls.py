"""Count the calls of our own functions that a request makes: python -m bench.calls.

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

from testing.wsgi import wsgi

import retainer
from bench.data import open_agency
from bench.instructions import send
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


class Calls:
    """The number of calls by module, in all threads that begin after `watch`."""

    def __init__(self) -> None:
        self.modules: Counter[str] = Counter()

    def watch(self) -> None:
        threading.setprofile(self._count)  # a write is answered in another thread
        sys.setprofile(self._count)

    def _count(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SRC) and code.co_name not in NO_FUNCTIONS:
            self.modules[code.co_filename] += 1


def main() -> None:
    calls = Calls()
    calls.watch()
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
            calls.modules.clear()
            send(wsgi(app), key, *request)
            print(f"{name}: {calls.modules.total()} calls in {len(calls.modules)} modules")
        app.store.engine.close()


if __name__ == "__main__":
    main()
