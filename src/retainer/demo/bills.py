"""A year of invoices: the work of a month is billed at its end, and most of it is paid."""

from datetime import date, timedelta
from typing import Any

from sqlalchemy import Table, and_, select

from retainer.billing.credit_notes import credit_notes
from retainer.billing.invoices import invoices
from retainer.billing.invoices.types import Invoice
from retainer.crm.clients import Client
from retainer.demo.make import Scene, at, change, create
from retainer.demo.work import YEAR
from retainer.schema.billing import expenses, quotes
from retainer.schema.work import milestones, time_entries
from retainer.store.tx import Actor, Store

RECENT = timedelta(days=28)
METHODS = ("bank_transfer", "bank_transfer", "bank_transfer", "card", "direct_debit", "cheque")
Incoming = list[tuple[date, int, dict[str, str | None]]]
"""The payments of the last weeks, each with its day and invoice. Each is an event of its own, in its transaction."""


def bill(scene: Scene, late_payer: int) -> Incoming:
    """Bill 12 months, so that numbers follow dates; most of the current month stays unbilled."""
    incoming: Incoming = []
    first, sent = (scene.today - timedelta(days=YEAR)).replace(day=1), list[Invoice]()
    while (following := (first + timedelta(days=32)).replace(day=1)) <= scene.today:
        for client in scene.clients:
            at(scene.tx, following)
            if client.status != "prospect" and (billed := _work_of(scene, client, first, following)):
                fields = {"client_id": client.id, "issue_date": str(following), "status": "sent", **billed}
                invoice = create(invoices.create_invoice, scene.tx, **fields).data
                sent.append(invoice)
                _pay(scene, invoice, incoming, is_late=late_payer in client.tag_ids)
        first = following
    at(scene.tx, scene.today)
    accepted = select(quotes.c.id).where(quotes.c.status == "accepted").order_by(quotes.c.issue_date.desc())
    for (quote_id,) in scene.tx.all(accepted)[:2]:
        create(invoices.create_invoice, scene.tx, quote_id=quote_id)
    _correct(scene, sent, {invoice_id for _, invoice_id, _ in incoming})
    return sorted(incoming, key=lambda each: each[0])


def receive(store: Store, actor: Actor, incoming: Incoming) -> None:
    for day, invoice_id, payment in incoming:
        with store.begin(actor, write=True) as tx:
            at(tx, day)
            change(invoices.update_invoice, tx, invoice_id, record_payment=payment)


def _work_of(scene: Scene, client: Client, first: date, following: date) -> dict[str, Any]:
    """Return what an invoice bills of a client's month, as its fields."""
    last = str(following - timedelta(days=1))
    own = {job.project.id: job for job in scene.jobs if job.project.client_id == client.id}
    hourly = {project_id for project_id, job in own.items() if job.project.billing_type == "time_and_materials"}
    work: dict[str, Any] = {}
    if projects := hourly & _unbilled(scene, time_entries, client, last):
        group_by = scene.rng.choice(("project", "task", "user"))
        work["time"] = {"project_ids": sorted(projects), "to": last, "group_by": group_by}
    if _unbilled(scene, expenses, client, last):
        work["expenses"] = {"to": last, "group_by": "category"}
    completed = and_(milestones.c.status == "completed", milestones.c.due_date.between(str(first), last))
    rows = scene.tx.all(select(*milestones.c["id", "project_id"]).where(milestones.c.amount > 0, completed))
    lines: list[dict[str, Any]] = [{"milestone_id": row_id} for row_id, project_id in rows if project_id in own]
    lines += [
        {"project_id": project_id, "fee_month": f"{first:%Y-%m}"}
        for project_id, job in own.items()
        if job.project.billing_type == "retainer" and str(job.start) <= last
    ]
    return {"unbilled_work": work or None, "lines": lines} if work or lines else {}


def _unbilled(scene: Scene, table: Table, client: Client, last: str) -> set[int]:
    billable = and_(table.c.billable.is_(True), table.c.currency == client.currency, table.c.amount.is_not(None))
    unbilled = and_(table.c.invoice_line_id.is_(None), table.c.date <= last)
    statement = select(table.c.project_id).where(table.c.client_id == client.id, billable, unbilled).distinct()
    return {project_id for (project_id,) in scene.tx.all(statement)}


def _pay(scene: Scene, invoice: Invoice, incoming: Incoming, *, is_late: bool) -> None:
    rng, due = scene.rng, date.fromisoformat(str(invoice.due_date))
    day = due + timedelta(days=rng.randint(25, 60) if is_late else rng.randint(-14, 5))
    day = max(day, date.fromisoformat(str(invoice.issue_date)))
    if day > scene.today or invoice.status != "sent":
        return
    half = str((invoice.total / 2).quantize(invoice.total)) if rng.random() < 0.08 else None
    payment = {"amount": half, "paid_date": str(day), "reference": f"TRF-{rng.randint(10**6, 10**7)}"}
    payment["method"] = rng.choice(METHODS)
    if day > scene.today - RECENT:
        incoming.append((day, invoice.id, payment))
    else:
        at(scene.tx, day)
        change(invoices.update_invoice, scene.tx, invoice.id, record_payment=payment)


def _correct(scene: Scene, sent: list[Invoice], being_paid: set[int]) -> None:
    """Void an unpaid invoice, and credit a part of another; the rest of a refund is still owed."""
    now = [invoices.load_invoice(scene.tx, invoice.id) for invoice in sent]
    unpaid = [invoice for invoice in now if invoice.status == "sent" and invoice.id not in being_paid]
    settled = [invoice for invoice in now if invoice.status == "paid"]
    for void in unpaid[-1:]:
        change(invoices.update_invoice, scene.tx, void.id, status="void")
    for paid in settled[len(settled) // 2 :][:1]:
        tenth, part = ((paid.total / divisor).quantize(paid.total) for divisor in (10, 20))
        create(credit_notes.create_credit_note, scene.tx, paid.id, reason="correction", amount=str(tenth))
        change(invoices.update_invoice, scene.tx, paid.id, record_refund={"amount": str(part), "reference": "REF-1"})
