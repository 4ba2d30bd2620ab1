"""The profile of the person who is signed in: the facts, the password, and the second factor."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from retainer.console import words
from retainer.console.editing.fields import Field
from retainer.console.editing.form_pages import FormPage, Section, Step
from retainer.console.forms import check_same
from retainer.console.page_context import PageContext, Reply
from retainer.console.pages.sign_in_pages import SECOND_FACTOR
from retainer.console.values import Block, Fact, Value
from retainer.identity import accounts
from retainer.identity.audit import Fields
from retainer.identity.people import second_factors
from retainer.identity.sign_in import sign_in
from retainer.store.tx import Store, Tx

SECTION = Section("Profile", "/profile")
CURRENT = Field("current", "Current password", "secret", is_required=True, autocomplete="current-password")
PASSWORD = Field(
    *("password", "New password", "secret", "At least 12 characters. Your other sessions will be signed out."),
    is_required=True,
    autocomplete="new-password",
)
AGAIN = PASSWORD._replace(name="again", label="Confirm new password", hint="")
CODE = Field("code", "Code", "code", "The six digits that your app shows, or a recovery code.", is_required=True)
REQUIRED = "{} requires a second factor of everyone"
APPS = "Aegis, 1Password or Google Authenticator"
FEW_CODES = 2


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


def change_password(store: Store, context: PageContext, _: None, body: Fields) -> Reply:
    check_same(body)
    reply = context.redirect("/profile", "Password changed. Your other sessions were signed out.")
    acting = (store, context.throttle, context.person)
    return sign_in.change_password(*acting, body["current"], body["password"], partial(context.answered, reply=reply))


PROFILE = FormPage(
    *(SECTION, "{person.name}", "Change password", change_password, tell_profile),
    fields=lambda *_: (CURRENT, PASSWORD, AGAIN),
    links=lambda *_: [("Second factor…", SECOND_FACTOR)],
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


def set_up(store: Store, context: PageContext, _: None, body: Fields) -> Reply:
    acting = (store, context.throttle, context.person)
    return sign_in.add_second_factor(*acting, body["current"], body["code"], partial(show_codes, context))


def show_codes(context: PageContext, tx: Tx, codes: list[str]) -> Reply:
    return context.answered(tx, context.show_once(SECOND_FACTOR, "codes", "\n".join(codes)))


SET_UP = FormPage(
    *(SECTION, "Set up a second factor", "Set up", set_up, tell_set_up),
    fields=lambda *_: (CURRENT, CODE._replace(hint="Six digits, which change every 30 seconds.")),
)


def tell_factor(tx: Tx, context: PageContext, _: Any) -> Iterator[str]:
    yield f"{describe_factor(tx, context)}."
    if is_required(tx):
        yield f"{REQUIRED.format(context.person.account_name)}, so it can't be removed."


def manage(store: Store, context: PageContext, _: None, body: Fields) -> Reply:
    """Replace the recovery codes, or remove the second factor. Raises `validation_failed`, `rate_limited`, `locked`."""
    acting = (store, context.throttle, context.person, body["code"])
    if context.form.text("step") == "remove":
        reply = context.redirect("/profile", "Second factor removed. Your password is enough to sign in.", kind="warn")
        return sign_in.remove_second_factor(*acting, partial(context.answered, reply=reply))
    return sign_in.replace_recovery_codes(*acting, partial(show_codes, context))


MANAGE = FormPage(
    *(SECTION, "Second factor", "Replace recovery codes", manage, tell_factor),
    fields=lambda *_: (CODE,),
    steps=lambda tx, *_: () if is_required(tx) else (Step("remove", "Remove the second factor", is_danger=True),),
)
