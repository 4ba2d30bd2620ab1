"""The pages of a person: details and rates, password link, deactivation."""

from retainer.console import forms, words
from retainer.console.cookies import Cookie
from retainer.console.page_context import ROOT, PageContext, Reply
from retainer.errors import Refusal, invalid
from retainer.identity.audit import Fields
from retainer.identity.keys import key_changes, key_list
from retainer.identity.keys.key_list import Key, KeyFilter
from retainer.identity.people import password_links, second_factors, sessions, users
from retainer.identity.people.tokens import LINKS
from retainer.identity.people.users import UserDetails
from retainer.kernel.resource import read_id
from retainer.schema import identity as schema
from retainer.store.tx import Tx
from retainer.traffic import counts
from retainer.values.parameters import read_whole
from retainer.work import cost_rates


def show(tx: Tx, context: PageContext) -> Reply:
    user = user_of(tx, context)
    return context.render(
        "person",
        user=forms.shown_values(UserDetails, user, context.person.language),
        cost_rates=users.list_cost_rates(tx, user["id"]),
        is_self=user["id"] == context.person.user_id,
        keys=key_list.list_keys(tx, KeyFilter(user_id=user["id"])),
        sessions=[session for session in sessions.list_sessions(tx) if session.user_id == user["id"]],
        today=tx.today,
        has_second_factor=second_factors.find(tx, user["id"]) is not None,
    )


def edit(tx: Tx, context: PageContext) -> Reply:
    """Change a person. Raises `not_found`, `validation_failed`."""
    user, form = user_of(tx, context), context.form
    if form.text("cost_rate") and not form.text("cost_rate_from"):
        if users.list_cost_rates(tx, user["id"]) and form.text("all_days") != "yes":
            raise invalid(
                {"cost_rate_from": ["Enter the first day of the new cost, or choose that it counts for all days."]}
            )
        del form.texts["cost_rate_from"]
    for name in ("password", *(() if form.text("cost_rate") else ("cost_rate", "cost_rate_from"))):
        form.texts.pop(name, None)
    changed = cost_rates.change_user(tx, user["id"], forms.read_changes(UserDetails, form))
    return context.redirect(f"/people/{user['id']}", f"{changed['name']} saved.")


def show_link(tx: Tx, context: PageContext) -> Reply:
    """Show the new link once; without one, the button that creates it."""
    user = user_of(tx, context)
    secret = Cookie("new-link", path=f"{ROOT}/people/{user['id']}/link")
    link = context.cookies.get(secret.name, secret.path)
    return context.render("person_link", uses_up=secret, user=user, link=link, days=LINKS.valid.days)


def create_link(tx: Tx, context: PageContext) -> Reply:
    """Create a link with which a person sets a password. Raises `not_found`, `validation_failed`."""
    user = user_of(tx, context)
    link = password_links.create(tx, user["id"])
    return context.set_one_time_cookie("new-link", f"/people/{user['id']}/link", link.url(context.request.origin))


def show_deactivate(tx: Tx, context: PageContext) -> Reply:
    """Show what stops when a person is deactivated, and to whom the keys can be handed over."""
    user = user_of(tx, context)
    live = key_list.live_keys(tx, user_id=user["id"])
    return context.render(
        "person_deactivate",
        user=user,
        is_self=user["id"] == context.person.user_id,
        live=live,
        last_hour=counts.last_hour(tx),
        in_words=words.scopes_in_words,
        others=[
            (each["id"], f"{each['name']} ({each['role']})")
            for each in users.list_users(tx)
            if each["is_active"] and each["id"] != user["id"]
        ],
        chosen=context.form.texts_of("keys") if context.form.texts else [str(key.id) for key in live.keys],
    )


def deactivate(tx: Tx, context: PageContext) -> Reply:
    """Deactivate a person; sessions stop immediately, as do the keys that are not handed over.

    Raises `not_found`, `validation_failed`.
    """
    user = user_of(tx, context)
    keys = key_list.live_keys(tx, user_id=user["id"]).keys
    if keys:
        forms.confirm(context.form, user["name"])
    moved = hand_over(tx, context, keys)
    cost_rates.change_user(tx, user["id"], {"is_active": False})
    sentences = [f"{user['name']} deactivated."]
    if moved:
        sentences.append(f"{words.count(len(moved), 'key')} now {act_in_words(len(moved))} as {moved[0].user_name}.")
    if len(keys) > len(moved):
        sentences.append(f"{words.count(len(keys) - len(moved), 'key')} stopped working.")
    return context.redirect(f"/people/{user['id']}", " ".join(sentences), kind="warn")


def hand_over(tx: Tx, context: PageContext, keys: list[Key]) -> list[Key]:
    """Hand the chosen keys over to the chosen person; return them. Raises `validation_failed`."""
    form = context.form
    if not form.text("new_user_id"):
        return []
    user_id, chosen = read_whole(form.text("new_user_id")), set(form.texts_of("keys"))
    if user_id is None or user_id in {key.user_id for key in keys}:
        raise invalid({"new_user_id": ["Choose somebody else."]})
    if chosen - {str(key.id) for key in keys}:
        raise invalid({"keys": ["These keys have changed meanwhile. Check which to hand over."]})
    try:
        return [key_changes.hand_over(tx, key.id, user_id) for key in keys if str(key.id) in chosen]
    except Refusal as refusal:
        raise invalid({"new_user_id": refusal.members["errors"]["user"]}) from None


def act_in_words(number: int) -> str:
    return "acts" if number == 1 else "act"


def activate(tx: Tx, context: PageContext) -> Reply:
    user = user_of(tx, context)
    cost_rates.change_user(tx, user["id"], {"is_active": True})
    return context.redirect(f"/people/{user['id']}", f"{user['name']} reactivated. Their keys work again.")


def user_of(tx: Tx, context: PageContext) -> Fields:
    return users.get_user(tx, read_id(context.path_parameters["user"], schema.users))
