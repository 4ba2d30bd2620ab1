"""Read first: the slices, what an application holds, and its WSGI door."""

from collections.abc import Iterable
from typing import Any, BinaryIO

from retainer.api import (
    clients,
    contacts,
    credit_notes,
    expenses,
    invoice_lines,
    invoices,
    me,
    milestones,
    overview,
    profitability,
    projects,
    quote_lines,
    quotes,
    revenue,
    sites,
    tags,
    tasks,
    ticket_replies,
    tickets,
    time_entries,
    utilisation,
)
from retainer.domain.limits import Window
from retainer.kernel import pipeline
from retainer.kernel.http import Request
from retainer.kernel.resource import Routes
from retainer.server import site
from retainer.server.compression import compressed
from retainer.server.housekeeping import Housekeeping, KeysUsed
from retainer.server.log import Log
from retainer.server.slots import BodyReader, RunningSlots
from retainer.settings import BASE_PATH, Settings
from retainer.store.engines import Sqlite
from retainer.store.tx import Store

ROOT = f"{BASE_PATH}/"
SLICES = [
    clients.api,
    contacts.api,
    tags.api,
    projects.api,
    milestones.api,
    tasks.api,
    time_entries.api,
    expenses.api,
    quotes.api,
    quote_lines.api,
    invoices.api,
    invoice_lines.api,
    credit_notes.made,
    credit_notes.api,
    tickets.api,
    ticket_replies.api,
    sites.api,
    overview.api,
    revenue.by_client,
    revenue.by_month,
    utilisation.api,
    profitability.api,
    me.api,
]
"""Every resource of the API, in the order of the reference."""


class App:
    """What the stages of a request work with."""

    def __init__(self, settings: Settings, log: BinaryIO) -> None:
        self.settings = settings
        self.store = Store(Sqlite(settings.database_path))
        self.window = Window()
        self.running = RunningSlots(settings.threads)
        self.bodies = BodyReader(self.running)
        self.routes = Routes(SLICES)
        self.log = Log(log)
        self.keys_used = KeysUsed()
        self.housekeeping = Housekeeping(self)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request: the API by the pipeline, everything outside its base path by the site."""
        path = environ["PATH_INFO"]
        is_api = path.startswith(ROOT) or path == BASE_PATH
        if is_api:
            environ["PATH_INFO"] = path[len(BASE_PATH) :]
        request = Request(environ, self.settings)
        with self.running:
            response = compressed(request, pipeline.answer(request, self) if is_api else site.answer(request, self))
        start_response(pipeline.STATUS_LINES[response.status], response.headers)
        return [] if request.method == "HEAD" else [response.body]
