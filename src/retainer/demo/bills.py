"""A year of invoices: what was worked in a month is billed in the next, and most of it is paid."""

import random
from datetime import date, timedelta
from typing import Any

import msgspec
from sqlalchemy import and_, select

from retainer import schema
from retainer.billing import payments
from retainer.billing.credit_notes import credit_notes
from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.invoices import invoices
from retainer.billing.invoices.types import Invoice, Payment
from retainer.crm import clients
from retainer.demo.make import at, make
from retainer.demo.work import Job
from retainer.rollups.changes import changing_balance
from retainer.schema.billing import expenses
from retainer.schema.work import time_entries
from retainer.store.tx import Tx

METHODS = ("bank_transfer", "bank_transfer", "bank_transfer", "card", "direct_debit", "cheque")


class Bills:
    """The invoices of one agency, month by month, so that their numbers follow their days."""

    def __init__(self, tx: Tx, rng: random.Random, jobs: list[Job]) -> None:
        self.tx, self.rng, self.jobs = tx, rng, jobs
        self.today = date.fromisoformat(tx.today)
        self.sent: list[Invoice] = []

    def send(self, customers: list[clients.Client]) -> None:
        """Bill twelve months; the work of the current month stays unbilled, but for a draft."""
        busy = [customer for customer in customers if customer.status != "prospect"]
        first = (self.today - timedelta(days=365)).replace(day=1)
        while (following := (first + timedelta(days=32)).replace(day=1)) <= self.today:
            for customer in busy:
                at(self.tx, following)
                self._month(customer, first, following)
            first = following
        at(self.tx, self.today)
        self._from_quotes()
        self._correct()
        self._draft(busy[0])

    def _month(self, customer: clients.Client, first: date, following: date) -> None:
        """Bill a client for a month: hours, expenses, retainers, milestones that were reached."""
        last = following - timedelta(days=1)
        jobs = [job for job in self.jobs if job.project.client_id == customer.id]
        hourly = [job.project.id for job in jobs if job.project.billing_type == "time_and_materials"]
        work: dict[str, Any] = {}
        if hourly and self._unbilled(time_entries, customer, hourly, last):
            by = self.rng.choice(("project", "project", "task", "user"))
            work["time"] = {"project_ids": hourly, "to": last.isoformat(), "group_by": by}
        if self._unbilled(expenses, customer, [job.project.id for job in jobs], last):
            work["expenses"] = {"to": last.isoformat(), "group_by": self.rng.choice(("entry", "category"))}
        lines = [*self._retainers(jobs, first), *self._milestones(jobs, first, last)]
        if work or lines:
            self._issue(customer, following, unbilled_work=work or None, lines=lines)

    def _unbilled(self, table: Any, customer: clients.Client, projects: list[int], last: date) -> bool:
        billable = and_(table.c.billable.is_(True), table.c.currency == customer.currency)
        priced = and_(table.c.amount.is_not(None), table.c.date <= last.isoformat())
        unbilled = and_(table.c.invoice_line_id.is_(None), priced)
        statement = select(table.c.project_id).where(table.c.client_id == customer.id, billable, unbilled).distinct()
        return not {project for (project,) in self.tx.all(statement)}.isdisjoint(projects)

    def _retainers(self, jobs: list[Job], first: date) -> list[dict[str, Any]]:
        return [
            {
                "description": f"{job.project.name}, {first:%B %Y}",
                "unit": "months",
                "unit_price": str(job.project.retainer_amount),
                "project_id": job.project.id,
            }
            for job in jobs
            if job.project.billing_type == "retainer" and job.start <= first <= job.end
        ]

    def _milestones(self, jobs: list[Job], first: date, last: date) -> list[dict[str, Any]]:
        table = schema.work.milestones
        reached = and_(table.c.status == "completed", table.c.due_date.between(str(first), str(last)))
        rows = self.tx.all(select(*table.c["id", "project_id"]).where(table.c.amount > 0, reached))
        projects = {job.project.id for job in jobs}
        return [{"milestone_id": milestone} for milestone, project in rows if project in projects]

    def _issue(self, customer: clients.Client, day: date, **fields: Any) -> None:
        """Send an invoice, and let the client pay: most in time, some late, in two parts, or never."""
        fields |= {"issue_date": day.isoformat(), "status": "sent", "client_id": customer.id}
        invoice = invoices.create_invoice(self.tx, make(Invoice, **fields)).data
        self.sent.append(invoice)
        due, late = date.fromisoformat(str(invoice.due_date)), "Elbe" in customer.name or "Cedar" in customer.name
        paid = due + timedelta(days=self.rng.randint(25, 60) if late else self.rng.randint(-14, 5))
        habit = self.rng.random()
        if habit > 0.99 and due < self.today - timedelta(days=120):
            self._step(invoice, "written_off")
        elif paid <= self.today and invoice.status == "sent":
            part = str((invoice.total / 2).quantize(invoice.total)) if habit < 0.08 else None
            self._pay(invoice, max(paid, day), part)
            rest = paid + timedelta(days=self.rng.randint(15, 40))
            if part and rest <= self.today:
                self._pay(invoices.load_invoice(self.tx, invoice.id), rest, None)

    def _pay(self, invoice: Invoice, day: date, amount: str | None) -> None:
        at(self.tx, day)
        payment = make(
            Payment,
            amount=amount,
            paid_date=day.isoformat(),
            method=self.rng.choice(METHODS),
            reference=f"{self.rng.choice(('TRF', 'ZV', 'PAY'))}-{self.rng.randint(10**6, 10**7)}",
        )
        if payments.build_payment(self.tx, payment, invoice, pays_all=False):
            with changing_balance(self.tx, invoice.id):
                payments.save_payment(self.tx, payment)

    def _step(self, invoice: Invoice, status: str) -> None:
        before = invoices.load_invoice(self.tx, invoice.id)
        invoices.change_invoice(self.tx, msgspec.structs.replace(before, status=status), before)

    def _from_quotes(self) -> None:
        """Make drafts of two accepted quotes."""
        columns = schema.billing.quotes.c
        accepted = select(columns.id).where(columns.status == "accepted").order_by(columns.issue_date.desc())
        for (quote,) in self.tx.all(accepted)[:2]:
            invoices.create_invoice(self.tx, make(Invoice, quote_id=quote))

    def _correct(self) -> None:
        """Correct some invoices: void one, credit a tenth and a twentieth of two, and a small one wholly."""
        self._step(next(invoice for invoice in reversed(self.sent) if self._status(invoice) == "sent"), "void")
        issued = [
            invoice for invoice in self.sent if self._status(invoice) not in {"void", "draft"} and invoice.total > 0
        ]
        small = min(issued[: len(issued) // 2], key=lambda invoice: invoice.total)
        wrong, praised = issued[len(issued) // 3], issued[-1]
        corrections = [(wrong, "correction", 10), (small, "cancellation", 1), (praised, "goodwill", 20)]
        for invoice, reason, part in sorted(corrections, key=lambda correction: str(correction[0].issue_date)):
            day = date.fromisoformat(str(invoice.issue_date)) + timedelta(days=self.rng.randint(8, 14))
            at(self.tx, min(day, self.today))
            fields = {} if part == 1 else {"amount": str((invoice.total / part).quantize(invoice.total))}
            credit_notes.create_credit_note(self.tx, invoice.id, make(CreditNote, reason=reason, **fields))
        at(self.tx, self.today)

    def _status(self, invoice: Invoice) -> str:
        table = schema.billing.invoices
        return str(self.tx.value(select(table.c.status).where(table.c.id == invoice.id)))

    def _draft(self, customer: clients.Client) -> None:
        lines = [{"description": "Workshop: the year ahead", "quantity": "1", "unit": "days", "unit_price": "960"}]
        draft = make(Invoice, client_id=customer.id, subject="Workshop", lines=lines, notes="Thank you!")
        invoices.create_invoice(self.tx, draft)
