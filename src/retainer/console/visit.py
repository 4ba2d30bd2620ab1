"""A visit: one request of the console as its pages see it, and the pages, redirects and notices that they answer."""

from typing import Any, Literal, NamedTuple
from urllib.parse import quote

import msgspec

from retainer.console import words
from retainer.console.catalogue import Catalogue
from retainer.console.cookies import Cookies
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

    def show(self, template: str, *, status: int = 200, **context: Any) -> Response:
        """Return a page; with the notice that waits for it, and as 422 when its form was refused."""
        text = self.cookies.take("notice")
        kind, _, sentence = (text or "").partition(" ")
        refused = 422 if self.query.errors else self.form.status
        return render(
            self.request,
            f"console/{template}.html",
            status=refused if status == 200 else status,
            headers=[NO_STORE, *self.cookies.headers()],
            policy=POLICY,
            visit=self,
            words=words,
            notice=Notice(kind, sentence) if text else None,  # type: ignore[arg-type]
            **context,
        )

    def go(self, path: str, notice: str = "", *, kind: str = "good") -> Response:
        """Return a redirect to a page of the console, which shows the notice."""
        if notice:
            self.cookies.put("notice", f"{kind} {notice}", seconds=60)
        return redirect(303, ROOT + path, NO_STORE, *self.cookies.headers())

    def reveal(self, name: str, path: str, secret: str) -> None:
        """Hand a secret to the one page that shows it, by a cookie that lives for a minute and is taken by it."""
        self.cookies.put(name, secret, seconds=60, path=ROOT + path)


def redirect(status: int, path: str, *headers: tuple[str, str]) -> Response:
    """Return the way to another page."""
    return Response(status, [("location", path), ("content-type", HTML), *headers])


def quoted(path: str) -> str:
    """Return a path as the value of a query parameter."""
    return quote(path, safe="/")
