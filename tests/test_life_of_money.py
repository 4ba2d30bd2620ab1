"""The whole life of quotes, invoices, payments and credit notes, in any order, beside the model that tells it again.

LIFE_EXAMPLES=500 LIFE_STEPS=60 makes it a long one, LIFE_SHRINK=1 looks for the shortest life that goes wrong, which
takes minutes.
"""

import os
import shutil
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
import time_machine
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from hypothesis.stateful import run_state_machine_as_test as run
from sqlalchemy import select

from retainer.billing import payments
from retainer.identity import accounts
from retainer.identity.accounts import ACTING, operator
from retainer.rollups import doctor
from retainer.schema.billing import credit_note_shares as shares
from retainer.work import cost_rates
from tests.conftest import CONTRACT_CHECKER
from tests.contract_checker import NoChecks
from tests.factories import ApiClient, open_app
from tests.length import length
from tests.life_model import (
    BILLS,
    COVERED,
    ISSUED,
    OPEN,
    UNREADABLE,
    Agency,
    Document,
    Entry,
    Quote,
    Refused,
    day_after,
    gross,
    money,
    plain,
)

EXAMPLES, STEPS = int(os.environ.get("LIFE_EXAMPLES", length(40))), int(os.environ.get("LIFE_STEPS", "35"))
AT_ONCE = min(EXAMPLES, 10)  # what would come next is made of these
SHRINK = os.environ.get("LIFE_SHRINK")
START = "2026-12-18T10:00:00Z"
NOWHERE = 999_999_999

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
MOVES = st.sampled_from(["written_off", "void", "paid", "sent", "draft", "partially_paid"])
QUOTE_MOVES = st.sampled_from(["accepted", "sent", "draft", "declined", "cancelled", "expired"])
FEW = st.sampled_from(["1", "0.5", "19.99", "0.004"])
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
SPOILT = ("notes", "title", "description", "issue_date", "due_date", "valid_until", "status", "subject")
CAREFUL = ("quotes", "invoices", "expenses", "time-entries")
UNBILLED = {
    "time": st.sampled_from(["project", "entry", "task", "user"]),
    "expenses": st.sampled_from(["project", "entry", "category"]),
}


def some(members):
    return st.fixed_dictionaries({}, optional=members)


def one(**members):
    return st.one_of(*(st.fixed_dictionaries({name: values}) for name, values in members.items()))


class Life(RuleBasedStateMachine):
    """Each step sends a request and lets the model take the same step: both refuse alike, or say the same."""

    def __init__(self, folder, prototype):
        super().__init__()
        template, agencies = prototype
        for old in folder.glob("life.db*"):
            old.unlink()
        shutil.copy(template, folder / "life.db")
        self.clock = time_machine.travel(START, tick=False)
        self.traveller = self.clock.start()
        self.api = ApiClient(open_app(folder / "life.db"), CONTRACT_CHECKER, agencies["north"])
        self.reader = ApiClient(self.api.app, NoChecks(), agencies["north"])
        accounts.set_account(self.api.store, self.api.account_id, {"plan": "enterprise"})
        with self.api.store.unscoped("who acts") as tx:
            self.owner = tx.one(select(*ACTING).where(ACTING.id == self.api.account_id))
        self.model, self.turn, self.ids, self.read, self.touched = Agency(), 0, set(), {}, []
        self.model.now = START.replace("Z", ".000000Z")

    def teardown(self):
        self.clock.stop()
        self.api.store.engine.close()

    def ask(self, method, path, body, take, *args):
        """Send a request and take the step; answers the model's record, or None when both refused."""
        careful = path.split("/")[1] in CAREFUL and not path.endswith("credit-notes")
        if careful and method in {"POST", "PATCH"} and self.sometimes(15):
            self.spoil(body)
        self.answer = answer = self.api.call(method, path, body)
        try:
            record, refused = take(*args) if body is None else take(body, *args), None
        except Refused as refusal:
            record, refused = None, refusal
        told = f"The model refuses {refused.errors} as {refused.code}: {answer}" if refused else answer
        assert answer.status == (422 if refused else {"POST": 201, "DELETE": 204}.get(method, 200)), told
        assert refused is None or (answer.errors.keys(), answer.code) == (refused.errors.keys(), refused.code), told
        assert refused is None or all(len(answer.errors[name]) == 1 for name in refused.unread), told
        if record:
            self.compare(record, answer.data)
        return record

    def spoil(self, body):
        """Let a member be one that cannot be read: what is wrong with the others is told beside it."""
        its, names = body, {*SPOILT}
        if body.get("lines") and self.sometimes(4):
            for line in body["lines"]:
                line.update({"unit_price": UNREADABLE} if "unit_price" in line else {})
            body["lines"].append({"description": "Rebate", "quantity": "-1", "unit_price": "1"})
            body["status"] = "sent"
            return
        if body.get("lines") and self.sometimes(2):
            its, names = self.draw(st.sampled_from(body["lines"])), {*ITEM, "unit_price", *BILLS.values()}
        names = sorted(name for name in names & its.keys() if its[name] != [])
        if names:
            name = self.draw(st.sampled_from(names))
            its[name] = [UNREADABLE, *its[name][1:]] if isinstance(its[name], list) else UNREADABLE

    def compare(self, record, data):
        """What is answered of a record is what the model tells; what is new has an id that never was before."""
        parts = [(record, data)]
        if isinstance(record, Document):
            self.touched.append(record)
            for member in ("lines", "payments", "credit_notes"):
                parts += zip(getattr(record, member, ()), data.get(member, ()), strict=True)
        for part, its in parts:
            if part.id is None:
                part.id = its["id"]
                key = (type(part), type(getattr(part, "document", None)), part.id)
                assert key not in self.ids
                self.ids.add(key)
        agree(record, data, record.told())

    def look_at(self, document):
        """Read a document with all its parts."""
        self.read[document] = data = self.reader.get(path_of(document)).data
        self.compare(document, data)

    # What to draw

    def sometimes(self, one_in=8):
        return self.draw(st.integers(1, one_in)) == one_in

    def pick(self, records, *wishes):
        """One of the records; mostly one that the first wish is true of, else the next."""
        for wish in wishes:
            likely = [it for it in records if wish(it)]
            if likely and not self.sometimes(6):
                return self.draw(st.sampled_from(likely))
        return self.draw(st.sampled_from(records))

    def days(self, *names, one_in=4):
        return {name: self.day() for name in names if self.sometimes(one_in)}

    def day(self):
        return day_after(self.model.today, self.draw(OFFSETS))

    def project_of(self, client):
        """A project of a client; sometimes another's, or none at all."""
        own = [it.id for it in self.model.projects if it.client is client]
        others = [it.id for it in self.model.projects if it.client is not client]
        return self.draw(st.sampled_from([*others, NOWHERE] if not own or self.sometimes(10) else own))

    def change_of_client(self, one_in):
        its = one(currency=CURRENCIES, client_id=st.sampled_from([it.id for it in self.model.clients]))
        return self.draw(its) if self.sometimes(one_in) else {}

    def line(self, client, free=None):
        """A line; if some work is free, perhaps with that, and sometimes with what cannot be billed."""
        body = self.draw(some({"tax_rate": RATES, "unit": WORDS, "description": WORDS}))
        if self.sometimes(3):
            body["project_id"] = self.project_of(client)
        works = free
        if free is not None and self.sometimes(6):
            works = [it for it in self.model.works if it.client is client or self.sometimes(2)]
        if works and self.draw(st.booleans()):
            kind = type(self.draw(st.sampled_from(works)))
            alike = [it for it in works if type(it) is kind]
            chosen = self.draw(st.lists(st.sampled_from(alike), min_size=1, max_size=3, unique=not self.sometimes()))
            free[:] = [it for it in free if it not in chosen]
            member, other = ("time_entry_ids", "expense_ids")[:: 1 if kind is Entry else -1]
            body[member] = [it.id for it in chosen]
            wrong = st.sampled_from([{other: [NOWHERE]}, {member: [NOWHERE]}, {"discount_percent": "5"}])
            if self.sometimes(8):
                body |= self.draw(one(quantity=st.sampled_from(["1", "0.8333", "3"]), unit_price=st.just("90")))
            return body | (self.draw(wrong) if self.sometimes(12) else {})
        body |= {"description": "Item", "unit_price": self.draw(PRICES)} | self.draw(some(ITEM))
        if free is not None and self.sometimes(15):
            del body[self.draw(st.sampled_from(["description", "unit_price"]))]
        return body

    def lines(self, client, currency, document=None):
        """Lines of a document; free is the work on none, or on the document's own lines."""
        free = [
            it
            for it in self.model.works
            if (it.client, it.currency, it.billable) == (client, currency, True)
            and (it.invoice_line is None or (document and it.invoice_line in document.lines))
        ]
        lines = [self.line(client, free) for _ in range(self.draw(st.sampled_from([2, 1, 3, 1, 2, 0])))]
        if self.sometimes(5):
            rebate = {"description": "Rebate", "quantity": "-1", "unit_price": self.draw(FEW)}
            lines.append(rebate | {"tax_rate": self.draw(RATES)})
        return lines

    def offered(self, client):
        return [self.line(client) for _ in range(self.draw(st.sampled_from([1, 2, 0])))]

    def unbilled(self, client):
        """Unbilled work: all, or what some projects or days have."""
        wish = {}
        for name, groups in UNBILLED.items():
            if not self.sometimes(4):
                wish[name] = its = self.draw(some({"group_by": groups})) | self.days("from", "to")
                if self.sometimes(4):
                    its["project_ids"] = [self.project_of(client)]
        return wish

    def payment(self, it):
        """A payment of all or of part, of too much, or with the reference of a former one."""
        body = self.draw(some({"reference": st.sampled_from(["a", "b", "c"])})) | self.days("paid_date", one_in=6)
        if not self.sometimes(3):
            due = max(0, it.balance_due)
            units = st.one_of(st.integers(1, due + 1), st.just(due // 2), st.just(due), st.just(max(0, it.total)))
            body["amount"] = "0.0005" if self.sometimes(15) else money(self.draw(units), it.currency)
        earlier = [payment for payment in it.payments if payment.reference]
        if earlier and self.sometimes(2):
            its = self.draw(st.sampled_from(earlier))
            body = {"reference": its.reference, "amount": money(its.amount, it.currency), "paid_date": its.paid_date}
            del body[self.draw(st.sampled_from(["amount", "paid_date"]))]
            body |= self.days("paid_date", one_in=4)
        return body

    @rule(data=st.data())
    def live(self, data):
        """One step of those that are possible, the likelier the more often it stands there."""
        self.draw, invoices = data.draw, self.model.invoices
        self.let_pass(timedelta(seconds=1))
        drafts = [it for it in self.model.documents if it.status == "draft"]
        change_a_draft = [self.send, self.send, self.delete_an_invoice, self.change_an_invoice, self.change_a_line]
        steps = [
            (True, [self.bill, self.bill, self.offer, self.work, self.change_a_client, self.let_days_pass]),
            (any(map(creditable, invoices)), [self.credit] * 5),
            (any(map(payable, invoices)), [self.pay, self.pay, self.pay, self.end]),
            (any(it in invoices for it in drafts), change_a_draft),
            (invoices, [self.change_an_invoice, self.send_back_what_was_read]),
            (self.model.quotes, [self.change_a_quote, self.change_a_quote, self.agree, self.change_a_line]),
            (any(map(agreed, self.model.quotes)), [self.agree, self.agree]),
            (any(map(can_be_annulled, invoices)), [self.annul, self.annul]),
            (any(it.lines for it in drafts), [self.arrange_lines, self.arrange_lines]),
            (self.model.payments, [self.remove_a_payment]),
            (self.model.works, [self.change_work, self.change_a_cost_rate, self.change_a_project]),
        ]
        steps = [step for is_possible, its in steps if is_possible for step in its]
        self.draw(st.sampled_from(steps))()

    # Clients, projects, time and expenses

    @initialize(data=st.data())
    def open_the_agency(self, data):
        self.draw = data.draw
        for currency in ("EUR", self.draw(CURRENCIES)):
            body = {"name": "Acme", "currency": currency, "tax_rate": self.draw(RATES), "hourly_rate": "90"}
            client = self.ask("POST", "/clients", body, self.model.write_client)
            for more in ({"name": "Shop"}, {"name": "Blog", "hourly_rate": "120", "billing_type": self.draw(BILLING)}):
                self.ask("POST", "/projects", {"client_id": client.id} | more, self.model.create_project)
            first, second = ({"project_id": project.id} for project in self.model.projects[-2:])
            for on in ({"client_id": client.id}, first, second, second):
                its = on | {"amount": "119"} | self.draw(some(EXPENSE))
                self.ask("POST", "/expenses", its, self.model.write_expense)
                its = on | {"duration_minutes": 50} | self.draw(some(TIME))
                self.ask("POST", "/time-entries", its, self.model.write_entry)
            for status in ("draft", "sent"):
                body = {"client_id": client.id, "lines": self.lines(client, currency), "status": status}
                self.ask("POST", "/invoices", body, self.model.write_invoice)
            body = {"client_id": client.id, "status": "accepted"} | self.draw(some({"notes": WORDS, "terms": WORDS}))
            self.ask("POST", "/quotes", body | {"lines": [self.line(client)]}, self.model.write_quote)

    def change_a_client(self):
        it = self.pick(self.model.clients)
        terms = st.sampled_from([0, 14, 30])
        change = one(name=WORDS, tax_rate=RATES, payment_terms_days=terms, currency=CURRENCIES, hourly_rate=HOURLY)
        self.ask("PATCH", f"/clients/{it.id}", self.draw(change), self.model.write_client, it)

    def change_a_project(self):
        """A fee may begin to cover its hours, or end to; the quote that it was made from stays."""
        it = self.pick(self.model.projects, lambda it: it.quote)
        body = self.draw(one(billing_type=BILLING, name=WORDS, hourly_rate=HOURLY)) | self.quote_of(it)
        self.ask("PATCH", f"/projects/{it.id}", body, self.model.change_project, it)

    def quote_of(self, it):
        """The quote that something was made from; sometimes another."""
        if not self.sometimes(6):
            return {}
        others = st.sampled_from([NOWHERE, *(quote.id for quote in self.model.quotes)])
        return {"quote_id": self.draw(others) if self.sometimes(3) else it.quote and it.quote.id}

    def let_days_pass(self):
        days = self.draw(st.sampled_from([1, 2, 7, 14, 31]))
        self.let_pass(timedelta(days=days))

    def let_pass(self, time):
        self.traveller.shift(time)
        now = datetime.fromisoformat(self.model.now) + time
        self.model.now = now.isoformat(timespec="microseconds").replace("+00:00", "Z")

    def work(self):
        """Time or an expense for a client, a project, or both."""
        project = self.pick(self.model.projects)
        body = self.days("date") | ({"project_id": project.id} if self.draw(st.booleans()) else {})
        if "project_id" not in body or self.draw(st.booleans()):
            body["client_id"] = self.pick(self.model.clients, lambda it: it is project.client).id
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
        """What an hour costs is no money of a client's, but the summaries know it."""
        told = {"cost_rate": Decimal(self.draw(HOURLY)), "cost_rate_from": self.day()}
        cost_rates.set_user(self.api.store, self.api.admin_id, told)

    def was_freed(self, it):
        """Whether work is on no line any more, but on one that was void or credited."""
        lines = (line for invoice in self.model.invoices for line in invoice.lines)
        return it.invoice_line is None and any(it in line.work for line in lines)

    def change_work(self):
        """Time and expenses change, and go away, until they are billed."""
        it = (
            self.pick(self.model.works, lambda it: it.invoice_line)
            if self.sometimes(3)
            else self.pick(self.model.works)
        )
        if self.sometimes(4):
            it = self.pick([it, *self.model.works], self.was_freed)
            self.ask("DELETE", path_of(it), None, self.model.delete_work, it)
        elif isinstance(it, Entry):
            body = self.draw(one(duration_minutes=st.integers(1, 300), **TIME))
            if self.sometimes(3):
                body["project_id"] = self.draw(
                    st.sampled_from([None, *(project.id for project in self.model.projects)])
                )
            self.ask("PATCH", path_of(it), body, self.model.write_entry, it)
        else:
            body = self.draw(one(billable=st.booleans(), markup_percent=st.just("20"), category=WORDS))
            body |= self.cost(it.currency) if self.sometimes(3) else {}
            self.ask("PATCH", path_of(it), body, self.model.write_expense, it)

    # Quotes

    def offer(self):
        client = self.pick(self.model.clients)
        body = {"client_id": client.id, "lines": self.offered(client)} | self.days("issue_date", "valid_until")
        body |= self.draw(
            some({"title": WORDS, "currency": CURRENCIES, "status": QUOTE_MOVES, "notes": WORDS, "terms": WORDS})
        )
        if self.sometimes(3):
            body["project_id"] = self.project_of(client)
        if self.sometimes(5):
            body |= {"status": self.draw(st.sampled_from(["accepted", "sent"])), "lines": []}
        self.ask("POST", "/quotes", body, self.model.write_quote)

    def change_a_quote(self):
        it = self.pick(self.model.quotes)
        if self.sometimes(6):
            self.ask("DELETE", path_of(it), None, self.model.delete_quote, it)
            return
        body = self.draw(some({"title": WORDS, "status": QUOTE_MOVES})) | self.days("issue_date", "valid_until")
        body |= self.change_of_client(6) | self.draw(some({"notes": WORDS}))
        if self.sometimes(4):
            body = {"external_id": f"x{self.turn}"}
        if self.sometimes(3):
            body["lines"] = self.lines_again(it, self.offered(it.client))
        self.ask("PATCH", path_of(it), body, self.model.write_quote, it)

    def lines_again(self, it, others):
        """Lines that there are, in any order, each as it is, changed, or only named; some left out, others between."""
        change, again = one(description=WORDS, tax_rate=RATES, unit_price=PRICES, quantity=QUANTITIES, unit=WORDS), []
        kept = [line for line in it.lines if not self.sometimes(6)]
        for line in kept:
            its = line.said() if self.sometimes(2) else {"id": line.id}
            if it.status == "draft" and self.sometimes(3):
                its |= self.other_work(line) if line.work and self.sometimes(2) else self.draw(change)
            again.append(its)
        if it.status == "draft" or self.sometimes(8):
            again += others if self.sometimes(3) else []
            again += [{"id": self.draw(st.sampled_from([NOWHERE, *(line.id for line in kept)]))}] * self.sometimes(10)
            again = self.draw(st.permutations(again))
        return None if self.sometimes(15) else again

    def other_work(self, line):
        """Some of the work that a line bills, and perhaps some more."""
        alike = [it for it in self.model.works if type(it) is type(line.work[0]) and it.client is line.document.client]
        chosen = self.draw(st.lists(st.sampled_from(alike), max_size=2)) + line.work[: self.draw(st.integers(0, 2))]
        return {BILLS[line.kind]: [it.id for it in dict.fromkeys(chosen)]}

    def agree(self):
        """A quote becomes a project or an invoice."""
        it = self.pick(self.model.quotes, agreed)
        body = {"quote_id": it.id}
        if it.project is None and not any(line.project for line in it.lines) and self.sometimes():
            body["client_id"] = self.pick(self.model.clients).id
        if self.sometimes(3):
            self.ask("POST", "/projects", body | self.draw(some({"name": WORDS})), self.model.create_project)
        else:
            if it.status == "accepted" and not it.invoice and "client_id" not in body:
                body |= self.draw(some({"subject": WORDS, "status": st.just("sent")}))
                body |= {"lines": self.lines(it.client, it.currency)} if self.sometimes(3) else {}
            self.ask("POST", "/invoices", body, self.model.write_invoice)
        self.touched.append(it)

    def annul(self):
        """An invoice that was made from a quote is void, and the quote can be billed again."""
        it = self.pick(self.model.invoices, can_be_annulled)
        self.ask("PATCH", path_of(it), {"status": "void"}, self.model.write_invoice, it)

    # Invoices

    def arrange_lines(self):
        it = self.pick(self.model.documents, lambda it: it.status == "draft" and it.lines)
        is_quote = isinstance(it, Quote)
        body = {"lines": self.lines_again(it, [] if is_quote else self.lines(it.client, it.currency, it))}
        take = self.model.write_quote if is_quote else self.model.write_invoice
        self.ask("PATCH", path_of(it), body, take, it)

    def bill(self):
        client = self.pick(self.model.clients)
        body = {"client_id": client.id} | self.days("issue_date", "due_date")
        body |= self.draw(some({"subject": WORDS, "status": st.just("sent")}))
        if self.sometimes(5):
            body |= self.draw(one(currency=CURRENCIES, status=MOVES))
        if not self.sometimes(4):
            body["lines"] = self.lines(client, body.get("currency", client.currency))
        if self.sometimes(3):
            body["unbilled_work"] = self.unbilled(client)
        elif self.sometimes(2):
            body["project_id"] = self.project_of(client)
        self.ask("POST", "/invoices", body, self.model.write_invoice)

    def change_an_invoice(self):
        drafts = [it for it in self.model.invoices if it.status == "draft"]
        it = self.pick(drafts if drafts and self.sometimes(2) else self.model.invoices)
        body = self.draw(some({"subject": WORDS, "notes": WORDS})) | self.days("issue_date", "due_date")
        body |= self.change_of_client(8) | self.quote_of(it)
        if self.sometimes(2):
            body["lines"] = self.lines_again(it, self.lines(it.client, it.currency, it))
        if self.sometimes(5):
            body["unbilled_work"] = self.unbilled(it.client)
        elif self.sometimes(4):
            body["project_id"] = self.project_of(it.client)
        if self.sometimes(10):
            body["due_date"] = None
        self.ask("PATCH", path_of(it), body, self.model.write_invoice, it)

    def send(self):
        it = self.pick(self.model.invoices, lambda it: it.status == "draft" and it.lines)
        body = {"status": "sent"} | self.days("due_date")
        if it.lines and it.total > 0 and self.sometimes(4):
            body["record_payment"] = self.payment(it)
        self.ask("PATCH", path_of(it), body, self.model.write_invoice, it)

    def pay(self):
        it = self.pick(self.model.invoices, lambda it: half_way(it) and payable(it), payable)
        body = {"record_payment": self.payment(it)} | ({"status": "paid"} if self.sometimes(6) else {})
        self.ask("PATCH", path_of(it), body, self.model.write_invoice, it)

    def end(self):
        it = self.pick(self.model.invoices, lambda it: half_way(it) and payable(it), payable)
        body = {"status": self.draw(MOVES)}
        if body["status"] in {"void", "written_off"} and self.sometimes():
            body["record_payment"] = {}
        self.ask("PATCH", path_of(it), body, self.model.write_invoice, it)

    def remove_a_payment(self):
        it = self.pick(self.model.payments, lambda it: it.invoice.credit_notes or it.invoice.status == "written_off")
        removed, invoice = payments.remove(self.api.store, it.id), it.invoice
        self.model.remove_payment(it)
        self.touched.append(invoice)
        told = (
            invoice.id,
            invoice.status,
            *(money(units, invoice.currency) for units in (it.amount, invoice.balance_due)),
        )
        assert (removed.invoice_id, removed.invoice_status, removed.amount, removed.balance_due) == told

    def delete_an_invoice(self):
        it = self.pick(self.model.invoices)
        self.ask("DELETE", path_of(it), None, self.model.delete_invoice, it)

    def change_a_line(self):
        it = self.pick(self.model.documents, lambda it: it.status == "draft")
        path, client = path_of(it), it.client
        if it.lines and self.sometimes(3):
            line = self.pick(it.lines)
            self.ask("DELETE", f"{path}/lines/{line.id}", None, self.model.delete_line, line)
        else:
            lines = [] if isinstance(it, Quote) else self.lines(client, it.currency)
            body = lines[0] if lines else self.line(client)
            if self.ask("POST", f"{path}/lines", body, self.model.add_line, it):
                (now,), told = self.answer.json["meta"].values(), it.told()
                assert now == {name: told[name] for name in now}
        self.touched.append(it)

    def send_back_what_was_read(self):
        it = self.pick(self.model.documents)
        self.ask("PUT", path_of(it), self.api.get(path_of(it)).data, self.model.send_back, it)

    # Credit notes

    def credit(self):
        it = self.pick(self.model.invoices, lambda it: half_way(it) and gross(it.room()), creditable)
        body = self.draw(some({"reason": st.sampled_from(["goodwill", "duplicate"])})) | self.days("issue_date")
        kinds = self.draw(st.sampled_from(CREDITS)).split()
        if "amount" in kinds:
            left = max(1, gross(it.room()))
            units = st.one_of(st.integers(1, 3), st.integers(1, left + 1), st.just(left))
            body["amount"] = "0.0005" if self.sometimes(15) else money(self.draw(units), it.currency)
        if it.lines and {"part", "free"} & {*kinds}:
            begun = [part.invoice_line for note in it.credit_notes for part in note.lines if part.invoice_line]
            line = self.draw(st.sampled_from(begun if begun and self.sometimes(2) else it.lines))
            body["lines"] = [
                self.part(it, line) if kind == "part" else self.anything(it) for kind in kinds if kind != "amount"
            ]
        note = self.ask("POST", f"{path_of(it)}/credit-notes", body, self.model.credit, it)
        self.touched.append(it)
        if note:
            with self.api.store.unscoped("the shares of projects, which reports add up") as tx:
                rows = tx.all(select(shares.c.project_id, shares.c.amount).where(shares.c.credit_note_id == note.id))
            told = {project and project.id: units for project, units in note.by_project.items() if units}
            assert {project: units for project, units in rows if units} == told

    def part(self, it, line):
        """A part of what is left of a line, or of another, or all of it."""
        line = self.draw(st.sampled_from(it.lines)) if self.sometimes(3) else line
        parts = [part for note in it.credit_notes for part in note.lines if part.invoice_line is line]
        left = line.quantity - sum(part.quantity for part in parts)
        quantity = plain(Fraction(int(left * self.draw(SHARES) * 10_000), 10_000))
        return {"invoice_line_id": line.id} | self.draw(some({"quantity": st.just(quantity)}))

    def anything(self, it):
        rate, (net, _) = self.draw(st.sampled_from(list(it.room().items())))
        price = money(max(0, net * self.draw(SHARES)), it.currency)
        body = {"description": "Sorry", "unit_price": price, "tax_rate": plain(rate)}
        if self.sometimes(3):
            body |= {"quantity": self.draw(QUANTITIES), "unit_price": self.draw(FEW)}
        if self.sometimes():
            body |= self.draw(one(tax_rate=RATES, invoice_line_id=st.just(NOWHERE)))
        elif self.sometimes():
            del body[self.draw(st.sampled_from(["description", "unit_price", "tax_rate"]))]
        return body

    # What holds after every step

    @invariant()
    def all_is_as_told(self):
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
            assert rows[name].keys() == {it.id for it in records}
            for it in records:
                row = rows[name][it.id]
                it.stamp(model.now)
                told = it.told() | {"updated_at": it.updated_at}
                agree(it, row, {member: its for member, its in told.items() if member in row})
        self.turn += 1
        another = documents[self.turn % len(documents) :][:1] if documents else []
        for it in dict.fromkeys([*self.touched, *another]):
            if it in documents:
                self.look_at(it)
        self.touched = []
        late = {it.id for it in model.invoices if it.is_overdue}
        assert {row["id"] for row in self.reader.get("/invoices", {"status": "overdue", "per_page": 100}).data} == late
        with self.api.store.begin(operator(*self.owner), write=False) as tx:
            tx.snapshot()
            assert doctor.mismatched(tx) == []
        balance(rows, [self.read[it] for it in model.invoices if it in self.read])


def payable(it):
    return it.status in {*OPEN, "written_off"}


def creditable(it):
    return it.status in ISSUED and gross(it.room())


def half_way(it):
    return it.payments or it.credit_notes or it.status == "written_off"


def agreed(it):
    return it.status == "accepted" and not it.invoice


def can_be_annulled(it):
    return it.quote and it.status == "sent"


def path_of(record):
    plural = {"Entry": "time-entries", "Expense": "expenses", "Quote": "quotes", "Invoice": "invoices"}
    return f"/{plural[type(record).__name__]}/{record.id}"


def agree(record, data, told):
    """What was answered of a record is what was told, as far as the model tells it."""
    differ = list(differences(data, told))
    assert not differ, f"{record}, where what was answered and told differ: {differ}"


def differences(data, told, at=""):
    if isinstance(told, dict):
        for name, its in told.items():
            yield from differences(data[name], its, f"{at}.{name}")
    elif isinstance(told, list) and isinstance(data, list) and len(data) == len(told):
        for place, its in enumerate(told):
            yield from differences(data[place], its, f"{at}.{place}")
    elif data != told:
        yield at[1:], data, told


def balance(rows, invoices):
    """What holds of the answers by themselves, whatever the model tells."""
    invoiced, notes = rows["invoices"].values(), rows["credit-notes"].values()
    series = defaultdict(list)
    for number in (row["number"] for row in (*invoiced, *notes) if row["number"]):
        series[number[:-4]].append(int(number[-4:]))
    for numbers in series.values():
        assert sorted(numbers) == list(range(1, len(numbers) + 1))
    for it in invoiced:
        total, paid, credited, due, refund = (
            Fraction(it[name]) for name in ("total", "amount_paid", "amount_credited", "balance_due", "refund_due")
        )
        assert refund == (0 if it["status"] == "void" else paid + credited + due - total)
        own = [note for note in notes if note["invoice_id"] == it["id"]]
        assert credited == sum(Fraction(note["total"]) for note in own)
        assert refund == sum(Fraction(note["refundable_amount"]) for note in own)
        assert sum(Fraction(note["total"]) for note in own) <= max(total, 0)
        assert min(paid, credited, refund, total if it["number"] else 0, due if it["number"] else 0) >= 0
        for member in ("taxable_amount", "tax_amount"):
            room = {share["tax_rate"]: Fraction(share[member]) for share in it["tax_breakdown"]}
            left = dict(room)
            for share in (share for note in own for share in note["tax_breakdown"]):
                left[share["tax_rate"]] -= Fraction(share[member])
            assert all(min(0, room[rate]) <= left[rate] <= max(0, room[rate]) for rate in room)
    for note in notes:
        assert Fraction(note["applied_amount"]) + Fraction(note["refundable_amount"]) == Fraction(note["total"])
    for name, member in (("time-entries", "time_entry_ids"), ("expenses", "expense_ids")):
        live = [it for it in invoices if it["status"] != "void" and not credited_as_a_whole(it)]
        on = Counter(own for it in live for line in it["lines"] for own in line[member])
        assert {own for own, row in rows[name].items() if row["billing_status"] == "billed"} == set(on)
        assert set(on.values()) <= {1}
    for project in rows["projects"].values():
        its = [row for row in rows["time-entries"].values() if row["project_id"] == project["id"]]
        its = [row for row in its if row["billing_status"] == "unbilled" and project["billing_type"] not in COVERED]
        assert project["unbilled_minutes"] == sum(row["duration_minutes"] for row in its)
        own = [row["amount"] for row in its if row["currency"] == project["currency"]]
        assert Fraction(project["unbilled_amount"]) == sum(map(Fraction, own))


def credited_as_a_whole(it):
    notes = [Fraction(note["total"]) for note in it["credit_notes"]]
    return bool(notes) and sum(notes) == Fraction(it["total"])


@pytest.mark.parametrize("chance", range(EXAMPLES // AT_ONCE))
def test_every_life_of_money_is_as_the_model_tells_it(prototype, fast_path, chance):
    chosen = settings(
        max_examples=AT_ONCE,
        stateful_step_count=STEPS,
        phases=[Phase.generate, *([Phase.shrink] if SHRINK else [])],
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run(seed(chance)(lambda: Life(fast_path, prototype)), settings=chosen)
