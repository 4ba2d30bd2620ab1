"""Read first: every resource of the API, the parts of a server put together, and the WSGI application."""

from collections.abc import Iterable, Mapping
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any

from retainer.billing import expenses
from retainer.billing.credit_notes import credit_notes
from retainer.billing.invoices import invoices
from retainer.billing.invoices import lines as invoice_lines
from retainer.billing.quotes import lines as quote_lines
from retainer.billing.quotes import quotes
from retainer.console.site import Console, root
from retainer.crm import clients, contacts, tags
from retainer.identity.keys import access, me
from retainer.identity.sign_in.failures import Failures, LocalFailures
from retainer.identity.sign_in.hashing_queue import HashingQueue
from retainer.identity.sign_in.throttle import Throttle
from retainer.kernel.http import Request
from retainer.kernel.limits import Limiter, SlidingWindow
from retainer.kernel.pipeline import Pipeline
from retainer.kernel.resource import Routes
from retainer.openapi import page as openapi_page
from retainer.reference import answers as reference
from retainer.reports import overview, profitability, revenue, utilisation
from retainer.server.http import site, spare_thread
from retainer.server.http.compression import compressed
from retainer.server.http.slots import FORM_SLOTS, BodyReader, RunningSlots
from retainer.server.operations.endpoints import STATUS_LINES, Operations, Page
from retainer.server.operations.health import Flag, Health
from retainer.server.operations.housekeeping import Housekeeping, KeysUsed
from retainer.server.operations.log import Log
from retainer.server.operations.writer import Stream
from retainer.settings import BASE_PATH, PUBLIC, Settings
from retainer.sites import sites
from retainer.store.engines import connect
from retainer.store.tx import Store
from retainer.support import ticket_replies, tickets
from retainer.traffic.recorder import RequestRecorder
from retainer.web import assets
from retainer.work import milestones, projects, tasks, time_entries

if TYPE_CHECKING:
    from retainer.server.operations.metrics import Board, MetricsPage

ROOT = f"{BASE_PATH}/"
CLOSE = ("connection", "close")
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

PAGES: Mapping[str, site.Page] = {
    "assets": assets.answer,
    "docs": partial(reference.answer, routes=ROUTES),
    "llms.txt": partial(reference.answer_llms, routes=ROUTES),
    "openapi.json": partial(openapi_page.answer, routes=ROUTES),
    "openapi.yaml": partial(openapi_page.answer_yaml, routes=ROUTES),
}
"""What is answered outside the base path, by the first part of the path."""


class App:
    """The application of a process: the parts of a server, put together.

    `operations` are the pages for machines beside the API. Figures go to a `place` on a board, if there is one.
    When the process `is_leaving` or the server `is_stopping`, clients are asked to close their connections.
    """

    def __init__(
        self,
        settings: Settings,
        log: Stream,
        is_stopping: Flag | None = None,
        board: "Board | None" = None,
        place: int = 0,
    ) -> None:
        self.settings = settings
        self.is_stopping, self.is_leaving = is_stopping or Event(), False
        self.store = Store(connect(settings.database))
        recorder = RequestRecorder()
        self.log = Log(log, self.store.engine, recorder if settings.request_log_days else None)
        self.running = RunningSlots(settings.threads)
        self.limiter, failures = create_counters(settings, self.log)
        self.throttle = Throttle(self.limiter, failures, HashingQueue(self.running.left))
        keys_used = KeysUsed()
        self.health = Health(self.store, self.limiter, self.is_stopping, uses_valkey=bool(settings.valkey_url))
        self.housekeeping = Housekeeping(
            self.store, (self.limiter, failures), self.log, keys_used, recorder, settings.request_log_days
        )
        self.metrics = measure(self, board, place) if board else None
        self.operations = Operations(self.pages(PUBLIC) | {spare_thread.PATH: partial(spare_thread.page, self.running)})
        read_body = BodyReader(self.running).read
        self.pipeline = Pipeline(
            store=self.store,
            routes=ROUTES,
            limiter=self.limiter,
            log=self.log,
            access=access,
            note_key_use=keys_used.note,
            read_body=read_body,
        )
        read_form = BodyReader(self.running, FORM_SLOTS).read
        console = Console(self.store, ROUTES.operations, read_body, read_form, self.log, self.throttle)
        self.site = site.Site({**PAGES, "": root, "console": console.answer}, self.limiter, self.log)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request: the API by the pipeline, everything outside its base path by the site."""
        path = environ["PATH_INFO"]
        is_api = path.startswith(ROOT) or path == BASE_PATH
        if is_api:
            environ["PATH_INFO"] = path[len(BASE_PATH) :]
        elif path in self.operations.pages:
            return self.operations(environ, start_response)
        request = Request(environ, self.settings)
        with self.running:
            response = compressed(request, (self.pipeline if is_api else self.site).answer(request))
        if (self.is_leaving or self.is_stopping.is_set()) and CLOSE not in response.headers:
            response.headers.append(CLOSE)
        start_response(STATUS_LINES[response.status], response.headers)
        return [] if request.method == "HEAD" else [response.body]

    def pages(self, place: str) -> dict[str, Page]:
        """Return the pages for machines that the settings put in a place."""
        pages: dict[str, Page] = {}
        if self.settings.health == place:
            pages |= {"/livez": self.health.live, "/readyz": self.health.ready}
        if self.settings.metrics == place and self.metrics:
            pages["/metrics"] = self.metrics.answer
        return pages


def measure(app: App, board: "Board", place: int) -> "MetricsPage":
    """Let an application keep its figures in its part of a board; return the page of all."""
    from retainer.server.operations.metrics import MetricsPage, State  # noqa: PLC0415  # its library is loaded where it is used

    part = board.parts[place]
    state = State(part, app.running, app.store.engine, app.limiter, app.log)
    state.note()
    app.log.count = part.count
    app.housekeeping.note_state = state.note
    return MetricsPage(board, app.store)


def create_counters(settings: Settings, log: Log) -> tuple[Limiter, Failures]:
    """Return what counts requests and failures to sign in: for all servers together, in Valkey, or for this process."""
    if not settings.valkey_url:
        return SlidingWindow(), LocalFailures()
    # The library of these is installed where it is used.
    from retainer.identity.sign_in.failures_valkey import SharedFailures  # noqa: PLC0415
    from retainer.kernel.limits_valkey import SharedWindow  # noqa: PLC0415

    window = SharedWindow(settings.valkey_url, log.warning)
    return window, SharedFailures(window)
