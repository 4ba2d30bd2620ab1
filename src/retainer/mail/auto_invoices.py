"""Invoices of retainers that the daily job makes, as `auto_invoice` of each project says; each month once.

A month that was billed so is not billed so again, even if a person deletes the draft or voids the invoice. An invoice
that cannot be sent stays a draft, and an entry of the job says why.

While mail is paused, as in a database that was restored from a backup, nothing is issued: the lost days may have had
the same invoices.
"""

from typing import NamedTuple

from sqlalchemy import and_, bindparam, func, or_, select

from retainer.billing.invoices.invoices import save_invoice
from retainer.billing.invoices.types import Invoice
from retainer.billing.kinds.fees import Fee, load_billed
from retainer.identity import audit
from retainer.identity.audit import Target
from retainer.jobs.jobs import leave_out
from retainer.jobs.kinds import Job, JobKind, JobRow
from retainer.kernel.body import RequestBody
from retainer.mail.send import NewMessage, find_obstacle, send
from retainer.outbound.pause import MAIL
from retainer.schema.crm import clients
from retainer.schema.work import projects
from retainer.store.announcements import maintaining
from retainer.store.engines.sql import INTEGER, LIMIT, TEXT
from retainer.store.tables import TODAY
from retainer.store.tx import Tx
from retainer.values.kinds import months_of


class Retainer(NamedTuple):
    """A project with months to bill, and the last month that was billed automatically."""

    id: int
    name: str
    client_id: int
    client_name: str
    currency: str
    auto_invoice: str
    fees_from: str
    fees_to: str | None
    auto_invoiced_month: str | None


THIS_MONTH = bindparam("month", type_=TEXT)
IS_DUE = and_(
    projects.c.auto_invoice != "off",
    or_(projects.c.auto_invoice == "draft", ~MAIL.is_paused(projects)),
    projects.c.billing_type == "retainer",
    projects.c.status != "planned",
    projects.c.retainer_amount > 0,
    projects.c.fees_from <= TODAY,
    or_(projects.c.auto_invoiced_month.is_(None), projects.c.auto_invoiced_month < THIS_MONTH),
)
WITH_CLIENTS = projects.join(clients, clients.c.id == projects.c.client_id)
DUE = select(func.count()).select_from(WITH_CLIENTS).where(IS_DUE)
NEXT = (
    select(*(clients.c.name if name == "client_name" else projects.c[name] for name in Retainer._fields))
    .select_from(WITH_CLIENTS)
    .where(IS_DUE, projects.c.id > bindparam("after", type_=INTEGER))
    .order_by(projects.c.id)
    .suffix_with(LIMIT)
)
NOTE_MONTH = maintaining(
    projects, projects.c.id == bindparam("project"), values={"auto_invoiced_month": bindparam("month")}
)


def is_due(tx: Tx) -> str | None:
    month = tx.today[:7]
    return f"Invoices of retainers, {month}" if tx.value(DUE, month=month) else None


def next_rows(tx: Tx, job: Job, limit: int) -> list[JobRow]:
    rows = tx.all(NEXT, month=tx.today[:7], after=job.position, limit=limit)
    found = map(Retainer._make, rows)
    return [JobRow(each.id, f"{each.name}, {each.client_name}", each) for each in found]


def write(tx: Tx, job: Job, row: JobRow) -> None:
    """Bill the months of a retainer that have begun and are on no invoice. Raises what refuses the invoice."""
    retainer: Retainer = row.value
    billed = load_billed(tx, [retainer.id])
    begun = months_of(retainer.fees_from, min(tx.today, retainer.fees_to or tx.today))
    months = [month for month in begun if month > (retainer.auto_invoiced_month or "")]
    if any(Fee(retainer.id, month) not in billed for month in months):
        _bill(tx, job, row, months[0])
    tx.run(NOTE_MONTH, project=retainer.id, month=tx.today[:7])


def _bill(tx: Tx, job: Job, row: JobRow, first_month: str) -> None:
    retainer: Retainer = row.value
    is_sent = retainer.auto_invoice == "send"
    obstacle = find_obstacle(tx, retainer.client_id) if is_sent else None
    fields = {
        "client_id": retainer.client_id,
        "currency": retainer.currency,
        "project_id": retainer.id,
        "unbilled_work": {"fees": {"project_ids": [retainer.id], "from": f"{first_month}-01"}},
        "status": "draft" if obstacle or retainer.auto_invoice == "draft" else "sent",
    }
    saved = save_invoice(tx, RequestBody(fields, Invoice, "Create").new(tx), None).data
    name = saved.number or f"Draft for {retainer.client_name}"
    audit.note(tx, "record created", Target("invoice", saved.id, name), after={"status": saved.status})
    if obstacle:
        leave_out(tx, job, row, f"Its invoice was not sent, and is a draft. {obstacle}")
    elif is_sent:
        send(tx, "invoice", saved.id, NewMessage(), lambda _: None)
    job.count("drafts" if saved.status == "draft" else "sent" if is_sent else "issued")


def finish(_: Tx, job: Job) -> str | None:
    return "Check the drafts, then issue them." if job.counts.get("drafts") else None


AUTO_INVOICES = JobKind("auto_invoices", next_rows, write, finish, is_due)
