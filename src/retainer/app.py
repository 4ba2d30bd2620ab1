"""The application: the API, the console and the parts of a server, put together."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import IO, TYPE_CHECKING, Any, TypeVar

from retainer.api import ROUTES
from retainer.billing.client_links import PATH as CLIENT
from retainer.client_pages.site import ClientPages
from retainer.console.catalogue import Catalogue
from retainer.console.page_context import SESSION, Cookies
from retainer.console.site import Console, Notes, root
from retainer.errors import Refusal
from retainer.identity import plans
from retainer.identity.keys import keys
from retainer.identity.people import sessions
from retainer.identity.sign_in.throttle import Failures, SharedFailures, Throttle
from retainer.kernel.http import Request, Response
from retainer.kernel.limits import SlidingWindow
from retainer.kernel.pipeline import Pipeline
from retainer.kernel.representations import JobFailed
from retainer.kernel.roles import ROLES
from retainer.kernel.waiting import Ending, WaitingRequests
from retainer.mail.people import send_notice
from retainer.openapi import document as openapi
from retainer.reference import answers as reference
from retainer.server.http import site
from retainer.server.http.compression import compressed
from retainer.server.http.exchange import Exchange
from retainer.server.http.gate import Gate
from retainer.server.http.scope import environ_of
from retainer.server.monitoring.endpoints import Page, response_of
from retainer.server.monitoring.health import Health
from retainer.server.monitoring.housekeeping import Housekeeping
from retainer.server.monitoring.log import Log
from retainer.server.renderers import RendererEnded, Renderers
from retainer.settings import BASE_PATH, PUBLIC, Settings
from retainer.store.engines import GroupedSqlite, Sqlite, connect
from retainer.store.tx import Store
from retainer.traffic.recorder import RequestRecorder
from retainer.web import pages, well_known

if TYPE_CHECKING:
    from retainer.server.monitoring.metrics import MetricsPage, SharedMetrics, Slot

T = TypeVar("T")
ROOT = f"{BASE_PATH}/"
CONSOLE = "/console"
WRITING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
QUICK_METHODS, QUICK_FORMS = frozenset({"GET", "HEAD", "OPTIONS"}), frozenset({None, "*/*", "application/json"})
CATALOGUES = {role: Catalogue(ROUTES.operations, role) for role in ROLES}
"""What the console shows to each role, shared likewise."""

PAGES: Mapping[str, site.Page] = {
    ".well-known": well_known.answer_well_known,
    "assets": pages.answer_asset,
    "docs": partial(reference.answer, routes=ROUTES),
    "favicon.ico": well_known.answer_icon,
    "llms.txt": partial(reference.answer_llms, routes=ROUTES),
    "llms-full.txt": partial(reference.answer_llms_full, routes=ROUTES),
    "openapi.json": partial(openapi.answer, routes=ROUTES),
    "openapi.yaml": partial(openapi.answer, routes=ROUTES),
    "robots.txt": well_known.answer_robots,
}
"""The pages outside the base path, by the first part of the path."""


class App:
    """The application of a worker, which counts in its slot of the `metrics`."""

    def __init__(
        self,
        settings: Settings,
        log: IO[bytes],
        ending: Ending | None = None,
        metrics: "SharedMetrics | None" = None,
        worker_index: int = 0,
        renderers: Renderers | None = None,
    ) -> None:
        self.settings = settings
        self.ending = ending or Ending()
        self.waiting = WaitingRequests(self.ending)
        engine = connect(settings.database)
        announced: Callable[[int], None] = self.waiting.notify
        if isinstance(engine, GroupedSqlite):
            announced = engine.once_durable(announced)
        self.store = Store(engine, announced, plans.limits_of(settings), settings.sender, send_notice)
        self.renderers = renderers or Renderers()
        slot, recorder = metrics.slots[worker_index] if metrics else None, RequestRecorder()
        kept = recorder if settings.request_log_days else None
        self.log = Log(log, self.store.engine, kept, slot.count if slot else None)
        self.gate = Gate(settings.threads, self.log.failure, self.ending, self.account_of, engine)
        self.limiter, failures = create_counters(settings, self.log)
        self.throttle = Throttle(self.limiter, failures, self.gate.turns.left)
        self.health = Health(
            self.store, self.limiter, self.log.outages, self.ending.is_stopping, uses_valkey=bool(settings.valkey_url)
        )
        self.metrics, note_state = create_metrics(self, metrics, slot)
        self.housekeeping = Housekeeping(self.store, self.limiter, self.log, recorder, settings, note_state)
        self.monitoring = self.pages(PUBLIC)
        self.pipeline = Pipeline(
            store=self.store,
            routes=ROUTES,
            limiter=self.limiter,
            log_request=self.log.request,
            report=self.log.report,
            authenticate=keys.authenticate,
            admit=keys.admit,
            note_key_use=self.housekeeping.keys_used.note,
            waiting=self.waiting,
            run_apart=self.run_apart,
        )
        notes = Notes(self.housekeeping.sessions_used.note, self.housekeeping.links_asked.note)
        console = Console(self.store, CATALOGUES, self.log.report, self.throttle, self.run_apart, notes)
        clients = ClientPages(
            self.store, self.limiter, self.log.report, self.run_apart, self.housekeeping.links_opened.note
        )
        pages = {**PAGES, "": root, "console": console.answer, CLIENT[1:]: clients.answer}
        self.site = site.PublicSite(pages, self.limiter, self.log.request, self.log.report)

    def take(self, watcher: Any) -> None:
        """Take a request from the HTTP server, in one of its threads; an error would be lost there."""
        scope, client = watcher.scope, watcher.proto
        try:
            environ = environ_of(scope)
            path: str = environ["PATH_INFO"]
            if page := self.monitoring.get(path):
                response = response_of(environ["REQUEST_METHOD"], page)
                client.response_bytes(response.status, response.headers, response.body)
                return
            is_api = path.startswith(ROOT) or path == BASE_PATH
            if is_api:
                environ["PATH_INFO"] = path[len(BASE_PATH) :]
            request = Request(environ, self.settings)
            answer, is_quick = (
                (self.answer, is_read(request)) if is_api else (self.show, not path.startswith((CONSOLE, CLIENT)))
            )
            writes = is_api and request.method in WRITING and not ROUTES.is_batch(request.path)
            self.gate.admit(Exchange(request, client, scope.client, answer, is_quick=is_quick, writes=writes))
        except BaseException as error:  # noqa: BLE001
            self.log.failure("taking a request", error)
            client.response_empty(500, [])

    def answer(self, request: Request) -> Response:
        """Answer a request to the API."""
        return compressed(request, self.pipeline.answer(request))

    def show(self, request: Request) -> Response:
        """Answer a request outside of the base path."""
        return compressed(request, self.site.answer(request), keep=True)

    def account_of(self, request: Request) -> int | None:
        """Return the account whose key or session a request has, if it may use it now."""
        with suppress(Refusal):
            return keys.authenticate(request, self.store).account_id
        token = Cookies(request).get(SESSION)
        return None if token is None else sessions.account_of(self.store, token)

    def run_apart(self, account_id: int, seconds: float, function: Callable[..., T], *arguments: object) -> T:
        """Return the result of a function from a renderer; meanwhile, another request takes its turn."""
        with self.gate.turns.left():
            try:
                return self.renderers.run(account_id, seconds, function, *arguments)
            except RendererEnded as ended:
                self.log.report("making a document", ended)
                raise JobFailed("end") from None

    def pages(self, address: str) -> dict[str, Page]:
        pages: dict[str, Page] = {}
        if self.settings.health == address:
            pages |= {"/livez": self.health.live, "/readyz": self.health.ready}
        if self.settings.metrics == address and self.metrics:
            pages["/metrics"] = self.metrics.answer
        return pages


def create_metrics(
    app: App, metrics: "SharedMetrics | None", slot: "Slot | None"
) -> tuple["MetricsPage | None", Callable[[], None] | None]:
    """Return the metrics page of all processes, and the function that updates the slot of this one."""
    if metrics is None or slot is None:
        return None, None
    from retainer.events.sender import schedule as deliveries  # noqa: PLC0415  # all are loaded only with metrics
    from retainer.jobs import loop as jobs  # noqa: PLC0415
    from retainer.server.monitoring.metrics import MetricsPage, Storage, noting  # noqa: PLC0415
    from retainer.sites.monitor import schedule as checks  # noqa: PLC0415

    engine = app.store.engine
    storage = Storage(app.settings, engine.path) if isinstance(engine, Sqlite) else None
    lateness = {"monitor": checks.lateness, "webhook": deliveries.lateness, "job": jobs.lateness}
    page = MetricsPage(metrics, app.store, storage, lateness, has_valkey=bool(app.settings.valkey_url))
    return page, noting(slot, app.gate.counts, engine, app.limiter, app.throttle, app.log)


def create_counters(settings: Settings, log: Log) -> tuple[SlidingWindow, Failures]:
    """Return the counters of requests and failed sign-ins: in Valkey, or in memory for this process."""
    if not settings.valkey_url:
        return SlidingWindow(), Failures()
    from retainer.kernel.limits_valkey import SharedWindow  # noqa: PLC0415  # its library is optional

    window = SharedWindow(settings.valkey_url, log.warning)
    return window, SharedFailures(window)


def is_read(request: Request) -> bool:
    """Return whether a request to the API reads records as JSON: then it waits for nothing but the database."""
    return request.method in QUICK_METHODS and request.environ.get("HTTP_ACCEPT") in QUICK_FORMS
