"""The five reports beside a reference that looks at every row, while the life of agencies goes on at random."""

import json
import shutil
from collections import defaultdict
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from random import Random
from zoneinfo import ZoneInfo

import pytest
import time_machine
from sqlalchemy import select, update
from testing.agencies import new_store, open_app

from retainer.errors import Refusal
from retainer.fairness import Places
from retainer.identity.actors import operator_of
from retainer.identity.people import users
from retainer.identity.people.users import UserDetails
from retainer.rollups import doctor
from retainer.schema.rollups import SUMMARIES
from retainer.sites.monitor import schedule
from retainer.sites.monitor.schedule import CheckResult
from tests.conftest import CONTRACT_CHECKER
from tests.contract_checker import NoChecks
from tests.factories import ApiClient
from tests.length import IS_FULL, by_turns, length
from tests.reference.arithmetic import money
from tests.reference.reports import ISSUED, REPORTS, WEEK, Books, next_day, units

WORLDS, ROUNDS = length(10), 50
HISTORY, STEPS = 200, 6  # what has happened before anything is asked, and what happens between one round and the next
MAX_DAYS = 1096  # days
UNKNOWN_ID = 999_999_999
CURRENCIES = ("EUR", "JPY", "EUR", "KWD", "USD")
KNOWN_CURRENCIES = ("EUR", "USD", "JPY", "KWD")
ZONES = ("America/Los_Angeles", "Pacific/Kiritimati", "Asia/Beirut", "America/St_Johns", "Europe/Berlin", "UTC")
BILLING = ("time_and_materials", "fixed_fee", "retainer", "non_billable")
WEEKS = ([*WEEK[:5]], [*WEEK[:5]], [*WEEK], ["tue"], ["mon", "wed", "sat"])
NAMES = ("Acme", "acme", "Straße", "STRASSE", "öko", "Öko", "Zeta", "Äther")
PEOPLE = ("Bo", "bo", "Özil", "öcal", "STRASSE", "Straße")
COLLECTIONS = ["clients", "projects", "tasks", "time-entries", "expenses", "invoices", "quotes", "tickets", "sites"]
TRANSITIONS = {
    "planned": ("active", "on_hold"),
    "active": ("on_hold", "completed", "archived", "completed"),
    "on_hold": ("active", "planned"),
    "completed": ("active", "archived"),
    "archived": ("active",),
}

MOMENTS = (
    *((name, "created_at") for name in ("clients", "tickets")),
    *(("quotes", name) for name in ("sent_at", "accepted_at", "declined_at")),
    *(("tasks", "completed_at"), ("tickets", "resolved_at"), ("invoices", "written_off_at")),
)
REVENUE = ("invoiced", "credited", "revenue", "tax", "collected")
NET = {"revenue-by-month": REVENUE, "project-profitability": ("revenue",)}
KNOWN = dict.fromkeys(REPORTS, ("client_id", "currency"))
KNOWN["project-profitability"] += ("project_id",)
KNOWN["utilisation"] += ("project_id", "user_id")


@pytest.fixture(scope="module")
def staffed(prototype, fast_disk):
    """The prototype with more users: to make one takes long, for their passwords are hashed."""
    template, agencies = prototype
    path = fast_disk / "staffed.db"
    shutil.copy(template, path)
    store, agency = new_store(path), agencies["north"]
    with store.begin(operator_of(store, agency["account_id"]), write=True) as tx:
        more = [
            users.create_user(tx, UserDetails(name=name, email=f"{name}@north.example"))
            for name in ("cleo", "dan", "eve")
        ]
    store.engine.close()
    return path, agency, [agency["admin_id"], agency["member_id"], *more]


class NothingToPick(Exception):
    """There is nothing that something could happen to."""


class World:
    """An agency in which something happens all the time."""

    def __init__(self, folder, staffed, number, traveller):
        template, agency, staff = staffed
        shutil.copy(template, folder / "world.db")
        self.rng, self.traveller = Random(number), traveller
        self.api = ApiClient(open_app(folder / "world.db"), CONTRACT_CHECKER, agency)
        self.reader = ApiClient(self.api.app, NoChecks(), agency)
        self.store, self.cached_rows, self.cached_invoices = self.api.store, {}, {}
        self.account = {"plan": "enterprise", "hourly_rate": Decimal(95)}
        self.account |= {"currency": CURRENCIES[number % len(CURRENCIES)], "timezone": ZONES[number % len(ZONES)]}
        self.change_week()
        self.users = {user_id: {"is_active": True, "rates": {}} for user_id in staff}
        for user_id in staff:
            self.employ(user_id)
        for _ in range(4):
            self.set_cost_rate()
        for _ in range(4):
            self.win_client()
        for _ in range(5):
            self.begin_project()
        template = {"name": "Template", "is_template": True, "due_date": "2020-01-01"}
        template = self.api.post("/projects", template).data["id"]
        for status in ("todo", "done"):
            task = {"title": "Plan", "project_id": template, "status": status, "due_date": "2020-01-01"}
            assert self.api.post("/tasks", task).status == 201
        self.steps = [step for step, weight in self.weights().items() for _ in range(weight)]

    def weights(self):
        return {
            self.track: 20,
            self.change_time: 5,
            self.spend: 6,
            self.change_expense: 3,
            self.drop_work: 3,
            self.bill: 9,
            self.send: 2,
            self.change_draft: 2,
            self.drop_draft: 1,
            self.pay: 7,
            self.take_payment_back: 2,
            self.pay_back: 3,
            self.end: 3,
            self.credit: 5,
            self.postpone: 1,
            self.set_cost_rate: 2,
            self.change_user: 2,
            self.change_week: 1,
            self.win_client: 1,
            self.change_client: 2,
            self.begin_project: 1,
            self.change_project: 3,
            self.plan_task: 2,
            self.change_task: 2,
            self.offer: 2,
            self.change_quote: 3,
            self.open_ticket: 2,
            self.change_ticket: 3,
            self.watch_site: 1,
            self.change_site: 1,
            self.check_sites: 1,
        }

    # What there is

    @property
    def now(self):
        return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

    @property
    def today(self):
        return datetime.now(ZoneInfo(self.account["timezone"])).date().isoformat()

    @property
    def books(self):
        rows = {name: self.rows(name) for name in COLLECTIONS} | {
            "invoices": [*map(self.with_parts, self.rows("invoices"))]
        }
        return Books(rows, self.users, self.account, self.now)

    def rows(self, collection):
        """All rows of a collection, read anew after each write."""
        if collection not in self.cached_rows:
            self.cached_rows[collection], page = [], 1
            while page:
                answer = self.reader.get(f"/{collection}", {"per_page": 100, "page": page}).json
                self.cached_rows[collection] += answer["data"]
                page = page + 1 if page < answer["meta"]["last_page"] else None
        return self.cached_rows[collection]

    def with_parts(self, invoice):
        """An invoice with its parts; each change of them changes `updated_at`, for the clock goes on."""
        key = invoice["id"], invoice["updated_at"]
        if key not in self.cached_invoices:
            self.cached_invoices[key] = self.reader.get(f"/invoices/{invoice['id']}").data
        return self.cached_invoices[key]

    def pick(self, collection, where=lambda _: True):
        """One of the rows of which something is true. Raises NothingToPick when it is of none."""
        found = [row for row in self.rows(collection) if where(row)]
        if not found:
            raise NothingToPick
        return self.rng.choice(found)

    def sometimes(self, one_in=3):
        return self.rng.randrange(one_in) == 0

    def day(self):
        """A day of three years or, rarely, beyond them; often at the edge of a month, and often lately."""
        if self.sometimes(40):
            return self.rng.choice(["2019-06-30", "2031-01-01"])
        months = self.rng.choice([*range(-33, 6), *[-2, -1, -1, 0, 0, 0, 1] * 12])
        month = 12 * int(self.today[:4]) + int(self.today[5:7]) - 1 + months
        first, following = (date(number // 12, number % 12 + 1, 1) for number in (month, month + 1))
        edges = [first, first, following - timedelta(days=1), following - timedelta(days=1)]
        chosen = self.rng.choice([*edges, *(first + timedelta(days=self.rng.randint(1, 26)) for _ in edges)])
        return chosen.isoformat()

    def amount(self, most, currency):
        return money(self.rng.randint(1, units(most, currency)), currency)

    def client(self):
        return self.pick("clients", lambda row: row["status"] != "archived")

    def project(self, client=None):
        """The id of a project that takes more, perhaps of a client; none when there is none."""
        closed = {client["id"] for client in self.rows("clients") if client["status"] == "archived"}
        projects = [
            project
            for project in self.rows("projects")
            if project["status"] != "archived" and project["client_id"] not in closed
        ]
        return self.rng.choice(
            [project["id"] for project in projects if client in {None, project["client_id"]}] or [None]
        )

    # What happens

    def send_to(self, method, path, body=None):
        self.cached_rows.clear()
        answer = self.api.call(method, path, body)
        assert answer.status in {200, 201, 204}, (method, path, body, answer)

    def post(self, path, **body):
        self.send_to("POST", path, body)

    def patch(self, collection, row, **body):
        self.send_to("PATCH", f"/{collection}/{row['id']}", body)

    def run_steps(self, times):
        """So often some time passes, perhaps until the very beginning of a day, and then something happens that can."""
        for _ in range(times):
            self.traveller.shift(timedelta(minutes=self.rng.choice([1, 7, 100, 700, 1440, 3000])))
            if self.sometimes(5):
                zone = ZoneInfo(self.account["timezone"])
                self.traveller.move_to(datetime.fromisoformat(next_day(self.today)).replace(tzinfo=zone))
            happened = False
            while not happened:
                with suppress(NothingToPick):
                    self.rng.choice(self.steps)()
                    happened = True

    def user(self):
        return self.rng.choice([user_id for user_id, user in self.users.items() if user["is_active"]])

    def on(self):
        """What time and expenses are for."""
        project = None if self.sometimes(4) else self.project()
        return {"project_id": project} if project else {"client_id": self.client()["id"]}

    def track(self):
        body = {"date": self.day(), "duration_minutes": self.rng.choice([1, 7, 50, 90, 333]), "user_id": self.user()}
        if self.sometimes(4):
            body |= {"billable": False}
        if self.sometimes(3):
            body |= {"hourly_rate": self.rng.choice([0, 33, 120])}
        self.post("/time-entries", **self.on(), **body)

    def change_time(self):
        entry = self.pick("time-entries", not_billed)
        change = [
            {"date": self.day()},
            {"date": next_day(entry["date"])},
            {"duration_minutes": self.rng.randint(1, 600)},
        ]
        change += [
            {"user_id": self.user()},
            {"hourly_rate": 77},
            self.moved_project(entry) | {"hourly_rate": self.rng.choice([None, 33])},
        ]
        change += [{"billable": not entry["billable"]}] if entry["client_id"] else []
        self.patch("time-entries", entry, **self.rng.choice(change))

    def moved_project(self, work):
        """What moves time or an expense to another project; to an internal one, where it is not billed."""
        project = self.project() or work["project_id"]
        internal = {row["id"] for row in self.rows("projects") if row["client_id"] is None}
        return {"project_id": project} | ({"billable": False} if project in internal else {})

    def spend(self):
        currency = self.rng.choice([*KNOWN_CURRENCIES, *[self.account["currency"]] * 4])
        body = {"date": self.day(), "currency": currency, "user_id": self.user()} | self.on()
        body |= {"tax_rate": self.rng.choice([0, 19]), "amount_includes_tax": self.sometimes()}
        body |= {"markup_percent": self.rng.choice([0, 10, "33.333"])}
        self.post("/expenses", amount="-" * self.sometimes(6) + self.amount(900, currency), **body)

    def change_expense(self):
        expense = self.pick("expenses", not_billed)
        change = [{"date": self.day()}, {"amount": self.amount(70, expense["currency"])}, {"tax_rate": 7}]
        change += [self.moved_project(expense)]
        change += [{"billable": not expense["billable"]}, {"markup_percent": 50}] if expense["client_id"] else []
        self.patch("expenses", expense, **self.rng.choice(change))

    def drop_work(self):
        collection = self.rng.choice(["time-entries", "expenses"])
        self.send_to("DELETE", f"/{collection}/{self.pick(collection, not_billed)['id']}")

    def items(self, client):
        found = []
        for _ in range(self.rng.choice([1, 1, 2, 3])):
            item = {
                "unit_price": self.rng.choice(["100", "33.3333", "19.99", "250.5", "1250", "12"]),
                "quantity": self.rng.choice(["1", "3", "2.5", "0.3333", "7"]),
                "tax_rate": self.rng.choice([0, 7, 19, "8.125"]),
                "description": "Item",
            }
            project = self.project(client) if self.sometimes(2) else None
            found.append(item | {"discount_percent": 10 * self.sometimes(4), "project_id": project})
        if self.sometimes(8):
            found.append({"description": "Rebate", "quantity": -1, "unit_price": "1.5", "tax_rate": 19})
        if self.sometimes(25):
            return [{"description": "Free", "unit_price": 0}]
        return found

    def works(self, client, currency):
        """Lines for work that is not on any invoice."""
        lines = []
        for collection, member in (("time-entries", "time_entry_ids"), ("expenses", "expense_ids")):
            unbilled = [
                row["id"]
                for row in self.rows(collection)
                if (row["client_id"], row["currency"], row["billing_status"]) == (client, currency, "unbilled")
                and Fraction(row["amount"]) >= 0
            ]
            chosen = self.rng.sample(unbilled, min(len(unbilled), self.rng.randint(0, 4)))
            pieces = [chosen] if self.sometimes(2) else [[work_id] for work_id in chosen]
            lines += [{member: ids} for ids in pieces if ids]
        return lines

    def dates(self):
        day = self.day()
        due = (date.fromisoformat(day) + timedelta(days=self.rng.choice([0, 1, 14, 40]))).isoformat()
        return {"issue_date": day, "due_date": self.rng.choice([due, None])}

    def bill(self):
        client = self.client()
        currency = self.rng.choice([client["currency"], client["currency"], "KWD"])
        body = {} if self.sometimes(4) else self.dates()
        body |= {"project_id": self.project(client["id"]) if self.sometimes() else None}
        body |= {"lines": [*self.items(client["id"]), *self.works(client["id"], currency)]}
        status = "draft" if self.sometimes(4) else "sent"
        self.post("/invoices", client_id=client["id"], currency=currency, status=status, **body)

    def send(self):
        self.patch("invoices", self.pick("invoices", of_status("draft")), status="sent")

    def change_draft(self):
        draft = self.pick("invoices", of_status("draft"))
        self.patch("invoices", draft, **self.rng.choice([{"lines": self.items(draft["client_id"])}, self.dates()]))

    def drop_draft(self):
        self.send_to("DELETE", f"/invoices/{self.pick('invoices', of_status('draft'))['id']}")

    def pay(self):
        due = of_status("sent", "partially_paid", "written_off")
        invoice = self.pick("invoices", lambda row: due(row) and Fraction(row["balance_due"]))
        days = [invoice["issue_date"], invoice["due_date"], next_day(invoice["due_date"]), self.day(), self.today]
        part = {"amount": self.amount(invoice["balance_due"], invoice["currency"])}
        body = {"paid_date": min(self.rng.choice(days), self.today)} | ({} if self.sometimes() else part)
        self.patch("invoices", invoice, **({"status": "paid"} if self.sometimes(5) else {"record_payment": body}))

    def take_payment_back(self):
        invoice = self.with_parts(self.pick("invoices", lambda row: Fraction(row["amount_paid"])))
        self.cached_rows.clear()
        with suppress(Refusal):  # of a payment that was refunded
            self.api.remove_payment(self.rng.choice(invoice["payments"])["id"])

    def pay_back(self):
        invoice = self.with_parts(self.pick("invoices", lambda row: Fraction(row["refund_due"])))
        part = {"amount": self.amount(invoice["refund_due"], invoice["currency"])}
        last = max(payment["paid_date"] for payment in invoice["payments"])
        body = {"paid_date": min(max(last, self.day()), self.today)} | ({} if self.sometimes(2) else part)
        self.patch("invoices", invoice, record_refund=body)

    def end(self):
        """Nothing more is expected of an invoice."""
        invoice = self.pick("invoices", of_status("sent", "partially_paid"))
        self.patch(
            "invoices", invoice, status="void" if invoice["status"] == "sent" and self.sometimes(2) else "written_off"
        )

    def credit(self):
        """A part of an invoice or all of it; of its lines, or an amount when that can be of one project only."""
        invoice = self.with_parts(
            self.pick("invoices", lambda row: of_status(*ISSUED)(row) and left_of(self.with_parts(row)))
        )
        body = {} if self.sometimes() else {"issue_date": max(invoice["issue_date"], self.day())}
        former = [line for note in invoice["credit_notes"] for line in note["lines"]]
        parts = [*self.parts(invoice, former)] if all(line["invoice_line_id"] for line in former) else []
        if any(Fraction(line["amount"]) < 0 for line in invoice["lines"]):
            parts = []
        elif len({line["project_id"] or invoice["project_id"] for line in invoice["lines"]}) == 1 and self.sometimes(2):
            body |= {"amount": self.amount(left_of(invoice), invoice["currency"])}
        if parts and "amount" not in body and not self.sometimes():
            body |= {"lines": self.rng.sample(parts, self.rng.randint(1, len(parts)))}
        self.post(f"/invoices/{invoice['id']}/credit-notes", **body)

    def parts(self, invoice, former):
        """Halves of what is left of an invoice's lines, or all of it."""
        for line in invoice["lines"]:
            lines = [line, *(credited for credited in former if credited["invoice_line_id"] == line["id"])]
            quantity, amount = (2 * Fraction(line[name]) - total(lines, name) for name in ("quantity", "amount"))
            if amount > 1:
                part = Fraction(int(quantity * 5_000), 10_000) if self.sometimes(2) else quantity
                yield {"invoice_line_id": line["id"], "quantity": f"{Decimal(part.numerator) / part.denominator}"}

    def postpone(self):
        invoice = self.pick("invoices", lambda row: row["number"])
        self.patch("invoices", invoice, due_date=max(invoice["issue_date"], self.day()))

    def set_user(self, user_id, **changes):
        self.api.set_user(user_id, changes)
        self.users[user_id] |= changes

    def employ(self, user_id):
        self.set_user(
            user_id,
            name=self.rng.choice(PEOPLE),
            weekly_capacity_minutes=self.rng.choice([0, 1, 600, 2250, 2400, 2401, 10080]),
            target_percent=Decimal(self.rng.choice(["75", "72.5", "0", "33.333", "100"])),
        )

    def set_cost_rate(self):
        user_id, day = self.rng.choice([*self.users]), "0001-01-01" if self.sometimes() else self.day()
        rate = Decimal(self.amount(80, self.account["currency"]))
        self.api.set_user(user_id, {"cost_rate": rate, "cost_rate_from": day})
        self.users[user_id]["rates"][day] = rate

    def change_user(self):
        user_id = self.rng.choice([other for other in self.users if other != self.api.admin_id])
        if self.sometimes(2):
            self.set_user(user_id, is_active=not self.users[user_id]["is_active"])
        else:
            self.employ(user_id)

    def change_week(self):
        self.account["working_weekdays"] = self.rng.choice(WEEKS)
        self.api.set_account(self.account)

    def win_client(self):
        currency = self.rng.choice([*KNOWN_CURRENCIES, *[self.account["currency"]] * 3])
        self.post("/clients", name=self.rng.choice(NAMES), currency=currency, hourly_rate=self.rng.choice([110, None]))

    def change_client(self):
        client = self.pick("clients")
        numbered = any(invoice["number"] and invoice["client_id"] == client["id"] for invoice in self.rows("invoices"))
        change = [{"name": self.rng.choice(NAMES)}, {"status": "prospect"}, {"status": "active"}]
        change += [] if numbered else [{"currency": self.rng.choice([*KNOWN_CURRENCIES])}] * 4
        others = [
            other for other in self.rows("clients") if other["id"] != client["id"] and other["status"] != "archived"
        ]
        change += [{"status": "archived"}] if others else []
        self.patch("clients", client, **self.rng.choice(change))

    def begin_project(self):
        client = None if self.sometimes(5) else self.client()["id"]
        budgets = {"budget_amount": self.rng.choice([None, 0, 500, 3000])}
        budgets |= {"budget_minutes": self.rng.choice([None, 0, 50, 600])}
        terms = {"hourly_rate": self.rng.choice([None, 90])}
        terms |= {"billing_type": self.rng.choice([None, *BILLING])} if client else {}
        name, due_date = self.rng.choice(NAMES), self.day()
        self.post("/projects", name=name, client_id=client, due_date=due_date, **budgets, **terms)

    def change_project(self):
        project = self.pick("projects")
        change = [{"status": self.rng.choice(TRANSITIONS[project["status"]])}] * 2
        change += [{"due_date": self.rng.choice([self.day(), self.today])}, {"name": self.rng.choice(NAMES)}]
        change += [{"budget_minutes": 400}, {"budget_amount": project["billable_amount"], "budget_minutes": None}]
        change += [{"budget_amount": None, "budget_minutes": project["tracked_minutes"]}]
        change += [{"billing_type": self.rng.choice(BILLING)}] * 2 if project["client_id"] else []
        self.patch("projects", project, **self.rng.choice(change))

    def plan_task(self):
        self.post("/tasks", title="Write", due_date=self.day(), **self.on())

    def change_task(self):
        status = self.rng.choice(["done", "done", "cancelled", "in_review", "todo"])
        self.patch("tasks", self.pick("tasks"), status=status)

    def offer(self):
        self.post("/quotes", client_id=self.client()["id"], lines=[{"description": "Design", "unit_price": 9}])

    def change_quote(self):
        legal = {"draft": ("sent", "accepted", "declined"), "sent": ("accepted", "declined")}
        quote = self.pick("quotes")
        status = self.rng.choice(legal.get(quote["status"], ("draft",)))
        renewed = (
            {"valid_until": next_day(self.today)} if status == "sent" and quote["valid_until"] < self.today else {}
        )
        self.patch("quotes", quote, status=status, **renewed)

    def open_ticket(self):
        self.post("/tickets", subject="Slow", **(self.on() if self.sometimes(2) else {}))

    def change_ticket(self):
        ticket = self.pick("tickets")
        if self.sometimes(2):
            self.post(f"/tickets/{ticket['id']}/replies", body="We look into it.", is_internal=self.sometimes())
        else:
            self.patch("tickets", ticket, status=self.rng.choice(["open", "resolved", "closed", "pending"]))

    def watch_site(self):
        self.post("/sites", url=f"https://shop{self.api.next()}.example", **self.on())

    def change_site(self):
        plugin = {"slug": "shop", "version": "1.0", "update_version": self.rng.choice(["1.0", "1.1"])}
        change = [{"wp_version": "6.8", "wp_update_version": self.rng.choice(["6.8", "6.9"])}, {"plugins": [plugin]}]
        change += [{"monitoring_enabled": self.sometimes(2)}, {"maintenance_until": f"{self.day()}T00:00:00Z"}]
        self.patch("sites", self.pick("sites"), **self.rng.choice(change))

    def check_sites(self):
        """The monitor looks at all that is due."""
        self.cached_rows.clear()
        taken = schedule.DUE.claim(self.store, Places(200, ()), timedelta(minutes=1))
        for due in taken:
            schedule.save_result(self.store, due, CheckResult(self.sometimes()))

    # What is asked

    def period(self, books):
        """Days that matter: a day, a part of a month, months and their edges, years; or what is usual."""
        kinds = [[move.day for move in books.moves]] * 4 + [
            [invoice["due_date"] for invoice in books.issued],
            [books.today],
        ] * 2
        kinds += [[books.day(row[name]) for row in books.rows[collection] if row[name]] for collection, name in MOMENTS]
        days = self.rng.choice([*filter(None, kinds)])
        day = date.fromisoformat(self.rng.choice(days)) + timedelta(days=self.rng.choice([-1, 0, 0, 0, 1]))
        first = day.replace(day=1)
        last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        one = timedelta(days=1)
        short, long = self.rng.randint(0, 45) * one, self.rng.randint(30, 1000) * one
        begins, ends = self.rng.choice(
            [
                (day, day),
                (day, day + short),
                (day - short, day),
                (first, day),
                (day, last),
                (first, last),
                (last, last + one),
                (first + one, last - one),
                (first - one, last + one),
                (first - short, last + short),
                (first - long, last),
                (day - long, day),
                (day - long, day + short),
                (day - (MAX_DAYS - 1) * one, day),
                (None, day),
                (None, None),
            ]
        )
        return {name: day.isoformat() for name, day in (("from", begins), ("to", ends)) if day}

    def report_params(self, books):
        """What each report is asked: the days, and perhaps a client, a currency, a project, a user."""
        days, limits = (
            self.period(books),
            {"client_id": [*[client["id"] for client in books.rows["clients"]] * 3, UNKNOWN_ID]},
        )
        limits |= {
            "project_id": [project["id"] for project in books.rows["projects"]],
            "user_id": [*self.users, UNKNOWN_ID],
        }
        limits |= {"currency": [*KNOWN_CURRENCIES]}
        chosen = {name: self.rng.choice(values) for name, values in limits.items() if self.sometimes(4)}
        always = {} if self.sometimes() else days
        for report, known in KNOWN.items():
            params = days if report != "project-profitability" else always | {"to": days.get("to", self.today)}
            yield report, params | {name: value for name, value in chosen.items() if name in known}

    def compare(self, closely):
        """Ask for every report, and compare it with what the reference expects."""
        books, expected = self.books, {}
        api = self.api if closely else self.reader
        for report, params in self.report_params(books):
            me = {"user_id": "me"} if params.get("user_id") == api.admin_id else {}
            answer = api.get(f"/reports/{report}", params | me)
            assert answer.status == 200, answer
            reported = json.loads(answer.body, parse_float=Fraction)
            assert reported["meta"] == {"generated_at": self.now}
            assert reported["data"] == REPORTS[report](books, params), f"{report} of {params}, today is {books.today}"
            expected[report] = reported["data"]
        for report in (name for name in expected if name != "overview"):
            assert_totals_add_up(expected[report])
        assert_reports_agree(expected, of_projects="project_id" in params)


def not_billed(row):
    return row["billing_status"] != "billed"


def of_status(*statuses):
    return lambda row: row["status"] in statuses


def total(rows, name):
    return sum(Fraction(row[name]) for row in rows)


def left_of(invoice):
    """What of an invoice is not yet credited."""
    return Fraction(invoice["total"]) - total(invoice["credit_notes"], "total")


def assert_totals_add_up(report):
    """Each field of a total that is a sum is that of the rows of its currency, null where they are."""
    rows = defaultdict(list)
    for row in report["rows"]:
        rows[row["currency"]].append(row)
    assert rows.keys() <= {total["currency"] for total in report["totals"]}
    for total in report["totals"]:
        for name, value in total.items():
            if name.endswith(("_percent", "currency", "currencies")):
                continue
            summed = [row[name] for row in rows[total["currency"]]]
            assert summed == [None] * len(summed) if value is None else Fraction(value) == sum(map(Fraction, summed)), (
                name
            )


def assert_reports_agree(expected, *, of_projects):
    """The reports of revenue tell the same of the same days, and so do projects together."""
    by_client = expected["revenue-by-client"]
    others = {"overview": expected["overview"]["money"]} | {name: expected[name]["totals"] for name in NET}
    for report, totals in others.items():
        if expected[report]["period"] == by_client["period"] and not (
            of_projects and report == "project-profitability"
        ):
            names = NET.get(report, REVENUE)
            assert of_each_currency(totals, names) == of_each_currency(by_client["totals"], names), report


def of_each_currency(totals, names):
    """Figures that are not nothing, by currency."""
    expected = {total["currency"]: [Fraction(total[name]) for name in names] for total in totals}
    return {currency: figures for currency, figures in expected.items() if any(figures)}


@pytest.fixture
def world(staffed, fast_path, number):
    with time_machine.travel(
        datetime(2026, number % 12 + 1, 1 + 9 * (number % 3), tzinfo=UTC), tick=False
    ) as traveller:
        created = World(fast_path, staffed, number, traveller)
        yield created
        created.store.engine.close()


@pytest.mark.parametrize("number", by_turns(range(WORLDS)) if IS_FULL else range(WORLDS))
def test_every_report_is_what_a_look_at_every_row_tells(world):
    world.run_steps(HISTORY)
    for turn in range(ROUNDS):
        world.run_steps(STEPS)
        world.compare(closely=turn % 5 == 0)
    assert doctor.inspect(world.store, repair=False) == []
    right = {table.name: sums_of(world.store, table) for table in SUMMARIES}
    for table in SUMMARIES:
        last = [column.name for column in table.c][-1]
        with world.store.unscoped(write=True) as tx:
            assert tx.change(update(table).values({last: table.c[last] + 1})), "there is a row to be wrong"
    assert len(doctor.inspect(world.store, repair=True)) == len(SUMMARIES)
    assert {table.name: sums_of(world.store, table) for table in SUMMARIES} == right


def sums_of(store, table):
    """The rows of a summary in which there is anything."""
    with store.unscoped() as tx:
        rows = tx.all(select(table))
    return {row for row in rows if any(row[table.c.keys().index("currency") + 1 :])}
