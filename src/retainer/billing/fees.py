"""Fees: the months of retainers, which months are due, and the lines that bill them, each month once.

A line with a `fee_month` bills that month of its project. While its invoice is live, a unique index keeps the database
from billing the month twice. Lines of voided or credited invoices keep their month as history. Decision 26 says which
months are due.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from sqlalchemy import bindparam, literal_column, select, update

from retainer.billing.invoices.types import InvoiceLine, UnbilledFees
from retainer.documents.facts import Language
from retainer.schema import expressions
from retainer.schema.billing import invoice_lines
from retainer.schema.crm import clients
from retainer.schema.identity import accounts
from retainer.schema.work import projects
from retainer.store.engines.sql import INTEGER, is_listed, listed
from retainer.store.tables import ACCOUNT, NOW
from retainer.store.tx import Tx
from retainer.values.exact import FIRST_DAY, LAST_DAY, local_day
from retainer.values.months import months_of


class RetainerProject(NamedTuple):
    """A project as its fee follows from it; the amount of a month in minor units, the language that of its client."""

    id: int
    name: str
    status: str
    billing_type: str
    currency: str
    retainer_amount: int | None
    start_date: str | None
    due_date: str | None
    created_at: str
    completed_at: str | None
    archived_at: str | None
    language: Language


class Fee(NamedTuple):
    """A month of a retainer."""

    project_id: int
    month: str


class BilledFee(NamedTuple):
    """A month that is on an invoice, and where."""

    project_id: int
    month: str
    line_id: int
    invoice_id: int


class DueFee(NamedTuple):
    """A month that can be billed, and its amount in minor units."""

    fee: Fee
    amount: int


PROJECTS = select(*projects.c[RetainerProject._fields[:-1]], expressions.DOCUMENT_LANGUAGE).select_from(
    projects.join(accounts, accounts.c.id == ACCOUNT).outerjoin(clients, clients.c.id == projects.c.client_id)
)
"""In the order of the fields of RetainerProject."""
LISTED = PROJECTS.where(is_listed(projects.c.id, listed("ids", INTEGER).scalar_subquery()))
OF_CLIENT = PROJECTS.where(
    projects.c.client_id == bindparam("client"),
    projects.c.is_template.is_(False),
    projects.c.billing_type == "retainer",
    projects.c.status != "planned",
    projects.c.currency == bindparam("currency"),
    projects.c.retainer_amount > 0,
).order_by(projects.c.name_sort, projects.c.id)
BILLED = select(*invoice_lines.c["project_id", "fee_month", "id", "invoice_id"]).where(
    invoice_lines.c.fee_is_live == literal_column("1"),  # as in the index
    is_listed(invoice_lines.c.project_id, listed("ids", INTEGER).scalar_subquery()),
)
LINES = is_listed(invoice_lines.c.id, listed("lines", INTEGER).scalar_subquery())
CLAIM = update(invoice_lines).where(LINES).values(fee_is_live=1, updated_at=NOW)
RELEASE = update(invoice_lines).where(LINES, invoice_lines.c.fee_is_live == 1).values(fee_is_live=None, updated_at=NOW)


def fee_of(line: InvoiceLine) -> Fee | None:
    """Return the month that a line bills, if it bills one."""
    return Fee(line.project_id, line.fee_month) if line.project_id and line.fee_month else None


def load_projects(tx: Tx, lines: Sequence[InvoiceLine]) -> dict[int, RetainerProject]:
    """Return the projects of the months that lines bill."""
    ids = sorted({fee.project_id for fee in map(fee_of, lines) if fee})
    rows = tx.all(LISTED, ids=json.dumps(ids)) if ids else []
    return {project.id: project for project in map(RetainerProject._make, rows)}


def load_billed(tx: Tx, project_ids: Collection[int]) -> dict[Fee, BilledFee]:
    """Return the months of projects that are on an invoice."""
    rows = tx.all(BILLED, ids=json.dumps(sorted(project_ids))) if project_ids else []
    return {Fee(billed.project_id, billed.month): billed for billed in map(BilledFee._make, rows)}


def load_due(
    tx: Tx, selection: UnbilledFees, client_id: int | None, currency: str, invoice_id: int | None
) -> Iterator[DueFee]:
    """Yield the months that can be billed, project by project; those on the invoice itself count."""
    wanted = selection.project_ids
    rows = map(RetainerProject._make, tx.all(OF_CLIENT, client=client_id, currency=currency))
    found = [project for project in rows if wanted is None or project.id in wanted]
    billed = load_billed(tx, [project.id for project in found])
    taken = {fee for fee, where in billed.items() if where.invoice_id != invoice_id}
    for project in found:
        for month in begun_months(tx, project, selection.from_ or FIRST_DAY, selection.to or LAST_DAY):
            if (fee := Fee(project.id, month)) not in taken:
                yield DueFee(fee, project.retainer_amount or 0)


def begun_months(tx: Tx, project: RetainerProject, first: str, last: str) -> Iterator[str]:
    """Return the months of a project from its start to its end, of those between two days, that have begun by today."""
    moments = (project.completed_at, project.archived_at)
    ends = [local_day(moment, tx.actor.timezone) for moment in moments if moment]
    return months_of(max(start_of(tx, project), first), min(tx.today, last, project.due_date or LAST_DAY, *ends))


def start_of(tx: Tx, project: RetainerProject) -> str:
    """Return the first day of a project: without a start, that of its creation."""
    return project.start_date or local_day(project.created_at, tx.actor.timezone)


def claim(tx: Tx, lines: Sequence[InvoiceLine]) -> None:
    """Mark the months of lines as billed. They were validated before.

    Raises `already_billed` if another transaction has billed one meanwhile.
    """
    fees = {line.id: fee for line in lines if (fee := fee_of(line))}
    if not fees:
        return
    try:
        with tx.engine.savepoint(tx.connection, may_repeat=tx.may_repeat):
            tx.change(CLAIM, lines=json.dumps(list(fees)))
    except tx.engine.conflict:
        billed = load_billed(tx, {fee.project_id for fee in fees.values()})
        for fee in fees.values():
            if fee in billed:
                tx.error("lines", billed_message(billed[fee]), "already_billed")
        tx.raise_errors()
        raise


def release(tx: Tx, lines: Sequence[InvoiceLine]) -> None:
    """Let the months of lines be billed again."""
    ids = [line.id for line in lines if fee_of(line)]
    if ids:
        tx.run(RELEASE, lines=json.dumps(ids))


def billed_message(billed: BilledFee) -> str:
    """Return the error for a month that is on an invoice."""
    return f"{billed.month} of project {billed.project_id} is already on invoice {billed.invoice_id}. Leave it out."
