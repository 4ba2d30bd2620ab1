"""The pages that sign people in and out and set a password by a link; the profile, its password and second factor."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import quote

from retainer.console import words
from retainer.console.controls.control import Control, Field
from retainer.console.controls.plain import Secret
from retainer.console.editing.form_pages import FormButton, FormPage, Section
from retainer.console.page_context import ROOT, SESSION, Cookie, PageContext, Reply
from retainer.console.values import Block, Fact, Value
from retainer.errors import FieldErrors, Refusal, invalid
from retainer.identity import accounts
from retainer.identity.audit import Fields
from retainer.identity.people import second_factors, sessions
from retainer.identity.people.sessions import LINKS, SECOND_STEPS, Token
from retainer.identity.sign_in import sign_in as identity
from retainer.identity.sign_in.sign_in import Browser, SignedIn, SignInChange
from retainer.store.tx import Store, Tx
from retainer.values.parameters import read_whole
from retainer.web.forms import Form, compare_passwords

CODE_PATH, SECOND_FACTOR = "/sign-in/code", "/profile/second-factor"
PENDING = Cookie("sign-in", path=ROOT + CODE_PATH)
COOKIE_SECONDS = int(sessions.BROWSER_TTL.total_seconds())
ENDED = "Your session has ended, and nothing was changed. {}"
ASKED = (
    "If somebody with this email uses an account here, a link to set a new password is on its way. It works once, "
    "within an hour. If nothing arrives, look at the spam, or ask an admin of your account."
)
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
    errors = {name: [sentence] for name, sentence in MISSING.items() if not form.text(name)}
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


def show_forgotten(_: Store, context: PageContext) -> Reply:
    if not context.sends_links:
        raise Refusal("not_found", "This server sends no password links by mail. Ask an admin of your account for one.")
    return context.render("forgotten")


def ask_for_link(_: Store, context: PageContext) -> Reply:
    """Note that a person asks for a password link. The answer, and what it takes, are the same for every email."""
    email = context.form.text("email")
    if not email:
        raise invalid({"email": [MISSING["email"]]})
    context.throttle.admit_request(browser_of(context).networks)
    if context.sends_links:
        context.ask_for_link(identity.fold_email(email))
    return context.redirect("/sign-in", ASKED)


def show_password(store: Store, context: PageContext) -> Reply:
    token = context.typed.text("token")
    try:
        holder, has_password = LINKS.find(store, token)
        return context.render("password", holder=holder, has_password=has_password, token=token)
    except Refusal as refusal:
        if refusal.code != "not_found":
            raise
        heading = "This link no longer works"
        return context.render("problem", status=404, heading=heading, sentence=refusal.message, is_fault=False)


def set_password(store: Store, context: PageContext) -> Reply:
    token, password = context.form.text("token"), context.form.text("password")
    errors = compare_passwords(password, context.form.text("again"))
    signed_in = identity.set_password(store, context.throttle, token, password, browser_of(context), errors)
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


PROFILE_SECTION = Section("Profile", "/profile")
CURRENT = Field("current", "Current password", Secret(), is_required=True)
PASSWORD = Field(
    *("password", "New password", Secret(autocomplete="new-password")),
    "At least 12 characters. Your other sessions will be signed out.",
    is_required=True,
)
AGAIN = PASSWORD._replace(name="again", label="Confirm new password", hint="")
CODE = Field(
    *("code", "Code", Control(autocomplete="one-time-code", is_shown_again=False)),
    "The six digits that your app shows, or a recovery code.",
    is_required=True,
)
REQUIRED = "{} requires a second factor of everyone"
APPS = "Aegis, 1Password or Google Authenticator"
FEW_CODES = 2
MISSING = {"email": "Enter your email address.", "password": "Enter your password."}


def describe_factor(tx: Tx, context: PageContext) -> str:
    """Return since when the second factor is set up, and how many recovery codes are left; empty without one."""
    factor = second_factors.find(tx, context.person.user_id)
    if factor is None:
        return ""
    left = second_factors.count_codes(tx, context.person.user_id)
    day, codes = words.moment(factor.created_at, context.person.timezone, context.now).day, "recovery code"
    return f"Set up {day}, {words.count(left, codes)} left{'' if left > FEW_CODES else ': replace them soon'}"


def tell_profile(tx: Tx, context: PageContext, _: None) -> Iterator[Block]:
    person = context.person
    factor = describe_factor(tx, context) or "Off. It adds a code from your phone to your password"
    texts = {
        "Email": person.email,
        "Role": f"{person.role.capitalize()} of {person.account_name}",
        "Time zone": f"{person.timezone}, from the settings of the account",
        "Second factor": factor,
    }
    facts = [Fact(label, Value("text", text)) for label, text in texts.items()]
    yield Block("fields", title="About you", fields=facts)


def change_password(store: Store, context: PageContext, errors: FieldErrors, body: Fields) -> Reply:
    current, password, again = (str(body.get(name, "")) for name in (CURRENT.name, PASSWORD.name, AGAIN.name))
    if AGAIN.name not in errors:
        errors |= compare_passwords(password, again)
    reply = context.redirect("/profile", "Password changed. Your other sessions were signed out.")
    acting = (store, context.throttle, context.person)
    change = SignInChange(current, password)
    return identity.change_password(*acting, change, partial(context.answered, reply=reply), errors)


PROFILE = FormPage(
    *(PROFILE_SECTION, "{person.name}", "Change password", change_password, tell_profile),
    fields=lambda *_: (CURRENT, PASSWORD, AGAIN),
    links=lambda _, context, __: [
        ("Hours and work", f"/people/{context.person.user_id}"),
        ("Second factor…", SECOND_FACTOR),
    ],
    headings={"current": "Password"},
)


def choose_second_factor(tx: Tx, context: PageContext) -> FormPage:
    return SET_UP if second_factors.find(tx, context.person.user_id) is None else MANAGE


def is_required(tx: Tx) -> bool:
    return bool(accounts.get_account(tx)["require_second_factor"])


def tell_set_up(tx: Tx, context: PageContext, _: None) -> Iterator[str | Block]:
    """Yield how to set the second factor up; note the secret that the session proposes."""
    import segno  # noqa: PLC0415  # only documents and second factors need it

    secret = second_factors.propose(tx, context.person.session_id)
    if not secret:
        yield Block("notice", text="Other changes are being saved. Reload this page in a few seconds.")
        return
    address = second_factors.setup_address(secret, context.person.email)
    if is_required(tx):
        required = REQUIRED.format(context.person.account_name)
        yield Block("notice", text=f"{required}. Set yours up to continue.")
    yield f"After your password, you then enter a code from an app on your phone, such as {APPS}."
    yield "Scan this image with the app. Then confirm with your password and the code that the app shows."
    yield Block(
        "picture",
        look="qr",
        source=segno.make(address, error="m").svg_data_uri(scale=4, border=4, light="#fff"),
        alt="QR code with the key below",
        note="Or enter this key:",
        key=" ".join(secret[start : start + 4] for start in range(0, len(secret), 4)),
    )


def set_up(store: Store, context: PageContext, errors: FieldErrors, body: Fields) -> Reply:
    change = SignInChange(*(str(body.get(name, "")) for name in (CURRENT.name, CODE.name)))
    acting = (store, context.throttle, context.person)
    return identity.add_second_factor(*acting, change, partial(show_codes, context), errors)


def show_codes(context: PageContext, tx: Tx, codes: list[str]) -> Reply:
    return context.answered(tx, context.show_once(SECOND_FACTOR, "codes", "\n".join(codes)))


SET_UP = FormPage(
    *(PROFILE_SECTION, "Set up a second factor", "Set up", set_up, tell_set_up),
    fields=lambda *_: (CURRENT, CODE._replace(hint="Six digits, which change every 30 seconds.")),
)


def tell_factor(tx: Tx, context: PageContext, _: Any) -> Iterator[str]:
    yield f"{describe_factor(tx, context)}."
    if is_required(tx):
        yield f"{REQUIRED.format(context.person.account_name)}, so it can't be removed."


def manage(store: Store, context: PageContext, errors: FieldErrors, body: Fields) -> Reply:
    """Replace the recovery codes, or remove the second factor. Raises `validation_failed`, `rate_limited`, `locked`."""
    errors.raise_errors()
    acting = (store, context.throttle, context.person, body["code"])
    if context.form.text("step") == "remove":
        reply = context.redirect("/profile", "Second factor removed. Your password is enough to sign in.", kind="warn")
        return identity.remove_second_factor(*acting, lambda tx: context.answered(tx, reply))
    return identity.replace_recovery_codes(*acting, partial(show_codes, context))


MANAGE = FormPage(
    *(PROFILE_SECTION, "Second factor", "Replace recovery codes", manage, tell_factor),
    fields=lambda *_: (CODE,),
    steps=lambda tx, *_: () if is_required(tx) else (FormButton("remove", "Remove the second factor", is_danger=True),),
)
