"""Expenses: what the agency spent for a client or itself."""

from collections.abc import Sequence

from retainer.billing.expenses import Expense
from retainer.console.kinds.display import FREE, Display, Lock
from retainer.console.names import Link
from retainer.console.values import Column, Value, Values, money
from retainer.rollups.list_sums import Sum
from retainer.values.reading import writable_fields


def amounts(_: Values, expenses: Sequence[Expense]) -> dict[int, Value]:
    """Return the amounts paid by expense; those without tax say so."""
    found = {each.id: money(each.amount, each.currency) for each in expenses}
    without_tax = {each.id for each in expenses if not each.amount_includes_tax and each.tax_rate}
    return {
        expense_id: value._replace(detail=Link("before tax", "")) if expense_id in without_tax else value
        for expense_id, value in found.items()
    }


def lock(expense: Expense) -> Lock:
    reason = "This expense is on an invoice, so it is fixed."
    return FREE if expense.invoice_id is None else Lock(writable_fields(Expense), stays=True, reason=reason)


DISPLAY = Display(
    columns=(
        Column("date", "description"),
        "client_id",
        "project_id",
        Column("category", "vendor"),
        Column("amount", load=amounts),
        "billable_amount",
        "billing_status",
    ),
    filters=("date_from", "date_to", "client_id", "billing_status"),
    sums=(Sum("amount"), Sum("billable_amount")),
    facts=("amount", "net_amount", "date", "client_id", "project_id", "user_id", "billing_status"),
    lock=lock,
    rare=("markup_percent", "receipt_url", "reimbursable"),
)
