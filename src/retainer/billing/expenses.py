"""Expenses: what the agency spent, billable to a client or not.

The client follows from the project. `net_amount` is the amount without tax, `billable_amount` adds the markup. Negative
amounts are refunds. The default currency is the client's. A billable expense needs a client: a request that removes the
client must also send `"billable": false` or null. The key of a member changes and deletes only that user's expenses.
"""

from decimal import Decimal
from typing import Annotated, NamedTuple

import msgspec

from retainer.billing.allocation_types import (
    BillingInvoice,
    BillingLine,
    ExpenseBillingStatusField,
    ExpenseBillingStatusFilter,
    Settled,
)
from retainer.errors import FALSE, SEND, part
from retainer.kernel.body import New, Patch
from retainer.kernel.paging import Page, SummedPage
from retainer.kernel.query import REPEATED, Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups import changes
from retainer.rollups.list_sums import summed_listing
from retainer.schema.billing import expenses
from retainer.schema.crm import clients
from retainer.schema.filters import at_least, at_most, since, until
from retainer.schema.work import projects
from retainer.shared import relations
from retainer.store.tx import Tx
from retainer.values import kinds
from retainer.values.common import ActingUser, ExternalId
from retainer.values.exact import DIGITS, amount_of
from retainer.values.money import marked_up, net_of
from retainer.values.reading import writable_fields
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, Record


class Expense(Record):
    """An expense of the agency."""

    amount: Annotated[kinds.SignedMoney, "The amount paid, never 0; negative for a refund. See `amount_includes_tax`."]
    client_id: Annotated[kinds.Id | None, "Follows from the project; null for costs of the agency itself."] = None
    project_id: Annotated[kinds.Id | None, "A project of the client."] = None
    user_id: ActingUser = SERVER_DEFAULT
    date: Annotated[kinds.Day, "Day for which it counts; omitted: today."] = SERVER_DEFAULT
    category: Annotated[kinds.Text50, "Your own category, such as travel; sorting ignores case."] = "other"
    vendor: Annotated[kinds.Text191 | None, "The seller; `q` searches it."] = None
    description: Annotated[kinds.Text2000 | None, "What was bought; the default description of its line."] = None
    currency: Annotated[kinds.Currency, "Omitted: the client's, else the account's."] = SERVER_DEFAULT
    tax_rate: Annotated[kinds.Percent, "Tax rate in percent."] = Decimal(0)
    amount_includes_tax: Annotated[bool, "If false, tax is added to `amount`."] = True
    net_amount: Annotated[kinds.SignedMoney, "`amount` without tax; reports count it as cost."] = READ_ONLY
    billable: Annotated[bool, "Omitted: billable for a client, unless the project is not."] = SERVER_DEFAULT
    is_settled: Settled = False
    markup_percent: Annotated[kinds.Markup, "Percent added to `net_amount` when it is billed."] = Decimal(0)
    billable_amount: Annotated[kinds.SignedMoney, "`net_amount` and markup, before tax; 0 if not billable."] = READ_ONLY
    billing_status: ExpenseBillingStatusField = READ_ONLY
    invoice_id: BillingInvoice = READ_ONLY
    invoice_line_id: BillingLine = READ_ONLY
    reimbursable: Annotated[bool, "Whether to pay the user back; for your information only."] = False
    receipt_url: Annotated[kinds.Url | None, "Address of the receipt; Retainer stores no files."] = None
    external_id: ExternalId = None


class ExpenseTotals(msgspec.Struct):
    """The sums of expenses in one currency."""

    currency: Annotated[kinds.Currency, "Currency of the expenses."]
    amount: Annotated[kinds.SignedMoney, "Sum of the amounts paid, with or without tax as each expense says."]
    net_amount: Annotated[kinds.SignedMoney, "Sum of the amounts without tax."]
    billable_amount: Annotated[kinds.SignedMoney, "Sum of what clients are billed, before tax."]


class ExpenseFilter(Filter):
    sorts = ("-date", "amount", "category", "created_at", "updated_at")
    client_id: OneOf[kinds.Id | None] | None = None
    project_id: OneOf[kinds.Id | None] | None = None
    user_id: OneOf[kinds.UserId] | None = None
    date_from: Annotated[kinds.Day | None, since("date")] = None
    date_to: Annotated[kinds.Day | None, until("date")] = None
    category: OneOf[kinds.Text50] | None = None
    vendor: Annotated[OneOf[kinds.Text191] | None, REPEATED] = None
    billable: bool | None = None
    billing_status: ExpenseBillingStatusFilter = None
    reimbursable: bool | None = None
    currency: OneOf[kinds.Currency] | None = None
    amount_min: Annotated[kinds.SignedMoney | None, at_least("amount")] = None
    amount_max: Annotated[kinds.SignedMoney | None, at_most("amount")] = None
    external_id: OneOf[kinds.Code191] | None = None


class ProjectDefaults(NamedTuple):
    client_id: int | None
    status: str
    is_template: int
    billing_type: str


def build_expense(tx: Tx, expense: Expense, before: Expense | None, sent: relations.SentFields) -> Expense:
    project = relations.load_row(tx, ProjectDefaults, projects, expense.project_id)
    if project:
        relations.inherit(tx, expense, sent, "project_id", "client_id", project.client_id)
    client = relations.load_row(tx, relations.ClientState, clients, expense.client_id)
    if before is None or (expense.client_id, expense.project_id) != (before.client_id, before.project_id):
        if project:
            name = part(f"Project {expense.project_id}")
            relations.validate_open(tx, "project_id", name, project.status, template=bool(project.is_template))
        if client:
            field = relations.first_sent(expense, sent, "client_id", "project_id")
            relations.validate_open(tx, field, part(f"Client {expense.client_id}"), client.status)
    expense.user_id = relations.build_owner(tx, expense.user_id)
    relations.validate_owner(tx, expense.user_id, before.user_id if before else None, "expense")
    expense.date = expense.date or tx.today
    expense.currency = expense.currency or (client.currency if client else tx.actor.currency)
    if expense.billable is None:
        expense.billable = expense.client_id is not None and not (project and project.billing_type == "non_billable")
    elif expense.billable and expense.client_id is None:
        is_known = (expense.project_id is None or project is not None) and tx.readable("client_id", "project_id")
        if is_known:
            tx.error("billable", f"Must be {FALSE} without a client. {SEND} {FALSE}, or name a client.")
    relations.validate_settled(tx, is_settled=expense.is_settled, billable=expense.billable)
    compute_amounts(tx, expense)
    return expense


def compute_amounts(tx: Tx, expense: Expense) -> None:
    """Compute the net and the billable amount of an expense, each rounded half up."""
    if expense.amount == 0:
        tx.error("amount", "Must not be 0.")
    units = int(expense.amount.scaleb(DIGITS[expense.currency]))
    net = net_of(units, expense.tax_rate) if expense.amount_includes_tax else units
    billed = marked_up(net, expense.markup_percent) if expense.billable else 0
    expense.net_amount = amount_of(net, expense.currency)
    expense.billable_amount = amount_of(billed, expense.currency)


api = Resource("/expenses", tag="Expenses", scope="expenses", table=expenses)


@api.get()
def list_expenses(tx: Tx, filters: ExpenseFilter, page: Page) -> SummedPage[Expense, ExpenseTotals]:
    """List expenses, newest day first."""
    return summed_listing(tx, expenses, Expense, ExpenseTotals, filters, page)


@api.post()
def create_expense(tx: Tx, body: New[Expense]) -> Expense:
    """Record an expense; client, user, date and currency have defaults."""
    built = build_expense(tx, body, None, relations.sent_fields(body))
    return tx.get(expenses, changes.insert(tx, expenses, built), Expense)


api.reads("/{expense_id}", Expense, "Read an expense.")


@api.put("/{expense_id}")
@api.patch("/{expense_id}")
def update_expense(tx: Tx, expense_id: kinds.Id, patch: Patch[Expense]) -> Expense:
    """Change an expense; omitted fields keep their value. A member's key changes only that user's expenses."""
    before = tx.get(expenses, expense_id, Expense)
    after = patch.apply_to(before)
    if before.invoice_id is not None:
        after.user_id = relations.build_owner(tx, after.user_id)
        relations.validate_locked(tx, after, before, f"on invoice {before.invoice_id}", writable_fields(Expense))
        relations.validate_owner(tx, after.user_id, before.user_id, "expense")
    else:
        after = build_expense(tx, after, before, patch.given)
    changes.update(tx, expenses, before, after)
    return tx.get(expenses, expense_id, Expense)


@api.delete("/{expense_id}")
def delete_expense(tx: Tx, expense_id: kinds.Id) -> None:
    """Delete an expense that is not billed. A member's key deletes only that user's expenses."""
    before = tx.get(expenses, expense_id, Expense)
    relations.check_deletion(tx, before.user_id, before.invoice_id, "expense")
    changes.delete(tx, expenses, before)
