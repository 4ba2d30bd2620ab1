"""Fixed fees: how much of each is billed, which milestones are due, and what is left.

Ordinary lines of a project and those of its milestones count against its fixed fee, until their invoice is void or they
are credited. A line that bills what is left is an ordinary line, too.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple

from sqlalchemy import Select, and_, bindparam, func, or_, select

from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.billing.invoices.unbilled import LeftOut, UnbilledFixedFees
from retainer.billing.kinds.base import LineTerms, SelectableWork, UnbilledMatch, other_currency
from retainer.documents.wording import fixed_fee_text
from retainer.schema.billing import FEE_KINDS, allocations, invoice_lines, invoices
from retainer.schema.columns import in_literals
from retainer.schema.work import milestones, projects
from retainer.store.engines.sql import INTEGER, listed
from retainer.store.tx import Tx
from retainer.values import money
from retainer.values.exact import amount_of, minor_units
from retainer.values.reading import with_defaults


class DueMilestone(NamedTuple):
    """A milestone with an amount that no other invoice bills, in minor units."""

    id: int
    amount: int
    is_completed: bool


class FixedFee(NamedTuple):
    """A fixed fee and what other invoices bill of it, in minor units."""

    project_id: int
    name: str
    currency: str
    is_complete: bool
    whole: int
    billed: int
    milestones: Sequence[DueMilestone]
    """Those that no other invoice bills: completed ones first, in the order of their completion."""

    def due_milestones(self) -> list[DueMilestone]:
        """Return the completed milestones, as far as the fee is not billed."""
        left, due = self.whole - self.billed, []
        for milestone in self.milestones:
            left -= milestone.amount
            if milestone.is_completed and left >= 0:
                due.append(milestone)
        return due

    def rest(self) -> int:
        """Return what is left of the fee, besides milestones that are due or still open."""
        due = sum(milestone.amount for milestone in self.due_milestones())
        still_open = sum(milestone.amount for milestone in self.milestones if not milestone.is_completed)
        return max(self.whole - self.billed - due - still_open, 0)


FEES: Select[int, str, str, str, int, int] = (
    select(*projects.c["id", "name", "currency", "completed_at", "fixed_fee", "fee_billed_amount"])
    .where(
        projects.c.client_id == bindparam("client"),
        projects.c.is_template.is_(False),
        projects.c.billing_type == "fixed_fee",
        projects.c.fixed_fee > 0,
    )
    .order_by(projects.c.name_sort, projects.c.id)
)
ON_INVOICE = and_(allocations.c.milestone_id == milestones.c.id, allocations.c.is_live == 1)
OPEN = (
    select(*milestones.c["project_id", "id", "amount", "status"])
    .select_from(
        milestones.join(projects, projects.c.id == milestones.c.project_id)
        .outerjoin(allocations, ON_INVOICE)
        .outerjoin(invoice_lines, invoice_lines.c.id == allocations.c.invoice_line_id)
    )
    .where(
        projects.c.client_id == bindparam("client"),
        projects.c.is_template.is_(False),
        milestones.c.amount > 0,
        or_(invoice_lines.c.invoice_id.is_(None), invoice_lines.c.invoice_id == bindparam("invoice")),
        milestones.c.id.not_in(listed("named", INTEGER)),
    )
    .order_by(milestones.c.status, milestones.c.completed_at, milestones.c.id)
)
"""The milestones that other invoices do not bill, and that no line names: completed ones first."""
OWN_LINES = (
    select(func.coalesce(invoice_lines.c.project_id, invoices.c.project_id), invoice_lines.c.amount)
    .select_from(invoices.join(invoice_lines, invoice_lines.c.invoice_id == invoices.c.id))
    .where(invoices.c.id == bindparam("invoice"), in_literals(invoice_lines.c.kind, FEE_KINDS))
)


def load_fixed_fees(tx: Tx, invoice: Invoice) -> list[FixedFee]:
    """Return the fixed fees of the client's projects by name, with the lines that an invoice would have counted."""
    named = [line.milestone_id for line in invoice.lines if line.milestone_id]
    parameters = {"client": invoice.client_id, "invoice": invoice.id or 0}
    unbilled = defaultdict[int, list[DueMilestone]](list)
    for project_id, milestone_id, amount, status in tx.all(OPEN, named=json.dumps(named), **parameters):
        unbilled[project_id].append(DueMilestone(milestone_id, amount, status == "completed"))
    now = defaultdict[int | None, int](int)
    """What the lines of the invoice bill more than those that it has in the database."""
    for project_id, amount in tx.all(OWN_LINES, invoice=invoice.id) if invoice.id else ():
        now[project_id] -= amount
    for line in invoice.lines:
        now[line.project_id or invoice.project_id] += amount_of_line(line, invoice.currency)
    return [
        FixedFee(id_, name, currency, completed_at is not None, fee, billed + now[id_], unbilled[id_])
        for id_, name, currency, completed_at, fee, billed in tx.all(FEES, client=invoice.client_id)
    ]


def amount_of_line(line: InvoiceLine, currency: str) -> int:
    """Return what a line, which may not be priced yet, counts against a fixed fee, in minor units."""
    if line.time_entry_ids or line.expense_ids or line.fee_month:
        return 0
    if line.milestone_id or line.unit_price is None:  # a new line with a milestone counts as the milestone
        return minor_units(line.amount, currency) if line.id is not None else 0
    quantity = Decimal(1) if line.quantity is None else line.quantity
    return money.line_amount(quantity, line.unit_price, line.discount_percent, currency)


class FixedFees(SelectableWork):
    """What is left of fixed fees. It has no kind of line of its own."""

    selection = "fixed_fees"

    def find(self, tx: Tx, selection: UnbilledFixedFees, invoice: Invoice, terms: LineTerms) -> UnbilledMatch:
        """Return what is left of the fees of completed projects, or of those that are named."""
        return self.choose(load_fixed_fees(tx, invoice), selection, invoice, terms)

    def choose(
        self, fees: Iterable[FixedFee], selection: UnbilledFixedFees, invoice: Invoice, terms: LineTerms
    ) -> UnbilledMatch:
        wanted, own, left_out = selection.project_ids, list[tuple[FixedFee, int]](), list[LeftOut]()
        for fee in fees:
            if not (rest := fee.rest()) or (wanted is not None and fee.project_id not in wanted):
                continue
            if fee.currency != invoice.currency:
                left_out += [other_currency(fee.currency, 1, rest)] if fee.is_complete or wanted else []
            elif fee.is_complete or wanted is not None:
                own.append((fee, rest))
            else:
                left_out.append(LeftOut("open_fee", 1, 0, fee.currency, amount_of(rest, fee.currency)))
        lines = [
            with_defaults(
                InvoiceLine,
                project_id=fee.project_id,
                description=fixed_fee_text(fee.name, terms.language, is_rest=rest < fee.whole),
                unit_price=amount_of(rest, fee.currency),
            )
            for fee, rest in own
        ]
        return UnbilledMatch(len(own), sum(rest for _, rest in own), lines, left_out=left_out)


FIXED_FEES = FixedFees()
