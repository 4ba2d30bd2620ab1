"""A new key: the form, and the page that shows the key, once."""

from datetime import timedelta

from retainer.console import forms, scopes, words
from retainer.console.cookies import Cookie
from retainer.console.key_pages import key_of
from retainer.console.visit import NO_STORE, ROOT, Reply, Visit
from retainer.errors import FieldErrors, Refusal, invalid
from retainer.identity import accounts, keys, users
from retainer.identity.keys import KeyDetails
from retainer.kernel.http import Response
from retainer.store.tx import Tx
from retainer.values.exact import instant_after, local_day

EXPIRIES = {"7": "7 days", "30": "30 days", "90": "90 days", "365": "1 year", "day": "On a day", "never": "Never"}
DEFAULT_EXPIRY = "90"


def show_form(tx: Tx, visit: Visit) -> Reply:
    """The form for a new key."""
    today = tx.today
    return visit.show(
        "key_new",
        users=[user for user in users.list_users(tx) if user["is_active"]],
        api_enabled=accounts.get_account(tx)["api_enabled"],
        expiries=EXPIRIES,
        expiry=visit.typed.text("expiry", DEFAULT_EXPIRY),
        today=today,
        matrix=scopes.matrix(),
        presets=scopes.PRESETS,
        chosen=scopes.chosen(visit),
    )


def create(tx: Tx, visit: Visit) -> Reply:
    """Create a key, and lead to the page that shows it. Raises `api_disabled`, `validation_failed`."""
    errors: FieldErrors = {}
    expires_at = read_expiry(tx, visit, errors)
    try:
        details = forms.read_new(KeyDetails, visit.form, expires_at=expires_at)
    except Refusal as refusal:
        raise invalid(refusal.members["errors"] | errors) from None
    if errors:
        raise invalid(errors)
    try:
        new = keys.create_key(tx, details)
    except Refusal as refusal:
        raise on_the_form(refusal) from None
    return visit.reveal("new-key", f"/keys/{new.id}/created", new.value)


def show_created(tx: Tx, visit: Visit) -> Reply:
    """The new key, this once; afterwards only whether its first call has arrived."""
    key = key_of(tx, visit)
    secret = Cookie("new-key", path=f"{ROOT}/keys/{key.id}/created")
    value = visit.cookies.get(secret.name, secret.path)
    return visit.show("key_created", uses_up=secret, key=key, value=value, in_words=words.scopes_in_words)


def first_call(tx: Tx, visit: Visit) -> Reply:
    """Whether a key was used, for the script of the page that shows it."""
    key = key_of(tx, visit)
    body = b"false" if key.last_used_at is None else b"true"
    return Response(200, [("content-type", "application/json"), NO_STORE], b'{"has_arrived":%b}' % body)


def read_expiry(tx: Tx, visit: Visit, errors: FieldErrors) -> str | None:
    """Return when the key expires: at the end of a day in the account's zone, or None for never; notes errors."""
    choice, day = visit.form.text("expiry", DEFAULT_EXPIRY), visit.form.text("expiry_day")
    if choice == "never":
        return None
    if choice != "day":
        return instant_after(tx.now, timedelta(days=int(choice if choice in EXPIRIES else DEFAULT_EXPIRY)))
    try:
        end = words.day_end(day, tx.actor.timezone)
    except (ValueError, OverflowError):
        errors["expiry_day"] = ["Choose the last day on which the key works."]
        return None
    if end <= tx.now:
        errors["expiry_day"] = [f"Must not lie in the past: today is {local_day(tx.now, tx.actor.timezone)}."]
        return None
    return end


def on_the_form(refusal: Refusal) -> Refusal:
    """Return a refusal with the errors at the fields of the form, and in the console's words."""
    errors = refusal.members.get("errors", {})
    if refusal.code == "api_disabled":
        return Refusal("api_disabled", "The API is off. Switch it on first, on the overview.")
    return invalid({{"user": "user_id"}.get(name, name): sentences for name, sentences in errors.items()})
