"""The displays of all kinds of records, by the names of the kinds in paths."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import select

from retainer.billing.expenses import Expense
from retainer.console.catalogue import Kind
from retainer.console.kinds import clients, documents, projects, sites, tickets
from retainer.console.kinds.display import FREE, Display, FieldLock, RecordPage
from retainer.console.labels import field_label
from retainer.console.names import Link
from retainer.console.values import NOTHING, Column, Fact, Value, Values, money
from retainer.crm.tags import Tag
from retainer.rollups.list_sums import Sum
from retainer.schema import TAG_LINKS
from retainer.schema.billing import invoices, is_discount
from retainer.store.engines.sql import is_listed
from retainer.values.reading import writable_fields
from retainer.work.time_rules import TimeEntry

TAGGED = {
    owner: select(links.c.tag_id).where(is_listed(links.c.tag_id, "ids")).distinct()
    for owner, links in TAG_LINKS.items()
}


def tagged_lists(values: Values, tags: Sequence[Tag]) -> dict[int, Value]:
    ids, found = json.dumps([tag.id for tag in tags]), dict[int, list[Link]]()
    for table, statement in TAGGED.items():
        kind = values.context.catalogue.by_table[table.name]
        for (tag_id,) in values.tx.all(statement, ids=ids):
            found.setdefault(tag_id, []).append(Link(kind.title, f"/records/{kind.name}?tag_id={tag_id}"))
    return {tag_id: Value("links", links=links) for tag_id, links in found.items()}


TAGS = Display(columns=("name", "usage_count", Column("used_on", load=tagged_lists), "created_at"), is_offered=True)


def billing_statuses(values: Values, works: Sequence[Any]) -> dict[int, Value]:
    """Return whether time or expenses are billed; what is only on a draft is not yet."""
    ids = {each.invoice_id for each in works if each.invoice_id is not None}
    drafts = {invoice_id for (invoice_id,) in values.tx.all(DRAFTS, ids=json.dumps([*ids]))} if ids else ()
    on_draft = Value("badge", "On a draft", tone="info")
    return {each.id: on_draft if each.invoice_id in drafts else values.field(each, BILLING.field) for each in works}


def methods(values: Values, payments: Sequence[Any]) -> dict[int, Value]:
    """Return how money moved; a discount moves none, whatever its payment did."""
    return {each.id: NOTHING if each.kind == "discount" else values.field(each, "method") for each in payments}


DRAFTS = select(invoices.c.id).where(is_listed(invoices.c.id, "ids"), invoices.c.status == "draft")
BILLING = Column("billing_status", load=billing_statuses)


def facts_of_work(*names: str) -> Callable[[RecordPage[Any]], list[Fact]]:
    """Return what the page of time or of an expense shows first: fields, and whether it is billed."""

    def facts(page: RecordPage[Any]) -> list[Fact]:
        page.seen.add(BILLING.field)
        facts = page.facts(*names)
        if BILLING.field not in page.kind.left_out:
            facts.append(Fact(field_label(BILLING.field), billing_statuses(page, [page.own])[page.own.id]))
        return facts

    return facts


def amounts(_: Values, expenses: Sequence[Expense]) -> dict[int, Value]:
    found = {each.id: money(each.amount, each.currency) for each in expenses}
    for each in expenses:
        if each.tax_rate and not each.amount_includes_tax:
            found[each.id] = found[each.id]._replace(detail=Link("before tax", ""))
    return found


SPENT = FieldLock(writable_fields(Expense), stays=True, reason="This expense is on an invoice, so it is fixed.")
EXPENSES = Display(
    columns=(
        *(Column("date", "description"), "client_id", "project_id", Column("category", "vendor")),
        *(Column("amount", load=amounts), "billable_amount", BILLING),
    ),
    filters=("date_from", "date_to", "client_id", "billing_status"),
    sums=(Sum("amount"), Sum("billable_amount")),
    facts=facts_of_work("amount", "net_amount", "date", "client_id", "project_id", "user_id"),
    lock=lambda expense: SPENT if expense.billing_status == "billed" else FREE,
    rare=("markup_percent", "receipt_url", "reimbursable"),
    has_receipt=True,
)


ON_INVOICE = FieldLock({"amount"}, stays=True, reason="This milestone is on an invoice, so its amount is fixed.")
BILLED = FieldLock(
    writable_fields(TimeEntry).keys() - {"description", "external_id"},
    stays=True,
    reason="This time is on an invoice, so only its description can change.",
)
DISPLAYS = {
    "clients": clients.DISPLAY,
    "external-contacts": Display(
        columns=(
            *(Column("name", "job_title", sort="last_name"), "client_id", "role", Column("email", "phone"), "status"),
        ),
        filters=("client_id", "role", "status"),
        facts=("client_id", "job_title", "role", "email", "phone", "mobile"),
    ),
    "tags": TAGS,
    "projects": projects.DISPLAY,
    "milestones": Display(
        columns=("name", "status", "due_date", "amount", "tasks_done_count", "tasks_count"),
        lock=lambda milestone: FREE if milestone.invoice_id is None else ON_INVOICE,
    ),
    "tasks": Display(
        columns=(Column("title", "project_id"), "assignee_id", "priority", "due_date", "tracked_minutes", "status"),
        filters=("project_id", "assignee_id", "status", "due_date_to"),
        views=(
            ("Open", "open=true&sort=due_date"),
            ("Overdue", "overdue=true&sort=due_date"),
            ("Mine", "open=true&assignee_id=me&sort=due_date"),
            ("Done", "status=done&sort=-updated_at"),
            ("All", "sort=-created_at"),
        ),
        facts=("client_id", "project_id", "assignee_id", "due_date", "tracked_minutes", "estimated_minutes"),
        rare=("milestone_id", "parent_id"),
        forms=(("handle", "Status and priority", ()),),
    ),
    "time-entries": Display(
        columns=(
            *(Column("date", "description"), "user_id", Column("project_id", "task_id"), "client_id"),
            *("duration_minutes", "amount", BILLING),
        ),
        filters=("date_from", "date_to", "user_id", "project_id", "billing_status"),
        sums=(Sum("duration_minutes"), Sum("amount")),
        facts=facts_of_work("date", "duration_minutes", "user_id", "client_id", "project_id", "amount"),
        is_counted=False,
        lock=lambda entry: BILLED if entry.is_locked else FREE,
        rare=("started_at", "ended_at"),
    ),
    "quotes": documents.QUOTES,
    "invoices": documents.INVOICES,
    "payments": Display(
        columns=(
            *(Column("paid_date", "reference"), "client_id", "invoice_id", Column("kind", "notes")),
            *(Column("method", load=methods), "amount"),
        ),
        filters=("paid_date_from", "paid_date_to", "client_id", "method"),
        sums=(Sum("amount", lambda table: ~is_discount(table), "Collected"),),
        links=(documents.RECORD_PAYMENTS,),
        facts=("client_id", "invoice_id", "amount", "paid_date", "method"),
    ),
    "credit-notes": documents.CREDIT_NOTES,
    "expenses": EXPENSES,
    "tickets": tickets.DISPLAY,
    "sites": sites.DISPLAY,
}


OF_MEMBERS = {"projects": projects.OWN_DISPLAY}
"""The displays of records that a role sees only as its user's own, where others would be without what is left out."""


def display_for(kind: Kind) -> Display:
    """Return what a role sees of a kind."""
    display = OF_MEMBERS.get(kind.name, DISPLAYS[kind.name]) if kind.own_only else DISPLAYS[kind.name]
    return display.without(kind.left_out)


def display_of(name: str) -> Display:
    """Return the display of a kind; it is empty for one that only the pages of others show."""
    return DISPLAYS.get(name) or Display(())
