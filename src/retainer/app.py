"""Read first: every resource of the API, the parts of a server put together, and the WSGI application."""

from collections.abc import Iterable
from functools import partial
from http import HTTPStatus
from typing import Any, BinaryIO

from retainer.billing import credit_notes, expenses, invoice_lines, invoices, quote_lines, quotes
from retainer.crm import clients, contacts, tags
from retainer.identity import access, me
from retainer.kernel.http import Request
from retainer.kernel.pipeline import Pipeline
from retainer.kernel.resource import Routes
from retainer.limits import Limiter, SlidingWindow
from retainer.openapi import page as openapi_page
from retainer.reference import answers as reference
from retainer.reports import overview, profitability, revenue, utilisation
from retainer.server.compression import compressed
from retainer.server.housekeeping import Housekeeping, KeysUsed
from retainer.server.log import Log
from retainer.server.site import Page, Site
from retainer.server.slots import BodyReader, RunningSlots
from retainer.settings import BASE_PATH, Settings
from retainer.sites import sites
from retainer.store.engines import connect
from retainer.store.tx import Store
from retainer.support import ticket_replies, tickets
from retainer.web import assets
from retainer.work import milestones, projects, tasks, time_entries

ROOT = f"{BASE_PATH}/"
STATUS_LINES = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}
RESOURCES = [
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


ROUTES = Routes(RESOURCES)
"""Which operation a request names; the same for every application of a process."""


class App:
    """The application of a process: the parts of a server, put together."""

    def __init__(self, settings: Settings, log: BinaryIO) -> None:
        self.settings = settings
        self.store = Store(connect(settings.database))
        self.log = Log(log)
        self.running = RunningSlots(settings.threads)
        limiter, keys_used = limiter_of(settings, self.log), KeysUsed()
        self.pipeline = Pipeline(
            store=self.store,
            routes=ROUTES,
            limiter=limiter,
            log=self.log,
            access=access,
            note_key_use=keys_used.note,
            read_body=BodyReader(self.running).read,
        )
        pages: dict[str, Page] = {
            "assets": assets.answer,
            "docs": partial(reference.answer, routes=ROUTES),
            "llms.txt": partial(reference.answer_llms, routes=ROUTES),
            "openapi.json": partial(openapi_page.answer, routes=ROUTES),
            "openapi.yaml": partial(openapi_page.answer_yaml, routes=ROUTES),
        }
        self.site = Site(pages, limiter, self.log)
        self.housekeeping = Housekeeping(self.store, limiter, self.log, keys_used)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request: the API by the pipeline, everything outside its base path by the site."""
        path = environ["PATH_INFO"]
        is_api = path.startswith(ROOT) or path == BASE_PATH
        if is_api:
            environ["PATH_INFO"] = path[len(BASE_PATH) :]
        request = Request(environ, self.settings)
        with self.running:
            response = compressed(request, (self.pipeline if is_api else self.site).answer(request))
        start_response(STATUS_LINES[response.status], response.headers)
        return [] if request.method == "HEAD" else [response.body]


def limiter_of(settings: Settings, log: Log) -> Limiter:
    """Return what counts requests: for all servers together if the settings name a Valkey, else in this process."""
    if not settings.valkey_url:
        return SlidingWindow()
    from retainer.limits_valkey import SharedWindow  # noqa: PLC0415  # its library is installed where it is used

    return SharedWindow(settings.valkey_url, log.warning)
