"""A reference model of billing: what quotes, invoices, payments and credit notes come to, in plain Python.

An Agency takes the body of each request as it was sent, and either changes what it has or raises Refused with every
faulty field. Amounts are whole minor units; quantities, prices and rates are fractions; days are texts. What the API
returns of a record is what it is `expected` to. Records refer to each other: ids are needed only in bodies and answers.
"""

from copy import copy
from decimal import Decimal
from fractions import Fraction

from tests.reference import arithmetic
from tests.reference.arithmetic import DIGITS, allocate, day_after, days_between, half_up, in_units

OPEN = ("sent", "partially_paid")
ISSUED = (*OPEN, "paid", "written_off")
TRANSITIONS = {
    "draft": ("sent",),
    "sent": ("paid", "void", "written_off"),
    "partially_paid": ("paid", "written_off"),
    "written_off": ("paid",),
    "paid": (),
    "void": (),
}
QUOTE_TRANSITIONS = {
    "draft": ("sent", "accepted", "declined", "cancelled"),
    "sent": ("accepted", "declined", "cancelled"),
    "accepted": ("draft",),
    "declined": ("draft",),
    "expired": ("draft",),
    "cancelled": ("draft",),
}
BILLS = {"time": "time_entry_ids", "expense": "expense_ids"}
COVERED = ("fixed_fee", "retainer")
MINUTES_OF_A_DAY = 1440
UNREADABLE, NO_ID = "\0", 0


CONTENTS = ("client_id", "quote_id", "lines", "unbilled_work")
"""The fields that the total of a draft follows from."""
KEEPING = {"locked", "invalid_transition"}
"""The codes of faults after which a field keeps its value."""


TEXTS = {"quote_introduction_en": "We offer", "invoice_introduction_en": "We bill", "invoice_terms_en": "Net"}
"""The texts of new documents in the settings of the agency."""


class Refused(Exception):
    """The faults of a request: each faulty field with its codes. That of all is the one that they share.

    Of what could not be read nothing more is said. Nothing is concluded from that, and from what was refused.
    """

    def __init__(self, name=None, code="validation_failed"):
        super().__init__()
        self.errors, self.unread = {name: {code}} if name else {}, set()

    def note(self, name, code="validation_failed"):
        if name not in self.unread:
            self.errors.setdefault(name, set()).add(code)

    def readable(self, name):
        wrong = self.unread | {field for field, codes in self.errors.items() if not codes <= KEEPING}
        return not any(field == name or field.startswith(f"{name}.") for field in wrong)

    def read(self, body, at=""):
        """A body as far as it can be read; the rest is noted."""
        found = {}
        for name, value in body.items():
            if value == UNREADABLE or (name == "lines" and value is None):
                self.note(at + name)
                self.unread.add(at + name)
            elif isinstance(value, list) and UNREADABLE in value:
                faulty = f"{at}{name}.{value.index(UNREADABLE)}"
                self.note(faulty)
                self.unread.add(faulty)
                found[name] = [NO_ID if item == UNREADABLE else item for item in value]
            else:
                found[name] = value
        if "lines" in found:
            found["lines"] = [self.read(line, f"lines.{place}.") for place, line in enumerate(found["lines"])]
        return found

    def refuse(self):
        if self.errors:
            raise self

    @property
    def code(self):
        codes = set().union(*self.errors.values())
        return codes.pop() if len(codes) == 1 else "validation_failed"


def is_overdrawn(payments):
    """Whether less was paid than refunded at the end of a day."""
    days = {payment.paid_date for payment in payments}
    return any(sum(payment.amount for payment in payments if payment.paid_date <= day) < 0 for day in days)


# Arithmetic


def money(units, currency):
    return None if units is None else arithmetic.money(units, currency)


def plain(value, digits=0):
    """A decimal without trailing zeros, but for so many digits."""
    head, _, tail = f"{Decimal(value.numerator) / value.denominator:.4f}".partition(".")
    tail = tail.rstrip("0").ljust(digits, "0")
    return f"{head}.{tail}" if tail else head


def clamp(units, bound):
    """Return what is nearest to some units from 0 to a bound, which may be negative."""
    return arithmetic.clamp(units, (0, bound))


def gross(shares):
    return sum(taxable + tax for taxable, tax in shares.values())


# What there is


class Record:
    """Some fields are returned VERBATIM, some as AMOUNTS of its currency, as DECIMALS, or as IDS of others.

    The record itself holds them, but for those that are DERIVED from other records or from the day.
    """

    VERBATIM = AMOUNTS = DECIMALS = IDS = DERIVED = ()
    id = client = project = held = None

    def __init__(self, **values):
        vars(self).update(values)

    def __repr__(self):
        return f"{type(self).__name__} {self.id}" + str(getattr(self, "DBG", ""))

    def expected(self):
        return (
            {name: getattr(self, name) for name in ("id", *self.VERBATIM)}
            | {name: money(getattr(self, name), self.currency) for name in self.AMOUNTS}
            | {name: plain(getattr(self, name)) for name in self.DECIMALS}
            | {f"{name}_id": getattr(self, name) and getattr(self, name).id for name in self.IDS}
        )

    def stamp(self, now):
        """Note when the record was changed last: what is derived from others is no change of it."""
        held = {name: value for name, value in self.expected().items() if name not in self.DERIVED}
        held["status"] = getattr(self, "status", None)  # a quote expires without a change
        if held != self.held:
            self.held, self.updated_at = held, now

    def lock(self, refusal, before, *names):
        """What was billed, issued or agreed does not change."""
        for name in names:
            old, new = getattr(before, name), getattr(self, name)
            if old != new and (name != "lines" or [line.terms for line in old] != [line.terms for line in new]):
                refusal.note(f"{name}_id" if name in self.IDS else name, "locked")
                setattr(self, name, old)

    def assign(self, body, *names, read=lambda value: value):
        """Set the fields that a body has."""
        for name in names:
            if name in body:
                setattr(self, name, read(body[name]))


class Client(Record):
    VERBATIM, DECIMALS = ("name", "currency", "payment_terms_days"), ("tax_rate",)
    currency, payment_terms_days, hourly_rate, tax_rate = "EUR", 30, None, Fraction(0)


class Project(Record):
    VERBATIM = ("name", "currency", "billing_type", "tracked_minutes", "billable_minutes", "unbilled_minutes")
    AMOUNTS = ("budget_amount", "billable_amount", "unbilled_amount", "invoiced_amount", "expense_amount")
    IDS = ("client", "quote")
    DERIVED = (*VERBATIM[3:], *AMOUNTS[1:])
    quote = name = hourly_rate = budget = None
    billing_type = "time_and_materials"

    entries = property(lambda self: [entry for entry in self.agency.entries if entry.project is self])
    billable = property(lambda self: [entry for entry in self.entries if entry.billable])
    is_covered = property(lambda self: self.billing_type in COVERED)
    unbilled = property(lambda self: [entry for entry in self.entries if entry.billing_status == "unbilled"])
    tracked_minutes = property(lambda self: sum(entry.duration_minutes for entry in self.entries))
    billable_minutes = property(lambda self: sum(entry.duration_minutes for entry in self.billable))
    unbilled_minutes = property(lambda self: sum(entry.duration_minutes for entry in self.unbilled))
    billable_amount = property(lambda self: self.sum_amounts(self.entries))
    unbilled_amount = property(lambda self: self.sum_amounts(self.unbilled))
    budget_amount = property(lambda self: self.budget and in_units(self.budget, self.currency))

    def expected(self):
        return super().expected() | expected_rate(self)

    def sum_amounts(self, records):
        """What the amounts in the project's currency add up to."""
        return sum(record.amount or 0 for record in records if record.currency == self.currency)

    @property
    def invoiced_amount(self):
        """The net of its lines on what was issued and is not void, less credits; others are the invoice's project's."""
        lines = [line for invoice in self.agency.invoices if invoice.status in ISSUED for line in invoice.lines]
        taken = [note.by_project.get(self, 0) for note in self.agency.credit_notes if note.currency == self.currency]
        return self.sum_amounts(line for line in lines if (line.project or line.document.project) is self) - sum(taken)

    @property
    def expense_amount(self):
        expenses = [
            expense for expense in self.agency.expenses if expense.project is self and expense.currency == self.currency
        ]
        return sum(expense.net_amount for expense in expenses)


class Work(Record):
    """Time or an expense: `billed_amount` is what its client is billed, `invoice_line` the one line that bills it."""

    VERBATIM = ("date", "description", "currency", "billable", "billing_status")
    IDS = ("client", "project", "invoice", "invoice_line")
    currency = billable = description = invoice_line = hourly_rate = None

    invoice = property(lambda self: self.invoice_line and self.invoice_line.document)

    @property
    def billing_status(self):
        return "billed" if self.invoice_line else "unbilled" if self.billable else "non_billable"


class Entry(Work):
    VERBATIM, AMOUNTS = (*Work.VERBATIM, "duration_minutes", "is_locked"), ("amount",)
    DERIVED = ("billing_status",)  # also from its project's billing type; the rest of it are fields of its own
    LOCKED_FIELDS = ("client", "project", "date", "billable", "duration_minutes", "hourly_rate")
    rate_is_sent = False

    is_locked = property(lambda self: self.invoice_line is not None)
    is_covered = property(lambda self: self.project is not None and self.project.is_covered)
    is_unpriced = property(lambda self: self.billable and self.hourly_rate is None)
    billed_amount = property(lambda self: self.amount)

    @property
    def amount(self):
        """What it is worth: nothing if it is not billable, and nobody knows what if it is, without a rate."""
        if self.is_unpriced:
            return None
        exact = Fraction(self.duration_minutes, 60) * (self.hourly_rate or 0)
        return half_up(in_units(exact, self.currency)) if self.billable else 0

    @property
    def billing_status(self):
        status = super().billing_status
        if status != "unbilled":
            return status
        return "covered" if self.is_covered else "unpriced" if self.is_unpriced else status

    def expected(self):
        return super().expected() | expected_rate(self)


class Expense(Work):
    VERBATIM = (*Work.VERBATIM, "category", "amount_includes_tax")
    AMOUNTS, DECIMALS = ("amount", "net_amount", "billable_amount"), ("tax_rate", "markup_percent")
    LOCKED_FIELDS = ("client", "project", "date", "billable", "description", "amount", "tax_rate", "markup_percent")
    LOCKED_FIELDS = (*LOCKED_FIELDS, "amount_includes_tax", "category")
    tax_rate, markup_percent, amount_includes_tax, category, amount = Fraction(0), Fraction(0), True, "other", 0

    billed_amount = property(lambda self: self.billable_amount)

    @property
    def net_amount(self):
        return half_up(self.amount / (1 + self.tax_rate / 100)) if self.amount_includes_tax else self.amount

    @property
    def billable_amount(self):
        return half_up(self.net_amount * (1 + self.markup_percent / 100)) if self.billable else 0


class Line(Record):
    VERBATIM, AMOUNTS, IDS = ("description", "unit"), ("amount",), ("project",)
    DECIMALS = ("quantity", "discount_percent", "tax_rate")
    TERMS = (*VERBATIM, *IDS, *DECIMALS, "unit_price")
    ALSO = {"Quote": ("created_at",), "Invoice": ("created_at", "kind")}
    quantity, unit_price, discount_percent, kind, amount = Fraction(1), Fraction(0), Fraction(0), "item", 0
    description = unit = created_at = None

    currency = property(lambda self: self.document.currency)
    parts = property(lambda self: [part for note in self.document.credit_notes for part in note.lines])
    is_credited = property(
        lambda self: self.quantity == sum(part.quantity for part in self.parts if part.invoice_line is self)
    )
    terms = property(lambda self: [getattr(self, name) for name in self.TERMS])

    def request_body(self):
        """Return the body that a request describes the line with."""
        price = {"unit_price": plain(self.unit_price, DIGITS[self.currency])}
        billed = {member: sorted(work.id for work in self.work if self.kind == kind) for kind, member in BILLS.items()}
        return super().expected() | price | (billed if isinstance(self.document, Invoice) else {})

    def expected(self):
        return self.request_body() | {name: getattr(self, name) for name in self.ALSO[type(self.document).__name__]}


class Taxed(Record):
    """What comes to a share at each tax rate: a taxable amount and the tax on it."""

    VERBATIM, AMOUNTS = ("number", "issue_date", "currency"), ("subtotal", "tax_total", "total")
    number = issue_date = None

    subtotal = property(lambda self: sum(taxable for taxable, _ in self.shares.values()))
    tax_total = property(lambda self: sum(tax for _, tax in self.shares.values()))
    total = property(lambda self: gross(self.shares))

    def expected(self):
        names = ("tax_rate", "taxable_amount", "tax_amount")
        shares = [
            (plain(rate), *(money(units, self.currency) for units in share)) for rate, share in self.shares.items()
        ]
        breakdown = [dict(zip(names, share, strict=True)) for share in shares]
        return super().expected() | {"tax_breakdown": breakdown, "lines": [line.expected() for line in self.lines]}


class Document(Taxed):
    """A quote or an invoice. `moments` are when it was sent, paid, accepted, ..."""

    IDS, MOMENTS = ("client", "project"), ()
    currency, status = None, "draft"

    def __init__(self, **values):
        super().__init__(lines=[], moments={}, **values)

    @property
    def shares(self):
        """The exact sum of the lines of each rate, taxed once."""
        taxable = dict.fromkeys(sorted({line.tax_rate for line in self.lines}), 0)
        for line in self.lines:
            taxable[line.tax_rate] += line.amount
        return {rate: (units, half_up(units * rate / 100)) for rate, units in taxable.items()}

    def expected(self):
        return super().expected() | {name: self.moments.get(name) for name in self.MOMENTS}


class Quote(Document):
    VERBATIM = (*Taxed.VERBATIM, "title", "valid_until", "status", "notes", "terms", "external_id")
    IDS = (*Document.IDS, "invoice", "converted_project")
    MOMENTS = ("sent_at", "accepted_at", "declined_at")
    LOCKED_FIELDS = ("client_id", "currency", "issue_date")
    FROZEN = (*LOCKED_FIELDS, "project_id", "title", "valid_until", "notes", "terms")
    title = valid_until = converted_project = terms = external_id = None
    notes = TEXTS["quote_introduction_en"]

    invoices = property(lambda self: [invoice for invoice in self.agency.invoices if invoice.quote is self])
    invoice = property(lambda self: next((invoice for invoice in self.invoices if invoice.holds_quote), None))
    converted = property(lambda self: self.invoice or self.converted_project)

    @property
    def effective_status(self):
        return "expired" if self.status == "sent" and self.valid_until < self.agency.today else self.status

    def expected(self):
        return super().expected() | {"status": self.effective_status}


class Invoice(Document):
    VERBATIM = (*Taxed.VERBATIM, "status", "due_date", "subject", "notes", "terms", "is_overdue", "days_overdue")
    AMOUNTS = (*Taxed.AMOUNTS, "amount_paid", "amount_credited", "balance_due", "refund_due")
    DERIVED = ("is_overdue", "days_overdue")
    IDS = (*Document.IDS, "quote")
    MOMENTS = ("sent_at", "paid_at", "voided_at", "written_off_at")
    LOCKED_FIELDS = ("client_id", "project_id", "issue_date", "subject", "currency")
    quote = due_date = subject = billed_to = None
    notes, terms = TEXTS["invoice_introduction_en"], TEXTS["invoice_terms_en"]

    def __init__(self, **values):
        super().__init__(payments=[], credit_notes=[], **values)

    amount_paid = property(lambda self: sum(payment.amount for payment in self.payments))
    amount_credited = property(lambda self: sum(note.total for note in self.credit_notes))
    is_credited = property(lambda self: bool(self.credit_notes) and self.amount_credited == self.total)
    holds_quote = property(lambda self: self.status != "void" and not self.is_credited)
    refund_due = property(lambda self: sum(note.refundable_amount for note in self.credit_notes))

    @property
    def balance_due(self):
        """What is still to be paid: a credit note lowers it as far as it is not to be refunded."""
        applied = sum(note.applied_amount for note in self.credit_notes)
        return 0 if self.status == "void" else self.total - self.amount_paid - applied

    @property
    def is_overdue(self):
        return self.status in OPEN and self.balance_due > 0 and self.due_date < self.agency.today

    @property
    def days_overdue(self):
        return days_between(self.due_date, self.agency.today) if self.is_overdue else 0

    def uncredited(self):
        """What is not yet credited at each rate."""
        left = self.shares
        for share in (share for note in self.credit_notes for share in note.shares.items()):
            rate, (net, tax) = share
            left[rate] = (left[rate][0] - net, left[rate][1] - tax)
        return left

    def expected(self):
        parts = {name: [record.expected() for record in getattr(self, name)] for name in ("payments", "credit_notes")}
        return super().expected() | parts | {"client_snapshot": self.billed_to and {"name": self.billed_to}}


class Payment(Record):
    VERBATIM, AMOUNTS, IDS = ("paid_date", "reference", "currency", "kind"), ("amount",), ("invoice",)

    currency = property(lambda self: self.invoice.currency)
    kind = property(lambda self: "refund" if self.amount < 0 else "payment")


class Credited(Record):
    """A line of a credit note: part of an invoice's line, or anything else at one of its rates."""

    DECIMALS, AMOUNTS, IDS = ("quantity", "tax_rate"), ("amount",), ("invoice_line",)
    invoice_line = None

    currency = property(lambda self: self.note.currency)

    def expected(self):
        fields = super().expected()
        del fields["id"]
        return fields


class CreditNote(Taxed):
    VERBATIM, IDS = (*Taxed.VERBATIM, "reason"), ("invoice", "client")
    AMOUNTS = (*Taxed.AMOUNTS, "applied_amount", "refundable_amount")
    applied_amount = 0

    currency = property(lambda self: self.invoice.currency)
    client = property(lambda self: self.invoice.client)
    refundable_amount = property(lambda self: self.total - self.applied_amount)

    @property
    def by_project(self):
        """What it takes back of each project: its parts of lines from theirs, the rest from what is left of all."""
        invoice, left, taken = self.invoice, {}, {}
        for line in invoice.lines:
            project = line.project or invoice.project
            left[project] = left.get(project, 0) + line.amount
        for former in invoice.credit_notes[: invoice.credit_notes.index(self)]:
            for project, units in former.by_project.items():
                left[project] -= units
        if self.subtotal == sum(left.values()):
            return left
        for line in self.lines:
            if line.invoice_line:
                project = line.invoice_line.project or invoice.project
                taken[project] = taken.get(project, 0) + line.amount
        weights = [units - taken.get(project, 0) for project, units in left.items()]
        rest = self.subtotal - sum(taken.values())
        parts = allocate(rest, weights) if sum(weights) else [rest, *[0] * (len(weights) - 1)]
        return {project: taken.get(project, 0) + part for project, part in zip(left, parts, strict=True)}


# What happens


class Agency:
    """What an agency has, and what each request does to it."""

    def __init__(self):
        self.now = ""
        self.clients, self.projects, self.entries, self.expenses, self.quotes, self.invoices = ([] for _ in range(6))
        self.last_numbers = {}

    today = property(lambda self: self.now[:10])
    works = property(lambda self: [*self.entries, *self.expenses])
    documents = property(lambda self: [*self.quotes, *self.invoices])
    payments = property(lambda self: [payment for invoice in self.invoices for payment in invoice.payments])
    credit_notes = property(lambda self: [note for invoice in self.invoices for note in invoice.credit_notes])

    def number(self, prefix, day):
        """The next of the series of a year."""
        series = f"{prefix}-{day[:4]}"
        self.last_numbers[series] = self.last_numbers.get(series, 0) + 1
        return f"{series}-{self.last_numbers[series]:04}"

    def find_referenced(self, refusal, body, member, former=None, at=""):
        """Return the record that a field of the body names; the former, if it has no such field."""
        if body.get(member) is None:
            return None if member in body else former
        records = {"client_id": self.clients, "project_id": self.projects, "quote_id": self.quotes}[member]
        found = next((record for record in records if record.id == body[member]), None)
        if found is None:
            refusal.note(at + member)
        return found

    @staticmethod
    def save(records, before, after):
        """Let what was validated take place."""
        if before is None:
            records.append(after)
            return after
        vars(before).update(vars(after))
        for line in getattr(before, "lines", ()):
            line.document = before
        return before

    # clients and projects

    def write_client(self, body, before=None):
        refusal, client = Refused(), copy(before) or Client()
        client.assign(body, "name", "currency", "payment_terms_days")
        client.assign(body, "tax_rate", "hourly_rate", read=Fraction)
        projects = [project for project in self.projects if project.client is before]
        if before and client.currency != before.currency:
            issued = any(invoice.client is before and invoice.number for invoice in self.invoices)
            if issued or any(in_units(project.budget or 0, client.currency).denominator > 1 for project in projects):
                refusal.note("currency")
        refusal.refuse()
        for project in projects:
            project.currency = client.currency
        return self.save(self.clients, before, client)

    def create_project(self, body):
        refusal, project = Refused(), Project(agency=self)
        project.assign(body, "name", "billing_type")
        project.assign(body, "hourly_rate", read=Fraction)
        project.client = self.find_referenced(refusal, body, "client_id")
        project.quote = quote = self.quote_to_convert(refusal, body, "converted_project")
        refusal.refuse()
        if quote:
            project.client, project.name = quote.client, project.name or quote.title or quote.number
            quote.converted_project = project
            if quote.invoice and quote.invoice.project is None:
                quote.invoice.project = project
            if quote.currency == project.client.currency and quote.subtotal > 0:
                project.budget = Fraction(quote.subtotal, 10 ** DIGITS[quote.currency])
        project.currency = project.client.currency
        return self.save(self.projects, None, project)

    def change_project(self, body, before):
        refusal, project = Refused(), copy(before)
        self.require_same_quote(refusal, body, before)
        project.assign(body, "name", "billing_type")
        project.assign(body, "hourly_rate", read=Fraction)
        refusal.refuse()
        return self.save(self.projects, before, project)

    @staticmethod
    def require_same_quote(refusal, body, before):
        """Refuse another quote than the one that a record was made from."""
        if body.get("quote_id", before.quote and before.quote.id) != (before.quote and before.quote.id):
            refusal.note("quote_id")

    def quote_to_convert(self, refusal, body, becomes):
        """The accepted quote that a project or invoice is made from; it becomes one of each that is not void."""
        quote = self.find_referenced(refusal, body, "quote_id")
        if quote:
            client = body.get("client_id", quote.client.id)
            if quote.status != "accepted" or getattr(quote, becomes) or client != quote.client.id:
                refusal.note("quote_id")
        return quote

    # time and expenses

    def relate(self, refusal, work, body):
        """The client follows from the project, and must not contradict it."""
        client = self.find_referenced(refusal, body, "client_id", work.client)
        work.project = self.find_referenced(refusal, body, "project_id", work.project)
        work.client = client if body.get("client_id") or not work.project else work.project.client
        if work.project and work.client is not work.project.client:
            refusal.note("project_id")

    def write_entry(self, body, before=None):
        refusal, entry = Refused(), copy(before) or Entry(date=self.today, billable=True)
        body = refusal.read(body)
        self.relate(refusal, entry, body)
        entry.assign(body, "date", "billable", "description", "duration_minutes", "hourly_rate")
        if body.get("hourly_rate") is not None:
            entry.hourly_rate = Fraction(body["hourly_rate"])
            entry.rate_is_sent = before is None or before.rate_is_sent or entry.hourly_rate != before.hourly_rate
        elif "hourly_rate" in body:
            entry.rate_is_sent = False
        moved = before is None or (entry.client, entry.project) != (before.client, before.project)
        if before is None or entry.client is not before.client or (moved and not entry.rate_is_sent):
            entry.currency = entry.client.currency
        if not entry.rate_is_sent and (moved or (entry.hourly_rate is None and before.hourly_rate is not None)):
            rates = [around.hourly_rate for around in (entry.project, entry.client) if around]
            entry.hourly_rate = next((rate for rate in rates if rate is not None), None)
        if (
            entry.rate_is_sent
            and "hourly_rate" not in body
            and entry.currency != before.currency
            and not entry.invoice_line
        ):
            refusal.note("hourly_rate")
        if before and before.invoice_line:
            entry.lock(refusal, before, *Entry.LOCKED_FIELDS)
        self.check_room(refusal, entry, before)
        refusal.refuse()
        return self.save(self.entries, before, entry)

    def check_room(self, refusal, entry, before):
        """A day of the one user has 1440 minutes; what is there can become less."""
        changed = [
            name for name in ("date", "duration_minutes") if not before or getattr(entry, name) != getattr(before, name)
        ]
        becomes_less = before and changed == ["duration_minutes"] and entry.duration_minutes < before.duration_minutes
        others = [other for other in self.entries if other is not before and other.date == entry.date]
        total = sum(other.duration_minutes for other in others) + entry.duration_minutes
        if changed and not becomes_less and total > MINUTES_OF_A_DAY:
            refusal.note(changed[-1])

    def write_expense(self, body, before=None):
        refusal, expense = Refused(), copy(before) or Expense(date=self.today)
        body = refusal.read(body)
        self.relate(refusal, expense, body)
        expense.currency = (
            expense.currency or body.get("currency") or (expense.client.currency if expense.client else "EUR")
        )
        expense.billable = expense.client is not None if expense.billable is None else expense.billable
        expense.assign(body, "billable", "date", "description", "category", "amount_includes_tax")
        expense.assign(body, "tax_rate", "markup_percent", read=Fraction)
        expense.assign(body, "amount", read=lambda amount: in_units(amount, expense.currency))
        if expense.billable and expense.client is None:
            refusal.note("billable")
        if expense.amount == 0:
            refusal.note("amount")
        if before and before.invoice_line:
            expense.lock(refusal, before, *Expense.LOCKED_FIELDS)
        if expense.amount.denominator > 1:
            refusal.note("amount")
        refusal.refuse()
        return self.save(self.expenses, before, expense)

    def delete_work(self, work):
        if work.invoice_line:
            raise Refused("invoice_id", "locked")
        for line in [line for invoice in self.invoices for line in invoice.lines if work in line.work]:
            line.work.remove(work)
        (self.entries if isinstance(work, Entry) else self.expenses).remove(work)

    # quotes and invoices, as far as they are alike

    @staticmethod
    def strip_fixed(fixed, refusal, body, before):
        """A body without what is fixed; what was returned can be sent back, and nothing else."""
        for name in fixed:
            if body.get(name, before.expected()[name]) != before.expected()[name]:
                refusal.note(name, "locked")
        return {name: value for name, value in body.items() if name not in fixed}

    def set_header(self, refusal, document, body, before):
        """Client, project and currency of a document; its first line fixes the currency, and work on it the client."""
        document.client = self.find_referenced(refusal, body, "client_id", document.client)
        document.project = self.find_referenced(refusal, body, "project_id", document.project)
        document.currency = body.get("currency") or document.currency or document.client.currency
        kept = self.kept_lines(body, before) if before else []
        from_quote = isinstance(document, Invoice) and document.quote
        if before and document.client is not before.client and (from_quote or any(works for _, works in kept)):
            refusal.note("client_id")
            document.client = before.client
        is_known = refusal.readable("lines") and (before is None or self.knows_lines(body, before))
        if kept and document.currency != before.currency and is_known:
            refusal.note("currency")
        if document.project and document.project.client is not document.client:
            refusal.note("project_id")

    @staticmethod
    def kept_lines(body, before):
        """The lines of a document that stay, and whether each still bills work."""
        stay = {line.id: line.request_body() for line in before.lines}
        if "lines" in body:
            sent = {line["id"]: line for line in body["lines"] if line.get("id") in stay}
            stay = {line_id: stay[line_id] | line for line_id, line in sent.items()}
        kinds = {line.id: line.kind for line in before.lines}
        return [
            (line_id, kinds[line_id] != "item" and any(line.get(member) for member in BILLS.values()))
            for line_id, line in stay.items()
        ]

    @staticmethod
    def knows_lines(body, before):
        """Whether each line that a body names by its id is one of the document, and none is named twice."""
        named = [line["id"] for line in body.get("lines", ()) if line.get("id") is not None]
        return len(named) == len(set(named) & {line.id for line in before.lines})

    @staticmethod
    def merge_lines(refusal, body, before):
        """What a body says of lines; of those that it names by their ids, onto what they say. None for an odd id."""
        left, found = {line.id: line for line in before.lines} if before else {}, []
        for place, line_body in enumerate(body.get("lines", request_bodies(left.values()))):
            former = left.pop(line_body.get("id"), None)
            if former is None and line_body.get("id") is not None:
                refusal.note(f"lines.{place}.id")
                found.append(None)
            else:
                found.append(former.request_body() | line_body if former else line_body)
        return found

    def build_lines(self, refusal, document, bodies, before):
        """The lines of a draft: those that are named by their ids stay the same ones, others are new."""
        formers, seen = before.lines if before else [], set()
        document.lines = [
            self.line(refusal, f"lines.{place}.", body, document, formers, seen)
            for place, body in enumerate(bodies)
            if body is not None
        ]

    def line(self, refusal, at, body, document, formers, seen):
        """A line of a document; `formers` are its lines until now, `seen` is what others of the request bill."""
        new = Line(created_at=self.now, quantity=None, unit_price=None)
        before = next((former for former in formers if former.id == body.get("id")), new)
        line = Line(document=document, work=[], tax_rate=document.client.tax_rate)
        line.id, line.created_at = before.id, before.created_at
        line.assign(body, "description", "unit")
        line.assign(body, "quantity", "unit_price", "discount_percent", "tax_rate", read=Fraction)
        line.project = self.find_referenced(refusal, body, "project_id", at=at)
        if line.project and line.project.client is not document.client:
            refusal.note(f"{at}project_id")
        kinds = [kind for kind, member in BILLS.items() if body.get(member)]
        if kinds:
            line.kind = kinds[0]
            for kind in kinds[1:]:
                refusal.note(at + BILLS[kind])
            if line.discount_percent:
                refusal.note(f"{at}discount_percent")
            self.bill_work(refusal, at + BILLS[line.kind], line, body[BILLS[line.kind]], formers, seen)
            is_known = line.work and refusal.readable(at + BILLS[line.kind])
            for member in ("quantity", "unit_price") if is_known else ():
                if member in body and Fraction(body[member]) not in {
                    getattr(version, member) for version in (line, before)
                }:
                    refusal.note(at + member)
        else:
            for member in ("description", "unit_price"):
                if member not in body:
                    refusal.note(at + member)
            exact = line.quantity * line.unit_price * (1 - line.discount_percent / 100)
            line.amount = half_up(in_units(exact, line.currency))
        return line

    def bill_work(self, refusal, at, line, ids, formers, seen):
        """Let a line bill work: it says amount, quantity and price, and what else the body left out."""
        works = self.entries if line.kind == "time" else self.expenses
        for place, work_id in enumerate(ids):
            work = next((candidate for candidate in works if candidate.id == work_id), None)
            if work is None or work in seen:
                refusal.note(f"{at}.{place}")
            elif work.invoice_line and work.invoice_line not in formers:
                refusal.note(f"{at}.{place}", "already_billed")
            elif work.billed_amount is None:
                refusal.note(f"{at}.{place}")
            elif (work.client, work.currency, work.billable) == (line.document.client, line.currency, True):
                line.work.append(work)
            else:
                refusal.note(f"{at}.{place}")
            seen.add(work)
        if not line.work:
            return
        line.amount = sum(work.billed_amount for work in line.work)
        line.quantity = Fraction(-1 if line.amount < 0 else 1)
        if line.kind == "time":
            minutes = sum(work.duration_minutes for work in line.work)
            line.quantity, line.unit = Fraction(half_up(Fraction(minutes * 10_000, 60)), 10_000), line.unit or "hours"
        rates, descriptions = {work.hourly_rate for work in line.work}, {work.description for work in line.work}
        if line.kind == "expense" and None not in descriptions:
            spent = sorted(line.work, key=lambda work: (work.date, work.id))
            descriptions = {", ".join(dict.fromkeys(work.description for work in spent))}
        common = rates.pop() if len(rates) == 1 else None
        each = line.amount / line.quantity / 10 ** DIGITS[line.currency] if common is None else common
        line.unit_price = Fraction(half_up(each * 10_000), 10_000)
        projects = {work.project for work in line.work}
        line.project = line.project or (projects.pop() if len(projects) == 1 else None)
        line.description = (
            line.description or (descriptions.pop() if len(descriptions) == 1 else None) or default_description(line)
        )

    def add_line(self, body, document):
        self.only_drafts(document)
        refusal = Refused()
        line = self.line(refusal, "", refusal.read(body), document, (), set())
        refusal.refuse()
        document.lines.append(line)
        self.attach([line])
        return line

    def delete_line(self, line):
        self.only_drafts(line.document)
        line.document.lines.remove(line)
        self.release([line])

    @staticmethod
    def only_drafts(document):
        if document.status != "draft":
            raise Refused(type(document).__name__.lower(), "locked")

    @staticmethod
    def attach(lines):
        """Work stands on these lines."""
        for line in lines:
            for work in line.work:
                work.invoice_line = line

    @staticmethod
    def release(lines):
        """Work on these lines can be billed elsewhere."""
        for line in lines:
            for work in line.work:
                work.invoice_line = None if work.invoice_line is line else work.invoice_line

    @staticmethod
    def send_back(_, document):
        """What was read and is sent back changes nothing."""
        return document

    # quotes

    def write_quote(self, body, before=None):
        refusal, quote = Refused(), copy(before) or Quote(agency=self, issue_date=self.today)
        body = refusal.read(body)
        former = before.effective_status if before else "draft"
        new_status = body.get("status", former)
        frozen = before and before.converted
        fixed = Quote.FROZEN if frozen else () if "draft" in {former, new_status} else Quote.LOCKED_FIELDS
        body = self.strip_fixed(fixed, refusal, body, before)
        quote.assign(body, "issue_date", "valid_until", "title", "notes", "terms", "external_id")
        self.set_header(refusal, quote, body, before)
        line_refusal = Refused() if fixed else refusal
        bodies = self.merge_lines(line_refusal, body, before)
        self.build_lines(line_refusal, quote, bodies, before)
        quote.lock(refusal, before, *(["lines"] if fixed else []))
        if fixed and None in bodies:
            refusal.note("lines", "locked")
        quote.valid_until = quote.valid_until or day_after(quote.issue_date, 30)
        if quote.valid_until < quote.issue_date and refusal.readable("issue_date"):
            refusal.note("valid_until")
        if new_status != former and (frozen or new_status not in QUOTE_TRANSITIONS[former]):
            refusal.note("status", "locked" if frozen else "invalid_transition")
            new_status = former
        if new_status in {"sent", "accepted"} and former == "draft" and not quote.lines and refusal.readable("lines"):
            refusal.note("status")
        days_known = refusal.readable("valid_until") and refusal.readable("issue_date")
        if new_status == "sent" != former and quote.valid_until < self.today and days_known:
            refusal.note("status", "invalid_transition")
        refusal.refuse()
        quote.number = quote.number or self.number("Q", quote.issue_date)
        quote.status = "sent" if new_status == "expired" else new_status
        quote.moments = {} if new_status == "draft" else dict(quote.moments)
        if new_status != former and new_status in {"sent", "accepted", "declined"}:
            quote.moments[f"{new_status}_at"] = self.now
        return self.save(self.quotes, before, quote)

    def delete_quote(self, quote):
        if quote.status == "accepted":
            raise Refused("status", "locked")
        if quote.invoices:
            raise Refused("invoices", "in_use")
        self.quotes.remove(quote)

    # invoices

    def write_invoice(self, body, before=None):
        refusal, invoice = Refused(), copy(before) or Invoice(agency=self)
        body, invoice.moments, invoice.left_out = refusal.read(body), dict(invoice.moments), {}
        former, new_status = invoice.status, body.get("status", invoice.status)
        if before:
            self.require_same_quote(refusal, body, before)
        elif "quote_id" in body:
            invoice.quote = quote = self.quote_to_convert(refusal, body, "invoice")
            if body.get("currency", quote.currency) != quote.currency:
                refusal.note("currency")
            invoice.client, invoice.currency, invoice.subject = quote.client, quote.currency, quote.title
            invoice.notes, invoice.terms = quote.notes or invoice.notes, quote.terms or invoice.terms
            invoice.project = None if refusal.errors else quote.converted_project or quote.project
        body = self.strip_fixed(() if former == "draft" else Invoice.LOCKED_FIELDS, refusal, body, before)
        invoice.assign(body, "issue_date", "due_date", "subject", "notes", "terms")
        self.set_header(refusal, invoice, body, before)
        if former == "draft":
            self.build_draft_lines(refusal, invoice, body, before)
        else:
            self.lock_lines(refusal, body, before)
        if new_status != former and new_status not in TRANSITIONS[former]:
            refusal.note("status", "invalid_transition")
        elif new_status != former:
            self.change_status(refusal, invoice, new_status)
        takes = invoice.status in OPEN or invoice.status == former == "written_off"
        payment = self.validate_payment(
            refusal, invoice, body, takes, pays=new_status == "paid" and "paid" in TRANSITIONS[former]
        )
        issued = invoice.status != "draft"
        too_early = (invoice.issue_date or "0") > (invoice.due_date or "9") and refusal.readable("issue_date")
        if (issued and invoice.due_date is None) or too_early:
            refusal.note("due_date")
        refund = self.validate_refund(refusal, invoice, body)
        refusal.refuse()
        if issued and invoice.number is None:
            invoice.number = self.number("INV", invoice.issue_date)
        self.release(before.lines if before and (former == "draft" or invoice.status == "void") else ())
        invoice = self.save(self.invoices, before, invoice)
        self.attach(invoice.lines if former == "draft" else ())
        self.record_payment(invoice, payment)
        self.record_payment(invoice, refund)
        return invoice

    def build_draft_lines(self, refusal, invoice, body, before):
        """The lines of a draft: those sent or else kept, those of its quote, one for each group of unbilled work."""
        bodies = self.merge_lines(refusal, body, before)
        if invoice.quote and not before:
            bodies += [line | {"id": None} for line in request_bodies(invoice.quote.lines)]
        if "unbilled_work" in body:
            bodies += self.gather_unbilled(
                refusal, invoice, body["unbilled_work"], bodies, before.lines if before else []
            )
        self.build_lines(refusal, invoice, bodies, before)

    def lock_lines(self, refusal, body, before):
        """Lines can be sent again as they are, by their ids or by all that they say."""
        old, new = request_bodies(before.lines), self.merge_lines(Refused(), body, before)
        names = old[0].keys() - {"id", "amount"}
        if [[line and line.get(name) for name in names] for line in new] != [
            [line[name] for name in names] for line in old
        ]:
            refusal.note("lines", "locked")
        if "unbilled_work" in body:
            refusal.note("unbilled_work", "locked")

    def gather_unbilled(self, refusal, invoice, unbilled_work, bodies, formers):
        """Lines for all work that is the client's, billable, on no line, and asked for; in the order of days."""
        if not unbilled_work:
            refusal.note("unbilled_work")
            return []
        found = []
        for name, kind in (("time", "time"), ("expenses", "expense")):
            criteria, member = unbilled_work.get(name), BILLS[kind]
            if criteria is None:
                continue
            if criteria.get("to", "9") < criteria.get("from", "0"):
                refusal.note(f"unbilled_work.{name}.to")
            own_projects = [project.id for project in self.projects if project.client is invoice.client]
            for place, project in enumerate(criteria.get("project_ids", [])):
                if project not in own_projects:
                    refusal.note(f"unbilled_work.{name}.project_ids.{place}")
            named = {work_id for line in bodies if line for work_id in line.get(member, ())}
            groups = self.group_unbilled(
                invoice, kind, criteria, lambda work, named=named: work.id not in named, formers
            )
            found += [{"description": label, member: ids} for label, ids in groups]
        if not found and not refusal.errors:
            refusal.note("unbilled_work", "nothing_to_bill")
        return found

    def group_unbilled(self, invoice, kind, criteria, is_left, formers):
        """What each line says and bills: work of one project; hours that a fee covers if their project is named."""
        groups, wanted = {}, criteria.get("project_ids", [])
        works = self.entries if kind == "time" else self.expenses
        for work in sorted(works, key=lambda work: (work.date, work.id)):
            mine = (work.client, work.currency, work.billable) == (invoice.client, invoice.currency, True)
            free = is_left(work) and (work.invoice_line is None or work.invoice_line in formers)
            covered = kind == "time" and work.is_covered
            meant = not wanted or (work.project and work.project.id in wanted)
            if mine and free and meant and criteria.get("from", "0") <= work.date <= criteria.get("to", "9"):
                if (covered and not wanted) or work.billed_amount is None:
                    reason = "covered" if covered and not wanted else "unpriced"
                    count, minutes = invoice.left_out.get(reason, (0, 0))
                    invoice.left_out[reason] = count + 1, minutes + work.duration_minutes
                    continue
                key, label = group_key(work, criteria.get("group_by", "project"))
                groups.setdefault((key, work.project), (label, []))[1].append(work.id)
        keys = [key for key, _ in groups]
        for (key, project), (label, ids) in groups.items():
            which = f", {project.name}" if project and keys.count(key) > 1 else ""
            yield label and label + which, ids

    def change_status(self, refusal, invoice, new_status):
        """Issue a draft, or end an invoice; being paid is what a payment does."""
        if new_status == "sent":
            if all(map(refusal.readable, CONTENTS)) and (not invoice.lines or invoice.total < 0):
                refusal.note("status")
            invoice.issue_date = invoice.issue_date or self.today
            invoice.due_date = invoice.due_date or day_after(invoice.issue_date, invoice.client.payment_terms_days)
            invoice.billed_to, invoice.moments["sent_at"] = invoice.client.name, self.now
            invoice.status = "sent" if invoice.total else "paid"
            if invoice.status == "paid":
                invoice.moments["paid_at"] = self.now
        elif new_status != "paid":
            invoice.status = new_status
            invoice.moments["voided_at" if new_status == "void" else "written_off_at"] = self.now

    def delete_invoice(self, invoice):
        if invoice.status != "draft":
            raise Refused("status", "locked")
        self.release(invoice.lines)
        self.invoices.remove(invoice)

    # payments

    def validate_payment(self, refusal, invoice, body, takes, *, pays):
        """A payment: of all that is due, unless it says less. The same one again, by its reference, adds nothing."""
        request = body.get("record_payment")
        if request is None and not pays:
            return None
        reference = (request or {}).get("reference")
        is_same = self.is_recorded(invoice, request or {}, 1)
        if is_same is not None:
            if pays or not is_same:
                refusal.note("status" if is_same else "record_payment.reference")
            return None
        is_known = all(map(refusal.readable, ("status", *CONTENTS)))  # what is due follows from them
        if not takes and is_known:
            refusal.note("record_payment")
            return None
        payment = Payment(invoice=invoice, amount=invoice.balance_due, paid_date=self.today, reference=reference)
        payment.assign(request or {}, "paid_date")
        payment.assign(request or {}, "amount", read=lambda amount: in_units(amount, invoice.currency))
        if payment.paid_date > self.today:
            refusal.note("record_payment.paid_date")
        if is_known:
            self.validate_amount(refusal, payment, "status" if request is None else "record_payment.amount", pays=pays)
        return payment

    @staticmethod
    def is_recorded(invoice, request, sign):
        """Whether a payment with the reference is equal to a new one, or None if there is none."""
        for earlier in invoice.payments:
            if request.get("reference") and request["reference"] == earlier.reference:
                amount, recorded = request.get("amount"), sign * earlier.amount
                is_same = recorded > 0 and (not amount or in_units(amount, invoice.currency) == recorded)
                return is_same and request.get("paid_date", earlier.paid_date) == earlier.paid_date
        return None

    def validate_refund(self, refusal, invoice, body):
        """A refund: of all that was paid and then credited, unless it says less, from the day on which it was paid."""
        request, due = body.get("record_refund"), invoice.refund_due
        is_same = None if request is None else self.is_recorded(invoice, request, -1)
        if request is None or is_same is not None:
            if is_same is False:
                refusal.note("record_refund.reference")
            return None
        refund = Payment(invoice=invoice, amount=due, paid_date=self.today, reference=request.get("reference"))
        refund.assign(request, "paid_date")
        refund.assign(request, "amount", read=lambda amount: in_units(amount, invoice.currency))
        if refund.paid_date > self.today:
            refusal.note("record_refund.paid_date")
        if not due:
            refusal.note("record_refund")
        elif refund.amount.denominator > 1 or not 0 < refund.amount <= due:
            refusal.note("record_refund.amount")
        else:
            refund.amount = -refund.amount
            if is_overdrawn([*invoice.payments, refund]):
                refusal.note("record_refund.paid_date")
        return refund

    @staticmethod
    def validate_amount(refusal, payment, at, *, pays):
        if payment.amount.denominator > 1:
            refusal.note("record_payment.amount")
        elif not 0 < payment.amount <= payment.invoice.balance_due:
            refusal.note(at)
        elif pays and payment.amount < payment.invoice.balance_due:
            refusal.note("status")

    def record_payment(self, invoice, payment):
        if payment:
            payment.invoice = invoice
            invoice.payments.append(payment)
            self.recompute_balance(invoice, by_payment=payment.amount > 0)

    def remove_payment(self, payment):
        if is_overdrawn([other for other in payment.invoice.payments if other is not payment]):
            raise Refused("payments", "in_use")
        payment.invoice.payments.remove(payment)
        self.recompute_balance(payment.invoice, by_payment=False)

    def recompute_balance(self, invoice, *, by_payment):
        """Payments less refunds count first, credit notes then, as far as something is due; the status follows."""
        due = invoice.total - invoice.amount_paid
        for note in invoice.credit_notes:
            note.applied_amount = min(note.total, due)
            due -= note.applied_amount
        if by_payment or invoice.status != "written_off":
            invoice.status = "paid" if due == 0 else "sent" if due == invoice.total else "partially_paid"
            invoice.moments.pop("written_off_at", None)
        if invoice.status == "paid":
            invoice.moments.setdefault("paid_at", self.now)
        else:
            invoice.moments.pop("paid_at", None)

    # credit notes

    def credit(self, body, invoice):
        if invoice.status not in ISSUED:
            raise Refused("invoice", "locked")
        refusal, left, wishes = Refused(), invoice.uncredited(), body.get("lines")
        note = CreditNote(
            invoice=invoice, issue_date=max(self.today, invoice.issue_date), reason="correction", lines=[], shares={}
        )
        note.assign(body, "issue_date", "reason")
        if note.issue_date < invoice.issue_date:
            refusal.note("issue_date")
        if gross(left) == 0:
            refusal.note("amount")
            refusal.refuse()
        if wishes and "amount" in body:
            refusal.note("amount")
        if not wishes and "amount" not in body and not invoice.credit_notes:
            wishes = [{"invoice_line_id": line.id} for line in invoice.lines if line.quantity]
        if wishes:
            self.credit_lines(refusal, note, wishes, left)
        else:
            amount = in_units(body["amount"], invoice.currency) if "amount" in body else Fraction(gross(left))
            self.credit_amount(refusal, note, amount, left)
        refusal.refuse()
        leaves_some = note.total == gross(left) and drop_zeros(note.shares) != drop_zeros(left)
        if not 0 < note.total <= gross(left) or leaves_some:
            raise Refused("lines" if wishes else "amount")
        note.number = self.number("CN", note.issue_date)
        invoice.credit_notes.append(note)
        self.release(line for line in invoice.lines if note.total == gross(left) or line.is_credited)
        self.recompute_balance(invoice, by_payment=False)
        return note

    @staticmethod
    def credit_amount(refusal, note, amount, left_by_rate):
        """A gross amount takes a part at each rate, in proportion, and never more net or tax than is left there."""
        if amount.denominator > 1 or amount > gross(left_by_rate):
            refusal.note("amount")
            return
        note.shares = dict(left_by_rate)
        if amount < gross(left_by_rate):
            for rate, part in zip(
                left_by_rate, allocate(int(amount), [sum(left) for left in left_by_rate.values()]), strict=True
            ):
                net = clamp(half_up(part / (1 + rate / 100)), left_by_rate[rate][0])
                tax = clamp(part - net, left_by_rate[rate][1])
                note.shares[rate] = (part - tax, tax)
        note.shares = drop_zeros(note.shares)
        for rate, (net, _) in note.shares.items():
            note.lines.append(Credited(note=note, quantity=Fraction(-1 if net < 0 else 1), tax_rate=rate, amount=net))

    def credit_lines(self, refusal, note, wishes, left_by_rate):
        """Lines take back what they say at their rate; with all the net that is left there goes all the tax."""
        taxable = {}
        for place, credit_line in enumerate(wishes):
            credit = self.credit_part if "invoice_line_id" in credit_line else self.credit_anything
            line = credit(refusal, f"lines.{place}.", note, credit_line)
            if line:
                note.lines.append(line)
                taxable[line.tax_rate] = taxable.get(line.tax_rate, 0) + line.amount
        for rate, net in sorted(taxable.items()):
            left = left_by_rate[rate]
            if net != clamp(net, left[0]):
                refusal.note("lines")
            note.shares[rate] = (net, left[1] if net == left[0] else clamp(half_up(net * rate / 100), left[1]))

    @staticmethod
    def credit_part(refusal, at, note, credit_line):
        """A part of an invoice's line, by quantity; the last one takes exactly what is left of the line."""
        line = next((line for line in note.invoice.lines if line.id == credit_line["invoice_line_id"]), None)
        if line is None:
            refusal.note(f"{at}invoice_line_id")
            return None
        former = [
            part for source in (*note.invoice.credit_notes, note) for part in source.lines if part.invoice_line is line
        ]
        left = line.quantity - sum(part.quantity for part in former)
        amount = line.amount - sum(part.amount for part in former)
        quantity = Fraction(credit_line.get("quantity", left))
        if quantity == 0 or quantity != clamp(quantity, left):
            refusal.note(f"{at}quantity")
            return None
        if quantity != left:
            amount = clamp(half_up(line.amount * quantity / line.quantity), amount)
        return Credited(note=note, invoice_line=line, quantity=quantity, tax_rate=line.tax_rate, amount=amount)

    @staticmethod
    def credit_anything(refusal, at, note, credit_line):
        """Anything else, at one of the invoice's rates: the only one, unless it says which."""
        rates = list(note.invoice.shares)
        rate = Fraction(credit_line["tax_rate"]) if "tax_rate" in credit_line else rates[0] if len(rates) == 1 else None
        if rate not in rates:
            refusal.note(f"{at}tax_rate")
        for member in ("description", "unit_price"):
            if member not in credit_line:
                refusal.note(at + member)
        quantity = Fraction(credit_line.get("quantity", 1))
        amount = half_up(in_units(quantity * Fraction(credit_line.get("unit_price", 0)), note.currency))
        return Credited(note=note, quantity=quantity, tax_rate=rate, amount=amount) if rate in rates else None


def drop_zeros(shares):
    return {rate: share for rate, share in shares.items() if share != (0, 0)}


def request_bodies(lines):
    return [line.request_body() for line in lines]


def group_key(work, by):
    """By what unbilled work is put together, and what its line says."""
    project = work.project.name if work.project else "Work without a project"
    return {
        "entry": lambda: (work.id, work.description),
        "project": lambda: (work.project, project if isinstance(work, Entry) else None),
        "category": lambda: (work.category, work.category),
        "task": lambda: (None, "Other work"),
        "user": lambda: (None, "Ana Admin"),
    }[by]()


def expected_rate(record):
    units = None if record.hourly_rate is None else in_units(record.hourly_rate, record.currency)
    return {"hourly_rate": money(units, record.currency)}


def work_label(work):
    return "Work" if isinstance(work, Entry) else "Expenses"


def default_description(line):
    """What a line says of work when nobody said it: when it was done."""
    days, what = sorted(work.date for work in line.work), work_label(line.work[0])
    return f"{what} on {days[0]}" if days[0] == days[-1] else f"{what} from {days[0]} to {days[-1]}"
