"""The routes of the console: the page at each path, and the action of its form."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from retainer.console.actions.offers import ACTIONS
from retainer.console.editing import pages as editing
from retainer.console.lists import list_pages
from retainer.console.page_context import PageContext, Reply
from retainer.console.pages import (
    api_pages,
    audit_page,
    file_page,
    key_pages,
    new_key_pages,
    people_pages,
    person_pages,
    profile_page,
    record_pages,
    report_pages,
    request_pages,
    search_page,
    second_factor_pages,
    session_pages,
    settings_pages,
    sign_in_pages,
    today_page,
    webhook_forms,
    webhook_pages,
    week_page,
)
from retainer.kernel.paths import Paths, first_part
from retainer.kernel.roles import Area
from retainer.store.tx import Store, Tx

Handler = Callable[[Tx, PageContext], Reply]
"""Runs in a transaction of the user's account: read-only for a page, writing for a form."""
StoreHandler = Callable[[Store, PageContext], Reply]
"""Begins its own transactions: before sign-in there is no account, and hashing must happen outside of them."""


class PrivatePage(NamedTuple):
    """A page behind the sign-in. Its form is posted to its own path, and shown again with the errors of a refusal.

    `read_file` reads the file of a form before the transaction, because that may take long. A long form may have as
    many bytes as a file. A page that `is_rehearsal` does what its form would do, in a transaction that is rolled back.
    """

    show: Handler
    act: Handler | None = None
    read_file: Callable[[PageContext], None] | None = None
    is_long: bool = False
    is_rehearsal: bool = False


class PublicPage(NamedTuple):
    """A page that needs no sign-in."""

    show: StoreHandler
    act: StoreHandler


class FilePage(NamedTuple):
    """A file behind the sign-in, which is rendered outside of transactions."""

    show: StoreHandler
    act: None = None


class PasswordPage(NamedTuple):
    """A page behind the sign-in whose form hashes a password."""

    show: StoreHandler
    act: StoreHandler


class Action(NamedTuple):
    """A form without a page of its own."""

    act: Handler


Route = PrivatePage | PublicPage | FilePage | PasswordPage | Action

CONSOLE_ROUTES: dict[str, Route] = {
    "": PrivatePage(today_page.show),
    "/week": PrivatePage(week_page.show, week_page.save, is_long=True),
    "/api": PrivatePage(api_pages.show),
    "/switch": PrivatePage(api_pages.show_switch, api_pages.switch),
    "/keys": PrivatePage(key_pages.show_list),
    "/keys/new": PrivatePage(new_key_pages.show_form, new_key_pages.create),
    "/keys/{key}": PrivatePage(key_pages.show),
    "/keys/{key}/created": PrivatePage(new_key_pages.show_created),
    "/keys/{key}/first-call": PrivatePage(new_key_pages.first_call),
    "/keys/{key}/edit": PrivatePage(key_pages.show_edit, key_pages.edit),
    "/keys/{key}/rotate": PrivatePage(key_pages.show_rotate, key_pages.rotate),
    "/keys/{key}/revoke": PrivatePage(key_pages.show_revoke, key_pages.revoke),
    "/webhooks": PrivatePage(webhook_pages.show_list),
    "/webhooks/new": PrivatePage(webhook_forms.show_new, webhook_forms.create),
    "/webhooks/{webhook}": PrivatePage(webhook_pages.show),
    "/webhooks/{webhook}/secret": PrivatePage(webhook_forms.show_secret),
    "/webhooks/{webhook}/edit": PrivatePage(webhook_forms.show_edit, webhook_forms.edit),
    "/webhooks/{webhook}/rotate": PrivatePage(webhook_forms.show_rotate, webhook_forms.rotate),
    "/webhooks/{webhook}/delete": PrivatePage(webhook_pages.show_delete, webhook_pages.delete),
    "/webhooks/{webhook}/redeliver": PrivatePage(webhook_pages.show, webhook_pages.redeliver),
    "/webhooks/{webhook}/test": PrivatePage(webhook_pages.show, webhook_pages.send_test),
    "/webhooks/{webhook}/pause": Action(webhook_pages.pause),
    "/webhooks/{webhook}/resume": Action(webhook_pages.resume),
    "/requests": PrivatePage(request_pages.show_list),
    "/requests/{position}": PrivatePage(request_pages.show),
    "/people": PrivatePage(people_pages.show_list),
    "/people/new": PrivatePage(people_pages.show_form, people_pages.add),
    "/people/{user}": PrivatePage(person_pages.show, person_pages.edit),
    "/people/{user}/link": PrivatePage(person_pages.show_link, person_pages.create_link),
    "/people/{user}/deactivate": PrivatePage(person_pages.show_deactivate, person_pages.deactivate),
    "/people/{user}/second-factor": PrivatePage(second_factor_pages.show_removal, second_factor_pages.remove),
    "/people/{user}/activate": Action(person_pages.activate),
    "/audit": PrivatePage(audit_page.show_list),
    "/sessions": PrivatePage(session_pages.show_list),
    "/sessions/{session}/end": Action(session_pages.end),
    "/settings": PrivatePage(settings_pages.show, settings_pages.save),
    "/settings/logo": PrivatePage(settings_pages.show_logo, settings_pages.save_logo, settings_pages.read_logo_file),
    "/settings/logo/image": PrivatePage(settings_pages.show_image),
    "/search": PrivatePage(search_page.show),
    "/search/results": PrivatePage(search_page.suggest),
    "/records/{kind}": PrivatePage(list_pages.show_list),
    "/records/{kind}/csv": PrivatePage(list_pages.download),
    "/records/{kind}/new": PrivatePage(editing.show_new, editing.create, is_long=True),
    "/records/{kind}/{record}": PrivatePage(record_pages.show),
    "/records/{kind}/{record}/edit": PrivatePage(editing.show_edit, editing.edit, is_long=True),
    "/records/{kind}/{record}/delete": PrivatePage(editing.show_delete, editing.delete),
    **{
        f"/records/{kind}/{{record}}/{action.path}": PrivatePage(
            partial(action.show, kind), partial(action.act, kind), is_rehearsal=True
        )
        for kind, actions in ACTIONS.items()
        for action in actions
    },
    "/records/{kind}/{record}/{suffix}": FilePage(file_page.show),
    "/reports/{report}": PrivatePage(report_pages.show),
    "/reports/{report}/csv": PrivatePage(report_pages.download),
    "/profile": PasswordPage(profile_page.show, profile_page.change_password),
    "/profile/second-factor": PasswordPage(second_factor_pages.show, second_factor_pages.act),
    "/sign-out": Action(sign_in_pages.sign_out),
    "/sign-in": PublicPage(sign_in_pages.show, sign_in_pages.sign_in),
    "/sign-in/code": PublicPage(sign_in_pages.show_code, sign_in_pages.enter_code),
    "/password": PublicPage(sign_in_pages.show_password, sign_in_pages.set_password),
}

AREAS: dict[str, Area] = {
    "": "records",
    "week": "work",
    "api": "keys",
    "switch": "settings",
    "keys": "keys",
    "webhooks": "webhooks",
    "requests": "requests",
    "people": "people",
    "audit": "audit",
    "sessions": "people",
    "settings": "settings",
    "search": "work",
    "records": "work",
    "reports": "reports",
    "profile": "work",
    "sign-out": "work",
    "sign-in": "work",
    "password": "work",
}
"""What a role must include to open the pages of a section, by the first part of their path.

Which records a role sees, and which of them, is decided by its `Catalogue`.
"""
HOME = "/week"
"""The first page of those who may not see Today."""
PATHS = Paths(CONSOLE_ROUTES)


def find(path: str) -> tuple[Route, dict[str, str]] | None:
    """Return the route of a path below `/console`, and the parameters in the path; None if there is none."""
    return PATHS.find(path)


def area_of(path: str) -> Area:
    return AREAS[first_part(path)]
