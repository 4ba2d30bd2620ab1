"""The routes of the console: the page at each path, and the action of its form."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from retainer.console.actions.offers import ACTIONS
from retainer.console.editing import form_pages, record_forms, uploads
from retainer.console.editing.form_pages import Choose, FormPage
from retainer.console.page_context import PageContext, Reply
from retainer.console.pages import (
    bank_pages,
    billing_run_pages,
    file_pages,
    import_pages,
    job_pages,
    key_pages,
    link_pages,
    list_files,
    list_pages,
    log_pages,
    payment_pages,
    people_pages,
    person_page,
    record_pages,
    reminder_pages,
    search_page,
    settings_pages,
    sign_in_pages,
    timer_pages,
    today_page,
    webhook_pages,
    week_page,
)
from retainer.console.reports import building
from retainer.kernel.roles import Area
from retainer.kernel.routes import Paths, first_part
from retainer.store.tx import Tx

Handler = Callable[[Any, PageContext], Reply]
"""Runs in a transaction of the user's account, read-only for a page and writing for a form; or with the store."""


class Route(NamedTuple):
    """A page and what its form does; the form is posted to the path of the page, which a refusal shows again.

    All that a form says is read before the transaction of its action, which others wait for: `read_file` reads its
    file, and `read` its fields, in a snapshot of the account. `read` may also be all that the form needs. A page that
    `is_rehearsal` does what its form would do, in a transaction that is rolled back; if other writes are running, it
    shows less.
    """

    show: Handler | None = None
    """None for a form without a page of its own."""
    act: Handler | None = None
    read: Callable[[Tx, PageContext], Reply | None] | None = None
    read_file: Callable[[PageContext], None] | None = None
    is_rehearsal: bool = False
    is_written: bool = False
    """Whether showing the page writes, if no other write is running."""
    has_store: bool = False
    """Whether its form begins its own transactions: it hashes passwords, which must happen outside."""
    is_public: bool = False
    """Whether it needs no sign-in, and so knows no account."""
    area: Area | None = None
    """What a role must include to open it, if not what its path says."""


public = partial(Route, has_store=True, is_public=True)


def form_page(page: FormPage | Choose, **others: Any) -> Route:
    choose: Choose = (lambda *_: page) if isinstance(page, FormPage) else page
    act = form_pages.act_apart if others.get("has_store") else form_pages.act
    read = partial(form_pages.read, choose)
    return Route(lambda tx, context: choose(tx, context).show(tx, context), act, read, **others)


CONSOLE_ROUTES: dict[str, Route] = {
    "": Route(today_page.show),
    "/billing-run": Route(billing_run_pages.show, billing_run_pages.create_drafts, billing_run_pages.read),
    "/billing-run/invoices": Route(
        billing_run_pages.show_invoices, billing_run_pages.issue, billing_run_pages.read_invoices
    ),
    "/billing-run/pdfs": Route(billing_run_pages.download),
    "/week": Route(week_page.show, week_page.save, week_page.read),
    "/week/timer": Route(week_page.show, timer_pages.move, timer_pages.read),
    "/api": Route(key_pages.show_api),
    "/switch": form_page(key_pages.choose_switch),
    "/keys": Route(key_pages.show_list),
    "/keys/new": form_page(key_pages.NEW),
    "/keys/{key}": Route(key_pages.show),
    "/keys/{key}/first-call": Route(key_pages.first_call),
    "/keys/{key}/edit": form_page(key_pages.EDIT),
    "/keys/{key}/rotate": form_page(key_pages.ROTATE),
    "/keys/{key}/revoke": form_page(key_pages.REVOKE),
    "/webhooks": Route(webhook_pages.show_list),
    "/webhooks/new": form_page(webhook_pages.NEW),
    "/webhooks/{webhook}": Route(webhook_pages.show),
    "/webhooks/{webhook}/edit": form_page(webhook_pages.EDIT),
    "/webhooks/{webhook}/rotate": form_page(webhook_pages.ROTATE),
    "/webhooks/{webhook}/delete": form_page(webhook_pages.DELETE),
    "/webhooks/{webhook}/redeliver": form_page(webhook_pages.REDELIVER),
    "/webhooks/{webhook}/test": Route(webhook_pages.show, webhook_pages.send_test),
    "/webhooks/{webhook}/pause": Route(act=webhook_pages.pause),
    "/webhooks/{webhook}/resume": Route(act=webhook_pages.resume),
    "/requests": Route(log_pages.show_requests),
    "/requests/{position}": Route(log_pages.show_request),
    "/people": Route(people_pages.show_list, area="records"),
    "/people/new": form_page(people_pages.ADD),
    "/people/{user}": Route(person_page.show, area="work"),
    "/people/{user}/edit": form_page(people_pages.EDIT),
    "/people/{user}/link": form_page(people_pages.LINK),
    "/people/{user}/deactivate": form_page(people_pages.DEACTIVATE),
    "/people/{user}/second-factor": form_page(people_pages.REMOVE_SECOND_FACTOR),
    "/people/{user}/activate": Route(act=people_pages.activate),
    "/jobs": Route(job_pages.show_list),
    "/jobs/{job}": Route(job_pages.show),
    "/jobs/{job}/file": Route(job_pages.download_file),
    "/jobs/{job}/refused": Route(job_pages.download_refused),
    "/jobs/{job}/stop": Route(job_pages.show, job_pages.stop),
    "/jobs/{job}/continue": Route(job_pages.show, job_pages.resume),
    "/jobs/{job}/import": Route(job_pages.show, import_pages.import_now),
    "/jobs/{job}/undo": form_page(import_pages.UNDO, area="settings"),
    "/import": form_page(import_pages.START, read_file=uploads.read_upload, has_store=True),
    "/import/{upload}": form_page(import_pages.REVIEW, has_store=True),
    "/audit": Route(log_pages.show_audit),
    "/sessions": Route(people_pages.show_sessions),
    "/sessions/{session}/end": Route(act=people_pages.end_session),
    "/settings": form_page(settings_pages.SETTINGS)._replace(show=settings_pages.show),
    "/settings/bank-account": form_page(bank_pages.BANK_ACCOUNT),
    "/settings/reminders": form_page(reminder_pages.REMINDERS),
    "/settings/export": Route(act=settings_pages.export),
    "/settings/logo": form_page(settings_pages.LOGO, read_file=settings_pages.read_logo_file),
    "/settings/logo/image": Route(settings_pages.show_image),
    "/search": Route(search_page.show),
    "/search/results": Route(search_page.suggest),
    "/records/{kind}": Route(list_pages.show_list),
    "/records/{kind}/csv": Route(list_files.download),
    "/records/{kind}/spreadsheet": Route(list_files.download_spreadsheet),
    "/records/{kind}/change": Route(list_pages.show_list, list_pages.change_selected),
    "/records/{kind}/new": form_page(record_forms.choose_form, read_file=uploads.read_optional),
    "/records/payments/new": form_page(payment_pages.choose),
    "/records/{kind}/{record}": Route(record_pages.show),
    "/records/{kind}/{record}/edit": form_page(record_forms.choose_form),
    "/records/{kind}/{record}/delete": form_page(record_forms.choose_deletion, is_rehearsal=True),
    **{
        f"/records/{kind}/{{record}}/{action.path}": form_page(partial(action.choose, kind), is_rehearsal=True)
        for kind, actions in ACTIONS.items()
        for action in actions
    },
    "/records/tasks/{record}/tick": Route(act=record_pages.tick),
    "/records/{kind}/{record}/files": form_page(file_pages.choose_addition, read_file=uploads.read_upload),
    "/records/{kind}/{record}/files/{file}": Route(file_pages.show),
    "/records/{kind}/{record}/files/{file}/delete": form_page(file_pages.choose_deletion),
    "/records/{kind}/{record}/links": form_page(link_pages.choose_creation),
    "/records/{kind}/{record}/links/{link}/revoke": form_page(link_pages.choose_revocation),
    "/records/{kind}/{record}/{suffix}": Route(record_pages.show_file),
    "/reports/{report}": Route(building.show),
    "/reports/{report}/csv": Route(building.download),
    "/profile": form_page(sign_in_pages.PROFILE, has_store=True),
    "/profile/second-factor": form_page(sign_in_pages.choose_second_factor, has_store=True, is_written=True),
    "/sign-out": Route(act=sign_in_pages.sign_out),
    "/sign-in": public(sign_in_pages.show, sign_in_pages.sign_in),
    "/sign-in/forgotten": public(sign_in_pages.show_forgotten, sign_in_pages.ask_for_link),
    "/sign-in/code": public(sign_in_pages.show_code, sign_in_pages.enter_code),
    "/password": public(sign_in_pages.show_password, sign_in_pages.set_password),
}

PARTS: dict[Area, tuple[str, ...]] = {
    "records": ("", "billing-run"),
    "work": ("week", "search", "records", "jobs", "profile", "sign-out", "sign-in", "password"),
    "reports": ("reports",),
    "keys": ("api", "keys"),
    "webhooks": ("webhooks",),
    "requests": ("requests",),
    "settings": ("settings", "switch", "import"),
    "people": ("people", "sessions"),
    "audit": ("audit",),
}
"""What a role must include to open pages, with the first parts of their paths.

Which records a role sees, and which of them, is decided by its `Catalogue`.
"""
HOME = "/week"
"""The first page of people who may not see Today."""
PATHS = Paths(CONSOLE_ROUTES)
AREAS: dict[str, Area] = {part: area for area, parts in PARTS.items() for part in parts}


def area_of(path: str) -> Area:
    return AREAS[first_part(path)]
