"""The pages that list and add people."""

from retainer.console import forms
from retainer.console.page_context import PageContext, Reply
from retainer.console.words import hours
from retainer.identity.keys import key_list
from retainer.identity.people import users
from retainer.identity.people.users import UserDetails
from retainer.store.tx import Tx


def show_list(tx: Tx, context: PageContext) -> Reply:
    people = users.list_users(tx)
    keys = key_list.live_keys(tx).keys
    return context.render(
        "people",
        hours=hours,
        active=[user for user in people if user["is_active"]],
        deactivated=[user for user in people if not user["is_active"]],
        key_counts={user["id"]: sum(key.user_id == user["id"] for key in keys) for user in people},
    )


def show_form(_: Tx, context: PageContext) -> Reply:
    return context.render("person_new")


def add(tx: Tx, context: PageContext) -> Reply:
    """Add a person, and show the link that lets them sign in. Raises `validation_failed`."""
    user_id, link = users.invite(tx, forms.read_new(UserDetails, context.form))
    return context.set_one_time_cookie("new-link", f"/people/{user_id}/link", link.url(context.request.origin))
