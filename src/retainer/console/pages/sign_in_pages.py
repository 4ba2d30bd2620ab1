"""The pages that sign people in and out, set a password by a link, and change the password and the second factor."""

from datetime import timedelta
from urllib.parse import quote

from retainer.console.forms import Form, read_password
from retainer.console.page_context import ROOT, SESSION, Cookie, PageContext, Reply
from retainer.errors import Refusal, invalid
from retainer.identity import accounts
from retainer.identity.people import second_factors, sessions
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
NOT_CARRIED = frozenset({"password", "again", "current", "code", "secret", "token", "confirmation", "step"})
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
    token, password = context.form.text("token"), read_password(context.form)
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


def show_second_factor(store: Store, context: PageContext) -> Reply:
    with store.begin(context.person, write=False) as tx:
        tx.snapshot()
        factor = second_factors.find(tx, context.person.user_id)
        left = second_factors.count_codes(tx, context.person.user_id)
        is_required = accounts.get_account(tx)["require_second_factor"]
    if factor is None:
        with store.begin(context.person, write=True) as tx:
            secret = second_factors.propose(tx, context.person.session_id)
        import segno  # noqa: PLC0415  # only documents and second factors need it

        address = second_factors.setup_address(secret, context.person.email)
        image = segno.make(address, error="m").svg_data_uri(scale=4, border=4, light="#fff")
        return context.render("second_factor_new", secret=secret, image=image, is_required=is_required)
    return context.render("second_factor", factor=factor, left=left, is_required=is_required)


def change_second_factor(store: Store, context: PageContext) -> Reply:
    """Set the second factor up, replace its recovery codes, or remove it. Raises `validation_failed`."""
    form, person = context.form, context.person
    if "current" in form:
        current, code = form.text("current"), form.text("code")
        codes = identity.add_second_factor(store, context.throttle, person, current, code)
        return context.show_once(SECOND_FACTOR, "codes", "\n".join(codes))
    if form.text("remove"):
        identity.remove_second_factor(store, context.throttle, person, form.text("code"))
        return context.redirect("/profile", "Second factor removed. Your password is enough to sign in.", kind="warn")
    codes = identity.replace_recovery_codes(store, context.throttle, person, form.text("code"))
    return context.show_once(SECOND_FACTOR, "codes", "\n".join(codes))


def show_profile(store: Store, context: PageContext) -> Reply:
    with store.begin(context.person, write=False) as tx:
        tx.snapshot()
        factor = second_factors.find(tx, context.person.user_id)
        codes = second_factors.count_codes(tx, context.person.user_id)
    return context.render("profile", factor=factor, codes=codes)


def change_password(store: Store, context: PageContext) -> Reply:
    current, password = context.form.text("current"), read_password(context.form)
    identity.change_password(store, context.throttle, context.person, current, password)
    return context.redirect("/profile", "Password changed. Your other sessions were signed out.")
