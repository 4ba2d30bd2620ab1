"""Locks: which fields of a record the API no longer changes, whether the record stays, and what to do instead."""

from typing import NamedTuple

from retainer.billing.expenses import Expense
from retainer.billing.invoices.invoices import LOCKED_FIELDS
from retainer.billing.invoices.types import Invoice
from retainer.billing.quotes import quotes
from retainer.billing.quotes.types import Quote
from retainer.values.reading import writable_fields
from retainer.values.records import Record
from retainer.work.milestones import Milestone
from retainer.work.time_entry_types import TimeEntry


class Lock(NamedTuple):
    """The fields that cannot change, whether the record cannot be deleted, and the reason; empty without a lock."""

    fields: frozenset[str] = frozenset()
    stays: bool = False
    reason: str = ""


FREE = Lock()


def lock_of(record: Record | None) -> Lock:
    """Return the lock of a record, by the rules of the API; a new record has none."""
    if isinstance(record, Invoice) and record.status != "draft":
        return Lock(
            frozenset(LOCKED_FIELDS),
            stays=True,
            reason="This invoice is issued, so its client, date, lines and terms are fixed. To correct it, credit it.",
        )
    if isinstance(record, Quote) and quotes.is_in_use(record):
        reason = "This quote has become a project or an invoice, so it is fixed."
        return Lock(frozenset(writable_fields(Quote)) - {"external_id"}, stays=True, reason=reason)
    if isinstance(record, Quote) and record.status != "draft":
        reason = "The lines and the client of a quote change only in a draft: set its status to Draft first."
        return Lock(frozenset(quotes.LOCKED_FIELDS), stays=record.status == "accepted", reason=reason)
    if isinstance(record, TimeEntry) and record.is_locked:
        fields = frozenset(writable_fields(TimeEntry)) - {"description", "external_id"}
        return Lock(fields, stays=True, reason="This time is on an invoice, so only its description can change.")
    if isinstance(record, Expense) and record.invoice_id is not None:
        return Lock(
            frozenset(writable_fields(Expense)), stays=True, reason="This expense is on an invoice, so it is fixed."
        )
    if isinstance(record, Milestone) and record.invoice_id is not None:
        return Lock(
            frozenset({"amount"}), stays=True, reason="This milestone is on an invoice, so its amount is fixed."
        )
    return FREE
