"""The pages that sign people in and out, set a password by a link, and change the password and the second factor."""

from datetime import timedelta
from urllib.parse import quote

from retainer.console.forms import Form, check_same
from retainer.console.page_context import ROOT, SESSION, Cookie, PageContext, Reply
from retainer.errors import Refusal, invalid
from retainer.identity.people import sessions
from retainer.identity.people.sessions import LINKS, SECOND_STEPS, Token
from retainer.identity.sign_in import sign_in as identity
from retainer.identity.sign_in.sign_in import Browser, SignedIn
from retainer.store.tx import Store, Tx
from retainer.values.parameters import read_whole

CODE_PATH, SECOND_FACTOR = "/sign-in/code", "/profile/second-factor"
PENDING = Cookie("sign-in", path=ROOT + CODE_PATH)
COOKIE_SECONDS = int(sessions.BROWSER_TTL.total_seconds())
ENDED = "Your session has ended, and nothing was changed. {}"
CARRIED, RESTORE = "typed.", "restore"
"""The prefix of the fields that a sign-in carries for another form, and the step that fills that form in again."""
NOT_CARRIED = frozenset({"password", "again", "current", "code", "secret", "token", "confirmation", "step", "once"})
"""Fields that are secret, or that a person must type in the session that sends them."""


def show(_: Store, context: PageContext) -> Reply:
    if context.signed_in is not None and not context.form.texts:
        return context.redirect(destination(context))
    return context.render("sign_in", accounts=[])


def sign_in(store: Store, context: PageContext) -> Reply:
    """Sign in and redirect to the requested page; ask for the account if email and password match several."""
    form = context.form
    errors = {name: ["Is required."] for name in ("email", "password") if not form.text(name)}
    if errors:
        raise invalid(errors)
    account_id = read_whole(form.text("account"))
    email, password = form.text("email"), form.text("password")
    result = identity.sign_in(store, context.throttle, email, password, browser_of(context), account_id=account_id)
    if isinstance(result, list):
        return context.render("sign_in", accounts=result)
    return begin(context, result, destination(context))


def carry(context: PageContext, path: str, form: Form) -> Reply:
    """Ask to sign in; the sign-in carries what was typed in the form of a page, which then shows it again."""
    context.form = Form([("next", path)])
    context.form.texts |= {CARRIED + name: texts for name, texts in form.texts.items() if name not in NOT_CARRIED}
    context.form.message = ENDED.format("Sign in again: what you typed comes back.")
    return context.render("sign_in", status=403, accounts=[])


def show_code(store: Store, context: PageContext) -> Reply:
    SECOND_STEPS.find(store, pending_token(context))
    return context.render("sign_in_code")


def enter_code(store: Store, context: PageContext) -> Reply:
    token, code = pending_token(context), context.form.text("code")
    signed_in = identity.finish(store, context.throttle, token, code, browser_of(context))
    return begin(context, signed_in, destination(context), "", PENDING)


def pending_token(context: PageContext) -> str:
    return context.cookies.get(PENDING.name, PENDING.path) or ""


def show_password(store: Store, context: PageContext) -> Reply:
    token = context.typed.text("token")
    try:
        holder, has_password = LINKS.find(store, token)
        return context.render("password", holder=holder, has_password=has_password, token=token)
    except Refusal as refusal:
        heading = "This link no longer works"
        return context.render("problem", status=404, heading=heading, sentence=refusal.message, is_fault=False)


def set_password(store: Store, context: PageContext) -> Reply:
    token, password = context.form.text("token"), context.form.text("password")
    check_same({"password": password, "again": context.form.text("again")})
    signed_in = identity.set_password(store, context.throttle, token, password, browser_of(context))
    return begin(context, signed_in, "", "Password set. You are signed in.")


def sign_out(tx: Tx, context: PageContext) -> Reply:
    """End the session; its cookie stays, so that the browser remains known."""
    if context.person.session_id is not None:
        sessions.end(tx, context.person.session_id)
    return context.redirect("/sign-in", "You have signed out.")


def begin(context: PageContext, result: SignedIn | Token, path: str, notice: str = "", *cookies: Cookie) -> Reply:
    """Set the session cookie and lead to a page, with what was typed there; or ask for the second factor."""
    if isinstance(result, Token):
        waiting = PENDING._replace(value=result.token, seconds=SECOND_STEPS.valid // timedelta(seconds=1))
        return context.render("sign_in_code")._replace(cookies=(waiting,))
    session = Cookie(SESSION, result.token, seconds=COOKIE_SECONDS)
    if path and any(name.startswith(CARRIED) for name in context.form.texts):
        return context.render("sign_in_restore", form_path=path)._replace(cookies=(session, *cookies))
    return context.redirect(path, notice, session, *cookies)


def browser_of(context: PageContext) -> Browser:
    request = context.request
    return Browser(request.shown_address, request.header("USER_AGENT"), context.cookies.get(SESSION), request.networks)


def destination(context: PageContext) -> str:
    """Return the path of the console that was requested before sign-in; any other is ignored."""
    target = context.form.text("next") or context.query.text("next")
    path, separator, query = target.partition("?")
    leads_up = not {".", ".."}.isdisjoint(path.split("/"))  # browsers resolve these
    is_ours = path.startswith("/") and not path.startswith(("//", "/\\")) and not leads_up and path.isprintable()
    return quote(path) + separator + query if is_ours and query.isprintable() and query.isascii() else ""
