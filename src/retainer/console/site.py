"""The console's requests: cross-site check, session, route, transaction, and error pages."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

from retainer.console import words
from retainer.console.catalogue import Catalogue
from retainer.console.page_context import ROOT, SESSION, Cookies, PageContext, Rehearsal, Reply, View, redirect_response
from retainer.console.pages import sign_in_pages, timer_pages
from retainer.console.routes import HOME, PATHS, Handler, Route, area_of
from retainer.errors import OF_THE_SERVER, NoSuchRecord, Refusal, method_not_allowed
from retainer.identity.people import sessions
from retainer.identity.sign_in.throttle import Throttle
from retainer.kernel import pipeline, uploads
from retainer.kernel.batch import ATOMIC_SECONDS
from retainer.kernel.downloads import NoRoom
from retainer.kernel.http import Request, Response
from retainer.kernel.limits import admit_person, hit_address
from retainer.kernel.pipeline import Report
from retainer.kernel.representations import RunApart
from retainer.server.http.site import no_page
from retainer.store import retries
from retainer.store.engines.base import Unavailable
from retainer.store.tx import ActorChanged, Store, Tx
from retainer.values.exact import utcnow
from retainer.web import forms
from retainer.web.forms import Form
from retainer.web.pages import compile_templates

T = TypeVar("T")
Act = Callable[[Tx, PageContext], T]
MAX_BYTES, MAX_CARRIED = 256 * 1024, 64 * 1024
"""Bytes of a form without files, and of one that a sign-in carries, whose fields it names again."""
MAX_ORIGIN = 2048
"""Characters of a page's address that are compared with that of the server."""
FORM_STATUSES = frozenset({402, 403, 412, 422, 429})
"""Refusals with these statuses are shown on the page of the form, others on an error page."""
SUSPENDED, SIGN_OUT = "account_suspended", "/sign-out"
HEADINGS: dict[int | str, str] = {
    SUSPENDED: "Account suspended",
    404: "Not found",
    403: "Not allowed",
    405: "Method not allowed",
    413: "Too large",
    429: "Too many requests",
    503: "Temporarily unavailable",
}
WAIT = (
    "The server is temporarily unavailable. Try again in a few seconds. "
    "If you sent a form, check first if it was processed."
)


class Notes(NamedTuple):
    """What is noted in memory, and written outside of requests."""

    use: Callable[[int, int, str | None], None]
    """Notes a use of a session: its account, the session, and the address of the request."""
    asked_link: Callable[[str], None]
    """Notes an email whose user asks for a password link."""


class Console:
    def __init__(
        self,
        store: Store,
        catalogues: Mapping[str, Catalogue],
        report: Report,
        throttle: Throttle,
        run_apart: RunApart,
        notes: Notes,
    ) -> None:
        self.notes = notes
        self.store, self.report, self.throttle, self.run_apart = store, report, throttle, run_apart
        self.catalogues = catalogues
        compile_templates("console")

    def answer(self, request: Request) -> Response:
        """Return a page or a redirect; any error is a page, too."""
        cookies, now = Cookies(request), utcnow()
        context = PageContext(
            *(request, self.catalogues["member"], cookies, {}, Form(), Form(), now, self.throttle, self.run_apart),
            ask_for_link=self.notes.asked_link,
        )
        former = words.LANGUAGE.set("en")
        try:
            return context.respond(self._turn_back(context) or self._answer(context))
        except Exception as error:  # noqa: BLE001  # any error is a page
            refusal = pipeline.to_refusal(error, request, self.report)
            is_general = refusal.code == "unavailable" and not isinstance(refusal, NoRoom)
            sentence = WAIT if is_general else _explain(context, refusal)
            problem = _problem(context, refusal.status, sentence, refusal.code)
            return context.respond(_with_headers(problem, refusal))
        finally:
            words.LANGUAGE.reset(former)

    def _turn_back(self, context: PageContext) -> Reply | None:
        """Raise the refusal of a request that was not admitted; return the way to sign in for a file without a session.

        It has no turn, so nothing is looked up: it counts as one of its address.
        """
        request = context.request
        try:
            request.check()
        except Refusal as refusal:
            hit_address(self.throttle.limiter, request.address, charge=refusal.status not in OF_THE_SERVER).admit()
            if not isinstance(refusal, uploads.UnknownSender):
                raise
            return _ended(context, request.path.removeprefix(ROOT))
        return None

    def _answer(self, context: PageContext) -> Reply:
        request = context.request
        path = request.path.removeprefix(ROOT)
        if path.endswith("/"):
            return context.redirect(path.rstrip("/"))
        if _is_cross_site(request):
            sentence = "This request came from another site, so it was refused. Open the console at {} and try again."
            return _problem(context, 403, sentence.format(request.origin + ROOT))
        token = self._recognize(context)
        if context.signed_in is not None:
            admit_person(self.throttle.limiter, context.person.account_id, context.person.user_id)
        else:
            known = sessions.known_browser(self.store, token)
            browser = request.address if known is None else f"browser {known.session_id}"
            hit_address(self.throttle.limiter, browser, charge=True).admit()
        found = PATHS.find(path)
        if context.signed_in is None and not (found and found[0].is_public):
            return self._ask_to_sign_in(context, path, found[0] if found else None)
        if found is None:
            raise Refusal("not_found", "This page does not exist. It may have moved.")
        route, context.path_parameters = found
        if turned_away := _turned_away(context, path, route):
            return turned_away
        context.query = forms.parse(request.query)
        try:
            return self._handle(route, context)
        except ActorChanged:  # the user lost a right while the page waited for its turn
            self._recognize(context)
            if context.signed_in:
                context.signed_in.require_running()
            return _forbidden(context) if context.signed_in else self._ask_to_sign_in(context, path, route)

    def _handle(self, route: Route, context: PageContext) -> Reply:
        request, show = context.request, route.show
        if request.method == "POST" and route.act is not None:
            context.form = _read_form(request, route)
            if show is None or context.form.text("step") != sign_in_pages.RESTORE:
                return self._act(route.act, route, context)
            context.is_restored = True
            return self._show(show, route, context)
        if request.method in {"GET", "HEAD"} and show is not None:
            return self._show(show, route, context)
        allowed = [*(["GET, HEAD"] if route.show else []), *(["POST"] if route.act else [])]
        raise method_not_allowed(request.method, ", ".join(allowed))

    def _recognize(self, context: PageContext) -> str | None:
        """Note the user of the session, and what the role may see; return the token of the session's cookie."""
        token, request = context.cookies.get(SESSION), context.request
        context.signed_in = None if token is None else sessions.person_of(self.store, token, request.shown_address)
        if context.signed_in is not None:
            person = context.signed_in
            words.LANGUAGE.set(person.language)
            request.account_id, context.catalogue = person.account_id, self.catalogues[person.role]
            self.notes.use(person.account_id, person.session_id or 0, request.shown_address)
        return token

    def _ask_to_sign_in(self, context: PageContext, path: str, route: Route | None) -> Reply:
        """Return a redirect to the sign-in; it carries the form of a page, unless that has a secret or a file."""
        if context.request.method != "POST":
            target = path + (f"?{context.request.query}" if path and context.request.query else "")
            return context.redirect(f"/sign-in?next={quote(target)}" if target else "/sign-in")
        if (
            route is not None
            and route.show
            and route.act
            and not route.has_store
            and not uploads.is_upload(context.request)
        ):
            try:
                form = context.form if context.form.texts else _read_form(context.request, route, MAX_CARRIED)
            except Refusal:
                form = Form()
            if form.texts.keys() - sign_in_pages.NOT_CARRIED:
                return sign_in_pages.carry(context, path, form)
        return _ended(context, path if route is not None and route.show and uploads.is_upload(context.request) else "")

    def _show(self, show: Handler, route: Route, context: PageContext) -> Reply:
        if route.is_public:
            return show(self.store, context)
        show = partial(_with_timer, show)
        if route.is_written or (route.is_rehearsal and not context.form.errors):
            try:
                return self._write(partial(_rehearse, show) if route.is_rehearsal else show, context, is_patient=False)
            except ActorChanged:
                raise
            except Unavailable:  # the page says what it lacks
                pass
        return self._read(show, context)

    def _read(self, read: Act[T], context: PageContext) -> T:
        with self.store.begin(context.person, write=False) as tx:
            tx.snapshot()
            found = read(tx, context)
            tx.raise_errors()
            return found

    def _act(self, act: Handler, route: Route, context: PageContext) -> Reply:
        """Do what a form asks for; if it is refused, show its page again with the input and the errors."""
        try:
            if route.read_file:
                route.read_file(context)
            if route.read is not None and (reply := self._read(partial(_read_once, route.read), context)):
                return reply
            if route.has_store:
                return act(self.store, context)
            return self._write(partial(_act_once, act), context)
        except Refusal as refusal:
            # On a cluster, a read may see what the first press did before it sees the answer: not so in the next turn.
            may_be_second = context.signed_in and (route.has_store or refusal.code == "precondition_failed")
            if may_be_second and (answer := self._write(lambda tx, context: context.earlier_answer(tx), context)):
                return answer
            if route.show is None or refusal.status not in FORM_STATUSES or refusal.code == SUSPENDED:
                raise
            context.form.refuse(refusal, context.worded(refusal))
            return _with_headers(self._show(route.show, route, context), refusal)

    def _write(self, act: Act[T], context: PageContext, *, is_patient: bool = True) -> T | Reply:
        """Act in a transaction that writes. Raises Unavailable, without patience if another write is running."""

        def work(tx: Tx) -> T:
            tx.request_id = context.request.id
            reply = act(tx, context)
            tx.raise_errors()
            return reply

        seconds = ATOMIC_SECONDS if self.store.engine.has_one_writer else None
        try:
            return retries.write(self.store, context.person, work, seconds=seconds, is_patient=is_patient)
        except Rehearsal as rehearsed:
            return rehearsed.view


def _ended(context: PageContext, path: str) -> Reply:
    """Return the way to sign in again, and then to a page whose form is not carried, such as one with a file."""
    target = f"?next={quote(path)}" if path else ""
    return context.redirect(f"/sign-in{target}", sign_in_pages.ENDED.format("Sign in again."), kind="warn")


def _turned_away(context: PageContext, path: str, route: Route) -> Reply | None:
    """Return the reply to a person who may not see a page, else None. Raises `account_suspended`."""
    person = context.signed_in
    if person is None:
        return None
    if not route.is_public and path != SIGN_OUT:
        person.require_running()
    if person.lacks_second_factor and not route.is_public and path not in {sign_in_pages.SECOND_FACTOR, SIGN_OUT}:
        return context.redirect(sign_in_pages.SECOND_FACTOR)
    if not context.may(route.area or area_of(path)):
        return _forbidden(context) if path else context.redirect(HOME)
    return None


def _with_timer(show: Handler, tx: Tx, context: PageContext) -> Reply:
    context.timer = timer_pages.find_running(tx, context)
    return show(tx, context)


def _rehearse(show: Handler, tx: Tx, context: PageContext) -> Reply:
    raise Rehearsal(show(tx, context))


def _read_form(request: Request, route: Route, limit: int = MAX_BYTES) -> Form:
    """Return the form of a request. Raises `body_too_large`, `unsupported_media_type`, and errors of reading it."""
    is_upload = route.read_file is not None and uploads.is_upload(request)
    if len(request.body) > limit and not is_upload:
        raise Refusal("body_too_large", f"The form is larger than {limit // 1024} KiB. Shorten your input.")
    content_type = request.environ.get("CONTENT_TYPE", "")
    if request.body and not is_upload and content_type.partition(";")[0] != forms.CONTENT_TYPE:
        expected = uploads.FORM if route.read_file else forms.CONTENT_TYPE
        raise Refusal("unsupported_media_type", f"Send this form as {expected}.")
    return forms.parse_upload(request) if is_upload else forms.parse_body(request)


def _read_once(read: Callable[[Tx, PageContext], Reply | None], tx: Tx, context: PageContext) -> Reply | None:
    context.timer = timer_pages.find_running(tx, context)
    return context.earlier_answer(tx) or read(tx, context)


def _act_once(act: Handler, tx: Tx, context: PageContext) -> Reply:
    return context.earlier_answer(tx) or context.answered(tx, act(tx, context))


def _is_cross_site(request: Request) -> bool:
    """Whether a request with an unsafe method comes from another origin than a page of the console.

    Browsers send `Sec-Fetch-Site`. If it is missing or `none`, `Origin` must be the public address of this server,
    scheme included.
    """
    site = request.header("SEC_FETCH_SITE")
    if request.method in {"GET", "HEAD", "OPTIONS"} or site == "same-origin":
        return False
    sent = _origin(request.header("ORIGIN") or "")
    return site not in {None, "none"} or sent is None or sent != _origin(request.origin)


def _origin(address: str) -> tuple[str, str, int] | None:
    if len(address) > MAX_ORIGIN:  # urllib keeps the last 128 that it has divided
        return None
    try:
        url = urlsplit(address)
        port = url.port or {"http": 80, "https": 443}.get(url.scheme)
    except ValueError:
        return None
    return (url.scheme, url.hostname, port) if url.hostname and port else None


def _with_headers(reply: Reply, refusal: Refusal) -> Reply:
    return reply._replace(headers=tuple(refusal.headers.items())) if isinstance(reply, View) else reply


def _forbidden(context: PageContext) -> Reply:
    sentence = f"Your role, {context.person.role}, does not include this page. Nothing was changed. Ask an admin."
    return _problem(context, 403, sentence)


def _explain(context: PageContext, refusal: Refusal) -> str:
    if not isinstance(refusal, NoSuchRecord):
        return context.worded(refusal)
    sees_all = context.signed_in is not None and context.may("records")
    return f"This {refusal.noun} does not exist{'. It may have been deleted.' if sees_all else ', or it is not yours.'}"


def _problem(context: PageContext, status: int, sentence: str, code: str = "") -> Reply:
    heading = HEADINGS.get(code) or HEADINGS.get(status, "Something went wrong")
    return context.render("problem", status=status, heading=heading, sentence=sentence, is_fault=status == 500)


def root(request: Request) -> Response:
    """Redirect browsers to the console, and other clients to the reference. Raises `not_found` for other methods."""
    if request.method not in {"GET", "HEAD"}:
        return no_page(request)
    return redirect_response(302, ROOT if "text/html" in (request.header("ACCEPT") or "") else "/docs")
