"""The life of quotes, invoices, payments and credit notes: random requests in any order, after which the books balance.

What is answered is checked after every request; what is stored, which keeps its faults, every few requests.
No model says what a request should do; what the books must fulfil is checked from the answers alone. What amounts
come to is compared with a second implementation in test_money.py.
"""

import math
from collections import Counter, defaultdict
from datetime import timedelta
from fractions import Fraction
from random import Random

import pytest
import time_machine

from retainer.doctor import documents, events, references, series, texts
from retainer.errors import Refusal
from retainer.identity.actors import operator_of
from retainer.rollups import doctor
from retainer.values.kinds import last_day
from tests.databases import any_database, only_postgresql
from tests.length import IS_FULL, by_turns, length, only_full
from tests.reference import taxes
from tests.reference.arithmetic import day_after, half_up, in_units, money
from tests.reference.arithmetic import exact as number

STEPS, STEPS_TO_STORED = 100, 5
LISTS = ("clients", "projects", "time-entries", "expenses", "quotes", "invoices", "credit-notes")
RATES = ("19", "7.0", "0", "8.125")
PRICES = ("800", "33.3333", "0.5", "19.99", "120", "0.0049")
CURRENCIES = ("EUR", "JPY", "KWD")
ISSUED = ("sent", "partially_paid", "paid", "written_off")
COVERED = ("fixed_fee", "retainer")
FIRST_MONTH = "2026-10"
MONTHS = (FIRST_MONTH, "2026-11", "2026-12", "2027-01")
WORK = {"time_entry_ids": ("time-entries", "amount"), "expense_ids": ("expenses", "billable_amount")}
DERIVED = {
    "clients": {"projects_count"},
    "projects": {
        *("tracked_minutes", "billable_minutes", "unbilled_minutes", "billable_amount", "unbilled_amount", "progress"),
        "to_bill_amount",
        *(
            "invoiced_amount",
            "expense_amount",
            "budget_used_percent",
            "task_count",
            "open_task_count",
            "last_activity_at",
        ),
    },
    "time-entries": {"billing_status"},
    "quotes": {"status"},
    "invoices": {"is_overdue", "days_overdue"},
}
"""The fields that follow from other records or from the day, which change without a new `updated_at`."""
UNKNOWN = 999_999_999
DISCOUNT = {"early_payment_discount_percent": "2.5", "early_payment_discount_days": 14}
NO_REVENUE = dict.fromkeys(("revenue", "credited", "discounts", "tax", "collected", "expenses"), "0")
"""What a report leaves out: a currency in which all sums are 0, such as a payment and its refund."""


class Life:
    """A life of an agency. Each step sends a request that is likely to be accepted, or one that is likely to be not."""

    def __init__(self, api, seed, traveller):
        self.api, self.rng, self.traveller = api, Random(seed), traveller
        self.operator = operator_of(api.store, api.account_id)
        self.done = Counter()
        for currency in ("EUR", self.rng.choice(CURRENCIES)):
            terms = {"tax_rate": self.rng.choice(RATES), "hourly_rate": "90"} | DISCOUNT
            client = api.make("/clients", currency=currency, **terms)["id"]
            for more in ({}, {"hourly_rate": "120", **self.terms()}):
                project = api.make("/projects", client_id=client, start_date=f"{FIRST_MONTH}-15", **more)["id"]
                for on in ({"client_id": client}, {"project_id": project}, {"project_id": project}):
                    assert api.post("/time-entries", on | {"duration_minutes": self.rng.randint(1, 90)}).status == 201
                    assert (
                        api.post("/expenses", on | {"amount": "119", "tax_rate": self.rng.choice(RATES)}).status == 201
                    )
            api.make("/invoices", client_id=client, status="sent", lines=[self.item() for _ in range(3)])
        self.books = self.read()

    def read(self):
        books = {name: {row["id"]: row for row in self.list(name)} for name in LISTS}
        for name in ("quotes", "invoices", "credit-notes"):
            books[name] = {record_id: self.api.get(f"/{name}/{record_id}").data for record_id in books[name]}
        return books

    def list(self, name, **query):
        return self.api.get(f"/{name}", {"per_page": 100} | query).data

    # What to draw

    def terms(self):
        billing_type = self.rng.choice(("time_and_materials", *COVERED, "retainer"))
        return {"billing_type": billing_type, "retainer_amount": "50" if billing_type == "retainer" else None}

    def sometimes(self, one_in=6):
        return self.rng.randrange(one_in) == 0

    def pick(self, name, condition=bool):
        """Return a record, mostly one that fulfils the condition, or None if there is none at all."""
        rows = list(self.books[name].values())
        likely = [row for row in rows if condition(row)]
        return self.rng.choice(likely if likely and not self.sometimes(8) else rows) if rows else None

    def day(self):
        return day_after(self.api.today, self.rng.choice((0, 1, -1, -4, -20, 25)))

    def amount(self, most, currency):
        """Return an amount: a part of the most, a unit, all, or too much."""
        units = int(in_units(most, currency))
        part = self.rng.randint(0, max(0, units))
        return money(self.rng.choice((part, part, 1, units, units, units + 1)), currency)

    def line(self, client_id, free):
        """Return a line, with some of the work that is free or, sometimes, with other work."""
        line = {"tax_rate": self.rng.choice(RATES)}
        projects = [row["id"] for row in self.books["projects"].values() if row["client_id"] == client_id]
        if projects and self.sometimes(3):
            line["project_id"] = self.rng.choice([*projects, UNKNOWN] if self.sometimes() else projects)
        if projects and self.sometimes():
            return line | {"project_id": self.rng.choice(projects), "fee_month": self.rng.choice(MONTHS)}
        member = self.rng.choice((*WORK, None, None))
        if member and free[member]:
            chosen = self.rng.sample(free[member], min(len(free[member]), self.rng.randint(1, 3)))
            if not self.sometimes(8):
                free[member] = [record_id for record_id in free[member] if record_id not in chosen]
            return line | {member: chosen}
        line |= {"description": "Item", "unit_price": self.rng.choice(PRICES)}
        line |= {"quantity": self.rng.choice(("1", "3", "0.5", "3.3333", "12", "-1"))} if self.sometimes(2) else {}
        return line | ({"discount_percent": self.rng.choice(("10", "2.5", "100"))} if self.sometimes(4) else {})

    def free(self, client_id, invoice_id=None):
        """Return the work for a client that is unbilled or on an invoice; sometimes other work, too."""
        return {
            member: [
                row["id"]
                for row in self.books[name].values()
                if (row["client_id"] == client_id and row["billing_status"] == "unbilled")
                or (invoice_id and row["invoice_id"] == invoice_id)
                or self.sometimes(40)
            ]
            for member, (name, _) in WORK.items()
        }

    def lines(self, client_id, invoice_id=None):
        free = self.free(client_id, invoice_id)
        return [self.line(client_id, free) for _ in range(self.rng.randint(0, 3))]

    # Steps: each returns the method, the path and the body of a request

    def record_work(self):
        project = self.pick("projects")
        on = {"project_id": project["id"]} if self.sometimes(2) else {"client_id": project["client_id"]}
        if self.sometimes(2):
            return "POST", "/time-entries", on | {"duration_minutes": self.rng.randint(1, 300), "date": self.day()}
        body = {"amount": str(self.rng.choice((-10, 0, 119, 2500))), "markup_percent": self.rng.choice(("0", "33.333"))}
        return "POST", "/expenses", on | body | {"amount_includes_tax": self.sometimes(2), "tax_rate": "19"}

    def change_work(self):
        name = self.rng.choice(("time-entries", "expenses"))
        work = self.pick(name, lambda row: row["billing_status"] != "billed")
        if self.sometimes(4):
            return "DELETE", f"/{name}/{work['id']}", None
        own = {"duration_minutes": self.rng.randint(1, 300)} if name == "time-entries" else {"amount": "77"}
        others = {"billable": self.sometimes(2)}, {"project_id": self.pick("projects")["id"]}, {"description": "More"}
        return "PATCH", f"/{name}/{work['id']}", self.rng.choice((own, *others))

    def change_client(self):
        change = self.rng.choice(
            ({"currency": "KWD"}, {"tax_rate": "7"}, {"payment_terms_days": 7}, {"hourly_rate": "50"})
        )
        return "PATCH", f"/clients/{self.pick('clients')['id']}", change

    def change_project(self):
        return "PATCH", f"/projects/{self.pick('projects')['id']}", self.terms()

    def offer(self):
        client = self.pick("clients")["id"]
        status = self.rng.choice(("draft", "sent", "accepted", "accepted", "declined"))
        return "POST", "/quotes", {"client_id": client, "status": status, "lines": [self.item() for _ in range(2)]}

    def item(self):
        return {"description": "Item", "unit_price": self.rng.choice(PRICES), "tax_rate": self.rng.choice(RATES)}

    def change_quote(self):
        quote = self.pick("quotes")
        status = self.rng.choice(("accepted", "sent", "draft", "declined", "cancelled"))
        body = self.rng.choice(({"status": status}, {"status": status}, {"title": "New"}, {"lines": self.again(quote)}))
        return (
            ("DELETE", f"/quotes/{quote['id']}", None)
            if self.sometimes()
            else ("PATCH", f"/quotes/{quote['id']}", body)
        )

    def convert_quote(self):
        body = {
            "quote_id": self.pick("quotes", lambda row: row["status"] == "accepted" and not row["invoice_id"])["id"]
        }
        if self.sometimes(3):
            return "POST", "/projects", body | {"name": "From a quote"}
        return "POST", "/invoices", body | ({"status": "sent"} if self.sometimes(2) else {})

    def bill(self):
        client = self.pick("clients")
        body = {"client_id": client["id"], "lines": self.lines(client["id"])}
        body |= {"currency": self.rng.choice(CURRENCIES)} if self.sometimes() else {}
        if self.sometimes(3):
            body["unbilled_work"] = {
                "time": {"group_by": self.rng.choice(("project", "entry"))},
                "expenses": {},
                "fees": {},
            }
        return "POST", "/invoices", body | ({"status": "sent"} if self.sometimes(3) else {})

    def again(self, document):
        """Return the lines of a document in another order: changed, only named, or left out; with a new one."""
        lines = [line for line in document["lines"] if not self.sometimes()]
        again = [line if self.sometimes(3) else {"id": line["id"]} for line in lines]
        again = [line | self.other_terms(line["id"], document) for line in again]
        again += [self.item()] if self.sometimes(3) else []
        return self.rng.sample(again, len(again))

    def other_terms(self, line_id, document):
        """Return nothing new for a line, another tax rate or, if it bills work, other work."""
        line = next(each for each in document["lines"] if each["id"] == line_id)
        free = self.free(document["client_id"], document["id"])
        for member in WORK:
            if line.get(member) and free[member] and self.sometimes(2):
                return {member: self.rng.sample(free[member], min(len(free[member]), 2))}
        return {"tax_rate": "20"} if self.sometimes(4) else {}

    def change_invoice(self):
        invoice = self.pick("invoices", is_draft)
        new = {"lines": [*self.again(invoice), *self.lines(invoice["client_id"], invoice["id"])]}
        other = (
            {"client_id": self.pick("clients")["id"]},
            {"subject": "New"},
            {"issue_date": self.day()},
            {"lines": "\0"},
        )
        return "PATCH", f"/invoices/{invoice['id']}", self.rng.choice((new, new, new, *other))

    def change_line(self):
        invoice = self.pick("invoices", lambda row: is_draft(row) and row["lines"])
        if invoice["lines"] and self.sometimes(2):
            return "DELETE", f"/invoices/{invoice['id']}/lines/{self.rng.choice(invoice['lines'])['id']}", None
        return "POST", f"/invoices/{invoice['id']}/lines", [*self.lines(invoice["client_id"]), self.item()][0]

    def delete_invoice(self):
        return "DELETE", f"/invoices/{self.pick('invoices', is_draft)['id']}", None

    def send(self):
        invoice = self.pick("invoices", lambda row: is_draft(row) and row["lines"])
        payment = {"record_payment": {"amount": invoice["total"]}} if self.sometimes(4) else {}
        return "PATCH", f"/invoices/{invoice['id']}", {"status": "sent"} | payment

    def send_back(self):
        invoice = self.pick("invoices")
        return "PUT", f"/invoices/{invoice['id']}", invoice

    def pay(self):
        invoice = self.pick("invoices", is_payable)
        payment = {"amount": self.amount(invoice["balance_due"], invoice["currency"])} if not self.sometimes(3) else {}
        payment |= {"reference": self.rng.choice("abc")} if self.sometimes(2) else {}
        payment |= {"paid_date": self.day()} | ({"allow_surplus": True} if self.sometimes(2) else {})
        if self.sometimes(3) and (other := self.pick("invoices", lambda row: number(row["refund_due"]) > 0)):
            most = min(other["refund_due"], invoice["balance_due"], key=number)
            payment |= {"method": "offset", "offset_invoice_id": other["id"]}
            payment |= {} if self.sometimes(2) else {"amount": self.amount(most, invoice["currency"])}
        if self.sometimes(3):
            payment |= {"early_payment_discount": True} | ({"force": True} if self.sometimes(2) else {})
            payment |= {"amount": self.discounted(invoice)} if self.sometimes(2) else {"amount": None}
        former = [each for each in invoice["payments"] if each["reference"]]
        if former and self.sometimes(2):
            payment = {name: former[0][name] for name in ("reference", "amount", "paid_date")}
        return "PATCH", f"/invoices/{invoice['id']}", {"record_payment": payment}

    def discounted(self, invoice):
        """Return a balance less about its discount."""
        units = int(in_units(invoice["balance_due"], invoice["currency"]))
        return money(units - units // 40 + self.rng.randint(-1, 2), invoice["currency"])

    def refund(self):
        invoice = self.pick("invoices", lambda row: number(row["refund_due"]) > 0)
        amount = self.amount(invoice["refund_due"], invoice["currency"])
        refund = {"amount": amount, "paid_date": self.day()} if not self.sometimes(3) else {}
        return "PATCH", f"/invoices/{invoice['id']}", {"record_refund": refund}

    def end(self):
        invoice = self.pick("invoices", is_payable)
        status = self.rng.choice(("written_off", "written_off", "void", "paid", "draft"))
        return "PATCH", f"/invoices/{invoice['id']}", {"status": status}

    def remove_payment(self):
        payments = [payment for invoice in self.books["invoices"].values() for payment in invoice["payments"]]
        return "REMOVE", self.rng.choice(payments)["id"] if payments else UNKNOWN, None

    def credit(self):
        invoice = self.pick("invoices", is_creditable)
        left = number(invoice["total"]) - number(invoice["amount_credited"])
        body = {"amount": self.amount(str(float(left)), invoice["currency"])} if self.sometimes(2) else {}
        if invoice["lines"] and not body and not self.sometimes(4):
            line = self.rng.choice(invoice["lines"])
            share = self.rng.choice(("0.5", "0.25", "1", "1.5"))
            quantity = (
                {"quantity": f"{float(number(line['quantity']) * number(share)):.4f}"} if self.sometimes(2) else {}
            )
            free = {"description": "Sorry", "unit_price": self.rng.choice(PRICES), "tax_rate": line["tax_rate"]}
            body = {"lines": [{"invoice_line_id": line["id"]} | quantity, *([free] if self.sometimes(3) else [])]}
        return "POST", f"/invoices/{invoice['id']}/credit-notes", body

    def take_a_step(self):
        invoices, payable = self.books["invoices"].values(), (self.pay, self.pay, self.end)
        likely = [
            (
                True,
                [self.record_work, self.change_work, self.change_client, self.change_project, self.offer, self.bill],
            ),
            (self.books["quotes"], [self.change_quote, self.convert_quote]),
            (
                any(map(is_draft, invoices)),
                [self.send, *[self.change_invoice] * 3, self.change_line, self.delete_invoice],
            ),
            (not self.sometimes(3), [self.bill]),
            (any(map(is_payable, invoices)), payable),
            (any(map(is_creditable, invoices)), [self.credit] * 3),
            (any(number(row["refund_due"]) for row in invoices), [self.refund]),
            (any(row["payments"] for row in invoices), [self.remove_payment]),
            (invoices and self.sometimes(4), [*payable, self.credit, self.change_invoice, self.send_back, self.refund]),
        ]
        steps = [step for is_likely, those in likely if is_likely for step in those]
        step = self.rng.choice(steps)
        self.traveller.shift(
            timedelta(days=self.rng.choice((1, 14, 31))) if self.sometimes(8) else timedelta(seconds=1)
        )
        today = self.read() if self.sometimes(8) else None  # what is derived from the day may differ from before
        before = today or self.books
        method, path, body = step()
        accepted, answer = self.ask(method, path, body)
        self.done[step.__name__, accepted] += 1
        self.books = self.read()
        self.check_changes(before, accepted, (method, path, body, answer))
        self.check()

    def ask(self, method, path, body):
        if method == "REMOVE":
            try:
                return True, self.api.remove_payment(path)
            except Refusal as refusal:
                return False, refusal
        answer = self.api.call(method, path, body)
        assert answer.status in {200, 201, 204, 422}, (path, body, answer)
        return answer.status != 422, answer

    # What holds after every step

    def check_changes(self, before, accepted, step):
        """A refused request changes nothing; a record that changes says so."""
        for name in LISTS:
            hidden = DERIVED.get(name, set())
            for record_id, row in self.books[name].items():
                old = before[name].get(record_id)
                changed = {member for member in row if old and old[member] != row[member]} - hidden
                assert accepted or (old and not changed), (step, name, old, row)
                assert not changed or "updated_at" in changed, (step, name, changed)
            assert accepted or before[name].keys() == self.books[name].keys(), step

    def check(self):
        books, invoices = self.books, self.books["invoices"].values()
        notes = defaultdict(list)
        self.done["discount", True] += any(map(taxes.discounts_of, invoices))
        for note in books["credit-notes"].values():
            notes[note["invoice_id"]].append(note)
        for document in (*books["quotes"].values(), *invoices):
            check_totals(document, books)
        for invoice in invoices:
            assert sorted(note["id"] for note in invoice["credit_notes"]) == sorted(
                note["id"] for note in notes[invoice["id"]]
            )
            check_balance(invoice, notes[invoice["id"]], self.api.today)
        offsets = [(each, each["offset_invoice_id"]) for row in invoices for each in row["payments"]]
        here, there = Counter(), Counter()
        for each, other in offsets:
            here[each["invoice_id"], other, number(each["amount"]), each["paid_date"]] += 1 if other else 0
            there[other, each["invoice_id"], -number(each["amount"]), each["paid_date"]] += 1 if other else 0
        assert +here == +there
        check_numbers([*invoices, *books["credit-notes"].values()])
        check_work(books, live_lines(books))
        for project in books["projects"].values():
            check_project(project, books)
        late = {row["id"] for row in invoices if row["is_overdue"]}
        assert {row["id"] for row in self.list("invoices", status="overdue")} == late

    def check_stored(self):
        """The rows of the database agree with the answers, and with each other."""
        live = live_lines(self.books)
        self.check_months(live)
        pieces = "invoice_line_id, time_entry_id, expense_id"
        rows = self.api.sql(f"SELECT {pieces} FROM allocations WHERE is_live = 1")
        assert sorted((line, entry or expense) for line, entry, expense in rows) == sorted(
            (line["id"], record_id) for line in live for member in WORK for record_id in line[member]
        )
        with self.api.store.begin(self.operator, write=False, seconds=math.inf) as tx:
            tx.snapshot()
            assert doctor.mismatched(tx) == []
            for check in (documents.find, references.find_in_account, series.find, texts.find):
                assert [*check(tx)] == []
            assert [*events.find(tx, event_days=30)] == []

    def check_months(self, live):
        """Each month that has begun is billed by one line at most, and is unbilled otherwise."""
        billed = Counter((line["project_id"], line["fee_month"]) for line in live if line["fee_month"])
        assert set(billed.values()) <= {1}
        for project in self.books["projects"].values():
            rows = self.api.get(f"/projects/{project['id']}/unbilled-work").data["rows"]
            first = (project["start_date"] or project["created_at"])[:7]
            months = month_range(first, self.api.today[:7]) if project["retainer_amount"] else []
            unbilled = [month for row in rows for month in row["fees"]["months"]]
            assert unbilled == [month for month in months if (project["id"], month) not in billed]

    def check_reports(self):
        """The reports agree with the records, and with each other, for each month and for all of them."""
        invoices, notes = (list(self.books[name].values()) for name in ("invoices", "credit-notes"))
        issued = [invoice for invoice in invoices if invoice["status"] in ISSUED]
        days = [each["issue_date"] for each in (*issued, *notes)]
        days += [payment["paid_date"] for invoice in issued for payment in invoice["payments"]]
        months = list(month_range(min(days)[:7], max(*days, self.api.today)[:7]))
        spans = [(f"{month}-01", last_day(month)) for month in months]
        for first, last in (*spans, (spans[0][0], spans[-1][1])):
            self.check_taxes(invoices, notes, first, last)
            self.check_identity(issued, spans[0][0], last)

    def report(self, name, first, last, **query):
        return self.api.get(f"/reports/{name}", {"from": first, "to": last} | query).data

    def check_taxes(self, invoices, notes, first, last):
        revenue = {row["currency"]: row for row in self.report("revenue-by-month", first, last)["totals"]}
        overview = {row["currency"]: row for row in self.report("overview", first, last)["money"]}
        for by, model in (("issue", taxes.by_issue), ("payment", taxes.by_payment)):
            found = self.report("tax", first, last, by=by)
            assert taxes.reported(found["rows"]) == model(invoices, notes, first, last), (by, first, last)
            for total in found["totals"]:
                names = taxes.Figures._fields
                own = [row for row in found["rows"] if row["currency"] == total["currency"]]
                assert amounts(total, *names) == [sum(number(row[name]) for row in own) for name in names]
                of_month = revenue.get(total["currency"], NO_REVENUE)
                if by == "issue":
                    names = ("credited", "discounts", "tax")
                    assert amounts(total, "net", *names) == amounts(of_month, "revenue", *names)
                    lost = number(overview.get(total["currency"], {}).get("written_off", "0"))
                    assert sum(amounts(total, "written_off", "written_off_tax")) == lost
                else:
                    assert sum(amounts(total, "net", "tax")) == number(of_month["collected"])
        spent = {total["currency"]: number(total["net"]) for total in found["input_totals"]}
        for currency in spent.keys() | revenue.keys():
            assert spent.get(currency, 0) == number(revenue.get(currency, NO_REVENUE)["expenses"])

    def check_identity(self, issued, first, last):
        """Until any day, all that was invoiced was collected, or is owed, lost, or was paid before its invoice."""
        early = defaultdict(Fraction)
        for invoice in issued:
            if invoice["issue_date"] > last:
                early[invoice["currency"]] += sum(
                    number(payment["amount"]) for payment in invoice["payments"] if payment["paid_date"] <= last
                )
        names = ("revenue", "tax", "collected", "outstanding", "refund_due", "written_off")
        money_of = {"overview": self.report("overview", first, last)["money"]}
        money_of["revenue-by-client"] = self.report("revenue-by-client", first, last)["totals"]
        for report, rows in money_of.items():
            for row in rows:
                revenue, tax, collected, outstanding, refund_due, written_off = amounts(row, *names)
                explained = collected - early[row["currency"]] + outstanding - refund_due + written_off
                assert revenue + tax == explained, (report, last, row)


def month_range(first, last):
    """The months from one to another."""
    while first <= last:
        yield first
        first = day_after(f"{first}-28", 4)[:7]


def is_draft(invoice):
    return invoice["status"] == "draft"


def is_payable(invoice):
    return invoice["status"] in {"sent", "partially_paid", "written_off"}


def is_creditable(invoice):
    return invoice["status"] in ISSUED and invoice["total"] != invoice["amount_credited"]


def amounts(record, *names):
    return [number(record[name]) for name in names]


def check_totals(document, books):
    """Each line is what it says or what its work is worth; the lines of a rate are taxed once."""
    currency, nets = document["currency"], defaultdict(Fraction)
    for line in document["lines"]:
        if line.get("kind", "item") in {"item", "fee"}:
            quantity, price, discount = amounts(line, "quantity", "unit_price", "discount_percent")
            units = half_up(in_units(quantity * price * (1 - discount / 100), currency))
            assert number(line["amount"]) == number(money(units, currency)), line
        for member, (name, worth) in WORK.items():
            work = [books[name].get(each, {}) for each in line.get(member, ())]
            if work and all(
                each.get("invoice_line_id") == line["id"] for each in work
            ):  # and was not freed by a credit
                assert number(line["amount"]) == sum(number(each[worth]) for each in work), line
        nets[number(line["tax_rate"])] += number(line["amount"])
    taxes = {rate: number(money(half_up(in_units(net * rate / 100, currency)), currency)) for rate, net in nets.items()}
    found = {
        number(share["tax_rate"]): tuple(amounts(share, "taxable_amount", "tax_amount"))
        for share in document["tax_breakdown"]
    }
    assert found == {rate: (net, taxes[rate]) for rate, net in nets.items()}
    net, tax = sum(nets.values()), sum(taxes.values())
    assert amounts(document, "subtotal", "tax_total", "total") == [net, tax, net + tax]


def check_balance(invoice, notes, today):
    """What was paid, credited and refunded explains what is due; no rate is credited more than it has."""
    names = ("total", "amount_paid", "amount_credited", "balance_due", "refund_due")
    total, paid, credited, due, refund = amounts(invoice, *names)
    status = invoice["status"]
    money_moved = [payment for payment in invoice["payments"] if payment["kind"] != "discount"]
    discounts = taxes.discounts_of(invoice)
    discounted = sum(number(each["amount"]) for each in discounts)
    assert paid == sum(number(payment["amount"]) for payment in money_moved)
    assert refund == (0 if status == "void" else paid + credited + due - total)
    assert credited == sum(number(note["total"]) for note in notes) + discounted <= max(total, 0)
    surplus = max(0, paid - max(total - discounted, 0))
    assert refund == sum(number(note["refundable_amount"]) for note in notes) + surplus
    assert min(paid, credited, refund, *((total, due) if invoice["number"] else ())) >= 0
    assert status != "paid" or due == 0
    assert status != "sent" or due == total - credited
    assert [name for name in ("paid", "written_off") if invoice[f"{name}_at"]] == [status] * (
        status in {"paid", "written_off"}
    )
    late = status in {"sent", "partially_paid"} and due > 0 and invoice["due_date"] < today
    assert invoice["is_overdue"] == late
    references = [payment["reference"] for payment in invoice["payments"] if payment["reference"]]
    assert len(references) == len(set(references))
    for day in {payment["paid_date"] for payment in invoice["payments"]}:
        assert sum(number(each["amount"]) for each in money_moved if each["paid_date"] <= day) >= 0
    for each in discounts:
        parts = [number(share[name]) for share in each["tax_breakdown"] for name in ("taxable_amount", "tax_amount")]
        assert sum(parts) == number(each["amount"]) > 0
        (own,) = (payment for payment in money_moved if payment["id"] == each["payment_id"])
        assert (own["paid_date"], number(own["amount"]) > 0) == (each["paid_date"], True)
    assert all((payment["method"] == "offset") == bool(payment["offset_invoice_id"]) for payment in invoice["payments"])
    for note in notes:
        applied, refundable, of_note = amounts(note, "applied_amount", "refundable_amount", "total")
        assert applied + refundable == of_note
        assert sum(number(line["amount"]) for line in note["lines"]) == number(note["subtotal"])
    for member in ("taxable_amount", "tax_amount"):
        room = {share["tax_rate"]: number(share[member]) for share in invoice["tax_breakdown"]}
        left = dict(room)
        for share in (share for each in (*notes, *discounts) for share in each["tax_breakdown"]):
            left[share["tax_rate"]] -= number(share[member])
        assert all(min(0, room[rate]) <= left[rate] <= max(0, room[rate]) for rate in room)


def check_numbers(documents):
    """The numbers of each series and year have no gap."""
    series = defaultdict(list)
    for name in (document["number"] for document in documents if document["number"]):
        series[name[:-4]].append(int(name[-4:]))
    for numbers in series.values():
        assert sorted(numbers) == list(range(1, len(numbers) + 1))


def live_lines(books):
    """The lines of invoices that are neither void nor credited as a whole."""
    live = [row for row in books["invoices"].values() if row["status"] != "void" and not is_credited(row)]
    return [line for invoice in live for line in invoice["lines"] if not is_line_credited(line, invoice)]


def check_work(books, lines):
    """Work is billed by one live line at most."""
    for member, (name, _) in WORK.items():
        billed = Counter(record_id for line in lines for record_id in line[member])
        assert {record_id for record_id, row in books[name].items() if row["billing_status"] == "billed"} == set(billed)
        assert set(billed.values()) <= {1}


def is_credited(invoice):
    return bool(invoice["credit_notes"]) and number(invoice["amount_credited"]) == number(invoice["total"])


def is_line_credited(line, invoice):
    parts = [
        part for note in invoice["credit_notes"] for part in note["lines"] if part["invoice_line_id"] == line["id"]
    ]
    return bool(parts) and sum(number(part["quantity"]) for part in parts) == number(line["quantity"])


def invoiced(project, books):
    """What issued invoices without credits bill for a project; None if one has a credit note or a discount."""
    found = 0
    for invoice in books["invoices"].values():
        lines = [line for line in invoice["lines"] if (line["project_id"] or invoice["project_id"]) == project["id"]]
        if lines and invoice["status"] in ISSUED and invoice["currency"] == project["currency"]:
            if invoice["credit_notes"] or taxes.discounts_of(invoice):
                return None
            found += sum(number(line["amount"]) for line in lines)
    return found


def check_project(project, books):
    """The stored sums of a project are those of its work; time that a fee covers is not unbilled."""
    entries = [row for row in books["time-entries"].values() if row["project_id"] == project["id"]]
    covered = {row["billing_status"] for row in entries if row["invoice_id"] is None and row["billable"]}
    assert (covered <= {"covered"}) if project["billing_type"] in COVERED else "covered" not in covered
    assert project["tracked_minutes"] == sum(row["duration_minutes"] for row in entries)
    unbilled = [row for row in entries if row["billing_status"] == "unbilled"]
    assert project["unbilled_minutes"] == sum(row["duration_minutes"] for row in unbilled)
    own = [row["amount"] for row in unbilled if row["currency"] == project["currency"]]
    assert number(project["unbilled_amount"]) == sum(map(number, own))
    costs = [row for row in books["expenses"].values() if row["project_id"] == project["id"]]
    net = [row["net_amount"] for row in costs if row["currency"] == project["currency"]]
    assert number(project["expense_amount"]) == sum(map(number, net))
    assert invoiced(project, books) in {None, number(project["invoiced_amount"])}


@pytest.fixture(scope="module")
def accepted():
    """The kinds of requests that were accepted in any life; rare ones are missing in some."""
    found = set()
    yield found
    assert found >= {"bill", "pay", "credit", "change_invoice"} | ({"discount"} if IS_FULL else set())


def live(api, seed):
    """Take the steps of a life; return the kinds of requests that were accepted."""
    api.set_account({"plan": "enterprise"})
    with time_machine.travel("2026-12-18T10:00:00Z", tick=False) as traveller:
        life = Life(api, seed, traveller)
        for step in range(1, STEPS + 1):
            if step % 20 == 1:
                api.key = api.new_key()  # a key has no more than 3,000 requests a minute, and the clock hardly moves
            life.take_a_step()
            if step % STEPS_TO_STORED == 0:
                life.check_stored()
        life.check_reports()
    return {name for name, is_accepted in life.done if is_accepted}


@any_database
@pytest.mark.parametrize("seed", by_turns(range(length(15))) if IS_FULL else range(1))
def test_the_books_balance_after_every_request(api, seed, accepted):
    accepted |= live(api, seed)


@only_full
@only_postgresql
@pytest.mark.parametrize("seed", by_turns(range(15, 15 + length(5))))
def test_the_books_balance_on_postgresql_too(api, seed, accepted):
    accepted |= live(api, seed)
