"""Preview: what the next run of unbilled work would bill of a project, by the statements of the run itself."""

from typing import Annotated, Literal

import msgspec
from sqlalchemy import bindparam, select, union

from retainer.billing.invoices import types, unbilled
from retainer.billing.kinds.base import NO_TERMS
from retainer.billing.kinds.dated import EXPENSES, TIME
from retainer.billing.kinds.fees import FEES
from retainer.billing.kinds.fixed_fees import FIXED_FEES, load_fixed_fees
from retainer.billing.kinds.milestones import MILESTONES
from retainer.billing.reading import load_projects
from retainer.kernel.resource import Resource
from retainer.schema.billing import expenses
from retainer.schema.expressions import is_unbilled
from retainer.schema.work import projects, time_entries
from retainer.store.tx import Tx
from retainer.values.exact import amount_of
from retainer.values.kinds import Currency, Id, Month, SignedMoney
from retainer.values.reading import with_defaults


class TimePreview(msgspec.Struct):
    """The time that would be billed."""

    count: Annotated[int, "Number of time entries."]
    minutes: Annotated[int, "Sum of their minutes."]
    amount: Annotated[SignedMoney, "Sum of their amounts."]


class WorkPreview(msgspec.Struct):
    """The expenses or milestones that would be billed."""

    count: Annotated[int, "Number of records."]
    amount: Annotated[SignedMoney, "Sum of their amounts."]


class FeesPreview(msgspec.Struct):
    """The months of a retainer that would be billed."""

    months: Annotated[list[Month], "The months, oldest first."]
    amount: Annotated[SignedMoney, "Sum of their fees."]


class FixedFeesPreview(msgspec.Struct):
    """What would be billed of fixed fees."""

    amount: Annotated[SignedMoney, "What is left of the fees, besides milestones."]


class PreviewRow(msgspec.Struct):
    """What an invoice in one currency would bill; amounts before tax."""

    currency: Annotated[Currency, "Currency of the invoice."]
    time: Annotated[TimePreview, "Billable time with a rate; without time that a fee covers."]
    expenses: Annotated[WorkPreview, "Billable expenses."]
    milestones: Annotated[WorkPreview, "Completed milestones with an amount."]
    fees: Annotated[FeesPreview, "Months of the retainer that have begun."]
    fixed_fees: Annotated[FixedFeesPreview, "What is left of the fixed fee, if the project is completed."]
    subtotal: Annotated[SignedMoney, "Sum of the amounts: the `subtotal` of the invoice."]
    left_out: Annotated[list[unbilled.LeftOut], "One entry for each reason; empty if nothing is left out."]


class ProjectPreview(msgspec.Struct):
    """What the next run would bill of a project."""

    project_id: Annotated[Id, "The project whose work the rows sum up."]
    client_id: Annotated[Id | None, "The client who would be billed; null for internal work, which is never billed."]
    rows: Annotated[list[PreviewRow], "The project's currency first, then others in which there is work; all of them."]


CURRENCIES = {
    column: union(
        *(
            select(table.c.currency).where(table.c[column] == bindparam("id"), is_unbilled(table))
            for table in (time_entries, expenses)
        )
    )
    for column in ("project_id", "client_id")
}
"""The currencies of unbilled time and expenses of a project or a client; milestones and fees have the client's."""

api = Resource("/projects/{project_id}/unbilled-work", tag="Projects", scope="invoices", parent=projects)


@api.get()
def get_unbilled_work(tx: Tx, project_id: Id) -> ProjectPreview:
    """Preview the next invoice: what `unbilled_work` with all kinds would bill of a project, and leave out.

    Amounts are before tax. Work of other projects of the client is not included.
    """
    tx.snapshot()
    return load_preview(tx, project_id)


def load_preview(tx: Tx, project_id: int) -> ProjectPreview:
    """Return what the next run would bill of a project that exists."""
    project = load_projects(tx, [project_id])[project_id]
    found = load_currencies(tx, "project_id", project_id) - {project.currency}
    rows = [build_row(tx, project_id, project.client_id, each) for each in (project.currency, *sorted(found))]
    return ProjectPreview(project_id, project.client_id, rows)


def load_currencies(tx: Tx, column: Literal["project_id", "client_id"], record_id: int) -> set[str]:
    """Return the currencies in which a project or a client has unbilled time or expenses."""
    return {currency for (currency,) in tx.all(CURRENCIES[column], id=record_id)}


def build_row(tx: Tx, project_id: int, client_id: int | None, currency: str) -> PreviewRow:
    invoice = with_defaults(types.Invoice, client_id=client_id, currency=currency, lines=[])
    ids = [project_id]
    time = TIME.find(tx, unbilled.UnbilledTime(project_ids=ids), invoice, NO_TERMS, takes_covered=False)
    expenses = EXPENSES.find(tx, unbilled.UnbilledExpenses(project_ids=ids), invoice, NO_TERMS)
    own = [fee for fee in load_fixed_fees(tx, invoice) if fee.project_id == project_id]
    milestones = MILESTONES.choose(own, unbilled.UnbilledMilestones(), invoice)
    fees = FEES.find(tx, unbilled.UnbilledFees(project_ids=ids), invoice, NO_TERMS)
    fixed_fees = FIXED_FEES.choose(own, unbilled.UnbilledFixedFees(), invoice, NO_TERMS)
    found = (time, expenses, milestones, fees, fixed_fees)
    return PreviewRow(
        currency=currency,
        time=TimePreview(time.size, time.minutes, amount_of(time.amount, currency)),
        expenses=WorkPreview(expenses.size, amount_of(expenses.amount, currency)),
        milestones=WorkPreview(milestones.size, amount_of(milestones.amount, currency)),
        fixed_fees=FixedFeesPreview(amount_of(fixed_fees.amount, currency)),
        fees=FeesPreview([line.fee_month for line in fees.lines if line.fee_month], amount_of(fees.amount, currency)),
        subtotal=amount_of(sum(each.amount for each in found), currency),
        left_out=[
            part
            for each in found
            for part in each.left_out
            if part.reason != "other_currency"  # it has a row of its own
        ],
    )
