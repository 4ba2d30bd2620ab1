"""Locking: the fields that a record on an invoice, or one that was issued, keeps."""

from collections.abc import Collection

from retainer.errors import Refusal
from retainer.store.row_mapper import R
from retainer.store.tx import Tx


def validate_locked(tx: Tx, record: R, before: R, reason: str, names: Collection[str]) -> None:
    """Note `locked` for each of these fields that has changed, and restore it."""
    for name in names:
        old = getattr(before, name)
        if getattr(record, name) != old:
            setattr(record, name, old)  # so that no other rule reports it
            tx.error(name, f"Cannot be changed any more: this one is {reason}.", "locked")


def check_unbilled(invoice_id: int | None, noun: str) -> None:
    """Raise `locked` if a record that is to be deleted is on an invoice; the noun names its type."""
    if invoice_id is not None:
        message = f"This {noun} is on invoice {invoice_id} and stays. Take it off there first, while that is a draft."
        raise Refusal("locked", message, errors={"invoice_id": [message]})
