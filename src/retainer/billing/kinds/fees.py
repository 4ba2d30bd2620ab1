"""Fees: the months of retainers, which months are due, and the lines that bill them, each month once.

A line with a `fee_month` bills that month of its project. While its invoice is live, a unique index keeps the database
from billing the month twice. Lines of voided or credited invoices keep their month as history. Decision 26 says which
months are due.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from sqlalchemy import bindparam, literal_column, select, update

from retainer.billing.invoices.types import MAX_WORK, Invoice, InvoiceLine
from retainer.billing.invoices.unbilled import UnbilledFees
from retainer.billing.kinds.base import (
    LineContext,
    LineTerms,
    Rows,
    UnbilledMatch,
    WorkKind,
    ids_of,
    on_lines,
    other_currency,
)
from retainer.billing.reading import PROJECTS, DocumentProject
from retainer.documents.wording import fee_text
from retainer.errors import BodyErrors, part
from retainer.schema.billing import invoice_lines
from retainer.schema.work import projects
from retainer.store.engines.sql import is_listed
from retainer.store.tables import NOW
from retainer.store.tx import Tx
from retainer.values.exact import FIRST_DAY, LAST_DAY, amount_of
from retainer.values.kinds import last_day, months_of
from retainer.values.reading import with_defaults


class Fee(NamedTuple):
    project_id: int
    month: str


class BilledFee(NamedTuple):
    project_id: int
    month: str
    invoice_id: int
    invoice_line_id: int


OF_CLIENT = PROJECTS.where(
    projects.c.client_id == bindparam("client"),
    projects.c.is_template.is_(False),
    projects.c.billing_type == "retainer",
    projects.c.status != "planned",
    projects.c.retainer_amount > 0,
).order_by(projects.c.name_sort, projects.c.id)
BILLED = select(*invoice_lines.c["project_id", "fee_month", "invoice_id", "id"]).where(
    invoice_lines.c.fee_is_live == literal_column("1"),  # as in the index
    is_listed(invoice_lines.c.project_id, "ids"),
)
CLAIM = update(invoice_lines).where(on_lines(invoice_lines.c.id)).values(fee_is_live=1, updated_at=NOW)
RELEASE = (
    update(invoice_lines)
    .where(on_lines(invoice_lines.c.id), invoice_lines.c.fee_is_live == 1)
    .values(fee_is_live=None, updated_at=NOW)
)


class Fees(WorkKind):
    name = "fee"
    field = "fee_month"
    selection = "fees"

    def keys_of(self, line: InvoiceLine) -> list[Fee]:
        return [Fee(line.project_id, line.fee_month)] if line.project_id and line.fee_month else []

    def describe(self, key: Fee) -> str:
        return f"{key.month} of project {key.project_id}"

    def load(self, tx: Tx, keys: Collection[Fee]) -> Rows:
        """Return the rows of months that are on an invoice; others have none."""
        billed = load_billed(tx, {fee.project_id for fee in keys})
        return {(self.name, fee): where for fee, where in billed.items()}

    def attach(self, tx: Tx, invoice_id: int, lines: Sequence[InvoiceLine]) -> None:
        with self.writing_once(tx, lines):
            tx.change(CLAIM, lines=ids_of(lines))

    def detach(self, tx: Tx, lines: Sequence[InvoiceLine], after: Mapping[int, InvoiceLine], *, is_kept: bool) -> None:
        tx.run(RELEASE, lines=ids_of(lines))

    def price(self, errors: BodyErrors, line: InvoiceLine, context: LineContext) -> None:
        project = context.projects.get(line.project_id or 0)
        fees = self.keys_of(line)
        if not fees:
            errors.error("project_id", f"Is required with {part('fee_month')}: whose retainer is billed?")
        for fee in fees:
            self.validate(errors, fee, line, project, context)
        if line.quantity is not None and line.quantity <= 0:
            errors.error("quantity", "Must be more than 0 for a month of a retainer. Credit it with a credit note.")
        if project and line.unit_price is None:
            line.unit_price = amount_of(project.retainer_amount or 0, project.currency)
        line.unit = line.unit or "months"
        if not line.description and line.fee_month:
            text = fee_text(line.fee_month, context.terms.language)
            months = [other.fee_month for other in context.invoice.lines if other is not line]
            line.description = f"{text}, {project.name}" if project and line.fee_month in months else text

    def validate(
        self, errors: BodyErrors, fee: Fee, line: InvoiceLine, project: DocumentProject | None, context: LineContext
    ) -> None:
        """Note an error for a month that is billed already, that its project does not have, or that has no price."""
        message, code = self.claim(fee, context)
        if message:
            errors.error("fee_month", message, code)
        if project is None or not errors.readable("fee_month"):
            return
        before = context.current.get(line.id)
        is_new = before is None or fee not in self.keys_of(before)
        start = project.fees_from or FIRST_DAY
        currency = context.invoice.currency
        if project.billing_type != "retainer" and is_new:
            reason = f"its {part('billing_type')} is {project.billing_type}"
            errors.error("fee_month", f"{part(f'Project {project.id}')} has no monthly fee: {reason}.")
        elif fee.month < start[:7] and is_new:
            advice = f"Choose a later month, or change the {part('start_date')} of the project first."
            errors.error("fee_month", f"{part(f'Project {project.id}')} begins on {part(start)}. {advice}")
        elif line.unit_price is not None:
            return
        elif project.retainer_amount is None:
            errors.error("unit_price", f"Is required, since project {project.id} has no {part('retainer_amount')}.")
        elif project.currency != currency and project.client_id == context.invoice.client_id:
            errors.error("unit_price", f"Is required: the fee is in {project.currency}, the invoice in {currency}.")

    def days_of(self, line: InvoiceLine, context: LineContext) -> list[str]:
        return [f"{line.fee_month}-01", last_day(line.fee_month)] if line.fee_month else []

    def find(self, tx: Tx, selection: UnbilledFees, invoice: Invoice, terms: LineTerms) -> UnbilledMatch:
        due = list(islice(load_due(tx, selection, invoice), MAX_WORK + 1))
        own = [(fee, amount) for fee, amount, currency in due if currency == invoice.currency]
        lines = [with_defaults(InvoiceLine, project_id=fee.project_id, fee_month=fee.month) for fee, _ in own]
        others = [other_currency(currency, 1, amount) for _, amount, currency in due if currency != invoice.currency]
        return UnbilledMatch(len(own), sum(amount for _, amount in own), lines, left_out=others)


FEES = Fees()


def load_billed(tx: Tx, project_ids: Collection[int]) -> dict[Fee, BilledFee]:
    rows = tx.all(BILLED, ids=json.dumps(sorted(project_ids))) if project_ids else []
    return {Fee(billed.project_id, billed.month): billed for billed in map(BilledFee._make, rows)}


def load_due(tx: Tx, selection: UnbilledFees, invoice: Invoice) -> Iterator[tuple[Fee, int, str]]:
    """Yield the months that can be billed, project by project, with their amounts in minor units and currencies.

    Projects in the currency of the invoice come first.

    They have begun by today, from the start of their project to its end. Those on the invoice itself count, unless one
    of its lines names them.
    """
    wanted = selection.project_ids
    rows = map(DocumentProject._make, tx.all(OF_CLIENT, client=invoice.client_id))
    found = [project for project in rows if wanted is None or project.id in wanted]
    found.sort(key=lambda project: project.currency != invoice.currency)
    billed = load_billed(tx, [project.id for project in found])
    taken = {fee for fee, where in billed.items() if where.invoice_id != invoice.id}
    taken |= {fee for line in invoice.lines for fee in FEES.keys_of(line)}
    for project in found:
        first = max(project.fees_from or FIRST_DAY, selection.from_ or FIRST_DAY)
        last = min(tx.today, selection.to or LAST_DAY, project.fees_to or LAST_DAY)
        for month in months_of(first, last):
            if (fee := Fee(project.id, month)) not in taken:
                yield fee, project.retainer_amount or 0, project.currency
