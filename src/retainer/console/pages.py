"""The console's pages by their paths: what shows each, and what a form on it does."""

from collections.abc import Callable
from typing import Any, NamedTuple

from falcon.routing import CompiledRouter

from retainer.console import (
    audit,
    key_pages,
    new_key,
    overview,
    people,
    person_pages,
    profile,
    records,
    requests,
    search,
    sessions,
    sign_in,
)
from retainer.console.visit import Reply, Visit
from retainer.store.tx import Store, Tx

Handler = Callable[[Tx, Visit], Reply]
"""Works in a transaction of the admin's account: a reading one for a page, a writing one for a form."""
StoreHandler = Callable[[Store, Visit], Reply]
"""Begins transactions itself: before anybody is signed in, and where a password is hashed."""


class Page(NamedTuple):
    """A page for admins. A form on it is sent to its own path; when it is refused, the page shows why."""

    show: Handler
    act: Handler | None = None


class Door(NamedTuple):
    """A page on which passwords are typed."""

    show: StoreHandler
    act: StoreHandler
    is_public: bool = True


class Action(NamedTuple):
    """A button that leads to no page of its own."""

    act: Handler


Place = Page | Door | Action

PLACES: dict[str, Place] = {
    "": Page(overview.show),
    "/switch": Page(overview.show_switch, overview.switch),
    "/keys": Page(key_pages.show_list),
    "/keys/new": Page(new_key.show_form, new_key.create),
    "/keys/{key}": Page(key_pages.show),
    "/keys/{key}/created": Page(new_key.show_created),
    "/keys/{key}/first-call": Page(new_key.first_call),
    "/keys/{key}/edit": Page(key_pages.show_edit, key_pages.edit),
    "/keys/{key}/rotate": Page(key_pages.show_rotate, key_pages.rotate),
    "/keys/{key}/revoke": Page(key_pages.show_revoke, key_pages.revoke),
    "/requests": Page(requests.show_list),
    "/requests/{position}": Page(requests.show),
    "/people": Page(people.show_list),
    "/people/new": Page(people.show_form, people.add),
    "/people/{user}": Page(person_pages.show, person_pages.edit),
    "/people/{user}/link": Page(person_pages.show_link, person_pages.create_link),
    "/people/{user}/deactivate": Page(person_pages.show_deactivate, person_pages.deactivate),
    "/people/{user}/activate": Action(person_pages.activate),
    "/audit": Page(audit.show_list),
    "/sessions": Page(sessions.show_list),
    "/sessions/{session}/end": Action(sessions.end),
    "/search": Page(search.show),
    "/records/{kind}": Page(records.show_list),
    "/records/{kind}/{record}": Page(records.show),
    "/profile": Door(profile.show, profile.change_password, is_public=False),
    "/sign-out": Action(sign_in.sign_out),
    "/sign-in": Door(sign_in.show, sign_in.sign_in),
    "/password": Door(sign_in.show_password, sign_in.set_password),
}


class _Named(NamedTuple):
    """A place as the router keeps it."""

    place: Place


def _router() -> CompiledRouter:
    router = CompiledRouter()
    for path, place in PLACES.items():
        router.add_route(path or "/", _Named(place))
    return router


ROUTER = _router()


def find(path: str) -> tuple[Place, dict[str, str]] | None:
    """Return the page of a path below the console's, and what stands for its parameters."""
    found: Any = ROUTER.find(path or "/")
    return None if found is None else (found[0].place, found[2])
