"""Read first: the slices, what an application holds, and its WSGI door."""

from collections.abc import Iterable
from typing import Any, BinaryIO

import falcon

from retainer import openapi
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
        self.site = site(self)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request: the API by the pipeline, everything outside its base path by the site."""
        path = environ["PATH_INFO"]
        if not path.startswith(ROOT) and path != BASE_PATH:
            return self.site(environ, start_response)
        environ["PATH_INFO"] = path[len(BASE_PATH) :]
        request = Request(environ, self.settings)
        with self.running:
            response = pipeline.answer(request, self)
        start_response(pipeline.STATUS_LINES[response.status], response.headers)
        return [] if request.method == "HEAD" else [response.body]


class Document:
    """The OpenAPI document of the running server."""

    def __init__(self, app: App) -> None:
        self.app = app

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Answer the document with the address under which it was asked for."""
        base_url = Request({**request.env, "PATH_INFO": "", "QUERY_STRING": ""}, self.app.settings).base_url
        response.data = openapi.render(self.app.routes.operations, base_url)
        response.content_type = falcon.MEDIA_JSON


def nothing_here(req: falcon.Request, resp: falcon.Response, **kwargs: Any) -> None:  # noqa: ARG001
    """Answer a path that is neither the site's nor the API's."""
    resp.status = falcon.HTTP_NOT_FOUND
    resp.media = {"message": f"There is nothing here. The API is at {BASE_PATH}.", "code": "not_found"}


def site(app: App) -> "falcon.App[falcon.Request, falcon.Response]":
    """What lies outside the base path."""
    pages = falcon.App()
    pages.add_route("/openapi.json", Document(app))
    pages.add_sink(nothing_here)
    return pages
