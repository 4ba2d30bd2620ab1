"""Two years of invoices: the work of a month is billed at its end, and most of it is paid."""

import random
from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any

from sqlalchemy import Table, and_, select

from retainer import schema
from retainer.billing.credit_notes import credit_notes
from retainer.billing.invoices import invoices
from retainer.billing.invoices.types import Invoice
from retainer.crm import clients
from retainer.demo.make import at, change, create
from retainer.demo.work import Job
from retainer.schema.billing import expenses, quotes
from retainer.schema.work import time_entries
from retainer.store.tx import Actor, Store, Tx

RECENT = timedelta(days=28)
METHODS = ("bank_transfer", "bank_transfer", "bank_transfer", "card", "direct_debit", "cheque")


class Bills:
    """The invoices of an agency, month by month, so that their numbers follow their dates."""

    def __init__(self, tx: Tx, rng: random.Random, jobs: list[Job], tag_ids: dict[str, int]) -> None:
        self.tx, self.rng, self.jobs, self.tag_ids = tx, rng, jobs, tag_ids
        self.today = date.fromisoformat(tx.today)
        self.sent: list[Invoice] = []
        self.incoming: list[tuple[date, int, dict[str, str | None]]] = []
        """The payments of the last weeks, each with its day and invoice, which `receive` records."""

    def send(self, customers: list[clients.Client]) -> None:
        """Bill 24 months; most of the current month stays unbilled."""
        busy = [customer for customer in customers if customer.status != "prospect"]
        first = (self.today - timedelta(days=730)).replace(day=1)
        while (following := (first + timedelta(days=32)).replace(day=1)) <= self.today:
            is_earlier = following < self.today - timedelta(days=365)
            for index, customer in enumerate(busy):
                if not is_earlier or (index + first.month) % 2:  # two months together in the year before
                    at(self.tx, following)
                    self._bill(customer, first, following)
            first = following
        at(self.tx, self.today)
        accepted = select(quotes.c.id).where(quotes.c.status == "accepted").order_by(quotes.c.issue_date.desc())
        for (quote_id,) in self.tx.all(accepted)[:2]:
            create(invoices.create_invoice, self.tx, quote_id=quote_id)
        self._correct()
        workshop = {"description": "Workshop: the year ahead", "unit": "days", "unit_price": "960"}
        draft = {"client_id": busy[0].id, "subject": "Workshop", "lines": [workshop], "notes": "Thank you!"}
        create(invoices.create_invoice, self.tx, **draft)

    def receive(self, store: Store, actor: Actor) -> None:
        """Record the payments of the last weeks, each in its own transaction, so that each is an event."""
        for day, invoice_id, payment in sorted(self.incoming, key=lambda each: each[0]):
            with store.begin(actor, write=True) as tx:
                at(tx, day)
                change(invoices.update_invoice, tx, invoice_id, record_payment=payment)

    def _bill(self, customer: clients.Client, first: date, following: date) -> None:
        """Bill a client for a month: hours, expenses, retainers, completed milestones."""
        last = following - timedelta(days=1)
        jobs = [job for job in self.jobs if job.project.client_id == customer.id]
        hourly = {job.project.id for job in jobs if job.project.billing_type == "time_and_materials"}
        work: dict[str, Any] = {}
        if projects := hourly & self._unbilled(time_entries, customer, last):
            group_by = self.rng.choice(("project", "project", "task", "user"))
            work["time"] = {"project_ids": sorted(projects), "to": last.isoformat(), "group_by": group_by}
        if self._unbilled(expenses, customer, last):
            work["expenses"] = {"to": last.isoformat(), "group_by": self.rng.choice(("entry", "category"))}
        lines = [*self._retainers(jobs, first, last), *self._milestones(jobs, first, last)]
        if work or lines:
            self._issue(customer, following, unbilled_work=work or None, lines=lines)

    def _unbilled(self, table: Table, customer: clients.Client, last: date) -> set[int]:
        """Return the projects of a client with work to bill."""
        billable = and_(table.c.billable.is_(True), table.c.currency == customer.currency, table.c.amount.is_not(None))
        unbilled = and_(table.c.invoice_line_id.is_(None), table.c.date <= last.isoformat())
        statement = select(table.c.project_id).where(table.c.client_id == customer.id, billable, unbilled).distinct()
        return {project_id for (project_id,) in self.tx.all(statement)}

    def _retainers(self, jobs: list[Job], first: date, last: date) -> list[dict[str, Any]]:
        retainers = [job for job in jobs if job.project.billing_type == "retainer"]
        return [
            {"project_id": job.project.id, "fee_month": f"{first:%Y-%m}"}
            for job in retainers
            if job.start <= last and str(first) <= str(job.project.due_date)
        ]

    def _milestones(self, jobs: list[Job], first: date, last: date) -> list[dict[str, Any]]:
        table = schema.work.milestones
        completed = and_(table.c.status == "completed", table.c.due_date.between(str(first), str(last)))
        rows = self.tx.all(select(*table.c["id", "project_id"]).where(table.c.amount > 0, completed))
        projects = {job.project.id for job in jobs}
        return [{"milestone_id": milestone_id} for milestone_id, project_id in rows if project_id in projects]

    def _issue(self, customer: clients.Client, day: date, **fields: Any) -> None:
        """Send an invoice, and let the client pay: most in time, some late, in two parts, or never."""
        fields |= {"issue_date": day.isoformat(), "status": "sent", "client_id": customer.id}
        invoice = create(invoices.create_invoice, self.tx, **fields).data
        self.sent.append(invoice)
        due, is_late = date.fromisoformat(str(invoice.due_date)), self.tag_ids["Late payer"] in customer.tag_ids
        paid = max(day, due + timedelta(days=self.rng.randint(25, 60) if is_late else self.rng.randint(-14, 5)))
        habit = self.rng.random()
        if habit > 0.99 and due < self.today - timedelta(days=120):
            change(invoices.update_invoice, self.tx, invoice.id, status="written_off")
        elif paid <= self.today and invoice.status == "sent":
            in_parts = habit < 0.08
            self._pay(invoice, paid, str((invoice.total / 2).quantize(invoice.total)) if in_parts else None)
            rest = paid + timedelta(days=self.rng.randint(15, 40))
            if in_parts and rest <= self.today:
                self._pay(invoice, rest, None)

    def _pay(self, invoice: Invoice, day: date, amount: str | None) -> None:
        at(self.tx, day)
        payment = {
            "amount": amount,
            "paid_date": day.isoformat(),
            "method": self.rng.choice(METHODS),
            "reference": f"{self.rng.choice(('TRF', 'ZV', 'PAY'))}-{self.rng.randint(10**6, 10**7)}",
        }
        if day > self.today - RECENT:
            self.incoming.append((day, invoice.id, payment))
        else:
            change(invoices.update_invoice, self.tx, invoice.id, record_payment=payment)

    def _correct(self) -> None:
        """Void an invoice, credit a part of two, and cancel a small one."""
        table = schema.billing.invoices
        status: dict[int, str] = dict(self.tx.all(select(*table.c["id", "status"])))
        unpaid = [invoice for invoice in self.sent if status[invoice.id] == "sent"]
        being_paid = {invoice_id for _, invoice_id, _ in self.incoming}
        void = next(invoice for invoice in reversed(unpaid) if invoice.id not in being_paid)
        change(invoices.update_invoice, self.tx, void.id, status="void")
        a_year_ago = str(self.today - timedelta(days=365))
        recent = [invoice for invoice in self.sent if str(invoice.issue_date) >= a_year_ago]
        issued = [invoice for invoice in recent if invoice is not void and invoice.total > 0]
        small = min(issued[: len(issued) // 2], key=lambda invoice: invoice.total)
        corrections = [
            (issued[len(issued) // 3], "correction", 10),
            (small, "cancellation", None),
            (issued[-1], "goodwill", 20),
        ]
        for invoice, reason, divisor in sorted(corrections, key=lambda correction: str(correction[0].issue_date)):
            day = date.fromisoformat(str(invoice.issue_date)) + timedelta(days=self.rng.randint(8, 14))
            at(self.tx, min(day, self.today))
            fields = {"amount": str((invoice.total / divisor).quantize(invoice.total))} if divisor else {}
            create(credit_notes.create_credit_note, self.tx, invoice.id, reason=reason, **fields)
        at(self.tx, self.today)
        self._refund(invoice for invoice, *_ in corrections)

    def _refund(self, credited: Iterable[Invoice]) -> None:
        """Pay back a part of what a client had paid before the credit note; the rest is still owed."""
        owed = (invoices.load_invoice(self.tx, invoice.id) for invoice in credited)
        if invoice := next((each for each in owed if each.refund_due > 0), None):
            part = str((invoice.refund_due / 2).quantize(invoice.total))
            change(invoices.update_invoice, self.tx, invoice.id, record_refund={"amount": part, "reference": "REF-1"})
