"""Milestones: a completed one with an amount is a line of its own."""

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import and_, literal, select

from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.billing.invoices.unbilled import LeftOut, UnbilledMilestones
from retainer.billing.kinds.base import (
    LineContext,
    LineTerms,
    RecordedItem,
    UnbilledMatch,
    WorkKind,
    ids_of,
    on_lines,
    other_currency,
    select_items,
)
from retainer.billing.kinds.fixed_fees import DueMilestone, FixedFee, load_fixed_fees
from retainer.errors import LEAVE_OUT, BodyErrors
from retainer.schema.billing import allocations, invoice_lines
from retainer.schema.work import milestones, projects
from retainer.store.announcements import updating
from retainer.store.tx import Tx
from retainer.values.exact import amount_of, local_day
from retainer.values.reading import with_defaults

WITH_LINES = (
    milestones.join(projects, projects.c.id == milestones.c.project_id)
    .outerjoin(allocations, and_(allocations.c.milestone_id == milestones.c.id, allocations.c.is_live == 1))
    .outerjoin(invoice_lines, invoice_lines.c.id == allocations.c.invoice_line_id)
)
ON_LINES = select(allocations.c.milestone_id).where(
    on_lines(allocations.c.invoice_line_id), allocations.c.milestone_id.is_not(None)
)
TOUCH = updating(milestones, milestones.c.id.in_(ON_LINES), parts=("invoice_id",))
"""A milestone shows its invoice, although its row does not refer to it."""


class Milestones(WorkKind):
    name = "milestone"
    field = "milestone_id"
    selection = "milestones"
    noun = "milestone"
    heading = "milestone"
    table = milestones
    items = select_items(
        milestones,
        client_id=projects.c.client_id,
        billable=projects.c.is_template.is_(False),
        day=milestones.c.completed_at,
        description=milestones.c.name,
        invoice_id=invoice_lines.c.invoice_id,
        invoice_line_id=invoice_lines.c.id,
        minutes=literal(0),
    ).select_from(WITH_LINES)

    def attach(self, tx: Tx, invoice_id: int, lines: Sequence[InvoiceLine]) -> None:
        super().attach(tx, invoice_id, lines)
        tx.run(TOUCH, lines=ids_of(lines))

    def detach(self, tx: Tx, lines: Sequence[InvoiceLine], after: Mapping[int, InvoiceLine], *, is_kept: bool) -> None:
        tx.run(TOUCH, lines=ids_of(lines))
        super().detach(tx, lines, after, is_kept=is_kept)

    def place_in_project(self, errors: BodyErrors, line: InvoiceLine, project_ids: set[int | None]) -> None:
        if project_ids and line.project_id not in {None, *project_ids}:
            errors.error("project_id", f"Is not that of the milestone. {LEAVE_OUT}.")
        super().place_in_project(errors, line, project_ids)

    def day_of(self, item: RecordedItem, context: LineContext) -> str:
        """Return the day on which a milestone was completed."""
        return local_day(item.day, context.timezone) if item.day else ""

    def find(self, tx: Tx, selection: UnbilledMilestones, invoice: Invoice, terms: LineTerms) -> UnbilledMatch:
        """Return completed milestones, as far as the fixed fee of their project is not billed: the rest is left out."""
        return self.choose(load_fixed_fees(tx, invoice), selection, invoice)

    def choose(self, fees: Iterable[FixedFee], selection: UnbilledMilestones, invoice: Invoice) -> UnbilledMatch:
        wanted, own, left_out = selection.project_ids, list[DueMilestone](), list[LeftOut]()
        for fee in fees:
            if wanted is not None and fee.project_id not in wanted:
                continue
            due = fee.due_milestones()
            billed = [each for each in fee.milestones if each.is_completed and each not in due]
            if fee.currency != invoice.currency:
                left_out += [other_currency(fee.currency, 1, each.amount) for each in due]
                continue
            own += due
            if billed:
                amount = amount_of(sum(each.amount for each in billed), fee.currency)
                left_out.append(LeftOut("fee_billed", len(billed), 0, fee.currency, amount))
        lines = [with_defaults(InvoiceLine, milestone_id=each.id) for each in own]
        return UnbilledMatch(len(own), sum(each.amount for each in own), lines, left_out=left_out)


MILESTONES = Milestones()
