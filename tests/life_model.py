"""The life of money, told a second time: what quotes, invoices, payments and credit notes come to, in plain Python.

An Agency takes the body of each request as it was sent, and either changes what it has or raises Refused with every
faulty field. Amounts are whole minor units; quantities, prices and rates are fractions; days are texts. What a record
has `told` is what the API answers of it. Records refer to each other: ids are needed only in bodies and answers.
"""

from copy import copy
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from math import floor

DIGITS = {"EUR": 2, "JPY": 0, "KWD": 3}
OPEN = ("sent", "partially_paid")
ISSUED = (*OPEN, "paid", "written_off")
MOVES = {
    "draft": ("sent",),
    "sent": ("paid", "void", "written_off"),
    "partially_paid": ("paid", "written_off"),
    "written_off": ("paid",),
    "paid": (),
    "void": (),
}
QUOTE_MOVES = {
    "draft": ("sent", "accepted", "declined", "cancelled"),
    "sent": ("accepted", "declined", "cancelled"),
    "accepted": ("draft",),
    "declined": ("draft",),
    "expired": ("draft",),
    "cancelled": ("draft",),
}
BILLS = {"time": "time_entry_ids", "expense": "expense_ids"}
COVERED = ("fixed_fee", "retainer")
UNREADABLE, NO_ID = "\0", 0


class Refused(Exception):
    """The faults of a request: each faulty field with its codes. That of all is the one that they share.

    Of what could not be read nothing more is said, and nothing is concluded from it.
    """

    def __init__(self, name=None, code="validation_failed"):
        super().__init__()
        self.errors, self.unread = {name: {code}} if name else {}, set()

    def note(self, name, code="validation_failed"):
        if name not in self.unread:
            self.errors.setdefault(name, set()).add(code)

    def readable(self, name):
        return not any(its == name or its.startswith(f"{name}.") for its in self.unread)

    def read(self, body, at=""):
        """A body as far as it can be read; the rest is noted."""
        found = {}
        for name, its in body.items():
            if its == UNREADABLE or (name == "lines" and its is None):
                self.note(at + name)
                self.unread.add(at + name)
            elif isinstance(its, list) and UNREADABLE in its:
                faulty = f"{at}{name}.{its.index(UNREADABLE)}"
                self.note(faulty)
                self.unread.add(faulty)
                found[name] = [NO_ID if own == UNREADABLE else own for own in its]
            else:
                found[name] = its
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


# Arithmetic


def half_up(exact):
    """The nearest whole number; halves go away from zero."""
    nearest = floor(abs(exact) + Fraction(1, 2))
    return nearest if exact >= 0 else -nearest


def in_units(amount, currency):
    return Fraction(amount) * 10 ** DIGITS[currency]


def money(units, currency):
    return None if units is None else f"{Decimal(int(units)).scaleb(-DIGITS[currency]):f}"


def plain(value, digits=0):
    """A decimal without trailing zeros, but for so many digits."""
    head, _, tail = f"{Decimal(value.numerator) / value.denominator:.4f}".partition(".")
    tail = tail.rstrip("0").ljust(digits, "0")
    return f"{head}.{tail}" if tail else head


def between(units, bound):
    """What is nearest to some units from 0 to a bound, which may be negative."""
    return max(min(0, bound), min(units, max(0, bound)))


def spread(units, weights):
    """Units in proportion to weights; what floors leave over goes to the largest remainders, the first of equals."""
    exact = [Fraction(units * weight, sum(weights)) for weight in weights]
    parts = [floor(part) for part in exact]
    for place in sorted(range(len(parts)), key=lambda it: parts[it] - exact[it])[: units - sum(parts)]:
        parts[place] += 1
    return parts


def day_after(day, days):
    return (date.fromisoformat(day) + timedelta(days=days)).isoformat()


def days_between(first, last):
    return (date.fromisoformat(last) - date.fromisoformat(first)).days


def gross(shares):
    return sum(taxable + tax for taxable, tax in shares.values())


# What there is


class Record:
    """Some members are answered as they are SAID, some as AMOUNTS of its currency, as DECIMALS, or as IDS of others.

    The record itself holds them, but for those that are DERIVED from other records or from the day.
    """

    SAID = AMOUNTS = DECIMALS = IDS = DERIVED = ()
    id = client = project = held = None

    def __init__(self, **values):
        vars(self).update(values)

    def __repr__(self):
        return f"{type(self).__name__} {self.id}" + str(getattr(self, "DBG", ""))

    def told(self):
        return (
            {name: getattr(self, name) for name in ("id", *self.SAID)}
            | {name: money(getattr(self, name), self.currency) for name in self.AMOUNTS}
            | {name: plain(getattr(self, name)) for name in self.DECIMALS}
            | {f"{name}_id": getattr(self, name) and getattr(self, name).id for name in self.IDS}
        )

    def stamp(self, now):
        """Note when the record was changed last: what is derived from others is no change of it."""
        held = {name: its for name, its in self.told().items() if name not in self.DERIVED}
        held["status"] = getattr(self, "status", None)  # a quote expires without a change
        if held != self.held:
            self.held, self.updated_at = held, now

    def lock(self, faults, before, *names):
        """What was billed, issued or agreed does not change."""
        for name in names:
            old, new = getattr(before, name), getattr(self, name)
            if old != new and (name != "lines" or [it.terms for it in old] != [it.terms for it in new]):
                faults.note(f"{name}_id" if name in self.IDS else name, "locked")
                setattr(self, name, old)

    def hit(self, body, *names, read=lambda value: value):
        """Let members be as a body says, if it says them."""
        for name in names:
            if name in body:
                setattr(self, name, read(body[name]))


class Client(Record):
    SAID, DECIMALS = ("name", "currency", "payment_terms_days"), ("tax_rate",)
    currency, payment_terms_days, hourly_rate, tax_rate = "EUR", 30, None, Fraction(0)


class Project(Record):
    SAID = ("name", "currency", "billing_type", "tracked_minutes", "billable_minutes", "unbilled_minutes")
    AMOUNTS = ("budget_amount", "billable_amount", "unbilled_amount", "invoiced_amount", "expense_amount")
    IDS = ("client", "quote")
    DERIVED = (*SAID[3:], *AMOUNTS[1:])
    quote = name = hourly_rate = budget = None
    billing_type = "time_and_materials"

    entries = property(lambda self: [it for it in self.agency.entries if it.project is self])
    billable = property(lambda self: [it for it in self.entries if it.billable])
    is_covered = property(lambda self: self.billing_type in COVERED)
    unbilled = property(lambda self: [it for it in self.billable if not (it.invoice_line or self.is_covered)])
    tracked_minutes = property(lambda self: sum(it.duration_minutes for it in self.entries))
    billable_minutes = property(lambda self: sum(it.duration_minutes for it in self.billable))
    unbilled_minutes = property(lambda self: sum(it.duration_minutes for it in self.unbilled))
    billable_amount = property(lambda self: self.worth(self.entries))
    unbilled_amount = property(lambda self: self.worth(self.unbilled))
    budget_amount = property(lambda self: self.budget and in_units(self.budget, self.currency))

    def told(self):
        return super().told() | told_rate(self)

    def worth(self, records):
        """What the amounts in the project's currency add up to."""
        return sum(it.amount for it in records if it.currency == self.currency)

    @property
    def invoiced_amount(self):
        """The net of its lines on what was issued and is not void, less credits; others are the invoice's project's."""
        lines = [line for it in self.agency.invoices if it.status in ISSUED for line in it.lines]
        taken = [note.by_project.get(self, 0) for note in self.agency.credit_notes if note.currency == self.currency]
        return self.worth(line for line in lines if (line.project or line.document.project) is self) - sum(taken)

    @property
    def expense_amount(self):
        its = [it for it in self.agency.expenses if it.project is self and it.currency == self.currency]
        return sum(it.net_amount for it in its)


class Work(Record):
    """Time or an expense: `worth` is what a client is billed for it, `invoice_line` the one line that bills it."""

    SAID = ("date", "description", "currency", "billable", "billing_status")
    IDS = ("client", "project", "invoice", "invoice_line")
    currency = billable = description = invoice_line = hourly_rate = None

    invoice = property(lambda self: self.invoice_line and self.invoice_line.document)

    @property
    def billing_status(self):
        return "billed" if self.invoice_line else "unbilled" if self.billable else "non_billable"


class Entry(Work):
    SAID, AMOUNTS = (*Work.SAID, "duration_minutes", "is_locked"), ("amount",)
    FIXED = ("client", "project", "date", "billable", "duration_minutes", "hourly_rate")
    rate_is_sent = False

    is_locked = property(lambda self: self.invoice_line is not None)
    worth = property(lambda self: self.amount)

    @property
    def amount(self):
        exact = Fraction(self.duration_minutes, 60) * (self.hourly_rate or 0)
        return half_up(in_units(exact, self.currency)) if self.billable else 0

    def told(self):
        return super().told() | told_rate(self)


class Expense(Work):
    SAID = (*Work.SAID, "category", "amount_includes_tax")
    AMOUNTS, DECIMALS = ("amount", "net_amount", "billable_amount"), ("tax_rate", "markup_percent")
    FIXED = ("client", "project", "date", "billable", "description", "amount", "tax_rate", "markup_percent")
    FIXED = (*FIXED, "amount_includes_tax", "category")
    tax_rate, markup_percent, amount_includes_tax, category, amount = Fraction(0), Fraction(0), True, "other", 0

    worth = property(lambda self: self.billable_amount)

    @property
    def net_amount(self):
        return half_up(self.amount / (1 + self.tax_rate / 100)) if self.amount_includes_tax else self.amount

    @property
    def billable_amount(self):
        return half_up(self.net_amount * (1 + self.markup_percent / 100)) if self.billable else 0


class Line(Record):
    SAID, AMOUNTS, IDS = ("description", "unit"), ("amount",), ("project",)
    DECIMALS = ("quantity", "discount_percent", "tax_rate")
    TERMS = (*SAID, *IDS, *DECIMALS, "unit_price")
    ALSO = {"Quote": ("created_at",), "Invoice": ("created_at", "kind")}
    quantity, unit_price, discount_percent, kind, amount = Fraction(1), Fraction(0), Fraction(0), "item", 0
    description = unit = created_at = None

    currency = property(lambda self: self.document.currency)
    terms = property(lambda self: [getattr(self, name) for name in self.TERMS])

    def said(self):
        """The line as a body says it."""
        price = {"unit_price": plain(self.unit_price, DIGITS[self.currency])}
        its = {member: sorted(it.id for it in self.work if self.kind == kind) for kind, member in BILLS.items()}
        return super().told() | price | (its if isinstance(self.document, Invoice) else {})

    def told(self):
        return self.said() | {name: getattr(self, name) for name in self.ALSO[type(self.document).__name__]}


class Taxed(Record):
    """What comes to a share at each tax rate: a taxable amount and the tax on it."""

    SAID, AMOUNTS = ("number", "issue_date", "currency"), ("subtotal", "tax_total", "total")
    number = issue_date = None

    subtotal = property(lambda self: sum(taxable for taxable, _ in self.shares.values()))
    tax_total = property(lambda self: sum(tax for _, tax in self.shares.values()))
    total = property(lambda self: gross(self.shares))

    def told(self):
        names = ("tax_rate", "taxable_amount", "tax_amount")
        shares = [
            (plain(rate), *(money(units, self.currency) for units in share)) for rate, share in self.shares.items()
        ]
        breakdown = [dict(zip(names, share, strict=True)) for share in shares]
        return super().told() | {"tax_breakdown": breakdown, "lines": [line.told() for line in self.lines]}


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

    def told(self):
        return super().told() | {name: self.moments.get(name) for name in self.MOMENTS}


class Quote(Document):
    SAID = (*Taxed.SAID, "title", "valid_until", "status", "notes", "terms", "external_id")
    IDS = (*Document.IDS, "invoice", "converted_project")
    MOMENTS = ("sent_at", "accepted_at", "declined_at")
    FIXED = ("client_id", "currency", "issue_date")
    FROZEN = (*FIXED, "project_id", "title", "valid_until", "notes", "terms")
    title = valid_until = converted_project = notes = terms = external_id = None

    invoices = property(lambda self: [it for it in self.agency.invoices if it.quote is self])
    invoice = property(lambda self: next((it for it in self.invoices if it.status != "void"), None))
    converted = property(lambda self: self.invoice or self.converted_project)

    @property
    def standing(self):
        return "expired" if self.status == "sent" and self.valid_until < self.agency.today else self.status

    def told(self):
        return super().told() | {"status": self.standing}


class Invoice(Document):
    SAID = (*Taxed.SAID, "status", "due_date", "subject", "notes", "terms", "is_overdue", "days_overdue")
    AMOUNTS = (*Taxed.AMOUNTS, "amount_paid", "amount_credited", "balance_due", "refund_due")
    DERIVED = ("is_overdue", "days_overdue")
    IDS = (*Document.IDS, "quote")
    MOMENTS = ("sent_at", "paid_at", "voided_at", "written_off_at")
    FIXED = ("client_id", "project_id", "issue_date", "subject", "currency")
    quote = due_date = subject = notes = terms = billed_to = None

    def __init__(self, **values):
        super().__init__(payments=[], credit_notes=[], **values)

    amount_paid = property(lambda self: sum(it.amount for it in self.payments))
    amount_credited = property(lambda self: sum(it.total for it in self.credit_notes))
    refund_due = property(lambda self: sum(it.refundable_amount for it in self.credit_notes))

    @property
    def balance_due(self):
        """What is still to be paid: a credit note lowers it as far as it is not to be refunded."""
        applied = sum(it.applied_amount for it in self.credit_notes)
        return 0 if self.status == "void" else self.total - self.amount_paid - applied

    @property
    def is_overdue(self):
        return self.status in OPEN and self.balance_due > 0 and self.due_date < self.agency.today

    @property
    def days_overdue(self):
        return days_between(self.due_date, self.agency.today) if self.is_overdue else 0

    def room(self):
        """What is not yet credited at each rate."""
        left = self.shares
        for share in (share for note in self.credit_notes for share in note.shares.items()):
            rate, (net, tax) = share
            left[rate] = (left[rate][0] - net, left[rate][1] - tax)
        return left

    def told(self):
        parts = {name: [it.told() for it in getattr(self, name)] for name in ("payments", "credit_notes")}
        return super().told() | parts | {"client_snapshot": self.billed_to and {"name": self.billed_to}}


class Payment(Record):
    SAID, AMOUNTS, IDS = ("paid_date", "reference", "currency"), ("amount",), ("invoice",)

    currency = property(lambda self: self.invoice.currency)


class Credited(Record):
    """A line of a credit note: part of an invoice's line, or anything else at one of its rates."""

    DECIMALS, AMOUNTS, IDS = ("quantity", "tax_rate"), ("amount",), ("invoice_line",)
    invoice_line = None

    currency = property(lambda self: self.note.currency)

    def told(self):
        its = super().told()
        del its["id"]
        return its


class CreditNote(Taxed):
    SAID, IDS = (*Taxed.SAID, "reason"), ("invoice", "client")
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
        parts = spread(rest, weights) if sum(weights) else [rest, *[0] * (len(weights) - 1)]
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
    payments = property(lambda self: [payment for it in self.invoices for payment in it.payments])
    credit_notes = property(lambda self: [note for it in self.invoices for note in it.credit_notes])

    def number(self, prefix, day):
        """The next of the series of a year."""
        series = f"{prefix}-{day[:4]}"
        self.last_numbers[series] = self.last_numbers.get(series, 0) + 1
        return f"{series}-{self.last_numbers[series]:04}"

    def named(self, faults, body, member, former=None, at=""):
        """The record that a member of the body names; the former, if it does not say."""
        if body.get(member) is None:
            return None if member in body else former
        records = {"client_id": self.clients, "project_id": self.projects, "quote_id": self.quotes}[member]
        found = next((it for it in records if it.id == body[member]), None)
        if found is None:
            faults.note(at + member)
        return found

    @staticmethod
    def keep(records, before, after):
        """What was judged takes place."""
        if before is None:
            records.append(after)
            return after
        vars(before).update(vars(after))
        for line in getattr(before, "lines", ()):
            line.document = before
        return before

    # clients and projects

    def write_client(self, body, before=None):
        faults, it = Refused(), copy(before) or Client()
        it.hit(body, "name", "currency", "payment_terms_days")
        it.hit(body, "tax_rate", "hourly_rate", read=Fraction)
        own = [project for project in self.projects if project.client is before]
        if before and it.currency != before.currency:
            issued = any(invoice.client is before and invoice.number for invoice in self.invoices)
            if issued or any(in_units(project.budget or 0, it.currency).denominator > 1 for project in own):
                faults.note("currency")
        faults.refuse()
        for project in own:
            project.currency = it.currency
        return self.keep(self.clients, before, it)

    def create_project(self, body):
        faults, it = Refused(), Project(agency=self)
        it.hit(body, "name", "billing_type")
        it.hit(body, "hourly_rate", read=Fraction)
        it.client = self.named(faults, body, "client_id")
        it.quote = quote = self.agreed(faults, body, "converted_project")
        faults.refuse()
        if quote:
            it.client, it.name, quote.converted_project = quote.client, it.name or quote.title or quote.number, it
            if quote.currency == it.client.currency and quote.subtotal > 0:
                it.budget = Fraction(quote.subtotal, 10 ** DIGITS[quote.currency])
        it.currency = it.client.currency
        return self.keep(self.projects, None, it)

    def change_project(self, body, before):
        faults, it = Refused(), copy(before)
        self.only_said_again(faults, body, before)
        it.hit(body, "name", "billing_type")
        it.hit(body, "hourly_rate", read=Fraction)
        faults.refuse()
        return self.keep(self.projects, before, it)

    @staticmethod
    def only_said_again(faults, body, before):
        """The quote that a record was made from stays."""
        if body.get("quote_id", before.quote and before.quote.id) != (before.quote and before.quote.id):
            faults.note("quote_id")

    def agreed(self, faults, body, becomes):
        """The accepted quote that a project or invoice is made from; it becomes one of each that is not void."""
        quote = self.named(faults, body, "quote_id")
        if quote:
            client = body.get("client_id", quote.client.id)
            if quote.status != "accepted" or getattr(quote, becomes) or client != quote.client.id:
                faults.note("quote_id")
        return quote

    # time and expenses

    def relate(self, faults, it, body):
        """The client follows from the project, and must not contradict it."""
        client = self.named(faults, body, "client_id", it.client)
        it.project = self.named(faults, body, "project_id", it.project)
        it.client = client if body.get("client_id") or not it.project else it.project.client
        if it.project and it.client is not it.project.client:
            faults.note("project_id")

    def write_entry(self, body, before=None):
        faults, it = Refused(), copy(before) or Entry(date=self.today, billable=True)
        body = faults.read(body)
        self.relate(faults, it, body)
        it.hit(body, "date", "billable", "description", "duration_minutes", "hourly_rate")
        if body.get("hourly_rate") is not None:
            it.hourly_rate = Fraction(body["hourly_rate"])
            it.rate_is_sent = before is None or before.rate_is_sent or it.hourly_rate != before.hourly_rate
        elif "hourly_rate" in body:
            it.rate_is_sent = False
        moved = before is None or (it.client, it.project) != (before.client, before.project)
        if before is None or it.client is not before.client or (moved and not it.rate_is_sent):
            it.currency = it.client.currency
        if not it.rate_is_sent and (moved or (it.hourly_rate is None and before.hourly_rate is not None)):
            rates = [around.hourly_rate for around in (it.project, it.client) if around]
            it.hourly_rate = next((rate for rate in rates if rate is not None), None)
        if it.rate_is_sent and "hourly_rate" not in body and it.currency != before.currency and not it.invoice_line:
            faults.note("hourly_rate")
        if before and before.invoice_line:
            it.lock(faults, before, *Entry.FIXED)
        faults.refuse()
        return self.keep(self.entries, before, it)

    def write_expense(self, body, before=None):
        faults, it = Refused(), copy(before) or Expense(date=self.today)
        body = faults.read(body)
        self.relate(faults, it, body)
        it.currency = it.currency or body.get("currency") or (it.client.currency if it.client else "EUR")
        it.billable = it.client is not None if it.billable is None else it.billable
        it.hit(body, "billable", "date", "description", "category", "amount_includes_tax")
        it.hit(body, "tax_rate", "markup_percent", read=Fraction)
        it.hit(body, "amount", read=lambda amount: in_units(amount, it.currency))
        if it.billable and it.client is None:
            faults.note("billable")
        if it.amount == 0:
            faults.note("amount")
        if before and before.invoice_line:
            it.lock(faults, before, *Expense.FIXED)
        if it.amount.denominator > 1:
            faults.note("amount")
        faults.refuse()
        return self.keep(self.expenses, before, it)

    def delete_work(self, it):
        if it.invoice_line:
            raise Refused("invoice_id", "locked")
        for line in [line for invoice in self.invoices for line in invoice.lines if it in line.work]:
            line.work.remove(it)
        (self.entries if isinstance(it, Entry) else self.expenses).remove(it)

    # quotes and invoices, as far as they are alike

    @staticmethod
    def without(fixed, faults, body, before):
        """A body without what is fixed; what was told can be sent back, and nothing else."""
        for name in fixed:
            if body.get(name, before.told()[name]) != before.told()[name]:
                faults.note(name, "locked")
        return {name: value for name, value in body.items() if name not in fixed}

    def settle(self, faults, it, body, before):
        """Client, project and currency of a document; its first line fixes the currency, and work on it the client."""
        it.client = self.named(faults, body, "client_id", it.client)
        it.project = self.named(faults, body, "project_id", it.project)
        it.currency = body.get("currency") or it.currency or it.client.currency
        if before and any(line.kind != "item" for line in before.lines) and it.client is not before.client:
            faults.note("client_id")
            it.client = before.client
        if before and before.lines and it.currency != before.currency:
            faults.note("currency")
        if it.project and it.project.client is not it.client:
            faults.note("project_id")

    @staticmethod
    def merged(faults, body, before):
        """What a body says of lines; of those that it names by their ids, onto what they say. None for an odd id."""
        left, found = {line.id: line for line in before.lines} if before else {}, []
        for place, its in enumerate(body.get("lines", said(left.values()))):
            former = left.pop(its.get("id"), None)
            if former is None and its.get("id") is not None:
                faults.note(f"lines.{place}.id")
                found.append(None)
            else:
                found.append(former.said() | its if former else its)
        return found

    def settle_lines(self, faults, it, bodies, before):
        """The lines of a draft: those that are named by their ids stay the same ones, others are new."""
        formers, seen = before.lines if before else [], set()
        it.lines = [
            self.line(faults, f"lines.{place}.", body, it, formers, seen)
            for place, body in enumerate(bodies)
            if body is not None
        ]

    def line(self, faults, at, body, document, formers, seen):
        """A line of a document; `formers` are its lines until now, `seen` is what others of the request bill."""
        new = Line(created_at=self.now, quantity=None, unit_price=None)
        before = next((former for former in formers if former.id == body.get("id")), new)
        line = Line(document=document, work=[], tax_rate=document.client.tax_rate)
        line.id, line.created_at = before.id, before.created_at
        line.hit(body, "description", "unit")
        line.hit(body, "quantity", "unit_price", "discount_percent", "tax_rate", read=Fraction)
        line.project = self.named(faults, body, "project_id", at=at)
        if line.project and line.project.client is not document.client:
            faults.note(f"{at}project_id")
        kinds = [kind for kind, member in BILLS.items() if body.get(member)]
        if kinds:
            line.kind = kinds[0]
            for kind in kinds[1:]:
                faults.note(at + BILLS[kind])
            if line.discount_percent:
                faults.note(f"{at}discount_percent")
            self.bill(faults, at + BILLS[line.kind], line, body[BILLS[line.kind]], formers, seen)
            is_known = line.work and faults.readable(at + BILLS[line.kind])
            for member in ("quantity", "unit_price") if is_known else ():
                if member in body and Fraction(body[member]) not in {getattr(its, member) for its in (line, before)}:
                    faults.note(at + member)
        else:
            for member in ("description", "unit_price"):
                if member not in body:
                    faults.note(at + member)
            exact = line.quantity * line.unit_price * (1 - line.discount_percent / 100)
            line.amount = half_up(in_units(exact, line.currency))
        return line

    def bill(self, faults, at, line, ids, formers, seen):
        """Let a line bill work: it says amount, quantity and price, and what else the body left out."""
        works = self.entries if line.kind == "time" else self.expenses
        for place, work_id in enumerate(ids):
            work = next((it for it in works if it.id == work_id), None)
            if work is None or work in seen:
                faults.note(f"{at}.{place}")
            elif work.invoice_line and work.invoice_line not in formers:
                faults.note(f"{at}.{place}", "already_billed")
            elif (work.client, work.currency, work.billable) == (line.document.client, line.currency, True):
                line.work.append(work)
            else:
                faults.note(f"{at}.{place}")
            seen.add(work)
        if not line.work:
            return
        line.amount = sum(it.worth for it in line.work)
        line.quantity = Fraction(-1 if line.amount < 0 else 1)
        if line.kind == "time":
            minutes = sum(it.duration_minutes for it in line.work)
            line.quantity, line.unit = Fraction(half_up(Fraction(minutes * 10_000, 60)), 10_000), line.unit or "hours"
        rates, said = {it.hourly_rate for it in line.work}, {it.description for it in line.work}
        common = rates.pop() if len(rates) == 1 else None
        each = line.amount / line.quantity / 10 ** DIGITS[line.currency] if common is None else common
        line.unit_price = Fraction(half_up(each * 10_000), 10_000)
        projects = {it.project for it in line.work}
        line.project = line.project or (projects.pop() if len(projects) == 1 else None)
        line.description = line.description or (said.pop() if len(said) == 1 else None) or words(line)

    def add_line(self, body, document):
        self.only_drafts(document)
        faults = Refused()
        line = self.line(faults, "", faults.read(body), document, (), set())
        faults.refuse()
        document.lines.append(line)
        self.attach([line])
        return line

    def delete_line(self, line):
        self.only_drafts(line.document)
        line.document.lines.remove(line)
        self.free([line])

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
    def free(lines):
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
        faults, it = Refused(), copy(before) or Quote(agency=self, issue_date=self.today)
        body = faults.read(body)
        former = before.standing if before else "draft"
        asked = body.get("status", former)
        frozen = before and before.converted
        fixed = Quote.FROZEN if frozen else () if "draft" in {former, asked} else Quote.FIXED
        body = self.without(fixed, faults, body, before)
        it.hit(body, "issue_date", "valid_until", "title", "notes", "terms", "external_id")
        self.settle(faults, it, body, before)
        of_lines = Refused() if fixed else faults
        bodies = self.merged(of_lines, body, before)
        self.settle_lines(of_lines, it, bodies, before)
        it.lock(faults, before, *(["lines"] if fixed else []))
        if fixed and None in bodies:
            faults.note("lines", "locked")
        it.valid_until = it.valid_until or day_after(it.issue_date, 30)
        if it.valid_until < it.issue_date and faults.readable("issue_date"):
            faults.note("valid_until")
        if asked != former and (frozen or asked not in QUOTE_MOVES[former]):
            faults.note("status", "locked" if frozen else "invalid_transition")
            asked = former
        if asked in {"sent", "accepted"} and former == "draft" and not it.lines and faults.readable("lines"):
            faults.note("status")
        faults.refuse()
        it.number = it.number or self.number("Q", it.issue_date)
        it.status = "sent" if asked == "expired" else asked
        it.moments = {} if asked == "draft" else dict(it.moments)
        if asked != former and asked in {"sent", "accepted", "declined"}:
            it.moments[f"{asked}_at"] = self.now
        return self.keep(self.quotes, before, it)

    def delete_quote(self, it):
        if it.status == "accepted":
            raise Refused("status", "locked")
        if it.invoices:
            raise Refused("invoices", "in_use")
        self.quotes.remove(it)

    # invoices

    def write_invoice(self, body, before=None):
        faults, it = Refused(), copy(before) or Invoice(agency=self)
        body, it.moments = faults.read(body), dict(it.moments)
        former, asked = it.status, body.get("status", it.status)
        if before:
            self.only_said_again(faults, body, before)
        elif "quote_id" in body:
            it.quote = quote = self.agreed(faults, body, "invoice")
            if body.get("currency", quote.currency) != quote.currency:
                faults.note("currency")
            it.client, it.currency, it.subject = quote.client, quote.currency, quote.title
            it.notes, it.terms = quote.notes, quote.terms
            it.project = None if faults.errors else quote.converted_project or quote.project
        body = self.without(() if former == "draft" else Invoice.FIXED, faults, body, before)
        it.hit(body, "issue_date", "due_date", "subject", "notes", "terms")
        self.settle(faults, it, body, before)
        if former == "draft":
            self.settle_draft(faults, it, body, before)
        else:
            self.lock_lines(faults, body, before)
        if asked != former and asked not in MOVES[former]:
            faults.note("status", "invalid_transition")
        elif asked != former:
            self.move(faults, it, asked)
        takes = it.status in OPEN or it.status == former == "written_off"
        payment = self.judge_payment(faults, it, body, takes, pays=asked == "paid" and "paid" in MOVES[former])
        issued = it.status != "draft"
        too_early = (it.issue_date or "0") > (it.due_date or "9") and faults.readable("issue_date")
        if (issued and it.due_date is None) or too_early:
            faults.note("due_date")
        faults.refuse()
        if issued and it.number is None:
            it.number = self.number("INV", it.issue_date)
        self.free(before.lines if before and (former == "draft" or it.status == "void") else ())
        it = self.keep(self.invoices, before, it)
        self.attach(it.lines if former == "draft" else ())
        self.record_payment(it, payment)
        return it

    def settle_draft(self, faults, it, body, before):
        """The lines of a draft: those sent or else kept, those of its quote, one for each group of unbilled work."""
        bodies = self.merged(faults, body, before)
        if it.quote and not before:
            bodies += [its | {"id": None} for its in said(it.quote.lines)]
        if "unbilled_work" in body:
            bodies += self.gather(faults, it, body["unbilled_work"], bodies, before.lines if before else [])
        self.settle_lines(faults, it, bodies, before)

    def lock_lines(self, faults, body, before):
        """Lines can be sent again as they are, by their ids or by all that they say."""
        old, new = said(before.lines), self.merged(Refused(), body, before)
        names = old[0].keys() - {"id", "amount"}
        if [[line and line.get(name) for name in names] for line in new] != [
            [its[name] for name in names] for its in old
        ]:
            faults.note("lines", "locked")
        if "unbilled_work" in body:
            faults.note("unbilled_work", "locked")

    def gather(self, faults, it, asked, bodies, formers):
        """Lines for all work that is the client's, billable, on no line, and asked for; in the order of days."""
        if not asked:
            faults.note("unbilled_work")
            return []
        found = []
        for name, kind in (("time", "time"), ("expenses", "expense")):
            wish, member = asked.get(name), BILLS[kind]
            if wish is None:
                continue
            if wish.get("to", "9") < wish.get("from", "0"):
                faults.note(f"unbilled_work.{name}.to")
            own = [project.id for project in self.projects if project.client is it.client]
            for place, project in enumerate(wish.get("project_ids", [])):
                if project not in own:
                    faults.note(f"unbilled_work.{name}.project_ids.{place}")
            named = {work_id for line in bodies if line for work_id in line.get(member, ())}
            groups = self.grouped(it, kind, wish, lambda work, named=named: work.id not in named, formers)
            found += [{"description": label, member: ids} for label, ids in groups]
        if not found and not faults.errors:
            faults.note("unbilled_work", "nothing_to_bill")
        return found

    def grouped(self, it, kind, wish, is_left, formers):
        """What each line says and bills: work of one project; hours that a fee covers if their project is named."""
        groups, wanted = {}, wish.get("project_ids", [])
        works = self.entries if kind == "time" else self.expenses
        for work in sorted(works, key=lambda work: (work.date, work.id)):
            mine = (work.client, work.currency, work.billable) == (it.client, it.currency, True)
            free = is_left(work) and (work.invoice_line is None or work.invoice_line in formers)
            covered = kind == "time" and work.project and work.project.is_covered
            meant = (work.project and work.project.id in wanted) if wanted else not covered
            if mine and free and meant and wish.get("from", "0") <= work.date <= wish.get("to", "9"):
                key, label = group(work, wish.get("group_by", "project"))
                groups.setdefault((key, work.project), (label, []))[1].append(work.id)
        keys = [key for key, _ in groups]
        for (key, project), (label, ids) in groups.items():
            which = f", {project.name}" if project and keys.count(key) > 1 else ""
            yield label and label + which, ids

    def move(self, faults, it, asked):
        """Issue a draft, or end an invoice; being paid is what a payment does."""
        if asked == "sent":
            if faults.readable("lines") and (not it.lines or it.total < 0):
                faults.note("status")
            it.issue_date = it.issue_date or self.today
            it.due_date = it.due_date or day_after(it.issue_date, it.client.payment_terms_days)
            it.billed_to, it.moments["sent_at"] = it.client.name, self.now
            it.status = "sent" if it.total else "paid"
            if it.status == "paid":
                it.moments["paid_at"] = self.now
        elif asked != "paid":
            it.status = asked
            it.moments["voided_at" if asked == "void" else "written_off_at"] = self.now

    def delete_invoice(self, it):
        if it.status != "draft":
            raise Refused("status", "locked")
        self.free(it.lines)
        self.invoices.remove(it)

    # payments

    def judge_payment(self, faults, it, body, takes, *, pays):
        """A payment: of all that is due, unless it says less. The same one again, by its reference, adds nothing."""
        said = body.get("record_payment")
        if said is None and not pays:
            return None
        reference = (said or {}).get("reference")
        earlier = next((payment for payment in it.payments if reference and payment.reference == reference), None)
        if earlier:
            day, amount = said.get("paid_date", earlier.paid_date), said.get("amount")
            is_same = day == earlier.paid_date and (not amount or in_units(amount, it.currency) == earlier.amount)
            if pays or not is_same:
                faults.note("status" if is_same else "record_payment.reference")
            return None
        is_known = faults.readable("status") and faults.readable("lines")  # what is due follows from both
        if not takes and is_known:
            faults.note("record_payment")
            return None
        payment = Payment(invoice=it, amount=it.balance_due, paid_date=self.today, reference=reference)
        payment.hit(said or {}, "paid_date")
        payment.hit(said or {}, "amount", read=lambda amount: in_units(amount, it.currency))
        if payment.paid_date > self.today:
            faults.note("record_payment.paid_date")
        if is_known:
            self.judge_amount(faults, payment, "status" if said is None else "record_payment.amount", pays=pays)
        return payment

    @staticmethod
    def judge_amount(faults, payment, at, *, pays):
        if not 0 < payment.amount <= payment.invoice.balance_due:
            faults.note(at)
        elif pays and payment.amount < payment.invoice.balance_due:
            faults.note("status")
        if payment.amount.denominator > 1:
            faults.note("record_payment.amount")

    def record_payment(self, it, payment):
        if payment:
            payment.invoice = it
            it.payments.append(payment)
            self.settle_payments(it, by_payment=True)

    def remove_payment(self, it):
        it.invoice.payments.remove(it)
        self.settle_payments(it.invoice, by_payment=False)

    def settle_payments(self, it, *, by_payment):
        """Payments count first, credit notes then, as far as something is due; the status follows from both."""
        due = it.total - it.amount_paid
        for note in it.credit_notes:
            note.applied_amount = min(note.total, due)
            due -= note.applied_amount
        if by_payment or it.status != "written_off":
            it.status = "paid" if due == 0 else "sent" if due == it.total else "partially_paid"
            it.moments.pop("written_off_at", None)
        if it.status == "paid":
            it.moments.setdefault("paid_at", self.now)
        else:
            it.moments.pop("paid_at", None)

    # credit notes

    def credit(self, body, it):
        if it.status not in ISSUED:
            raise Refused("invoice", "locked")
        faults, room, wishes = Refused(), it.room(), body.get("lines")
        note = CreditNote(
            invoice=it, issue_date=max(self.today, it.issue_date), reason="correction", lines=[], shares={}
        )
        note.hit(body, "issue_date", "reason")
        if note.issue_date < it.issue_date:
            faults.note("issue_date")
        if gross(room) == 0:
            faults.note("amount")
            faults.refuse()
        if wishes and "amount" in body:
            faults.note("amount")
        if not wishes and "amount" not in body and not it.credit_notes:
            wishes = [{"invoice_line_id": line.id} for line in it.lines if line.quantity]
        if wishes:
            self.credit_lines(faults, note, wishes, room)
        else:
            amount = in_units(body["amount"], it.currency) if "amount" in body else Fraction(gross(room))
            self.credit_amount(faults, note, amount, room)
        faults.refuse()
        leaves_some = note.total == gross(room) and without_nothing(note.shares) != without_nothing(room)
        if not 0 < note.total <= gross(room) or leaves_some:
            raise Refused("lines" if wishes else "amount")
        note.number = self.number("CN", note.issue_date)
        it.credit_notes.append(note)
        if note.total == gross(room):
            self.free(it.lines)
        self.settle_payments(it, by_payment=False)
        return note

    @staticmethod
    def credit_amount(faults, note, amount, room):
        """A gross amount takes a part at each rate, in proportion, and never more net or tax than is left there."""
        if amount.denominator > 1 or amount > gross(room):
            faults.note("amount")
            return
        note.shares = dict(room)
        if amount < gross(room):
            for rate, part in zip(room, spread(int(amount), [sum(left) for left in room.values()]), strict=True):
                net = between(half_up(part / (1 + rate / 100)), room[rate][0])
                tax = between(part - net, room[rate][1])
                note.shares[rate] = (part - tax, tax)
        note.shares = without_nothing(note.shares)
        for rate, (net, _) in note.shares.items():
            note.lines.append(Credited(note=note, quantity=Fraction(-1 if net < 0 else 1), tax_rate=rate, amount=net))

    def credit_lines(self, faults, note, wishes, room):
        """Lines take back what they say at their rate; with all the net that is left there goes all the tax."""
        taxable = {}
        for place, wish in enumerate(wishes):
            credit = self.credit_part if "invoice_line_id" in wish else self.credit_anything
            line = credit(faults, f"lines.{place}.", note, wish)
            if line:
                note.lines.append(line)
                taxable[line.tax_rate] = taxable.get(line.tax_rate, 0) + line.amount
        for rate, net in sorted(taxable.items()):
            left = room[rate]
            if net != between(net, left[0]):
                faults.note("lines")
            note.shares[rate] = (net, left[1] if net == left[0] else between(half_up(net * rate / 100), left[1]))

    @staticmethod
    def credit_part(faults, at, note, wish):
        """A part of an invoice's line, by quantity; the last one takes exactly what is left of the line."""
        line = next((line for line in note.invoice.lines if line.id == wish["invoice_line_id"]), None)
        if line is None:
            faults.note(f"{at}invoice_line_id")
            return None
        former = [part for its in (*note.invoice.credit_notes, note) for part in its.lines if part.invoice_line is line]
        left = line.quantity - sum(part.quantity for part in former)
        amount = line.amount - sum(part.amount for part in former)
        quantity = Fraction(wish.get("quantity", left))
        if quantity == 0 or quantity != between(quantity, left):
            faults.note(f"{at}quantity")
            return None
        if quantity != left:
            amount = between(half_up(line.amount * quantity / line.quantity), amount)
        return Credited(note=note, invoice_line=line, quantity=quantity, tax_rate=line.tax_rate, amount=amount)

    @staticmethod
    def credit_anything(faults, at, note, wish):
        """Anything else, at one of the invoice's rates: the only one, unless it says which."""
        rates = list(note.invoice.shares)
        rate = Fraction(wish["tax_rate"]) if "tax_rate" in wish else rates[0] if len(rates) == 1 else None
        if rate not in rates:
            faults.note(f"{at}tax_rate")
        for member in ("description", "unit_price"):
            if member not in wish:
                faults.note(at + member)
        quantity = Fraction(wish.get("quantity", 1))
        amount = half_up(in_units(quantity * Fraction(wish.get("unit_price", 0)), note.currency))
        return Credited(note=note, quantity=quantity, tax_rate=rate, amount=amount) if rate in rates else None


def without_nothing(shares):
    return {rate: share for rate, share in shares.items() if share != (0, 0)}


def said(lines):
    return [line.said() for line in lines]


def group(work, by):
    """By what unbilled work is put together, and what its line says."""
    what = what_is(work)
    return {
        "entry": lambda: (work.id, work.description),
        "project": lambda: (work.project, work.project.name if work.project else f"{what} without a project"),
        "category": lambda: (work.category, work.category),
        "task": lambda: (None, "Other work"),
        "user": lambda: (None, "Ana Admin"),
    }[by]()


def told_rate(it):
    units = None if it.hourly_rate is None else in_units(it.hourly_rate, it.currency)
    return {"hourly_rate": money(units, it.currency)}


def what_is(work):
    return "Work" if isinstance(work, Entry) else "Expenses"


def words(line):
    """What a line says of work when nobody said it: when it was done."""
    days, what = sorted(it.date for it in line.work), what_is(line.work[0])
    return f"{what} on {days[0]}" if days[0] == days[-1] else f"{what} from {days[0]} to {days[-1]}"
