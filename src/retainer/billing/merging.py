"""Merging: the lines that a body describes, compared with those that its document has. Pure."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TypeVar

import msgspec

from retainer.billing.invoices.types import InvoiceLine
from retainer.billing.quotes.types import QuoteLine
from retainer.billing.rules import each_line
from retainer.errors import BodyErrors
from retainer.store.row_mapper import R
from retainer.values.reading import ChildChange, fixed_errors, placeholder_of, writable_fields
from retainer.values.records import Record

Line = TypeVar("Line", QuoteLine, InvoiceLine)
COMPARED: Mapping[type, set[str]] = {
    model: writable_fields(model).keys() - {"position"} for model in (QuoteLine, InvoiceLine)
}
"""What bodies say of lines."""
FOLLOW_FROM_WORK = {"description", "unit_price", "quantity", "unit", "project_id", "tax_rate"}
NOT_CONTENTS = {*Record.__struct_fields__, "quote_id", "invoice_id", "position"}


def merge_lines(
    errors: BodyErrors, model: type[R], sent: Sequence[R | ChildChange] | None, before: Sequence[R], *, is_locked: bool
) -> list[R]:
    """Return the lines that a body describes: new ones, and lines of the document that it names by their ids.

    Notes an error for an unknown id and for a repeated one, unless the lines are locked: `validate_locked` reports it.
    Of locked lines, one without an id is the one at its place if it says the same.
    """
    current = {line.id: line for line in before}
    merged: list[R] = []
    for place, line in enumerate(each_line(errors, sent or ())):
        if not isinstance(line, ChildChange):
            former = before[place] if is_locked and place < len(before) else None
            merged.append(former if former is not None and says_same(line, former) else line)
        elif line.id in current:
            former = current.pop(line.id)
            values = dict(line.values)
            for name, message in fixed_errors(former, values).items():
                errors.error(name, message)
            merged.append(msgspec.structs.replace(former, **values))
        else:
            merged.append(placeholder_of(model))
            if not is_locked:
                is_repeated = any(other.id == line.id for other in before)
                advice = "named twice. Name each line once." if is_repeated else "not here. Omit the id for a new line."
                errors.error("id", f"Line {line.id} is {advice}")
                errors.unreadable |= {errors.prefix.removesuffix(".")}
    return merged


def says_same(line: Record, former: Record) -> bool:
    """Return whether a line of a body, before rules fill it in, says nothing else than a line of a document.

    A tax rate that it leaves out is that of the document, and so is all that follows from the work of a line.
    """
    bills_work = getattr(former, "kind", "item") != "item"
    follows = FOLLOW_FROM_WORK if bills_work else {"tax_rate"}
    defaults = {} if bills_work else {"quantity": Decimal(1)}
    for name in COMPARED[type(line)]:
        value = getattr(line, name)
        value = defaults.get(name) if value is None else value
        if _plain(value) != _plain(getattr(former, name)) and not (value is None and name in follows):
            return False
    return True


def _plain(value: object) -> object:
    """Return the value of a field of a line so that sets of ids are equal in any order."""
    return tuple(sorted(value)) if isinstance(value, list) else value


def keep_equal_lines(lines: list[Line], before: Sequence[Line]) -> None:
    """Put former lines in the place of new ones with the same contents: what is sent again changes nothing."""
    named = {line.id for line in lines}
    free: dict[tuple[object, ...], list[Line]] = {}
    for line in reversed(before):
        if line.id not in named:
            free.setdefault(contents_of(line), []).append(line)
    if not free:
        return
    for place, line in enumerate(lines):
        if line.id is None and (equal := free.get(contents_of(line))):
            lines[place] = equal.pop()


def contents_of(line: QuoteLine | InvoiceLine) -> tuple[object, ...]:
    """Return what a line says and bills, without its id, its place and its times."""
    values = msgspec.structs.asdict(line).items()
    return tuple(_plain(value) for name, value in values if name not in NOT_CONTENTS)
