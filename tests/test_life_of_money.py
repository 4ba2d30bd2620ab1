"""The whole life of quotes, invoices, payments and credit notes, in any order, compared with a model.

LIFE_EXAMPLES=500 LIFE_STEPS=60 makes it a long one, LIFE_SHRINK=1 looks for the shortest life that goes wrong, which
takes minutes.
"""

import math
import os
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from sqlalchemy import select

from retainer.errors import Refusal
from retainer.identity.admins import operator_of
from retainer.rollups import doctor
from retainer.schema.billing import credit_note_shares as shares
from tests.length import first, length
from tests.lives import Life, run_lives
from tests.reference.arithmetic import day_after
from tests.reference.life import (
    BILLS,
    COVERED,
    ISSUED,
    OPEN,
    TEXTS,
    UNREADABLE,
    Agency,
    Document,
    Entry,
    Quote,
    Refused,
    gross,
    money,
    plain,
)

EXAMPLES, STEPS = int(os.environ.get("LIFE_EXAMPLES", length(40))), int(os.environ.get("LIFE_STEPS", "35"))
BATCH_SIZE = min(EXAMPLES, 10)  # what would come next is made of these
SHRINK = os.environ.get("LIFE_SHRINK")
START = "2026-12-18T10:00:00Z"
UNKNOWN_ID = 999_999_999

PRICES = st.one_of(
    st.sampled_from(["800", "33.3333", "0.5", "19.99", "0", "1", "0.0049"]),
    st.integers(0, 9_999_999).map(lambda n: f"{n // 10_000}.{n % 10_000:04}"),
)
QUANTITIES = st.sampled_from(["1", "3", "0.5", "3.3333", "2", "1.25", "12", "7.5", "-1", "0"])
RATES = st.sampled_from(["19", "7.0", "0", "8.125"])
HOURLY = st.sampled_from(["95", "33", "0"])
UNITS = st.integers(-3_000, 30_000).filter(bool)
CURRENCIES = st.sampled_from(["JPY", "EUR", "KWD"])
OFFSETS = st.sampled_from([0, 1, -1, -4, -20, 25])
WORDS = st.sampled_from(["Design", "Build", "Travel"])
STATUSES = st.sampled_from(["written_off", "void", "paid", "sent", "draft", "partially_paid"])
QUOTE_STATUSES = st.sampled_from(["accepted", "sent", "draft", "declined", "cancelled", "expired"])
SMALL_PRICES = st.sampled_from(["1", "0.5", "19.99", "0.004"])
CREDITS = ["part", "amount", "part", "", "free", "part part part", "part part", "free free", "part free", "amount free"]
SHARES = st.sampled_from([Fraction(share) for share in ("1/2", "1/3", "1", "1/4", "0.001", "3/2", "0", "-1")])
ITEM = {"quantity": QUANTITIES, "discount_percent": st.sampled_from(["10", "2.5", "100"])}
TIME = {"billable": st.sampled_from([True, True, False]), "hourly_rate": HOURLY, "description": WORDS}
EXPENSE = {
    "tax_rate": RATES,
    "markup_percent": st.sampled_from(["10", "33.333"]),
    "amount_includes_tax": st.booleans(),
    "category": WORDS,
    "description": WORDS,
}
BILLING = st.sampled_from(["time_and_materials", *COVERED])
SPOILED_FIELDS = ("notes", "title", "description", "issue_date", "due_date", "valid_until", "status", "subject")
SPOILED_COLLECTIONS = ("quotes", "invoices", "expenses", "time-entries")
UNBILLED = {
    "time": st.sampled_from(["project", "entry", "task", "user"]),
    "expenses": st.sampled_from(["project", "entry", "category"]),
}


def some(members):
    return st.fixed_dictionaries({}, optional=members)


def one(**members):
    return st.one_of(*(st.fixed_dictionaries({name: values}) for name, values in members.items()))


class Money(Life):
    """Each step sends a request and takes the same step in the model: both refuse it, or agree on the result."""

    def __init__(self, databases):
        super().__init__(databases, START)
        self.api.set_account(TEXTS)
        self.operator = operator_of(self.api.store, self.api.account_id)
        self.model, self.turn, self.ids, self.read, self.touched = Agency(), 0, set(), {}, []
        self.model.now = START.replace("Z", ".000000Z")

    def ask(self, method, path, body, take, *args):
        """Send a request and take the step; return the model's record, or None when both refused."""
        can_be_spoiled = path.split("/")[1] in SPOILED_COLLECTIONS and not path.endswith("credit-notes")
        if can_be_spoiled and method in {"POST", "PATCH"} and self.sometimes(15):
            self.make_unreadable(body)
        self.answer = answer = self.api.call(method, path, body)
        try:
            record, refused = take(*args) if body is None else take(body, *args), None
        except Refused as refusal:
            record, refused = None, refusal
        message = f"The model refuses {refused.errors} as {refused.code}: {answer}" if refused else answer
        assert answer.status == (422 if refused else {"POST": 201, "DELETE": 204}.get(method, 200)), message
        assert refused is None or (answer.errors.keys(), answer.code) == (refused.errors.keys(), refused.code), message
        assert refused is None or all(len(answer.errors[name]) == 1 for name in refused.unread), message
        if record:
            self.compare(record, answer.data)
        return record

    def make_unreadable(self, body):
        """Make a field unreadable: the errors of the other fields are still reported."""
        target, names = body, {*SPOILED_FIELDS}
        if body.get("lines") and self.sometimes(4):
            for line in body["lines"]:
                line.update({"unit_price": UNREADABLE} if "unit_price" in line else {})
            body["lines"].append({"description": "Rebate", "quantity": "-1", "unit_price": "1"})
            body["status"] = "sent"
            return
        if body.get("lines") and self.sometimes(2):
            target, names = self.draw(st.sampled_from(body["lines"])), {*ITEM, "unit_price", *BILLS.values()}
        names = sorted(name for name in names & target.keys() if target[name] != [])
        if names:
            name = self.draw(st.sampled_from(names))
            target[name] = [UNREADABLE, *target[name][1:]] if isinstance(target[name], list) else UNREADABLE

    def compare(self, record, data):
        """Check that a returned record is what the model expects; a new record has a new id."""
        parts = [(record, data)]
        if isinstance(record, Document):
            self.touched.append(record)
            for member in ("lines", "payments", "credit_notes"):
                parts += zip(getattr(record, member, ()), data.get(member, ()), strict=True)
        for part, answered in parts:
            if part.id is None:
                part.id = answered["id"]
                key = (type(part), type(getattr(part, "document", None)), part.id)
                assert key not in self.ids
                self.ids.add(key)
        assert_agreement(record, data, record.expected())

    def read_document(self, document):
        """Read a document with its lines, payments and credit notes."""
        self.read[document] = data = self.reader.get(path_of(document)).data
        self.compare(document, data)

    # What to draw

    def sometimes(self, one_in=8):
        return self.draw(st.integers(1, one_in)) == one_in

    def pick(self, records, *conditions):
        """Return one of the records, mostly one for which the first condition is true, else the next."""
        for condition in conditions:
            likely = [record for record in records if condition(record)]
            if likely and not self.sometimes(6):
                return self.draw(st.sampled_from(likely))
        return self.draw(st.sampled_from(records))

    def days(self, *names, one_in=4):
        return {name: self.day() for name in names if self.sometimes(one_in)}

    def day(self):
        return day_after(self.model.today, self.draw(OFFSETS))

    def project_of(self, client):
        """Return a project of a client; sometimes another client's, or None."""
        own_projects = [project.id for project in self.model.projects if project.client is client]
        others = [project.id for project in self.model.projects if project.client is not client]
        choices = [*others, UNKNOWN_ID] if not own_projects or self.sometimes(10) else own_projects
        return self.draw(st.sampled_from(choices))

    def change_of_client(self, one_in):
        change = one(currency=CURRENCIES, client_id=st.sampled_from([client.id for client in self.model.clients]))
        return self.draw(change) if self.sometimes(one_in) else {}

    def line(self, client, free=None):
        """Return a line, perhaps with free work, and sometimes with work that cannot be billed."""
        body = self.draw(some({"tax_rate": RATES, "unit": WORDS, "description": WORDS}))
        if self.sometimes(3):
            body["project_id"] = self.project_of(client)
        works = free
        if free is not None and self.sometimes(6):
            works = [work for work in self.model.works if work.client is client or self.sometimes(2)]
        if works and self.draw(st.booleans()):
            kind = type(self.draw(st.sampled_from(works)))
            alike = [work for work in works if type(work) is kind]
            chosen = self.draw(st.lists(st.sampled_from(alike), min_size=1, max_size=3, unique=not self.sometimes()))
            free[:] = [work for work in free if work not in chosen]
            member, other = ("time_entry_ids", "expense_ids")[:: 1 if kind is Entry else -1]
            body[member] = [work.id for work in chosen]
            wrong = st.sampled_from([{other: [UNKNOWN_ID]}, {member: [UNKNOWN_ID]}, {"discount_percent": "5"}])
            if self.sometimes(8):
                body |= self.draw(one(quantity=st.sampled_from(["1", "0.8333", "3"]), unit_price=st.just("90")))
            return body | (self.draw(wrong) if self.sometimes(12) else {})
        body |= {"description": "Item", "unit_price": self.draw(PRICES)} | self.draw(some(ITEM))
        if free is not None and self.sometimes(15):
            del body[self.draw(st.sampled_from(["description", "unit_price"]))]
        return body

    def lines(self, client, currency, document=None):
        """Return lines of a document; work on no line, or on the document's own lines, is free."""
        free = [
            work
            for work in self.model.works
            if (work.client, work.currency, work.billable) == (client, currency, True)
            and (work.invoice_line is None or (document and work.invoice_line in document.lines))
        ]
        lines = [self.line(client, free) for _ in range(self.draw(st.sampled_from([2, 1, 3, 1, 2, 0])))]
        if self.sometimes(5):
            rebate = {"description": "Rebate", "quantity": "-1", "unit_price": self.draw(SMALL_PRICES)}
            lines.append(rebate | {"tax_rate": self.draw(RATES)})
        return lines

    def offered(self, client):
        return [self.line(client) for _ in range(self.draw(st.sampled_from([1, 2, 0])))]

    def unbilled(self, client):
        """Return a request for unbilled work: all, or that of some projects or days."""
        unbilled_work = {}
        for name, groups in UNBILLED.items():
            if not self.sometimes(4):
                unbilled_work[name] = criteria = self.draw(some({"group_by": groups})) | self.days("from", "to")
                if self.sometimes(4):
                    criteria["project_ids"] = [self.project_of(client)]
        return unbilled_work

    def payment(self, invoice):
        """Return a payment of all, a part or too much, or with the reference of a former one."""
        body = self.draw(some({"reference": st.sampled_from(["a", "b", "c"])})) | self.days("paid_date", one_in=6)
        if not self.sometimes(3):
            due = max(0, invoice.balance_due)
            units = st.one_of(st.integers(1, due + 1), st.just(due // 2), st.just(due), st.just(max(0, invoice.total)))
            body["amount"] = "0.0005" if self.sometimes(15) else money(self.draw(units), invoice.currency)
        return self.repeated(invoice, body, 1)

    def repeated(self, invoice, body, sign):
        """Return the body of a payment or refund, or one with the reference of a former one."""
        earlier = [payment for payment in invoice.payments if payment.reference]
        if earlier and self.sometimes(2):
            former = self.draw(st.sampled_from(earlier))
            body = {
                "reference": former.reference,
                "amount": money(sign * former.amount, invoice.currency),
                "paid_date": former.paid_date,
            }
            del body[self.draw(st.sampled_from(["amount", "paid_date"]))]
            body |= self.days("paid_date", one_in=4)
        return body

    def refund_of(self, invoice):
        """Return a refund of all, a part or too much, or with the reference of a former payment or refund."""
        body = self.draw(some({"reference": st.sampled_from(["a", "b", "c"])})) | self.days("paid_date", one_in=4)
        if not self.sometimes(3):
            due = invoice.refund_due
            units = self.draw(st.one_of(st.integers(0, due + 1), st.just(due // 2), st.just(due)))
            body["amount"] = "0.0005" if self.sometimes(15) else money(units, invoice.currency)
        return self.repeated(invoice, body, -1) if self.sometimes(3) else body

    @rule(data=st.data())
    def take_a_step(self, data):
        """Take one of the possible steps; steps that are listed more often are more likely."""
        self.draw, invoices = data.draw, self.model.invoices
        self.let_pass(timedelta(seconds=1))
        drafts = [document for document in self.model.documents if document.status == "draft"]
        change_a_draft = [self.send, self.send, self.delete_an_invoice, self.change_an_invoice, self.change_a_line]
        steps = [
            (True, [self.bill, self.bill, self.offer, self.work, self.change_a_client, self.let_days_pass]),
            (any(map(creditable, invoices)), [self.credit] * 5),
            (any(map(payable, invoices)), [self.pay, self.pay, self.pay, self.end]),
            (any(document in invoices for document in drafts), change_a_draft),
            (invoices, [self.change_an_invoice, self.send_back_what_was_read]),
            (self.model.quotes, [self.change_a_quote, self.change_a_quote, self.convert_a_quote, self.change_a_line]),
            (any(map(can_be_converted, self.model.quotes)), [self.convert_a_quote, self.convert_a_quote]),
            (any(map(can_be_annulled, invoices)), [self.annul, self.annul]),
            (any(document.lines for document in drafts), [self.arrange_lines, self.arrange_lines]),
            (self.model.payments, [self.remove_a_payment]),
            (any(invoice.refund_due for invoice in invoices), [self.refund, self.refund]),
            (self.model.works, [self.change_work, self.change_a_cost_rate, self.change_a_project]),
        ]
        steps = [step for is_possible, likely in steps if is_possible for step in likely]
        self.draw(st.sampled_from(steps))()

    # Clients, projects, time and expenses

    @initialize(data=st.data())
    def open_the_agency(self, data):
        self.draw = data.draw
        for currency in ("EUR", self.draw(CURRENCIES)):
            body = {"name": "Acme", "currency": currency, "tax_rate": self.draw(RATES)}
            body |= {} if self.sometimes(3) else {"hourly_rate": "90"}
            client = self.ask("POST", "/clients", body, self.model.write_client)
            for more in ({"name": "Shop"}, {"name": "Blog", "hourly_rate": "120", "billing_type": self.draw(BILLING)}):
                self.ask("POST", "/projects", {"client_id": client.id} | more, self.model.create_project)
            first, second = ({"project_id": project.id} for project in self.model.projects[-2:])
            for on in ({"client_id": client.id}, first, second, second):
                work = on | {"amount": "119"} | self.draw(some(EXPENSE))
                self.ask("POST", "/expenses", work, self.model.write_expense)
                work = on | {"duration_minutes": 50} | self.draw(some(TIME))
                self.ask("POST", "/time-entries", work, self.model.write_entry)
            for status in ("draft", "sent"):
                body = {"client_id": client.id, "lines": self.lines(client, currency), "status": status}
                self.ask("POST", "/invoices", body, self.model.write_invoice)
            body = {"client_id": client.id, "status": "accepted"} | self.draw(some({"notes": WORDS, "terms": WORDS}))
            self.ask("POST", "/quotes", body | {"lines": [self.line(client)]}, self.model.write_quote)

    def change_a_client(self):
        client = self.pick(self.model.clients)
        terms = st.sampled_from([0, 14, 30])
        change = one(name=WORDS, tax_rate=RATES, payment_terms_days=terms, currency=CURRENCIES, hourly_rate=HOURLY)
        self.ask("PATCH", f"/clients/{client.id}", self.draw(change), self.model.write_client, client)

    def change_a_project(self):
        """Let a fee start or stop covering its hours; the quote of the project stays."""
        project = self.pick(self.model.projects, lambda project: project.quote)
        body = self.draw(one(billing_type=BILLING, name=WORDS, hourly_rate=HOURLY)) | self.quote_of(project)
        self.ask("PATCH", f"/projects/{project.id}", body, self.model.change_project, project)

    def quote_of(self, record):
        """Return the quote that something was made from; sometimes another."""
        if not self.sometimes(6):
            return {}
        others = st.sampled_from([UNKNOWN_ID, *(quote.id for quote in self.model.quotes)])
        return {"quote_id": self.draw(others) if self.sometimes(3) else record.quote and record.quote.id}

    def let_days_pass(self):
        days = self.draw(st.sampled_from([1, 2, 7, 14, 31]))
        self.let_pass(timedelta(days=days))

    def let_pass(self, time):
        self.traveller.shift(time)
        now = datetime.fromisoformat(self.model.now) + time
        self.model.now = now.isoformat(timespec="microseconds").replace("+00:00", "Z")

    def work(self):
        """Record time or an expense for a client, a project, or both."""
        project = self.pick(self.model.projects)
        body = self.days("date") | ({"project_id": project.id} if self.draw(st.booleans()) else {})
        if "project_id" not in body or self.draw(st.booleans()):
            body["client_id"] = self.pick(self.model.clients, lambda client: client is project.client).id
        if self.draw(st.booleans()):
            body |= {"duration_minutes": self.draw(st.integers(1, 300))} | self.draw(some(TIME))
            self.ask("POST", "/time-entries", body, self.model.write_entry)
        else:
            body |= self.cost(self.draw(CURRENCIES))
            if self.sometimes(3):
                body |= self.draw(one(billable=st.booleans(), currency=CURRENCIES, client_id=st.none()))
            self.ask("POST", "/expenses", body, self.model.write_expense)

    def cost(self, currency):
        amount = (
            st.sampled_from(["0", "1.0005"]) if self.sometimes(15) else UNITS.map(lambda units: money(units, currency))
        )
        return {"amount": self.draw(amount)} | self.draw(some(EXPENSE))

    def change_a_cost_rate(self):
        """Change what an hour costs: the summaries count it, invoices do not."""
        cost = {"cost_rate": Decimal(self.draw(HOURLY)), "cost_rate_from": self.day()}
        self.api.set_user(self.api.admin_id, cost)

    def was_freed(self, work):
        """Return whether work was on a line that is void or credited, and is on none now."""
        lines = (line for invoice in self.model.invoices for line in invoice.lines)
        return work.invoice_line is None and any(work in line.work for line in lines)

    def change_work(self):
        """Change or delete time and expenses, until they are billed."""
        work = (
            self.pick(self.model.works, lambda work: work.invoice_line)
            if self.sometimes(3)
            else self.pick(self.model.works)
        )
        if self.sometimes(4):
            work = self.pick([work, *self.model.works], self.was_freed)
            self.ask("DELETE", path_of(work), None, self.model.delete_work, work)
        elif isinstance(work, Entry):
            body = self.draw(one(duration_minutes=st.integers(1, 300), **TIME))
            if self.sometimes(3):
                body["project_id"] = self.draw(
                    st.sampled_from([None, *(project.id for project in self.model.projects)])
                )
            self.ask("PATCH", path_of(work), body, self.model.write_entry, work)
        else:
            body = self.draw(one(billable=st.booleans(), markup_percent=st.just("20"), category=WORDS))
            body |= self.cost(work.currency) if self.sometimes(3) else {}
            self.ask("PATCH", path_of(work), body, self.model.write_expense, work)

    # Quotes

    def offer(self):
        client = self.pick(self.model.clients)
        body = {"client_id": client.id, "lines": self.offered(client)} | self.days("issue_date", "valid_until")
        body |= self.draw(
            some({"title": WORDS, "currency": CURRENCIES, "status": QUOTE_STATUSES, "notes": WORDS, "terms": WORDS})
        )
        if self.sometimes(3):
            body["project_id"] = self.project_of(client)
        if self.sometimes(5):
            body |= {"status": self.draw(st.sampled_from(["accepted", "sent"])), "lines": []}
        self.ask("POST", "/quotes", body, self.model.write_quote)

    def change_a_quote(self):
        quote = self.pick(self.model.quotes)
        if self.sometimes(6):
            self.ask("DELETE", path_of(quote), None, self.model.delete_quote, quote)
            return
        body = self.draw(some({"title": WORDS, "status": QUOTE_STATUSES})) | self.days("issue_date", "valid_until")
        body |= self.change_of_client(6) | self.draw(some({"notes": WORDS}))
        if self.sometimes(4):
            body = {"external_id": f"x{self.turn}"}
        if self.sometimes(3):
            body["lines"] = self.lines_again(quote, self.offered(quote.client))
        self.ask("PATCH", path_of(quote), body, self.model.write_quote, quote)

    def lines_again(self, document, others):
        """Return current lines in any order: unchanged, changed, only named, or omitted, with new lines between."""
        change, again = one(description=WORDS, tax_rate=RATES, unit_price=PRICES, quantity=QUANTITIES, unit=WORDS), []
        kept = [line for line in document.lines if not self.sometimes(6)]
        for line in kept:
            body = line.request_body() if self.sometimes(2) else {"id": line.id}
            if document.status == "draft" and self.sometimes(3):
                body |= self.other_work(line) if line.work and self.sometimes(2) else self.draw(change)
            again.append(body)
        if document.status == "draft" or self.sometimes(8):
            again += others if self.sometimes(3) else []
            named = {"id": self.draw(st.sampled_from([UNKNOWN_ID, *(line.id for line in kept)]))}
            again += [named] * self.sometimes(10)
            again = self.draw(st.permutations(again))
        return None if self.sometimes(15) else again

    def other_work(self, line):
        """Return some of the work that a line bills, and perhaps some more."""
        alike = [
            work
            for work in self.model.works
            if type(work) is type(line.work[0]) and work.client is line.document.client
        ]
        chosen = self.draw(st.lists(st.sampled_from(alike), max_size=2)) + line.work[: self.draw(st.integers(0, 2))]
        return {BILLS[line.kind]: [work.id for work in dict.fromkeys(chosen)]}

    def convert_a_quote(self):
        """Turn a quote into a project or an invoice."""
        quote = self.pick(self.model.quotes, can_be_converted)
        body = {"quote_id": quote.id}
        if quote.project is None and not any(line.project for line in quote.lines) and self.sometimes():
            body["client_id"] = self.pick(self.model.clients).id
        if self.sometimes(3):
            self.ask("POST", "/projects", body | self.draw(some({"name": WORDS})), self.model.create_project)
        else:
            if quote.status == "accepted" and not quote.invoice and "client_id" not in body:
                body |= self.draw(some({"subject": WORDS, "status": st.just("sent")}))
                body |= {"lines": self.lines(quote.client, quote.currency)} if self.sometimes(3) else {}
            self.ask("POST", "/invoices", body, self.model.write_invoice)
        self.touched.append(quote)

    def annul(self):
        """Void an invoice that was made from a quote: the quote can be billed again."""
        invoice = self.pick(self.model.invoices, can_be_annulled)
        self.ask("PATCH", path_of(invoice), {"status": "void"}, self.model.write_invoice, invoice)

    # Invoices

    def arrange_lines(self):
        document = self.pick(self.model.documents, lambda document: document.status == "draft" and document.lines)
        is_quote = isinstance(document, Quote)
        others = [] if is_quote else self.lines(document.client, document.currency, document)
        body = {"lines": self.lines_again(document, others)}
        take = self.model.write_quote if is_quote else self.model.write_invoice
        self.ask("PATCH", path_of(document), body, take, document)

    def bill(self):
        client = self.pick(self.model.clients)
        body = {"client_id": client.id} | self.days("issue_date", "due_date")
        body |= self.draw(some({"subject": WORDS, "status": st.just("sent")}))
        if self.sometimes(5):
            body |= self.draw(one(currency=CURRENCIES, status=STATUSES))
        if not self.sometimes(4):
            body["lines"] = self.lines(client, body.get("currency", client.currency))
        if self.sometimes(3):
            body["unbilled_work"] = self.unbilled(client)
        elif self.sometimes(2):
            body["project_id"] = self.project_of(client)
        invoice = self.ask("POST", "/invoices", body, self.model.write_invoice)
        if invoice:
            self.compare_left_out(invoice)

    def compare_left_out(self, invoice):
        """Check that the response counts the unbilled work that was left out, with the reason."""
        left_out = self.answer.json["meta"]["left_out"]
        found = {entry["reason"]: (entry["count"], entry["minutes"]) for entry in left_out}
        assert (found, sorted(found)) == (invoice.left_out, [*found])

    def change_an_invoice(self):
        drafts = [invoice for invoice in self.model.invoices if invoice.status == "draft"]
        invoice = self.pick(drafts if drafts and self.sometimes(2) else self.model.invoices)
        body = self.draw(some({"subject": WORDS, "notes": WORDS})) | self.days("issue_date", "due_date")
        body |= self.change_of_client(8) | self.quote_of(invoice)
        if self.sometimes(2):
            body["lines"] = self.lines_again(invoice, self.lines(invoice.client, invoice.currency, invoice))
        if self.sometimes(5):
            body["unbilled_work"] = self.unbilled(invoice.client)
        elif self.sometimes(4):
            body["project_id"] = self.project_of(invoice.client)
        if self.sometimes(10):
            body["due_date"] = None
        self.ask("PATCH", path_of(invoice), body, self.model.write_invoice, invoice)

    def send(self):
        invoice = self.pick(self.model.invoices, lambda invoice: invoice.status == "draft" and invoice.lines)
        body = {"status": "sent"} | self.days("due_date")
        if invoice.lines and invoice.total > 0 and self.sometimes(4):
            body["record_payment"] = self.payment(invoice)
        self.ask("PATCH", path_of(invoice), body, self.model.write_invoice, invoice)

    def pay(self):
        invoice = self.pick(self.model.invoices, lambda invoice: partly_settled(invoice) and payable(invoice), payable)
        body = {"record_payment": self.payment(invoice)} | ({"status": "paid"} if self.sometimes(6) else {})
        self.ask("PATCH", path_of(invoice), body, self.model.write_invoice, invoice)

    def refund(self):
        invoice = self.pick(self.model.invoices, lambda invoice: invoice.refund_due)
        body = {"record_refund": self.refund_of(invoice)}
        if self.sometimes(8):
            body["record_payment"] = {}
        self.ask("PATCH", path_of(invoice), body, self.model.write_invoice, invoice)

    def end(self):
        invoice = self.pick(self.model.invoices, lambda invoice: partly_settled(invoice) and payable(invoice), payable)
        body = {"status": self.draw(STATUSES)}
        if body["status"] in {"void", "written_off"} and self.sometimes():
            body["record_payment"] = {}
        self.ask("PATCH", path_of(invoice), body, self.model.write_invoice, invoice)

    def remove_a_payment(self):
        payment = self.pick(
            self.model.payments, lambda payment: payment.invoice.credit_notes or payment.invoice.status == "written_off"
        )
        invoice = payment.invoice
        try:
            self.model.remove_payment(payment)
        except Refused as refused:
            with pytest.raises(Refusal) as refusal:
                self.api.remove_payment(payment.id)
            found = refusal.value.code, refusal.value.members["errors"].keys()
            assert found == (refused.code, refused.errors.keys())  # noqa: PT017
            return
        removed = self.api.remove_payment(payment.id)
        self.touched.append(invoice)
        expected = (
            invoice.id,
            invoice.status,
            *(money(units, invoice.currency) for units in (payment.amount, invoice.balance_due)),
        )
        assert (removed.invoice_id, removed.invoice_status, removed.amount, removed.balance_due) == expected

    def delete_an_invoice(self):
        invoice = self.pick(self.model.invoices)
        self.ask("DELETE", path_of(invoice), None, self.model.delete_invoice, invoice)

    def change_a_line(self):
        document = self.pick(self.model.documents, lambda document: document.status == "draft")
        path, client = path_of(document), document.client
        if document.lines and self.sometimes(3):
            line = self.pick(document.lines)
            self.ask("DELETE", f"{path}/lines/{line.id}", None, self.model.delete_line, line)
        else:
            lines = [] if isinstance(document, Quote) else self.lines(client, document.currency)
            body = lines[0] if lines else self.line(client)
            if self.ask("POST", f"{path}/lines", body, self.model.add_line, document):
                now, expected = next(iter(self.answer.json["meta"].values())), document.expected()
                assert now == {name: expected[name] for name in now}
        self.touched.append(document)

    def send_back_what_was_read(self):
        document = self.pick(self.model.documents)
        self.ask("PUT", path_of(document), self.api.get(path_of(document)).data, self.model.send_back, document)

    # Credit notes

    def credit(self):
        invoice = self.pick(
            self.model.invoices, lambda invoice: partly_settled(invoice) and gross(invoice.uncredited()), creditable
        )
        body = self.draw(some({"reason": st.sampled_from(["goodwill", "duplicate"])})) | self.days("issue_date")
        kinds = self.draw(st.sampled_from(CREDITS)).split()
        if "amount" in kinds:
            left = max(1, gross(invoice.uncredited()))
            units = st.one_of(st.integers(1, 3), st.integers(1, left + 1), st.just(left))
            body["amount"] = "0.0005" if self.sometimes(15) else money(self.draw(units), invoice.currency)
        if invoice.lines and {"part", "free"} & {*kinds}:
            begun = [part.invoice_line for note in invoice.credit_notes for part in note.lines if part.invoice_line]
            line = self.draw(st.sampled_from(begun if begun and self.sometimes(2) else invoice.lines))
            body["lines"] = [
                self.part(invoice, line) if kind == "part" else self.anything(invoice)
                for kind in kinds
                if kind != "amount"
            ]
        note = self.ask("POST", f"{path_of(invoice)}/credit-notes", body, self.model.credit, invoice)
        self.touched.append(invoice)
        if note:
            with self.api.store.unscoped() as tx:
                rows = tx.all(select(shares.c.project_id, shares.c.amount).where(shares.c.credit_note_id == note.id))
            expected = {project and project.id: units for project, units in note.by_project.items() if units}
            assert {project: units for project, units in rows if units} == expected

    def part(self, invoice, line):
        """Return a part of what is left of a line, or of another, or all of it."""
        line = self.draw(st.sampled_from(invoice.lines)) if self.sometimes(3) else line
        parts = [part for note in invoice.credit_notes for part in note.lines if part.invoice_line is line]
        left = line.quantity - sum(part.quantity for part in parts)
        quantity = plain(Fraction(int(left * self.draw(SHARES) * 10_000), 10_000))
        return {"invoice_line_id": line.id} | self.draw(some({"quantity": st.just(quantity)}))

    def anything(self, invoice):
        rate, (net, _) = self.draw(st.sampled_from(list(invoice.uncredited().items())))
        price = money(max(0, net * self.draw(SHARES)), invoice.currency)
        body = {"description": "Sorry", "unit_price": price, "tax_rate": plain(rate)}
        if self.sometimes(3):
            body |= {"quantity": self.draw(QUANTITIES), "unit_price": self.draw(SMALL_PRICES)}
        if self.sometimes():
            body |= self.draw(one(tax_rate=RATES, invoice_line_id=st.just(UNKNOWN_ID)))
        elif self.sometimes():
            del body[self.draw(st.sampled_from(["description", "unit_price", "tax_rate"]))]
        return body

    # What holds after every step

    @invariant()
    def state_matches_the_model(self):
        model, rows, documents = self.model, {}, self.model.documents
        kept = {
            "projects": model.projects,
            "time-entries": model.entries,
            "expenses": model.expenses,
            "quotes": model.quotes,
            "invoices": model.invoices,
            "credit-notes": model.credit_notes,
        }
        for name, records in kept.items():
            rows[name] = {row["id"]: row for row in self.reader.get(f"/{name}", {"per_page": 100}).data}
            assert rows[name].keys() == {record.id for record in records}
            for record in records:
                row = rows[name][record.id]
                record.stamp(model.now)
                expected = record.expected() | {"updated_at": record.updated_at}
                assert_agreement(record, row, {member: value for member, value in expected.items() if member in row})
        self.turn += 1
        another = documents[self.turn % len(documents) :][:1] if documents else []
        for record in dict.fromkeys([*self.touched, *another]):
            if record in documents:
                self.read_document(record)
        self.touched = []
        late = {invoice.id for invoice in model.invoices if invoice.is_overdue}
        assert {row["id"] for row in self.reader.get("/invoices", {"status": "overdue", "per_page": 100}).data} == late
        with self.api.store.begin(self.operator, write=False, seconds=math.inf) as tx:
            tx.snapshot()
            assert doctor.mismatched(tx) == []
        assert_balanced(rows, [self.read[invoice] for invoice in model.invoices if invoice in self.read])


def payable(invoice):
    return invoice.status in {*OPEN, "written_off"}


def creditable(invoice):
    return invoice.status in ISSUED and gross(invoice.uncredited())


def partly_settled(invoice):
    return invoice.payments or invoice.credit_notes or invoice.status == "written_off"


def can_be_converted(quote):
    return quote.status == "accepted" and not quote.invoice


def can_be_annulled(invoice):
    return invoice.quote and invoice.status == "sent"


def path_of(record):
    plural = {"Entry": "time-entries", "Expense": "expenses", "Quote": "quotes", "Invoice": "invoices"}
    return f"/{plural[type(record).__name__]}/{record.id}"


def assert_agreement(record, data, expected):
    """Check the fields of a returned record that the model expects."""
    differ = list(differences(data, expected))
    assert not differ, f"{record}, where what was answered and told differ: {differ}"


def differences(data, expected, at=""):
    if isinstance(expected, dict):
        for name, value in expected.items():
            yield from differences(data[name], value, f"{at}.{name}")
    elif isinstance(expected, list) and isinstance(data, list) and len(data) == len(expected):
        for place, value in enumerate(expected):
            yield from differences(data[place], value, f"{at}.{place}")
    elif data != expected:
        yield at[1:], data, expected


def assert_balanced(rows, invoices):
    """Check what holds for the responses alone, without the model."""
    invoiced, notes = rows["invoices"].values(), rows["credit-notes"].values()
    series = defaultdict(list)
    for number in (row["number"] for row in (*invoiced, *notes) if row["number"]):
        series[number[:-4]].append(int(number[-4:]))
    for numbers in series.values():
        assert sorted(numbers) == list(range(1, len(numbers) + 1))
    for invoice in invoiced:
        total, paid, credited, due, refund = (
            Fraction(invoice[name]) for name in ("total", "amount_paid", "amount_credited", "balance_due", "refund_due")
        )
        assert refund == (0 if invoice["status"] == "void" else paid + credited + due - total)
        own_notes = [note for note in notes if note["invoice_id"] == invoice["id"]]
        assert credited == sum(Fraction(note["total"]) for note in own_notes)
        assert refund == sum(Fraction(note["refundable_amount"]) for note in own_notes)
        assert sum(Fraction(note["total"]) for note in own_notes) <= max(total, 0)
        assert min(paid, credited, refund, total if invoice["number"] else 0, due if invoice["number"] else 0) >= 0
        for member in ("taxable_amount", "tax_amount"):
            room = {share["tax_rate"]: Fraction(share[member]) for share in invoice["tax_breakdown"]}
            left = dict(room)
            for share in (share for note in own_notes for share in note["tax_breakdown"]):
                left[share["tax_rate"]] -= Fraction(share[member])
            assert all(min(0, room[rate]) <= left[rate] <= max(0, room[rate]) for rate in room)
    for note in notes:
        assert Fraction(note["applied_amount"]) + Fraction(note["refundable_amount"]) == Fraction(note["total"])
    for name, member in (("time-entries", "time_entry_ids"), ("expenses", "expense_ids")):
        live = [invoice for invoice in invoices if invoice["status"] != "void" and not credited_as_a_whole(invoice)]
        on = Counter(
            record_id
            for invoice in live
            for line in invoice["lines"]
            if not credited_in_whole(line, invoice)
            for record_id in line[member]
        )
        assert {record_id for record_id, row in rows[name].items() if row["billing_status"] == "billed"} == set(on)
        assert set(on.values()) <= {1}
    for project in rows["projects"].values():
        entries = [row for row in rows["time-entries"].values() if row["project_id"] == project["id"]]
        covered = {row["billing_status"] for row in entries if row["invoice_id"] is None and row["billable"]}
        assert (covered <= {"covered"}) if project["billing_type"] in COVERED else "covered" not in covered
        entries = [row for row in entries if row["billing_status"] == "unbilled"]
        assert project["unbilled_minutes"] == sum(row["duration_minutes"] for row in entries)
        amounts = [row["amount"] for row in entries if row["currency"] == project["currency"]]
        assert Fraction(project["unbilled_amount"]) == sum(map(Fraction, amounts))


def credited_in_whole(line, invoice):
    parts = [
        part for note in invoice["credit_notes"] for part in note["lines"] if part["invoice_line_id"] == line["id"]
    ]
    return bool(parts) and sum(Fraction(part["quantity"]) for part in parts) == Fraction(line["quantity"])


def credited_as_a_whole(invoice):
    notes = [Fraction(note["total"]) for note in invoice["credit_notes"]]
    return bool(notes) and sum(notes) == Fraction(invoice["total"])


@pytest.mark.parametrize("number", range(EXAMPLES // BATCH_SIZE))
@pytest.mark.parametrize("kind", first(["sqlite", "postgresql"]))
def test_every_life_of_money_matches_the_model(request, kind, number):
    databases = request.getfixturevalue(f"{kind}_databases")
    run_lives(lambda: Money(databases), number, BATCH_SIZE, STEPS, shrink=bool(SHRINK))
