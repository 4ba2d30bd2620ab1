"""Milestones: a completed one with an amount is a line of its own."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Select, and_, bindparam, literal, or_, select

from retainer.billing.invoices.types import Invoice, InvoiceLine, UnbilledMilestones
from retainer.billing.kinds.base import (
    Found,
    LineContext,
    RecordedItem,
    WorkKind,
    ids_of,
    on_lines,
    other_currency,
    select_items,
)
from retainer.documents.facts import Language
from retainer.errors import BodyErrors
from retainer.schema.billing import allocations, invoice_lines
from retainer.schema.work import milestones, projects
from retainer.store.announcements import updating
from retainer.store.engines.sql import INTEGER, is_listed, listed
from retainer.store.tx import Tx
from retainer.values.exact import local_day
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


def _select_due(*, by_project: bool) -> Select[tuple[int, int, str]]:
    """Select the milestones that can be billed and their amounts and currencies, in the order of their completion."""
    columns = milestones.c
    wanted = (is_listed(columns.project_id, "wanted"),) if by_project else ()
    due = select(*columns["id", "amount", "currency"]).select_from(WITH_LINES)
    return due.where(
        projects.c.client_id == bindparam("client"),
        projects.c.is_template.is_(False),
        columns.status == "completed",
        columns.amount > 0,
        or_(invoice_lines.c.invoice_id.is_(None), invoice_lines.c.invoice_id == bindparam("invoice")),
        columns.id.not_in(listed("named", INTEGER)),
        *wanted,
    ).order_by(columns.completed_at, columns.id)


DUE = {by_project: _select_due(by_project=by_project) for by_project in (False, True)}


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
            errors.error("project_id", "Is not that of the milestone. Leave it out.")
        super().place_in_project(errors, line, project_ids)

    def day_of(self, item: RecordedItem, context: LineContext) -> str:
        """Return the day on which a milestone was completed."""
        return local_day(item.day, context.timezone) if item.day else ""

    def find(self, tx: Tx, selection: UnbilledMilestones, invoice: Invoice, language: Language) -> Found:
        rows = tx.all(DUE[selection.project_ids is not None], **self.parameters(selection, invoice))
        due = [(milestone_id, amount) for milestone_id, amount, currency in rows if currency == invoice.currency]
        lines = [with_defaults(InvoiceLine, milestone_id=milestone_id) for milestone_id, _ in due]
        others = [other_currency(currency, 1, amount) for _, amount, currency in rows if currency != invoice.currency]
        return Found(len(due), sum(amount for _, amount in due), lines, left_out=others)


MILESTONES = Milestones()
