"""The actions that a record offers at its head: only those that can succeed in its present state."""

from typing import NamedTuple

from retainer.billing.invoices.types import Invoice
from retainer.billing.quotes.types import Quote
from retainer.console.actions.credit_notes import obstacle_to_credit
from retainer.console.actions.invoices import obstacle_to_issue, obstacle_to_void, obstacle_to_write_off
from retainer.console.actions.payments import obstacle_to_payment, obstacle_to_refund, obstacle_to_removal
from retainer.console.actions.quotes import obstacle_to
from retainer.support.tickets import Ticket
from retainer.values.records import Record


class Offer(NamedTuple):
    """An action: its label, its path below the record's page or its place there, and whether it is the next step."""

    label: str
    path: str
    is_primary: bool = False


def offers_of(record: Record) -> list[Offer]:
    """Return the actions that a record offers, the likely next step first."""
    if isinstance(record, Invoice):
        is_open = record.status in {"sent", "partially_paid"}
        offers = {
            Offer("Issue…", "issue", is_primary=True): obstacle_to_issue(record),
            Offer("Record payment…", "payment", is_primary=is_open): obstacle_to_payment(record),
            Offer("Record refund…", "refund", is_primary=True): obstacle_to_refund(record),
            Offer("Credit…", "credit"): obstacle_to_credit(record),
            Offer("Write off…", "write-off"): obstacle_to_write_off(record),
            Offer("Void…", "void"): obstacle_to_void(record),
            Offer("Remove payment…", "remove-payment"): obstacle_to_removal(record),
        }
    elif isinstance(record, Quote):
        offers = {
            Offer("Accept…", "accept", is_primary=record.status == "sent"): obstacle_to("accepted", record),
            Offer("Decline…", "decline"): obstacle_to("declined", record),
        }
    elif isinstance(record, Ticket):
        offers = {Offer("Reply", "#reply", is_primary=True): "", Offer("Set status…", "status"): ""}
    else:
        return []
    return [offer for offer, obstacle in offers.items() if not obstacle]
