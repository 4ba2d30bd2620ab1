"""A visit: one request of the console as its pages see it, and what they reply: pages, redirects and notices."""

from typing import Any, Literal, NamedTuple
from urllib.parse import quote

import msgspec

from retainer.console import words
from retainer.console.catalogue import Catalogue
from retainer.console.cookies import Cookie, Cookies
from retainer.console.forms import Form
from retainer.identity.admins import Admin
from retainer.identity.throttle import Throttle
from retainer.kernel.http import Request, Response
from retainer.web.pages import render
from retainer.web.responses import HTML

ROOT = "/console"
NO_STORE = ("cache-control", "no-store")
POLICY = {"connect_src": "'self'"}
"""The script asks whether the first call of a new key has arrived."""


class Notice(NamedTuple):
    """A sentence on what was done, shown once on the page that follows."""

    kind: Literal["good", "warn", "bad"]
    text: str


class View(NamedTuple):
    """A page that is to be shown: a template, what fills it in, and the cookies that are used up by it."""

    template: str
    context: dict[str, object]
    status: int = 200
    cookies: tuple[Cookie, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()


class Redirect(NamedTuple):
    """A page to which the browser is to be led, and what that shows once."""

    path: str
    cookies: tuple[Cookie, ...] = ()


Reply = View | Redirect | Response
"""What a page answers. It becomes a response when its transaction has ended: nothing is announced before the commit."""


class Visit(msgspec.Struct):
    """A request, who makes it, and what it sends."""

    request: Request
    catalogue: Catalogue
    cookies: Cookies
    texts: dict[str, str]
    """What stands for the parameters of the path."""
    query: Form
    form: Form
    """What was sent by POST; on the page of a form that was refused, with its errors."""
    now: str
    throttle: Throttle
    signed_in: Admin | None = None

    @property
    def admin(self) -> Admin:
        """Who is signed in, on a page for admins."""
        if self.signed_in is None:
            raise TypeError("This page is open to everybody.")
        return self.signed_in

    @property
    def typed(self) -> Form:
        """What a form shows: what was sent, or what a link or a preset fills in."""
        return self.form if self.form.texts else self.query

    def moment(self, instant: str | None) -> words.Moment | None:
        """Return an instant as the admin reads it."""
        return None if instant is None else words.moment(instant, self.admin.timezone, self.now)

    def show(self, template: str, *, status: int = 200, uses_up: Cookie | None = None, **context: Any) -> View:
        """Reply with a page."""
        is_there = uses_up is not None and self.cookies.get(uses_up.name, uses_up.path) is not None
        return View(template, context, status, (uses_up,) if uses_up and is_there else ())

    def go(self, path: str, notice: str = "", *cookies: Cookie, kind: str = "good") -> Redirect:
        """Reply with a redirect to a page of the console, which shows the notice."""
        noticed = (Cookie("notice", f"{kind} {notice}", seconds=60),) if notice else ()
        return Redirect(path, (*noticed, *cookies))

    def reveal(self, name: str, path: str, secret: str) -> Redirect:
        """Reply with a redirect to the one page that shows a secret, and uses up the cookie that takes it there."""
        return self.go(path, "", Cookie(name, secret, seconds=60, path=ROOT + path))

    def respond(self, reply: Reply) -> Response:
        """Return the response that a reply stands for, once its transaction has ended.

        A page shows the notice that waits for it, and is 422 when its form was refused.
        """
        if isinstance(reply, Response):
            return reply
        cookies = [self.cookies.header(cookie) for cookie in reply.cookies]
        if isinstance(reply, Redirect):
            return redirect(303, ROOT + reply.path, NO_STORE, *cookies)
        text = self.cookies.get("notice")
        if text is not None:
            cookies.append(self.cookies.header(Cookie("notice")))
        kind, _, sentence = (text or "").partition(" ")
        refused = 422 if self.query.errors else self.form.status
        return render(
            self.request,
            f"console/{reply.template}.html",
            status=refused if reply.status == 200 else reply.status,
            headers=[NO_STORE, *reply.headers, *cookies],
            policy=POLICY,
            visit=self,
            words=words,
            notice=Notice(kind, sentence) if text else None,  # type: ignore[arg-type]
            **reply.context,
        )


def redirect(status: int, path: str, *headers: tuple[str, str]) -> Response:
    """Return the way to another page."""
    return Response(status, [("location", path), ("content-type", HTML), *headers])


def quoted(path: str) -> str:
    """Return a path as the value of a query parameter."""
    return quote(path, safe="/")
