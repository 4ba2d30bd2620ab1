"""Forms that are sent after the session has ended: what was typed comes back after signing in again.

The form is kept for the last user, and a cookie of the browser finds it: neither another person nor another site can
read or fill it. It is only shown again; nothing is done until it is sent again.
"""

from datetime import timedelta

from retainer.console.cookies import SESSION, Cookie
from retainer.console.forms import Form
from retainer.console.page_context import ROOT, PageContext, Reply, quoted
from retainer.identity.actors import Person
from retainer.identity.people import kept_forms
from retainer.identity.people.kept_forms import Pairs
from retainer.identity.people.tokens import KEPT_FORMS
from retainer.store.tx import Store, Tx

KEPT = Cookie("kept-form", path=ROOT, seconds=KEPT_FORMS.valid // timedelta(seconds=1))
MAX_KEPT, MAX_KEPT_OF_ALL = 20, 200
"""Forms that are kept in a minute, of an account and of all: each is a write of up to 64 KiB without a session."""
SECRETS = frozenset({"password", "again", "current", "code", "secret", "token"})
"""Fields that are never kept."""
MUST_BE_TYPED = frozenset({"confirmation"})
"""Fields that a person must type in the session that sends them."""


def to_sign_in(context: PageContext, path: str = "") -> Reply:
    """Return a redirect to the sign-in, which then leads to a page of the console."""
    target = path + (f"?{context.request.query}" if path and context.request.query else "")
    return context.redirect(f"/sign-in?next={quoted(target)}" if target else "/sign-in")


def lose(context: PageContext) -> Reply:
    """Return a redirect to the sign-in, for a form that cannot be kept."""
    sentence = "Your session has ended, and nothing was changed. Sign in again."
    return context.redirect("/sign-in", sentence, kind="warn")


def last_person(store: Store, context: PageContext) -> Person | None:
    """Return the user whose session has ended, if this browser had one and its account may keep another form."""
    token = context.cookies.get(SESSION)
    person = None if token is None else kept_forms.last_person(store, token, context.request.shown_address)
    if person is None:
        return None
    hit = context.throttle.limiter.hit
    limits = ((f"kept forms of {person.account_id}", MAX_KEPT), ("kept forms", MAX_KEPT_OF_ALL))
    has_room = all(hit(name, limit).retry_after is None for name, limit in limits)  # only what fits counts for all
    return person if has_room else None


def keep(store: Store, context: PageContext, person: Person, path: str, form: Form) -> Reply:
    """Keep a form for a user whose session has ended, and redirect to the sign-in, which leads back to its page."""
    pairs = kept_pairs(form)
    if not pairs:
        return lose(context)
    token = kept_forms.keep(store, person, path, pairs)
    sentence = "Your session has ended, and nothing was changed. Sign in again: what you typed comes back."
    return context.redirect(f"/sign-in?next={quoted(path)}", sentence, KEPT._replace(value=token), kind="warn")


def kept_pairs(form: Form) -> Pairs:
    left_out = SECRETS | MUST_BE_TYPED
    return [(name, text) for name, texts in form.texts.items() if name not in left_out for text in texts]


def restore(tx: Tx, context: PageContext, path: str) -> bool:
    """Fill the form of a page with what was typed before the session ended; return whether it is that page."""
    token = context.cookies.get(KEPT.name, KEPT.path)
    pairs = None if token is None else kept_forms.find(tx, token, path)
    if pairs:
        context.form, context.is_restored = Form(pairs), True
    return context.is_restored
