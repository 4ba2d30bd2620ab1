"""Client links of an invoice or a quote: their part of its page, and the forms that create and revoke one."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from retainer.billing.client_links import NO_ADDRESS, ClientLink, LinkFilter, create_link
from retainer.console import words
from retainer.console.catalogue import Kind, no_such_page
from retainer.console.controls.control import Field
from retainer.console.controls.days import Boundary
from retainer.console.editing.calls import new_of, target_of
from retainer.console.editing.form_pages import FormPage
from retainer.console.kinds.display import AnyPage
from retainer.console.names import Link
from retainer.console.page_context import PageContext, Reply
from retainer.console.pages.file_pages import MAX_SHOWN as MAX_FILES
from retainer.console.pages.file_pages import section_of
from retainer.console.values import AnyBlock, Value, table_of
from retainer.files import files
from retainer.identity import audit
from retainer.identity.audit import Fields
from retainer.kernel.paging import first_records
from retainer.kernel.resource import read_id
from retainer.schema.billing import invoices, quotes
from retainer.schema.links import client_links
from retainer.store.outbox import resource_of
from retainer.store.tx import Tx
from retainer.values.exact import instant_after, local_day

MAX_SHOWN = 20
"""Links that a page shows, the newest first."""
SHARED = (invoices, quotes)
"""The tables of the documents that have links."""
UNTIL = Field(
    "expires_at", "Works until", Boundary(is_end=True), "This day is included. If you leave it blank: for 90 days."
)


def has_links(kind: Kind, record: Any) -> bool:
    """Return whether a record can have links, which those create who may change it. Clients see no draft."""
    return kind.changing is not None and kind.table in SHARED and record.status != "draft"


def blocks(page: AnyPage) -> Iterator[AnyBlock]:
    """Yield the links of a document, unless it has none."""
    if not has_links(page.kind, page.own):
        return
    owner = {f"{resource_of(page.kind.table)}_id": page.own.id}
    found = first_records(page.tx, client_links, ClientLink, LinkFilter(), ("-created_at",), MAX_SHOWN, **owner)
    if not found:
        return
    now, base = page.context.now, f"{page.kind.path_of(page.own)}/links"
    rows = [
        (
            page.since(link.created_at),
            page.person(link.user_id),
            words.short_day(last_day(page, link)) if link.expires_at > now else Value("badge", "Expired", tone="warn"),
            page.since(link.last_opened_at),
            Value("link", link=Link("Revoke…", f"{base}/{link.id}/revoke")),
        )
        for link in found
    ]
    note = "Programs that scan mail open links, too."
    yield table_of("Client links", ("Created", "By", "Works until", "Last opened", "Revoke"), rows, note=note)


def last_day(page: AnyPage, link: ClientLink) -> str:
    """Return the last whole day of a link, in the zone of the account."""
    before = instant_after(link.expires_at, -timedelta(microseconds=1))
    return local_day(before, page.context.person.timezone)


def kind_of(context: PageContext) -> Kind:
    kind = context.catalogue.find(context.path_parameters["kind"])
    if kind.changing is None or kind.table not in SHARED:
        raise no_such_page()
    return kind


def choose_creation(_: Tx, context: PageContext) -> FormPage:
    kind, address = kind_of(context), context.request.settings.base_url

    def create(tx: Tx, context: PageContext, record: Any, body: Fields) -> Reply:
        made = create_link(tx, kind.table, record, new_of(tx, ClientLink, body), address)
        after = {"link": made.id, "expires_at": made.expires_at}
        audit.note(tx, "client link created", target_of(tx, kind, record), after=after)
        return context.show_once(kind.path_of(record), "client", made.url or "")

    def tell(tx: Tx, _: PageContext, record: Any) -> Iterator[str]:
        answers = ", and can accept or decline it" if kind.table is quotes else ", how to pay it"
        yield f"Anyone with the link sees this {kind.noun} and what became of it{answers}, without signing in."
        found = files.list_shown(tx, resource_of(kind.table), record.id, MAX_FILES)
        if found:
            yield f"They also see its files: {', '.join(file.name for file in found)}."

    def obstacle(_: Tx, __: PageContext, record: Any) -> str:
        if record.status == "draft":
            return f"This {kind.noun} is a draft, which clients do not see."
        return "" if address else NO_ADDRESS

    return FormPage(
        section_of(kind), "Share {name} with a link", "Create link", create, tell, lambda *_: [UNTIL], obstacle=obstacle
    )


def choose_revocation(_: Tx, context: PageContext) -> FormPage:
    kind = kind_of(context)

    def revoke(tx: Tx, context: PageContext, record: Any, __: Fields) -> Reply:
        owner = {f"{resource_of(kind.table)}_id": record.id}
        link = tx.get(client_links, read_id(context.path_parameters["link"], client_links), ClientLink, **owner)
        tx.delete(client_links, link.id)
        audit.note(tx, "client link revoked", target_of(tx, kind, record), before={"link": link.id})
        return context.redirect(kind.path_of(record), "The link was revoked.", kind="warn")

    gone = ["It stops working immediately. This can't be undone."]
    return FormPage(section_of(kind), "Revoke a link to {name}", "Revoke link", revoke, lambda *_: gone, is_danger=True)
