"""What the page of each kind of record shows: headline facts, blocks of its own, related records, the rest.

A kind without a layout has the facts that its fields offer, all records that refer to it, and all fields.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from retainer.console.labels import field_label
from retainer.console.records import clients, documents, projects, sites, tickets
from retainer.console.records.blocks import Block, Fact, TextBlock
from retainer.console.records.page import RecordPage

COMMON_HIDDEN = frozenset({"id", "created_at", "updated_at", "position", "invoice_line_id"})
"""Fields that no page lists: the time of changes is in the last part of each page."""
FACTS = (
    *("client_id", "project_id", "ticket_id", "date", "duration_minutes", "amount", "total", "due_date", "assignee_id"),
    *("priority", "role", "usage_count"),
)
"""The headline facts of kinds without a layout, as far as they have them."""
TEXTS = ("description", "notes")
"""Fields with long texts, which are shown before the others."""


def no_blocks(_: RecordPage) -> Iterator[Block]:
    """Yield nothing: the kind has no blocks of its own."""
    return iter(())


class Layout(NamedTuple):
    """The page of a kind: `facts` are fields or a function, `related` an order, `hidden` fields shown already."""

    facts: tuple[str, ...] | Callable[[RecordPage], list[Fact]] = FACTS
    blocks: Callable[[RecordPage], Iterator[Block]] = no_blocks
    related: tuple[str, ...] = ()
    hidden: frozenset[str] = frozenset()


DOCUMENT = Layout(
    documents.facts, documents.blocks, related=("invoices", "projects", "credit-notes"), hidden=documents.HIDDEN
)
LAYOUTS = {
    "clients": Layout(
        clients.facts,
        clients.blocks,
        (
            *("projects", "invoices", "tickets", "sites", "external-contacts", "quotes", "credit-notes"),
            *("time-entries", "expenses", "tasks"),
        ),
        clients.HIDDEN,
    ),
    "projects": Layout(
        projects.facts,
        projects.blocks,
        ("milestones", "tasks", "time-entries", "expenses", "invoices", "quotes", "tickets", "sites"),
        projects.HIDDEN,
    ),
    "invoices": DOCUMENT,
    "quotes": DOCUMENT,
    "credit-notes": DOCUMENT,
    "tickets": Layout(tickets.facts, tickets.blocks, ("tasks", "time-entries"), tickets.HIDDEN),
    "sites": Layout(sites.facts, sites.blocks, ("tickets",), sites.HIDDEN),
    "tasks": Layout(
        ("client_id", "project_id", "assignee_id", "due_date", "tracked_minutes", "estimated_minutes"),
        related=("tasks", "time-entries"),
    ),
    "time-entries": Layout(
        ("date", "duration_minutes", "user_id", "client_id", "project_id", "amount", "billing_status")
    ),
    "expenses": Layout(("amount", "net_amount", "date", "client_id", "project_id", "user_id", "billing_status")),
    "external-contacts": Layout(("client_id", "job_title", "role", "email", "phone", "mobile")),
}
GENERIC = Layout()


def facts_of(page: RecordPage, layout: Layout) -> tuple[list[Fact], frozenset[str]]:
    """Return the headline facts of a record, and the fields that need not be listed again."""
    if callable(layout.facts):
        return layout.facts(page), layout.hidden
    names = [name for name in layout.facts if hasattr(page.record, name)]
    return page.facts(*names), layout.hidden | {"status", "name", "subject", "title", *names}


def related_blocks(page: RecordPage, layout: Layout) -> Iterator[Block]:
    """Yield the records that refer to this one: first the kinds that the layout names."""
    relations = page.context.catalogue.relations(page.kind.table)
    order = {name: place for place, name in enumerate(layout.related)}

    def place(name: str, table: str) -> int:
        return order.get(name, order.get(table, len(order)))

    for relation in sorted(relations, key=lambda each: place(each.kind.name, each.kind.table.name)):
        block = page.related(relation)
        if block is not None:
            yield block


def rest_of(page: RecordPage, hidden: frozenset[str]) -> Iterator[Block]:
    """Yield the long texts of a record, and its other fields."""
    names = [name for name in page.record.__struct_fields__ if name not in hidden | COMMON_HIDDEN]
    for name in TEXTS:
        if name in names and getattr(page.record, name):
            yield TextBlock(field_label(name), getattr(page.record, name))
            names.remove(name)
    block = page.fields("More details", names)
    if block.fields:
        yield block
