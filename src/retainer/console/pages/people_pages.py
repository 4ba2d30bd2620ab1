"""The pages of people: the list, and a person with keys, sessions and rates."""

from retainer.console.page_context import PageContext, Reply
from retainer.console.pages.person_forms import PEOPLE
from retainer.console.words import hours
from retainer.identity.keys import key_list
from retainer.identity.keys.key_list import KeyFilter
from retainer.identity.people import second_factors, sessions, users
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


def show(tx: Tx, context: PageContext) -> Reply:
    user = PEOPLE.find(tx, context)
    rates = users.list_cost_rates(tx, user.id)
    return context.render(
        "person",
        user=user,
        hours=hours,
        cost=next((amount for day, amount in reversed(rates) if day <= tx.today), ""),
        is_self=user.id == context.person.user_id,
        keys=key_list.list_keys(tx, KeyFilter(user_id=user.id)),
        sessions=[session for session in sessions.list_sessions(tx) if session.user_id == user.id],
        has_second_factor=second_factors.find(tx, user.id) is not None,
    )
