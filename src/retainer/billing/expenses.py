"""Expenses: what the agency spent, billable to a client or not.

The client follows from the project. `net_amount` is the amount without tax, `billable_amount` that with the markup.
Negative amounts are refunds. An expense has the client's currency unless it says another. What is billable has a
client: an expense that loses its client must say `"billable": false`, or null, with it. A key that acts as a member
changes and deletes only that user's own expenses.
"""

from decimal import Decimal
from typing import Annotated, NamedTuple

from sqlalchemy import bindparam, select

from retainer.billing import allocations
from retainer.billing.allocation_types import (
    BillingInvoice,
    BillingLine,
    ExpenseBillingStatusField,
    ExpenseBillingStatusFilter,
)
from retainer.kernel import etag
from retainer.kernel.body import New, Patch
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import REPEATED, Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups import changes
from retainer.rollups.sources import EXPENSES
from retainer.schema.billing import expenses
from retainer.schema.crm import clients
from retainer.schema.filters import at_least, at_most, since, until
from retainer.schema.work import projects
from retainer.shared import ownership, relations
from retainer.store.tx import Tx
from retainer.values.common import ActingUser, ExternalId
from retainer.values.exact import DIGITS, amount_of
from retainer.values.kinds import (
    Currency,
    Day,
    Id,
    Markup,
    Percent,
    SignedMoney,
    Text50,
    Text191,
    Text2000,
    Url,
    UserId,
)
from retainer.values.money import marked_up, net_of
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, Record


class Expense(Record):
    """What the agency spent."""

    amount: Annotated[
        SignedMoney,
        "What was paid, never 0; less than 0 for a refund. `amount_includes_tax` says whether tax is in it.",
    ]
    client_id: Annotated[
        Id | None, "Follows from the project; null for costs of the agency, which nobody is billed for."
    ] = None
    project_id: Annotated[Id | None, "What it was for; must be a project of the client."] = None
    user_id: ActingUser = SERVER_DEFAULT
    date: Annotated[Day, "The day that it counts for; today when left out."] = SERVER_DEFAULT
    category: Annotated[Text50, "A word of your own, like travel; lists sort by it whatever the case."] = "other"
    vendor: Annotated[Text191 | None, "Who was paid; `q` searches it."] = None
    description: Annotated[Text2000 | None, "What was bought; lines of invoices take their words from it."] = None
    currency: Annotated[Currency, "In which it was paid; the client's, else the account's, when left out."] = (
        SERVER_DEFAULT
    )
    tax_rate: Annotated[Percent, "Percent of tax that was paid with it."] = Decimal(0)
    amount_includes_tax: Annotated[bool, "With false, tax comes on top of `amount`."] = True
    net_amount: Annotated[SignedMoney, "`amount` without tax: what reports count as cost."] = READ_ONLY
    billable: Annotated[
        bool,
        "Whether the client is billed for it. When left out, true with a client, unless the project is non-billable.",
    ] = SERVER_DEFAULT
    markup_percent: Annotated[Markup, "What is added to `net_amount` when it is billed."] = Decimal(0)
    billable_amount: Annotated[
        SignedMoney, "`net_amount` with the markup, as a line bills it, before tax; 0 when it is not billable."
    ] = READ_ONLY
    billing_status: ExpenseBillingStatusField = READ_ONLY
    invoice_id: BillingInvoice = READ_ONLY
    invoice_line_id: BillingLine = READ_ONLY
    reimbursable: Annotated[bool, "Whether the user is to get the money back; nothing else follows from it."] = False
    receipt_url: Annotated[Url | None, "Where the receipt is; Retainer keeps no files."] = None
    external_id: ExternalId = None


class ExpenseFilter(Filter):
    """Which expenses."""

    sorts = ("-date", "amount", "category", "created_at", "updated_at")
    client_id: OneOf[Id | None] | None = None
    project_id: OneOf[Id | None] | None = None
    user_id: OneOf[UserId] | None = None
    date_from: Annotated[Day | None, since("date")] = None
    date_to: Annotated[Day | None, until("date")] = None
    category: OneOf[Text50] | None = None
    vendor: Annotated[OneOf[Text191] | None, REPEATED] = None
    billable: bool | None = None
    billing_status: ExpenseBillingStatusFilter = None
    reimbursable: bool | None = None
    currency: OneOf[Currency] | None = None
    amount_min: Annotated[SignedMoney | None, at_least("amount")] = None
    amount_max: Annotated[SignedMoney | None, at_most("amount")] = None
    external_id: OneOf[Text191] | None = None


class ProjectRules(NamedTuple):
    """What expenses of a project follow from."""

    client_id: int | None
    status: str
    is_template: int
    billing_type: str


PROJECT = select(*projects.c[ProjectRules._fields]).where(projects.c.id == bindparam("id"))
CLIENT = select(*clients.c["status", "currency"]).where(clients.c.id == bindparam("id"))


def prepare(tx: Tx, expense: Expense, before: Expense | None, sent: relations.SentFields) -> Expense:
    """Fill in what an expense follows from: project and client, the key's user, today; and what it comes to."""
    named = relations.named_fields(expense, sent, "client_id", "project_id")
    row = tx.one(PROJECT, id=expense.project_id) if expense.project_id is not None else None
    project = ProjectRules(*row) if row else None
    if project:
        relations.derive_parent(tx, expense, sent, "project_id", "client_id", project.client_id)
    client = tx.one(CLIENT, id=expense.client_id) if expense.client_id is not None else None
    if before is None or (expense.client_id, expense.project_id) != (before.client_id, before.project_id):
        if project:
            name = f"Project {expense.project_id}"
            relations.check_open(tx, "project_id", name, project.status, template=bool(project.is_template))
        if client:
            field = relations.first_named(named, "client_id", "project_id")
            relations.check_open(tx, field, f"Client {expense.client_id}", client[0])
    ownership.prepare_user(tx, expense, before, "expense")
    expense.date = expense.date or tx.today
    expense.currency = expense.currency or (client[1] if client else tx.actor.currency)
    is_billed = before is not None and before.invoice_id is not None  # then nothing changes, and `locked` alone says so
    if expense.billable is None:
        expense.billable = expense.client_id is not None and not (project and project.billing_type == "non_billable")
    elif expense.billable and expense.client_id is None and not is_billed and tx.readable("client_id", "project_id"):
        message = "Must be false without a client: nobody could be billed. Send false, or name a client."
        tx.error("billable", message)
    compute_amounts(tx, expense)
    return expense


def compute_amounts(tx: Tx, expense: Expense) -> None:
    """Compute the net of an expense and what its client is billed, each rounded half up."""
    if expense.amount == 0:
        tx.error("amount", "Must not be 0.")
    units = int(expense.amount.scaleb(DIGITS[expense.currency]))
    net = net_of(units, expense.tax_rate) if expense.amount_includes_tax else units
    billed = marked_up(net, expense.markup_percent) if expense.billable else 0
    expense.net_amount = amount_of(net, expense.currency)
    expense.billable_amount = amount_of(billed, expense.currency)


def record(tx: Tx, expense: Expense) -> int:
    """Write a new expense; return its id."""
    prepared = prepare(tx, expense, None, relations.sent_fields(expense))
    return changes.insert(tx, EXPENSES, expenses, prepared)


api = Resource("/expenses", tag="Expenses", scope="expenses", table=expenses)


@api.get()
def list_expenses(tx: Tx, filters: ExpenseFilter, page: Page) -> Paged[Expense]:
    """List expenses, newest day first."""
    return listing(tx, expenses, Expense, filters, page)


@api.post()
def create_expense(tx: Tx, body: New[Expense]) -> Expense:
    """Record an expense; client, user, day and currency are filled in when they are left out."""
    return tx.get(expenses, record(tx, body), Expense)


@api.get("/{expense_id}")
def get_expense(tx: Tx, expense_id: Id) -> Expense:
    """Read an expense."""
    return tx.get(expenses, expense_id, Expense)


@api.put("/{expense_id}")
@api.patch("/{expense_id}")
def update_expense(tx: Tx, expense_id: Id, patch: Patch[Expense]) -> Expense:
    """Change an expense; members left out keep their value. A member's key changes only that user's own."""
    before = tx.get(expenses, expense_id, Expense)
    after = prepare(tx, patch.apply_to(before), before, patch.given)
    allocations.check_locked(tx, after, before, before.invoice_id)
    changes.update(tx, EXPENSES, expenses, before, after)
    return tx.get(expenses, expense_id, Expense)


@api.delete("/{expense_id}")
def delete_expense(tx: Tx, expense_id: Id) -> None:
    """Delete an expense; one that is billed stays. A member's key deletes only that user's own."""
    before = etag.check_unchanged(tx, expenses, tx.get(expenses, expense_id, Expense))
    ownership.check_deletion(tx, before, "expense")
    allocations.refuse_deletion(before.invoice_id, "expense")
    changes.delete(tx, expenses, before)
