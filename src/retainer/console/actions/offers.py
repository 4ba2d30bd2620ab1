"""All actions of the console, and those that a record offers at its head."""

from collections.abc import Iterator
from typing import Any

from retainer.console.actions.action import Action
from retainer.console.actions.billing import Bill
from retainer.console.actions.credit_notes import Credit
from retainer.console.actions.invoices import Issue, Void, WriteOff
from retainer.console.actions.payments import RecordPayment, RecordRefund, RemovePayment
from retainer.console.actions.quotes import Accept, BackToDraft, Decline
from retainer.console.actions.sites import CheckNow, Maintain, Pause, Resume
from retainer.console.actions.tickets import Handle, Reply
from retainer.values.records import Record

CLASSES: dict[str, tuple[type[Action[Any]], ...]] = {
    "clients": (Bill,),
    "projects": (Bill,),
    "invoices": (Issue, RecordPayment, RecordRefund, Credit, WriteOff, Void, RemovePayment),
    "quotes": (Accept, Decline, BackToDraft),
    "tickets": (Reply, Handle),
    "sites": (CheckNow, Maintain, Pause, Resume),
}
ACTIONS = {kind: tuple(action(kind) for action in classes) for kind, classes in CLASSES.items()}
"""The actions on the records of each kind, the likely next step first."""


def offers_of(kind: str, record: Record) -> Iterator[Action[Any]]:
    """Yield the actions that a record offers: only those that its state allows."""
    return (action for action in ACTIONS.get(kind, ()) if action.is_offered(record))
