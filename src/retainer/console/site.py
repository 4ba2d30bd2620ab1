"""The console as a part of the site: who is signed in, what may be done from where, and the pages of errors."""

from collections.abc import Callable

from retainer.console import cross_site, forms
from retainer.console.catalogue import Catalogue
from retainer.console.cookies import SESSION, Cookies
from retainer.console.forms import Form
from retainer.console.pages import Action, Door, Handler, Page, Place, find
from retainer.console.visit import ROOT, Reply, View, Visit, quoted, redirect
from retainer.errors import Refusal, method_not_allowed
from retainer.identity import sessions
from retainer.identity.throttle import Throttle
from retainer.kernel import pipeline
from retainer.kernel.http import Request, Response
from retainer.kernel.pipeline import RETRIES, RequestLog
from retainer.kernel.resource import Operation
from retainer.server.http.site import no_page
from retainer.store.engines import TransientConflict
from retainer.store.tx import ActorChanged, Store
from retainer.values.exact import utcnow

LARGEST_FORM = 64 * 1024
ON_THE_FORM = frozenset({402, 403, 422, 429})
"""The statuses of refusals that are shown with the form that was sent, not on a page of their own."""
HEADINGS = {
    404: "There is nothing here",
    403: "That was not done",
    405: "This page takes no such request",
    429: "Too many attempts",
    503: "Not possible for a moment",
}
WAIT = "The server cannot do this now. Try again in a few seconds; after a form look first whether it was done."


class Console:
    """Answers everything below /console."""

    def __init__(
        self,
        store: Store,
        operations: list[Operation],
        read_body: Callable[[Request, int], bytes],
        read_form: Callable[[Request, str], bytes],
        log: RequestLog,
        throttle: Throttle,
    ) -> None:
        self.store, self.log, self.throttle = store, log, throttle
        self.read_body, self.read_form = read_body, read_form
        self.catalogue = Catalogue(operations)

    def answer(self, request: Request) -> Response:
        """Return a page or a redirect; whatever goes wrong is a page as well."""
        visit = Visit(request, self.catalogue, Cookies(request), {}, Form(), Form(), utcnow(), self.throttle)
        try:
            return visit.respond(self._answer(visit))
        except Exception as error:  # noqa: BLE001  # any error is a page
            refusal = pipeline.to_refusal(error, request, self.log)
            sentence = WAIT if refusal.code == "unavailable" else refusal.message
            return visit.respond(_with_headers(_problem(visit, refusal.status, sentence), refusal))

    def _answer(self, visit: Visit) -> Reply:
        request = visit.request
        path = request.path.removeprefix(ROOT)
        if len(path) > 1 and path.endswith("/"):
            return visit.go(path.rstrip("/"))
        if cross_site.is_refused(request):
            sentence = "This came from another site, so nothing was done. Open the console at {} and try again."
            return _problem(visit, 403, sentence.format(request.origin + ROOT))
        token = visit.cookies.get(SESSION)
        if token is not None:
            visit.signed_in = sessions.admin_of(self.store, token, request.shown_address)
        found = find(path)
        if visit.signed_in is None and not (found and isinstance(found[0], Door) and found[0].is_public):
            return _to_sign_in(visit, path)
        if found is None:
            raise Refusal(
                "not_found", "There is no such page in the console. What you look for may have another address now."
            )
        place, visit.texts = found
        visit.query = forms.parse(request.query)
        if request.method in {"GET", "HEAD"} and not isinstance(place, Action):
            return self._show(place, visit)
        if request.method == "POST" and place.act is not None:
            visit.form = self._read_form(visit)
            return self._act(place, visit)
        allowed = [] if isinstance(place, Action) else ["GET, HEAD"]
        raise method_not_allowed(request.method, ", ".join([*allowed, *(["POST"] if place.act else [])]))

    def _show(self, place: Page | Door, visit: Visit) -> Reply:
        if isinstance(place, Door):
            return place.show(self.store, visit)
        with self.store.begin(visit.admin, write=False) as tx:
            tx.snapshot()
            return place.show(tx, visit)

    def _act(self, place: Place, visit: Visit) -> Reply:
        """Do what a form asks for; when it is refused, show its page again, with what was typed and what is wrong."""
        try:
            if isinstance(place, Door):
                return place.act(self.store, visit)
            return self._write(place.act, visit) if place.act else visit.go("")
        except Refusal as refusal:
            if isinstance(place, Action) or refusal.status not in ON_THE_FORM:
                raise
            visit.form.refuse(refusal)
            return _with_headers(self._show(place, visit), refusal)
        except ActorChanged:
            return _to_sign_in(visit, "")

    def _write(self, act: Handler, visit: Visit) -> Reply:
        for _ in range(RETRIES):
            try:
                with self.store.begin(visit.admin, write=True) as tx:
                    return act(tx, visit)
            except ActorChanged:
                raise
            except TransientConflict:
                continue
        with self.store.begin(visit.admin, write=True) as tx:
            return act(tx, visit)

    def _read_form(self, visit: Visit) -> Form:
        """Return what a form sends. Raises `body_too_large`, `unsupported_media_type` and what reading it raises."""
        request, admin = visit.request, visit.signed_in
        if int(request.environ.get("CONTENT_LENGTH") or 0) > LARGEST_FORM:
            raise Refusal("body_too_large", f"The form is larger than {LARGEST_FORM // 1024} KiB. Write less.")
        if request.has_body and request.environ.get("CONTENT_TYPE", "").partition(";")[0] != forms.CONTENT_TYPE:
            raise Refusal("unsupported_media_type", f"Forms are sent as {forms.CONTENT_TYPE}.")
        if admin is None:
            body = self.read_form(request, request.networks[-1])
        else:
            body = self.read_body(request, admin.account_id)
        return forms.parse(body.decode(errors="replace"))


def _with_headers(reply: Reply, refusal: Refusal) -> Reply:
    """Return a reply whose page also says what a refusal says in headers, as how long to wait."""
    return reply._replace(headers=tuple(refusal.headers.items())) if isinstance(reply, View) else reply


def _to_sign_in(visit: Visit, path: str) -> Reply:
    """Return the way to sign in, and from there to the page that was asked for."""
    if visit.request.method == "POST":
        return visit.go("/sign-in", "Your session has ended, so nothing was done. Sign in again.", kind="warn")
    if not path:
        return visit.go("/sign-in")
    asked = path + (f"?{visit.request.query}" if visit.request.query else "")
    return visit.go(f"/sign-in?next={quoted(asked)}")


def _problem(visit: Visit, status: int, sentence: str) -> Reply:
    heading = HEADINGS.get(status, "This did not work")
    return visit.show("problem", status=status, heading=heading, sentence=sentence)


def root(request: Request) -> Response:
    """Lead a person to the console. Raises `not_found` for clients of the API, which do not ask for a page."""
    if "text/html" in (request.header("ACCEPT") or "") and request.path == "/":
        return redirect(302, ROOT)
    return no_page(request)
