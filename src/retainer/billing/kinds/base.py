"""Kinds of work: what the steps of an invoice ask of each kind, as most kinds answer it.

Recorded work is time, expenses and milestones, whose allocations say which line bills them. While the invoice is live,
a unique index keeps the database from billing a piece of work twice. The allocations of voided or credited invoices
stay as history.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from sqlalchemy import Column, ColumnElement, Insert, Select, Table, delete, insert, literal, null, select, update

from retainer.billing.invoices.types import MAX_DESCRIPTION, Invoice, InvoiceLine, LineKind
from retainer.billing.invoices.unbilled import DayRange, LeftOut, Rounding, Selection
from retainer.billing.reading import Projects
from retainer.documents.facts import Language
from retainer.documents.wording import work_text
from retainer.errors import LEAVE_OUT, BodyErrors, part
from retainer.schema.billing import allocations
from retainer.store import constraints
from retainer.store.engines.sql import INTEGER, is_listed, listed_rows
from retainer.store.tables import ACCOUNT, NOW
from retainer.store.tx import Tx
from retainer.values import money
from retainer.values.exact import FIRST_DAY, amount_of

Key = Any
"""What identifies a piece of work of a kind: its id, or the project and the month of a fee."""
SHOWN = 5
"""How many pieces of work an error names."""
Work = tuple[LineKind, Key]
Rows = dict[Work, Any]
"""The rows of work: its project, and the invoice and the line that bill it, if any do."""


class LineTerms(NamedTuple):
    """What lines get from their client by default."""

    tax_rate: Decimal
    language: Language
    """That of the client's documents, in which lines are described."""
    rounding: Rounding | None
    """How the account rounds time; None if it does not."""


NO_TERMS = LineTerms(Decimal(0), "en", None)
"""The terms of no client: the invoice is refused, or the lines are only summed up."""


class LineContext(NamedTuple):
    """What the lines of an invoice are priced from."""

    invoice: Invoice
    terms: LineTerms
    current: dict[int, InvoiceLine]
    """The lines that the invoice has now; their work can move among them."""
    projects: Projects
    rows: Rows
    claimed: set[Work]
    """The work that the lines priced so far bill."""
    timezone: str
    """That of the account, in which days begin."""


class UnbilledMatch(NamedTuple):
    """The unbilled work of a kind that a selection matches and that can be billed; the amount in minor units."""

    size: int
    amount: int
    lines: Iterable[InvoiceLine]
    """Built as they are read."""
    minutes: int = 0
    left_out: Sequence[LeftOut] = ()


def other_currency(currency: str, count: int, amount: int, minutes: int = 0) -> LeftOut:
    return LeftOut("other_currency", count, minutes, currency, amount_of(amount, currency))


class RecordedItem(NamedTuple):
    """A time entry, expense or milestone as it can be billed; amount and rate in minor units."""

    id: int
    client_id: int | None
    project_id: int | None
    currency: str
    billable: int
    amount: int | None
    day: str | None
    description: str | None
    invoice_id: int | None
    invoice_line_id: int | None
    minutes: int
    rate: int | None
    is_settled: int | None


def on_lines(column: ColumnElement[int]) -> ColumnElement[bool]:
    """Return whether a column refers to one of the lines in the parameter `lines`."""
    return is_listed(column, "lines")


def ids_of(lines: Sequence[InvoiceLine]) -> str:
    return json.dumps([line.id for line in lines])


def select_items(table: Table, **different: ColumnElement[Any]) -> Select[int]:
    """Select the items of a table in the parameter `ids`: the fields of RecordedItem, with those that are different."""
    columns = {name: table.c.get(name, null()) for name in RecordedItem._fields} | different
    return select(*columns.values()).where(is_listed(table.c.id, "ids"))


FORGET = delete(allocations).where(on_lines(allocations.c.invoice_line_id))
END = update(allocations).where(on_lines(allocations.c.invoice_line_id)).values(is_live=None, updated_at=NOW)


class SelectableWork(ABC):
    """Something that `unbilled_work` selects and turns into lines."""

    selection: ClassVar[str]
    """The field of `unbilled_work` that selects it."""

    @abstractmethod
    def find(self, tx: Tx, selection: Any, invoice: Invoice, terms: LineTerms) -> UnbilledMatch:
        """Return what a selection matches, without what lines of the invoice bill."""


class WorkKind(SelectableWork):
    """A kind of work that lines bill: here as a kind with rows of its own does it, whose keys are ids."""

    name: ClassVar[LineKind]
    field: ClassVar[str]
    """The field of a line that names the work."""
    noun: ClassVar[str]
    table: ClassVar[Table]
    items: ClassVar[Select[int]]
    heading: ClassVar[str]
    """The default description of a line before the days of its work, by its name in the words of documents."""
    without_amount: ClassVar[str] = "has no amount. Give it one first."

    def keys_of(self, line: InvoiceLine) -> list[Key]:
        named = getattr(line, self.field)
        return named if isinstance(named, list) else [named] if named else []

    def describe(self, key: Key) -> str:
        """Return the name of a piece of work in messages, like `time entry 5`."""
        return f"{self.noun} {key}"

    def load(self, tx: Tx, keys: Collection[Key]) -> Rows:
        items = map(RecordedItem._make, tx.all(self.items, ids=json.dumps(sorted(keys))))
        return {(self.name, item.id): item for item in items}

    def claim(self, key: Key, context: LineContext) -> tuple[str, str]:
        """Note that a line bills a piece of work; return a message and a code if it cannot: both empty if it can."""
        work = (self.name, key)
        row = context.rows.get(work)
        if work in context.claimed:
            return f"Is listed twice in this request: {self.describe(key)}. List it once.", "validation_failed"
        context.claimed.add(work)
        if row and row.invoice_line_id is not None and row.invoice_line_id not in context.current:
            message = f"{self.describe(key).capitalize()} is already on invoice {row.invoice_id}. {LEAVE_OUT}."
            return message, "already_billed"
        return "", ""

    def days_of(self, line: InvoiceLine, context: LineContext) -> list[str]:
        """Return the days of the work that a line bills, or the first and the last of them."""
        items = [context.rows.get((self.name, key)) for key in self.keys_of(line)]
        return [self.day_of(item, context) for item in items if item is not None and item.day is not None]

    def day_of(self, item: RecordedItem, context: LineContext) -> str:
        return item.day or ""

    def parameters(self, selection: Selection, invoice: Invoice, today: str) -> dict[str, object]:
        wanted = {} if selection.project_ids is None else {"wanted": json.dumps(selection.project_ids)}
        if isinstance(selection, DayRange):
            wanted |= {"first": selection.from_ or FIRST_DAY, "last": selection.to or today}
        return wanted | {
            "client": invoice.client_id,
            "currency": invoice.currency,
            "invoice": invoice.id or 0,
            "named": json.dumps([key for line in invoice.lines for key in self.keys_of(line)]),
        }

    @cached_property
    def allocated(self) -> Column[int]:
        """The column of allocations that refers to the work."""
        return allocations.c[f"{self.noun.replace(' ', '_')}_id"]

    @cached_property
    def insertion(self) -> Insert:
        names = ("invoice_line_id", self.allocated.name)
        pairs = listed_rows("pairs", list(allocations.c[names])).subquery()
        rows = select(ACCOUNT, NOW, NOW.label("updated"), *pairs.c, literal(1, INTEGER))
        return insert(allocations).from_select(("account_id", "created_at", "updated_at", *names, "is_live"), rows)

    @contextmanager
    def writing_once(self, tx: Tx, lines: Sequence[InvoiceLine]) -> Iterator[None]:
        """Write which lines bill work that was validated before. Raises `already_billed` if another transaction has.

        Requests that bill the same work at the same time wait for each other. A unique index of the database refuses
        the second. Its transaction is repeated once, and rules find the work taken; only what may not be repeated ends
        here.
        """
        try:
            with tx.engine.savepoint(tx.connection, may_repeat=tx.may_repeat):
                yield
        except tx.engine.conflict:
            names = [self.describe(key) for line in lines for key in self.keys_of(line)]
            shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
            message = f"Another request has billed some of this work meanwhile: {shown}. Send this one again to see"
            tx.error("lines", f"{message} which.", "already_billed")
            tx.raise_errors()

    def attach(self, tx: Tx, invoice_id: int, lines: Sequence[InvoiceLine]) -> None:
        """Put the work of lines onto them. Raises `already_billed` if another transaction has billed it meanwhile."""
        pairs = [(line.id, key) for line in lines for key in self.keys_of(line)]
        with self.writing_once(tx, lines):
            tx.change(self.insertion, pairs=json.dumps(pairs))
        tx.count(allocations, len(pairs))

    def detach(self, tx: Tx, lines: Sequence[InvoiceLine], after: Mapping[int, InvoiceLine], *, is_kept: bool) -> None:
        """Let the work of lines be billed again; if `is_kept`, the lines still show what they billed.

        Work that the same line bills `after`, too, is not marked as changed: it is about to be attached again.
        """
        if is_kept:
            tx.run(END, lines=ids_of(lines))
        else:
            tx.count(allocations, -tx.change(FORGET, lines=ids_of(lines)))

    def price(self, errors: BodyErrors, line: InvoiceLine, context: LineContext) -> int | None:
        """Fill in what a line gets from its work, with its errors noted; return its amount in minor units.

        None if the amount follows from quantity and price.
        """
        is_list = isinstance(getattr(line, self.field), list)
        keys = self.keys_of(line)
        items = []
        for position, key in sorted(enumerate(keys), key=lambda place: place[1]):
            item: RecordedItem | None = context.rows.get((self.name, key))
            message, code = self.claim(key, context)
            if not message and item and item.is_settled:
                message = f"{self.describe(key).capitalize()} was billed outside of Retainer. {LEAVE_OUT}."
                code = "already_billed"
            elif not message:
                message, code = self.explain_refusal(item, context.invoice), "validation_failed"
            if message:
                errors.error(f"{self.field}.{position}" if is_list else self.field, message, code)
            elif item:
                items.append(item)
        if is_list:
            setattr(line, self.field, sorted(keys))
        return self.price_items(errors, line, items, context)

    def explain_refusal(self, item: RecordedItem | None, invoice: Invoice) -> str:
        if item is None:
            return constraints.MISSING.format(self.noun)
        if invoice.client_id is not None and item.client_id != invoice.client_id:
            reason = f"is not for client {invoice.client_id}. Bill it to its own client."
        elif not item.billable:
            reason = f"is not billable. {LEAVE_OUT}, or make it billable first."
        elif item.currency != invoice.currency:
            advice = f"Bill it on one in {item.currency}."
            reason = f"is in {item.currency}, the invoice in {invoice.currency}. {advice}"
        else:
            reason = self.without_amount if item.amount is None else ""
        return f"{self.describe(item.id).capitalize()} {reason}" if reason else ""

    def price_items(
        self, errors: BodyErrors, line: InvoiceLine, items: Sequence[RecordedItem], context: LineContext
    ) -> int:
        """Fill in quantity, price, project and description of a line from its work; return its amount in minor units.

        Notes an error for a price that is neither that of the work nor what the line had before, and for such a
        quantity unless hours of one rate are billed.
        """
        if line.discount_percent:
            advice = "Add a line with quantity -1 instead."
            errors.error("discount_percent", f"Work has no discount: its amount is fixed. {advice}")
            line.discount_percent = Decimal(0)
        currency, before = context.invoice.currency, context.current.get(line.id)
        units = sum(item.amount or 0 for item in items)
        minutes = sum(item.minutes for item in items)
        quantity = money.hours(minutes) if minutes else Decimal(-1 if units < 0 else 1)
        rates = {item.rate for item in items}
        rate = rates.pop() if len(rates) == 1 else None
        unit_price = money.unit_price(units, quantity, currency) if rate is None else amount_of(rate, currency)
        is_known = bool(items) and errors.readable(self.field)
        line.recorded_quantity = quantity if minutes else None
        if minutes and rate is not None and (changed := self.changed_quantity(errors, line, before, quantity)):
            quantity = changed
            units = money.line_amount(quantity, unit_price, Decimal(0), currency)
        for field, derived in (("quantity", quantity), ("unit_price", unit_price)):
            if is_known and getattr(line, field) not in {None, derived, getattr(before, field, None)}:
                errors.error(field, f"Is that of the work: {part(f'{derived:f}')}. {LEAVE_OUT}.")
            setattr(line, field, derived)
        line.unit = line.unit or ("hours" if minutes else None)
        self.place_in_project(errors, line, {item.project_id for item in items})
        line.description = line.description or self.default_description(items, context)
        return units

    def changed_quantity(
        self, errors: BodyErrors, line: InvoiceLine, before: InvoiceLine | None, recorded: Decimal
    ) -> Decimal | None:
        """Return the quantity that a line bills instead of the recorded one; None if it bills that.

        A quantity of before counts only for the work of before. Notes an error for one that is not positive.
        """
        sent = line.quantity
        if sent is None or sent == recorded:
            return None
        if before is not None and sent == before.quantity and self.keys_of(before) != self.keys_of(line):
            return None
        if sent > 0:
            return sent
        errors.error("quantity", f"Must be more than 0. The recorded hours are {part(f'{recorded:f}')}.")
        line.quantity = recorded
        return None

    def place_in_project(self, errors: BodyErrors, line: InvoiceLine, project_ids: set[int | None]) -> None:
        """Give a line the project of its work, unless it has one or the work has several."""
        if line.project_id is None and len(project_ids) == 1:
            (line.project_id,) = project_ids

    def default_description(self, items: Sequence[RecordedItem], context: LineContext) -> str:
        """Return the description of a line's work, if all of it has the same; otherwise, the days of the work."""
        texts = {item.description for item in items}
        only = texts.pop() if len(texts) == 1 else None
        if only is not None:
            return only[:MAX_DESCRIPTION].rstrip()
        days = [self.day_of(item, context) for item in items if item.day]
        return work_text(self.heading, days, context.terms.language)
