"""The pages of people: who works here, and adding somebody."""

from retainer.console import forms
from retainer.console.visit import Reply, Visit
from retainer.identity import key_list, users
from retainer.identity.users import UserDetails
from retainer.store.tx import Tx


def show_list(tx: Tx, visit: Visit) -> Reply:
    """Everybody, with how many keys act as them."""
    people = users.list_users(tx)
    keys = key_list.live_keys(tx).keys
    return visit.show(
        "people",
        active=[user for user in people if user["is_active"]],
        deactivated=[user for user in people if not user["is_active"]],
        key_counts={user["id"]: sum(key.user_id == user["id"] for key in keys) for user in people},
    )


def show_form(_: Tx, visit: Visit) -> Reply:
    """The form for somebody new."""
    return visit.show("person_new")


def add(tx: Tx, visit: Visit) -> Reply:
    """Add a member, or invite an admin by a link. Raises `validation_failed`."""
    details = forms.read_new(UserDetails, visit.form)
    if details.role != "admin":
        user_id = users.create_user(tx, details)
        return visit.go(f"/people/{user_id}", f"{details.name} is added.")
    user_id, link = users.invite(tx, details)
    return visit.reveal("new-link", f"/people/{user_id}/link", link.url(visit.request.origin))
