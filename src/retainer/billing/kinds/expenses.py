"""Expenses: those that a line bills, at their billable amounts."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, case, func, literal, null

from retainer.billing.invoices.types import MAX_DESCRIPTION
from retainer.billing.kinds.dated import DatedKind, Group
from retainer.billing.kinds.recorded import RecordedItem, select_items
from retainer.schema.billing import expenses

COLUMNS = ("client_id", "project_id", "currency", "billable", "billable_amount", "date", "description")
REFERENCES = ("invoice_id", "invoice_line_id")


class Expenses(DatedKind):
    """Expenses."""

    name = "expense"
    field = "expense_ids"
    selection = "expenses"
    noun = "expense"
    heading = "Expenses"
    table = expenses
    items = select_items(expenses, *expenses.c[*COLUMNS, *REFERENCES], literal(0), null())
    totals = (literal(0), func.coalesce(func.sum(expenses.c.billable_amount), 0))
    groups = {
        "entry": Group(expenses.c.id, expenses.c.description),
        "category": Group(expenses.c.category, expenses.c.category),
        "project": Group(expenses.c.project_id),
    }

    def state(self, *, takes_covered: bool) -> ColumnElement[str]:
        return case((expenses.c.billable, "billable"))  # always; but PostgreSQL groups by no constant

    def default_description(self, items: Sequence[RecordedItem]) -> str:
        """Return the descriptions of all expenses, by day, if each has one and they fit; otherwise, their days."""
        by_day = sorted(items, key=lambda item: (item.day or "", item.id))
        texts = dict.fromkeys(item.description for item in by_day)
        text = ", ".join(filter(None, texts))
        return text if None not in texts and len(text) <= MAX_DESCRIPTION else super().default_description(items)


EXPENSES = Expenses()
