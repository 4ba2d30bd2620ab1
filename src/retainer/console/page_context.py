"""The context of a page with its cookies, and its reply: a view, a redirect or a response."""

import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

import msgspec
from markupsafe import Markup

from retainer.console import words
from retainer.console.catalogue import Catalogue
from retainer.console.labels import field_label, in_words
from retainer.errors import Refusal
from retainer.identity.actors import THE_OPERATOR, Person
from retainer.identity.people.sent_forms import SentForm
from retainer.identity.plans import PLANS, Plan, includes_api
from retainer.identity.sign_in.throttle import Throttle
from retainer.kernel.http import Request, Response
from retainer.kernel.representations import RenderedFile, RunApart
from retainer.kernel.roles import Area, may
from retainer.store.tx import RolledBack, Tx
from retainer.values.decoding import decoder
from retainer.values.exact import instant_after
from retainer.web.forms import Form
from retainer.web.pages import HTML, render

ROOT = "/console"
SESSION = "session"
NO_STORE = ("cache-control", "no-store")
POLICY = {"connect_src": "'self'"}  # the script polls for the first call of a new key
POSITIONS = {"page", "after", "cursor"}
"""Parameters that say where a page of a list begins."""
ONE_TIME_SECONDS = 60
"""How long a browser keeps a notice, or a secret, for the page that shows it."""
NOTICE, SECRET = "notice", "secret"
SENT_TWICE = "This form was sent twice and processed once."
IF_NOT_COPIED = {
    "key": "The key was shown only once. If you did not copy it, rotate it.",
    "webhook": "The secret was shown only once. If you did not copy it, rotate it.",
    "link": "The password link was shown only once. If you did not copy it, create another one.",
    "client": "The link was shown only once. If you did not copy it, revoke it and create another one.",
    "codes": "The recovery codes were shown only once. If you did not copy them, replace them.",
}
"""How to replace each kind of secret that `show_once` shows."""


class Cookie(NamedTuple):
    """A cookie for the pages below a path, with its lifetime in seconds; 0 deletes it."""

    name: str
    value: str = ""
    seconds: int = 0
    path: str = "/"


def notice_cookie(kind: str, sentence: str, undo: str = "") -> Cookie:
    """Return the cookie of a notice; `undo` is the path, with a query, of the form that takes back what it says."""
    return Cookie(NOTICE, f"{kind} {sentence}\t{undo}", seconds=ONE_TIME_SECONDS)


class Cookies:
    """The cookies of a request, and the headers that set them: `HttpOnly` and `SameSite=Lax`.

    Under https, those of the whole console have the prefix `__Host-`, so that no other host can set them.
    """

    def __init__(self, request: Request) -> None:
        self._is_secure = request.origin.startswith("https:")
        pairs = [part.strip().partition("=") for part in (request.header("COOKIE") or "").split(";")]
        self._sent = {name: unquote(text) for name, _, text in reversed(pairs)}
        """The cookies of the request; of two with the same name the first, which has the longer path."""

    def get(self, name: str, path: str = "/") -> str | None:
        return self._sent.get(self._name(name, path))

    def header(self, cookie: Cookie) -> tuple[str, str]:
        secure = "; Secure" if self._is_secure else ""
        pair = f"{self._name(cookie.name, cookie.path)}={quote(cookie.value, safe='')}"
        limits = f"Path={cookie.path}; Max-Age={cookie.seconds}"
        return "set-cookie", f"{pair}; {limits}; HttpOnly; SameSite=Lax{secure}"

    def _name(self, name: str, path: str) -> str:
        prefix = "" if not self._is_secure else "__Host-" if path == "/" else "__Secure-"
        return f"{prefix}retainer-{name}"


class View(NamedTuple):
    template: str
    values: dict[str, object]
    status: int = 200
    cookies: tuple[Cookie, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()


class Redirect(NamedTuple):
    path: str
    cookies: tuple[Cookie, ...] = ()

    def repeated(self) -> "Redirect":
        """Return the answer to the same form sent again. Of the cookies it has a notice alone, never a secret."""
        kept = {cookie.name: cookie for cookie in self.cookies if cookie.name in {NOTICE, SECRET}}
        if SECRET in kept:
            kind = kept.pop(SECRET).value.partition(" ")[0]
            kept[NOTICE] = notice_cookie("warn", f"{SENT_TWICE} {IF_NOT_COPIED[kind]}")
        return Redirect(self.path, (*kept.values(),))


class FileReply(NamedTuple):
    """A file that was prepared in the transaction of its page; `finish` makes it after that, for an account."""

    media_type: str
    finish: Callable[[int, RunApart], RenderedFile]


Reply = View | Redirect | FileReply | Response
"""The result of a page. It becomes a response after the commit of its transaction."""


class Rehearsal(RolledBack):
    """Ends a transaction without writing: its page shows what was done in it."""

    def __init__(self, view: Reply) -> None:
        super().__init__()
        self.view = view


class PageContext(msgspec.Struct):
    request: Request
    catalogue: Catalogue
    cookies: Cookies
    path_parameters: dict[str, str]
    query: Form
    form: Form
    """The fields that were posted; when a form was refused, with its errors."""
    now: str
    throttle: Throttle
    run_apart: RunApart
    ask_for_link: Callable[[str], None]
    """Notes an email whose user asks for a password link."""
    signed_in: Person | None = None
    upload: Any = None
    """The file of a form as it was read before the transaction: that of a record with its name, a logo as a PNG."""
    filled: Any = None
    """The body of a form, which is read before the transaction that writes it."""
    timer: Any = None
    """The running timer of the user, which the top bar shows."""
    is_restored: bool = False
    """Whether the form has what the user had typed when the session ended."""

    @property
    def person(self) -> Person:
        """Return the user who is signed in. Raises TypeError on a page that needs no sign-in."""
        if self.signed_in is None:
            raise TypeError("This page needs no sign-in, so it has no user.")
        return self.signed_in

    @property
    def is_inside(self) -> bool:
        """Return whether a person is signed in whose account is not suspended: otherwise there are no other pages."""
        return self.signed_in is not None and self.signed_in.suspended_at is None

    def may(self, area: Area) -> bool:
        return may(self.person, area)

    @property
    def operator(self) -> str:
        return self.request.settings.contact or THE_OPERATOR

    def worded(self, refusal: Refusal) -> str:
        """Return the message of a refusal in the words of pages."""
        return in_words(refusal.message, (), {THE_OPERATOR: self.operator})

    @property
    def sends_links(self) -> bool:
        """Return whether password links can be sent by mail: links need a public address."""
        settings = self.request.settings
        return bool(settings.sender and settings.base_url)

    @property
    def plan(self) -> Plan:
        return PLANS[self.person.plan]

    @property
    def includes_api(self) -> bool:
        return includes_api(self.person.plan, self.person.trial_ends_at, self.now)

    @property
    def trial_end(self) -> words.Moment | None:
        """Return when the trial ends: in its last 14 days, if the API ends with it."""
        end = self.person.trial_ends_at
        is_near = end is not None and self.now < end <= instant_after(self.now, timedelta(days=14))
        return self.moment(end) if is_near and not self.plan.has_api else None

    @property
    def is_trial_late(self) -> bool:
        return (self.person.trial_ends_at or "") <= instant_after(self.now, timedelta(days=3))

    @property
    def typed(self) -> Form:
        """Return the fields for a form: the posted ones, else those of a link or a preset."""
        return self.form if self.form.texts else self.query

    def moment(self, instant: str | None) -> words.Moment | None:
        return None if instant is None else words.moment(instant, self.person.timezone, self.now)

    def link(self, **others: object) -> str:
        """Return the query of this page with other values; None drops one. Its list begins at the first record."""
        left_out = POSITIONS | others.keys()
        kept = [(name, text) for name, texts in self.query.texts.items() for text in texts if name not in left_out]
        added = [(name, value) for name, value in others.items() if value is not None]
        return urlencode([(name, value) for name, value in (*kept, *added) if value != ""])

    def render(self, template: str, *, status: int = 200, **values: object) -> View:
        return View(template, values, status)

    def redirect(self, path: str, notice: str = "", *cookies: Cookie, kind: str = "good", undo: str = "") -> Redirect:
        notices = (notice_cookie(kind, notice, undo),) if notice else ()
        return Redirect(path, (*notices, *cookies))

    def follow_job(self, job_id: int) -> Redirect:
        """Return a redirect to the page of a job, and from there to what it makes."""
        return self.redirect(f"/jobs/{job_id}?follow=yes")

    def show_once(self, path: str, kind: str, secret: str) -> Redirect:
        """Return a redirect to a page that shows a secret at its head, and deletes the cookie that carries it there."""
        return self.redirect(path, "", Cookie(SECRET, f"{kind} {secret}", seconds=ONE_TIME_SECONDS, path=ROOT + path))

    @property
    def _sent_form(self) -> SentForm:
        once, upload = self.form.text("once"), self.upload  # a body on disk is identified by its file
        sent = self.request.body.hex() if self.request.upload is None else f"{once} {upload and upload.content.sha256}"
        content = f"{self.request.path} {sent} {self.cookies.get(SESSION)}"
        return SentForm(self.person.session_id or 0, content)

    def earlier_answer(self, tx: Tx) -> Redirect | None:
        """Return the answer to the form, if the session has sent it before; then nothing is done again."""
        kept = self._sent_form.answer(tx)
        return None if kept is None else decoder(Redirect)(kept)

    def answered(self, tx: Tx, reply: Reply) -> Reply:
        """Keep where the form leads, in the transaction of what it does; `once` differs each time a form is shown."""
        if isinstance(reply, Redirect) and "once" in self.form:
            self._sent_form.keep(tx, msgspec.json.encode(reply.repeated()))
        return reply

    def respond(self, reply: Reply) -> Response:
        """Return the response for a reply, once its transaction has ended.

        A page shows the pending notice, and has the status of the refusal if its form was refused.
        """
        if isinstance(reply, Response):
            return reply
        if isinstance(reply, FileReply):
            file = reply.finish(self.person.account_id, self.run_apart)
            headers = [*file.headers(reply.media_type), ("x-content-type-options", "nosniff"), NO_STORE]
            return Response(200, headers, file.content, file.download)
        cookies = [self.cookies.header(cookie) for cookie in reply.cookies]
        if isinstance(reply, Redirect):
            return redirect_response(303, ROOT + reply.path, NO_STORE, *cookies)
        text = self.cookies.get(NOTICE)
        if text is not None:
            cookies.append(self.cookies.header(Cookie(NOTICE)))
        kind, _, said = (text or "").partition(" ")
        sentence, _, undo = said.partition("\t")
        undo_path, _, undo_query = undo.partition("?")
        secret = (self.cookies.get(SECRET, ROOT) or "").partition(" ")
        if any(secret):
            cookies.append(self.cookies.header(Cookie(SECRET, path=self.request.path)))
        asked, refused = self.query, 422 if self.query.errors else self.form.status
        asked.errors |= {name: [in_words(each, asked.texts) for each in texts] for name, texts in asked.errors.items()}
        return render(
            self.request,
            f"console/{reply.template}.html",
            status=refused if reply.status == 200 else reply.status,
            headers=[NO_STORE, *reply.headers, *cookies],
            policy=POLICY,
            context=self,
            words=words,
            field_label=field_label,
            record_lists=self.catalogue.navigation,
            once={"kind": secret[0], "value": secret[2]},
            once_field=Markup('<input type="hidden" name="once" value="{}">').format(secrets.token_hex(12)),
            notice={"kind": kind, "text": sentence, "undo": undo_path, "fields": parse_qsl(undo_query)}
            if text
            else None,
            **reply.values,
        )


def redirect_response(status: int, path: str, *headers: tuple[str, str]) -> Response:
    return Response(status, [("location", path), ("content-type", HTML), *headers])
