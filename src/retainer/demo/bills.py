"""A year of invoices: the work of a month is billed at its end, and most of it is paid."""

import random
from datetime import date, timedelta
from typing import Any

from sqlalchemy import Table, and_, select

from retainer.billing.credit_notes import credit_notes
from retainer.billing.invoices import invoices
from retainer.billing.invoices.types import Invoice
from retainer.crm import clients
from retainer.demo.make import at, change, create
from retainer.demo.work import YEAR, Job
from retainer.schema.billing import expenses, quotes
from retainer.schema.work import milestones, time_entries
from retainer.store.tx import Actor, Store, Tx

RECENT = timedelta(days=28)
METHODS = ("bank_transfer", "bank_transfer", "bank_transfer", "card", "direct_debit", "cheque")


class Bills:
    """The invoices of an agency, month by month, so that their numbers follow their dates."""

    def __init__(self, tx: Tx, rng: random.Random, jobs: list[Job], late_payer: int) -> None:
        self.tx, self.rng, self.jobs, self.late_payer = tx, rng, jobs, late_payer
        self.today = date.fromisoformat(tx.today)
        self.incoming: list[tuple[date, int, dict[str, str | None]]] = []
        """The payments of the last weeks, each with its day and invoice, which `receive` records."""

    def send(self, customers: list[clients.Client]) -> None:
        """Bill 12 months; most of the current month stays unbilled."""
        busy = [customer for customer in customers if customer.status != "prospect"]
        first, sent = (self.today - timedelta(days=YEAR)).replace(day=1), list[Invoice]()
        while (following := (first + timedelta(days=32)).replace(day=1)) <= self.today:
            for customer in busy:
                at(self.tx, following)
                sent += self._bill(customer, first, following)
            first = following
        at(self.tx, self.today)
        accepted = select(quotes.c.id).where(quotes.c.status == "accepted").order_by(quotes.c.issue_date.desc())
        for (quote_id,) in self.tx.all(accepted)[:2]:
            create(invoices.create_invoice, self.tx, quote_id=quote_id)
        self._correct(sent)

    def receive(self, store: Store, actor: Actor) -> None:
        for day, invoice_id, payment in sorted(self.incoming, key=lambda each: each[0]):
            with store.begin(actor, write=True) as tx:
                at(tx, day)
                change(invoices.update_invoice, tx, invoice_id, record_payment=payment)

    def _bill(self, customer: clients.Client, first: date, following: date) -> list[Invoice]:
        last = following - timedelta(days=1)
        own = {job.project.id: job for job in self.jobs if job.project.client_id == customer.id}
        hourly = {project_id for project_id, job in own.items() if job.project.billing_type == "time_and_materials"}
        work: dict[str, Any] = {}
        if projects := hourly & self._unbilled(time_entries, customer, last):
            group_by = self.rng.choice(("project", "task", "user"))
            work["time"] = {"project_ids": sorted(projects), "to": last.isoformat(), "group_by": group_by}
        if self._unbilled(expenses, customer, last):
            work["expenses"] = {"to": last.isoformat(), "group_by": "category"}
        completed = and_(milestones.c.status == "completed", milestones.c.due_date.between(str(first), str(last)))
        rows = self.tx.all(select(*milestones.c["id", "project_id"]).where(milestones.c.amount > 0, completed))
        lines = [{"milestone_id": milestone_id} for milestone_id, project_id in rows if project_id in own]
        lines += [
            {"project_id": project_id, "fee_month": f"{first:%Y-%m}"}
            for project_id, job in own.items()
            if job.project.billing_type == "retainer" and job.start <= last
        ]
        return [self._issue(customer, following, unbilled_work=work or None, lines=lines)] if work or lines else []

    def _unbilled(self, table: Table, customer: clients.Client, last: date) -> set[int]:
        billable = and_(table.c.billable.is_(True), table.c.currency == customer.currency, table.c.amount.is_not(None))
        unbilled = and_(table.c.invoice_line_id.is_(None), table.c.date <= last.isoformat())
        statement = select(table.c.project_id).where(table.c.client_id == customer.id, billable, unbilled).distinct()
        return {project_id for (project_id,) in self.tx.all(statement)}

    def _issue(self, customer: clients.Client, day: date, **fields: Any) -> Invoice:
        fields |= {"issue_date": day.isoformat(), "status": "sent", "client_id": customer.id}
        invoice = create(invoices.create_invoice, self.tx, **fields).data
        due, is_late = date.fromisoformat(str(invoice.due_date)), self.late_payer in customer.tag_ids
        paid = max(day, due + timedelta(days=self.rng.randint(25, 60) if is_late else self.rng.randint(-14, 5)))
        if paid <= self.today and invoice.status == "sent":
            in_parts = self.rng.random() < 0.08
            self._pay(invoice, paid, str((invoice.total / 2).quantize(invoice.total)) if in_parts else None)
        return invoice

    def _pay(self, invoice: Invoice, day: date, amount: str | None) -> None:
        reference = f"TRF-{self.rng.randint(10**6, 10**7)}"
        payment = {"amount": amount, "paid_date": day.isoformat(), "reference": reference}
        payment["method"] = self.rng.choice(METHODS)
        if day > self.today - RECENT:
            self.incoming.append((day, invoice.id, payment))
        else:
            at(self.tx, day)
            change(invoices.update_invoice, self.tx, invoice.id, record_payment=payment)

    def _correct(self, sent: list[Invoice]) -> None:
        """Void an invoice that nobody pays, and credit a part of another; the rest of a refund is still owed."""
        being_paid = {invoice_id for _, invoice_id, _ in self.incoming}
        now = [invoices.load_invoice(self.tx, invoice.id) for invoice in sent]
        unpaid = [invoice for invoice in now if invoice.status == "sent" and invoice.id not in being_paid]
        for void in unpaid[-1:]:
            change(invoices.update_invoice, self.tx, void.id, status="void")
        settled = [invoice for invoice in now if invoice.status == "paid"]
        for paid in settled[len(settled) // 2 :][:1]:
            tenth, part = ((paid.total / divisor).quantize(paid.total) for divisor in (10, 20))
            create(credit_notes.create_credit_note, self.tx, paid.id, reason="correction", amount=str(tenth))
            change(invoices.update_invoice, self.tx, paid.id, record_refund={"amount": str(part), "reference": "REF-1"})
