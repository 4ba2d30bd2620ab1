"""A kind of work: the functions that each kind declares, and what its lines are priced from."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from retainer.billing.documents import Projects
from retainer.billing.invoices.types import Invoice, InvoiceLine, LeftOut, LineKind
from retainer.store.tx import Tx

Key = TypeVar("Key", bound=Hashable)
Work = tuple[LineKind, Hashable]
"""A piece of work: its kind, and the key that tells it from others of its kind."""
Rows = dict[Work, Any]
"""The rows of work: its project, and the invoice and the line that bill it, if any do."""


class LineContext(NamedTuple):
    """What the lines of an invoice are priced from."""

    invoice: Invoice
    tax_rate: Decimal
    """The default of lines without a tax rate."""
    current: dict[int, InvoiceLine]
    """The lines that the invoice has now; their work can move among them."""
    projects: Projects
    rows: Rows
    claimed: set[Work]
    """The work that the lines priced so far bill."""


class Found(NamedTuple):
    """The unbilled work of a kind that a selection matches and that can be billed; the amount in minor units."""

    size: int
    amount: int
    build_lines: Callable[[], Iterable[InvoiceLine]]
    minutes: int = 0
    left_out: Sequence[LeftOut] = ()


class WorkKind(ABC, Generic[Key]):
    """A kind of work that lines bill."""

    name: ClassVar[LineKind]
    field: ClassVar[str]
    """The field of a line that names the work."""
    selection: ClassVar[str]
    """The field of `unbilled_work` that selects the work."""

    @abstractmethod
    def keys_of(self, line: InvoiceLine) -> list[Key]:
        """Return the keys of the work that a line bills."""

    @abstractmethod
    def describe(self, key: Key) -> str:
        """Return the name of a piece of work in messages, like `time entry 5`."""

    @abstractmethod
    def load(self, tx: Tx, keys: Collection[Key]) -> Rows:
        """Return the rows of work, as far as there are any."""

    @abstractmethod
    def find_billed(self, tx: Tx, keys: Collection[Key]) -> Iterable[tuple[Key, int]]:
        """Return those of these pieces of work that are on an invoice, with its id."""

    @abstractmethod
    def price(self, tx: Tx, line: InvoiceLine, context: LineContext) -> int | None:
        """Fill in what a line gets from its work, with its errors noted; return its amount in minor units.

        None if the amount follows from quantity and price.
        """

    @abstractmethod
    def find(self, tx: Tx, selection: Any, invoice: Invoice) -> Found:
        """Return the unbilled work that a selection matches, without the work that lines of the invoice name."""

    @abstractmethod
    def attach(self, tx: Tx, invoice_id: int, lines: Sequence[InvoiceLine]) -> None:
        """Put the work of lines onto them. Raises `already_billed` if another transaction has billed it meanwhile."""

    @abstractmethod
    def detach(self, tx: Tx, lines: Sequence[InvoiceLine], after: Mapping[int, InvoiceLine], *, is_kept: bool) -> None:
        """Let the work of lines be billed again; if `is_kept`, the lines still show what they billed.

        Work that the same line bills `after`, too, is not marked as changed: it is about to be attached again.
        """

    def billed_message(self, key: Key, invoice_id: int) -> str:
        return f"{self.describe(key).capitalize()} is already on invoice {invoice_id}. Leave it out."

    def claim(self, key: Key, context: LineContext) -> tuple[str, str]:
        """Note that a line bills a piece of work; return a message and a code if it cannot: both empty if it can."""
        work = (self.name, key)
        row = context.rows.get(work)
        if work in context.claimed:
            return f"Is listed twice in this request: {self.describe(key)}. List it once.", "validation_failed"
        context.claimed.add(work)
        if row and row.invoice_line_id is not None and row.invoice_line_id not in context.current:
            return self.billed_message(key, row.invoice_id), "already_billed"
        return "", ""

    def write_once(self, tx: Tx, keys: Collection[Key], write: Callable[[], object]) -> None:
        """Write which lines bill work that was validated before. Raises `already_billed` with all that is taken.

        Requests that bill the same work at the same time wait for each other, so rules usually find it taken; a unique
        index of the database refuses the rest.
        """
        try:
            with tx.engine.savepoint(tx.connection, may_repeat=tx.may_repeat):
                write()
        except tx.engine.conflict:
            for key, invoice_id in self.find_billed(tx, keys):
                tx.error("lines", self.billed_message(key, invoice_id), "already_billed")
            tx.raise_errors()
            raise


AnyKind = WorkKind[Any]
