"""The pages that create a key, and show it once."""

from datetime import timedelta

from retainer.console import forms, scope_matrix, words
from retainer.console.cookies import Cookie
from retainer.console.page_context import NO_STORE, ROOT, PageContext, Reply
from retainer.console.pages.key_pages import key_of
from retainer.errors import FieldErrors, Refusal, invalid
from retainer.identity import accounts
from retainer.identity.keys import keys
from retainer.identity.keys.keys import KeyDetails
from retainer.identity.people import users
from retainer.kernel.http import Response
from retainer.store.tx import Tx
from retainer.values.exact import instant_after, local_day

EXPIRIES = {"7": "7 days", "30": "30 days", "90": "90 days", "365": "1 year", "day": "On a date", "never": "Never"}
DEFAULT_EXPIRY = "90"


def show_form(tx: Tx, context: PageContext) -> Reply:
    today = tx.today
    return context.render(
        "key_new",
        users=[user for user in users.list_users(tx) if user["is_active"]],
        api_enabled=accounts.get_account(tx)["api_enabled"],
        expiries=EXPIRIES,
        expiry=context.typed.text("expiry", DEFAULT_EXPIRY),
        today=today,
        matrix=scope_matrix.matrix(),
        presets=scope_matrix.PRESETS,
        chosen=scope_matrix.chosen(context),
    )


def create(tx: Tx, context: PageContext) -> Reply:
    """Create a key, and redirect to the page that shows it. Raises `api_disabled`, `validation_failed`."""
    errors = FieldErrors()
    expires_at = read_expiry(tx, context, errors)
    try:
        details = forms.read_new(KeyDetails, context.form, expires_at=expires_at)
    except Refusal as refusal:
        raise invalid(refusal.members["errors"] | errors) from None
    if errors:
        raise invalid(errors)
    try:
        new = keys.create_key(tx, details)
    except Refusal as refusal:
        raise with_form_fields(refusal) from None
    return context.set_one_time_cookie("new-key", f"/keys/{new.id}/created", new.value)


def show_created(tx: Tx, context: PageContext) -> Reply:
    """Show the new key once; later only whether its first call has arrived."""
    key = key_of(tx, context)
    secret = Cookie("new-key", path=f"{ROOT}/keys/{key.id}/created")
    value = context.cookies.get(secret.name, secret.path)
    return context.render("key_created", uses_up=secret, key=key, value=value, in_words=words.scopes_in_words)


def first_call(tx: Tx, context: PageContext) -> Reply:
    """Return as JSON whether a key was used, for the page's script."""
    key = key_of(tx, context)
    body = b"false" if key.last_used_at is None else b"true"
    return Response(200, [("content-type", "application/json"), NO_STORE], b'{"has_arrived":%b}' % body)


def read_expiry(tx: Tx, context: PageContext, errors: FieldErrors) -> str | None:
    """Return when the key expires: the end of a day in the account's time zone, or None for never; notes errors."""
    choice, day = context.form.text("expiry", DEFAULT_EXPIRY), context.form.text("expiry_day")
    if choice == "never":
        return None
    if choice != "day":
        return instant_after(tx.now, timedelta(days=int(choice if choice in EXPIRIES else DEFAULT_EXPIRY)))
    try:
        end = words.day_end(day, tx.actor.timezone)
    except (ValueError, OverflowError):
        errors["expiry_day"] = ["Choose the last day on which the key should work."]
        return None
    if end <= tx.now:
        errors["expiry_day"] = [f"Must not be in the past. Today is {local_day(tx.now, tx.actor.timezone)}."]
        return None
    return end


def with_form_fields(refusal: Refusal) -> Refusal:
    """Return a refusal with its errors at the fields of the form, in the console's words."""
    errors = refusal.members.get("errors", {})
    if refusal.code == "api_disabled":
        return Refusal("api_disabled", "The API is off. Switch it on first, on the page API.")
    return invalid({{"user": "user_id"}.get(name, name): sentences for name, sentences in errors.items()})
