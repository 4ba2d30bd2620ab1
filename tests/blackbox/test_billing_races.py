import contextlib
import random
import threading
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import psycopg
import pytest
from testing.process import PATIENCE, at_once, query, statuses, unsound

from retainer.errors import MAX_OF_A_KIND
from retainer.store.engines import Sqlite
from tests.blackbox import gapless
from tests.databases import CLUSTER
from tests.length import length, only_full
from tests.reference.arithmetic import rounded

RATE = 9999  # cents an hour: most amounts have to be rounded
DAYS = [f"2026-03-{day:02}" for day in range(1, 11)]
MISSING = "There is no such time entry in this account."
NOT_BILLABLE = "Time entry {} is not billable. Leave it out, or make it billable first."
DESIGN = {"description": "Design", "unit_price": "500"}


def time_amount(minutes):
    """Minutes at the rate, half a cent up."""
    return Decimal((2 * minutes * RATE + 60) // 120) / 100


def added(values):
    return sum(map(Decimal, values), Decimal(0))


class Desk:
    """A client of the agency with a project, and some hours that were worked on it."""

    def __init__(self, servers, agency):
        self.servers = servers
        self.key = agency["key"]
        self.account = agency["account_id"]
        self.client = self.one("POST", "/clients", {"name": "Bergmann", "tax_rate": "19"}).data["id"]
        project = {"client_id": self.client, "name": "Webshop", "hourly_rate": f"{Decimal(RATE) / 100}"}
        self.project = self.one("POST", "/projects", project).data["id"]

    def one(self, *call, **headers):
        with self.servers.client(self.key) as client:
            return client.insist(*call, **headers)

    def get(self, path):
        return self.one("GET", path).data

    def together(self, calls, **headers):
        """The answers to requests that are sent at the same moment, each over a connection of its own."""
        clients = [self.servers.client(self.key) for _ in calls]
        barrier = threading.Barrier(len(calls))

        def send(number):
            barrier.wait(timeout=PATIENCE)
            return clients[number].insist(*calls[number], **headers)

        with contextlib.ExitStack() as stack:
            for client in clients:
                stack.enter_context(client)
            at_once(len(calls), lambda number: clients[number].get("/me"))
            return at_once(len(calls), send)

    def worked(self, count):
        """The ids of entries of 1 to 100 minutes, on ten days in turn."""
        bodies = [
            {"project_id": self.project, "date": DAYS[n % 10], "duration_minutes": n * 37 % 100 + 1}
            for n in range(count)
        ]
        return sorted(self.made("/time-entries", bodies))

    def drafts(self, count, **members):
        """The paths of new drafts."""
        bodies = [{"client_id": self.client, **members}] * count
        return [f"/invoices/{invoice_id}" for invoice_id in self.made("/invoices", bodies)]

    def made(self, path, bodies):
        operations = [{"method": "POST", "path": path, "body": body} for body in bodies]
        results = self.one("POST", "/batch", {"operations": operations}).data["results"]
        return [result["body"]["data"]["id"] for result in results]

    def invoices(self):
        """Every invoice as it is answered alone."""
        found = query(self.servers.database, f"SELECT id FROM invoices WHERE account_id = {self.account} ORDER BY id")
        return at_once(8, lambda n: self.get(f"/invoices/{found[n][0]}"), len(found))

    def billed(self):
        """Where each hour stands; entries, lines, invoices and the project must say the same about it."""
        entries = {entry["id"]: entry for entry in self.get("/time-entries?per_page=100")}
        billed_on, invoiced = {}, Decimal(0)
        for invoice in self.invoices():
            assert added(line["amount"] for line in invoice["lines"]) == Decimal(invoice["subtotal"])
            if invoice["status"] not in {"draft", "void"}:
                invoiced += Decimal(invoice["subtotal"]) - added(note["subtotal"] for note in invoice["credit_notes"])
            credited = added(note["total"] for note in invoice["credit_notes"])
            if invoice["status"] == "void" or (credited and credited == Decimal(invoice["total"])):
                continue
            for line in invoice["lines"]:
                entries_of_line = [entries[entry] for entry in line["time_entry_ids"]]
                assert not billed_on.keys() & {entry["id"] for entry in entries_of_line}, "an hour stands on two lines"
                billed_on |= {entry["id"]: (invoice["id"], line["id"]) for entry in entries_of_line}
                assert all(entry["billable"] for entry in entries_of_line)
                if entries_of_line:
                    hours = Fraction(sum(entry["duration_minutes"] for entry in entries_of_line), 60)
                    assert Fraction(line["quantity"]) == rounded(hours, 4)
                    assert Decimal(line["amount"]) == added(entry["amount"] for entry in entries_of_line)
        locked = [entry for entry in entries.values() if entry["is_locked"]]
        reported = {entry["id"]: (entry["invoice_id"], entry["invoice_line_id"]) for entry in locked}
        assert reported == billed_on
        for entry in entries.values():
            assert Decimal(entry["amount"]) == (time_amount(entry["duration_minutes"]) if entry["billable"] else 0)
        project = self.get(f"/projects/{self.project}")
        rest = [entry_id for entry_id, entry in entries.items() if entry["billable"] and entry_id not in billed_on]
        assert project["unbilled_minutes"] == sum(entries[entry_id]["duration_minutes"] for entry_id in rest)
        assert Decimal(project["unbilled_amount"]) == added(entries[entry_id]["amount"] for entry_id in rest)
        assert project["tracked_minutes"] == sum(entry["duration_minutes"] for entry in entries.values())
        assert Decimal(project["invoiced_amount"]) == invoiced
        assert unsound(self.servers.database) == []
        return {entry_id: invoice for entry_id, (invoice, _) in billed_on.items()}


@pytest.fixture
def desk(servers, agency):
    return Desk(servers, agency)


def bill_by_ids(way, desk, hours, draft):
    """A request that bills hours by their ids."""
    line = {"time_entry_ids": hours}
    if way == "line":
        return ("POST", f"{draft}/lines", line)
    if way == "patch":
        return ("PATCH", draft, {"lines": [DESIGN, line]})
    issued = {"status": "sent"} if way == "issue" else {}
    return ("POST", "/invoices", {"client_id": desk.client, "lines": [line], **issued})


def bill_unbilled(desk, draft, **limits):
    """A request that bills whatever is not yet billed."""
    asked = {"unbilled_work": {"time": limits}}
    return ("PATCH", draft, asked) if draft else ("POST", "/invoices", {"client_id": desk.client, **asked})


def errors_by_hour(answer, call):
    """The hours that a refusal names, each with what it says of it."""
    members = call[2]
    prefix, lines = ("", [members]) if "time_entry_ids" in members else ("lines.", members["lines"])
    messages = {}
    for name, (message,) in answer.json["errors"].items():
        *line, member, place = name.removeprefix(prefix).split(".")
        assert member == "time_entry_ids"
        messages[lines[int(line[0]) if line else 0]["time_entry_ids"][int(place)]] = message
    return messages


def already_billed(hour, invoice):
    return f"Time entry {hour} is already on invoice {invoice}. Leave it out."


@only_full
@pytest.mark.parametrize("kills", [2, 0], ids=["killed", "alone"])
@pytest.mark.parametrize("servers", [2] if CLUSTER else [1, 2])
def test_numbers_of_fifty_writers_have_neither_gap_nor_duplicate(tmp_path, request, servers, kills):
    addresses, issued = {}, length(200)
    if servers > 1:
        databases, valkey = map(request.getfixturevalue, ("postgresql_databases", "valkey_process"))
        addresses = {"RETAINER_DATABASE_URL": databases.create(), "RETAINER_VALKEY_URL": valkey.url}
    book, series = gapless.run(tmp_path, issued, kills=kills, servers=servers, **addresses)
    assert book.wrong == []
    assert len(book.acknowledged["invoices"]) == issued + 4, "one more in each series"
    assert sum(book.refused.values()) == issued // 4
    assert set(book.refused) == set(gapless.KINDS)
    assert set(book.answers) <= {200, 201, 409, 412, 422, 503}, "503: another waited too long for its turn, and retries"
    assert series == 8, "invoices and credit notes of two accounts in two years"


@only_full
def test_of_fifty_callers_that_bill_the_same_hundred_hours_one_wins(desk):
    hours = desk.worked(100)
    drafts = desk.drafts(25, lines=[DESIGN])
    calls = [bill_by_ids(way, desk, hours, drafts.pop()) for way in ("line", "patch") * 10]
    calls += [bill_by_ids(way, desk, hours, None) for way in ("create", "issue") * 10]
    calls += [bill_unbilled(desk, draft, group_by="user") for draft in [*drafts, *[None] * 5]]
    for _ in range(3):
        random.shuffle(calls)
        before = {invoice["id"]: invoice for invoice in desk.invoices()}
        answers = desk.together(calls)
        (won,) = [answer for answer in answers if answer.status in {200, 201}]
        where = desk.billed()
        assert sorted(where) == hours
        (invoice,) = set(where.values())
        for answer, call in zip(answers, calls, strict=True):
            if answer is not won and "unbilled_work" in call[2]:
                assert (answer.status, answer.code) == (422, "nothing_to_bill")
                assert list(answer.json["errors"]) == ["unbilled_work"]
            elif answer is not won:
                assert (answer.status, answer.code) == (422, "already_billed")
                told = errors_by_hour(answer, call)
                assert told == {hour: already_billed(hour, invoice) for hour in list(hours)[:MAX_OF_A_KIND]}
        after = {one["id"]: one for one in desk.invoices()}
        assert after | {invoice: None} == before | {invoice: None}, "whoever lost has left nothing"
        if after[invoice]["status"] == "draft":
            assert desk.one("DELETE", f"/invoices/{invoice}").status == 204
            calls = [call for call in calls if str(invoice) not in call[1].split("/")]
        else:
            assert desk.one("PATCH", f"/invoices/{invoice}", {"status": "void"}).status == 200
        assert desk.billed() == {}


def test_overlapping_hours_are_each_billed_once_and_losers_are_told_which(desk):
    hours, rng = desk.worked(100), random.Random(7)
    drafts = desk.drafts(25)
    ways = ("line", "patch", "create", "issue")
    calls = [bill_by_ids(ways[n // 10], desk, rng.sample(hours, 8), drafts[n % 20]) for n in range(40)]
    calls += [
        bill_unbilled(desk, draft, **{"from": day, "to": day, "group_by": "entry"})
        for day in DAYS[:5]
        for draft in (drafts.pop(), None)
    ]
    rng.shuffle(calls)
    answers = desk.together(calls)
    where = desk.billed()
    won = [answer.status in {200, 201} for answer in answers]
    assert 2 <= sum(won) < 50
    for answer, call in zip(answers, calls, strict=True):
        if answer.status not in {200, 201} and "unbilled_work" in call[2]:
            assert (answer.status, answer.code) == (422, "nothing_to_bill")
        elif answer.status not in {200, 201}:
            assert (answer.status, answer.code) == (422, "already_billed")
            messages = errors_by_hour(answer, call)
            assert messages
            assert messages == {hour: already_billed(hour, where[hour]) for hour in messages}
    made = [answer for answer, call in zip(answers, calls, strict=True) if call[1] == "/invoices"]
    assert len(desk.invoices()) == 25 + statuses(made).get(201, 0)
    rest = desk.together([bill_unbilled(desk, None)] * 50)
    assert statuses(rest) == {201: 1, 422: 49}
    assert sorted(desk.billed()) == hours


@only_full
def test_hours_that_are_changed_and_deleted_meanwhile_are_billed_as_they_are(desk):
    hours, drafts = desk.worked(100), desk.drafts(50, lines=[DESIGN])
    seen = Counter()

    def bill(rng, draft):
        call = bill_by_ids(rng.choice(["create", "line", "patch"]), desk, rng.sample(hours, 2), draft)
        answer = desk.one(*call)
        if answer.status == 422:
            messages = errors_by_hour(answer, call)
            assert messages
            gone = [hour for hour, why in messages.items() if why in (MISSING, NOT_BILLABLE.format(hour))]
            prefix = "Time entry {} is already on invoice "
            taken = [hour for hour, why in messages.items() if why.startswith(prefix.format(hour))]
            assert len(gone) + len(taken) == len(messages)
            assert answer.code == ("validation_failed" if gone else "already_billed")
        elif answer.status == 201 and call[1] == "/invoices" and rng.random() < 0.7:
            assert desk.one("DELETE", f"/invoices/{answer.data['id']}").status == 204
        return answer

    def gather(rng, _):
        day = rng.choice(DAYS)
        answer = desk.one(*bill_unbilled(desk, None, **{"from": day, "to": day}))
        if answer.status == 201:
            assert desk.one("DELETE", f"/invoices/{answer.data['id']}").status == 204
        return answer

    def change(rng, _):
        change = rng.choice([{"duration_minutes": rng.randint(1, 100)}, {"billable": rng.random() < 0.85}])
        return desk.one("PATCH", f"/time-entries/{rng.choice(hours)}", change)

    def erase(rng, _):
        return desk.one("DELETE", f"/time-entries/{rng.choice(hours)}")

    barrier = threading.Barrier(50)

    def work(number):
        rng = random.Random(number)
        barrier.wait(timeout=PATIENCE)
        for _ in range(6):
            act = rng.choices([bill, gather, change, erase], [8, 1, 8, 1])[0]
            answer = act(rng, drafts[number])
            seen[act.__name__, answer.status, answer.code if answer.status >= 400 else ""] += 1

    at_once(50, work)
    assert set(seen) <= {
        *(("bill", status, "") for status in (200, 201)),
        *(("bill", 422, code) for code in ("already_billed", "validation_failed")),
        *(("gather", 201, ""), ("gather", 422, "nothing_to_bill")),
        *(("change", 200, ""), ("change", 422, "locked"), ("change", 404, "not_found")),
        *(("erase", 204, ""), ("erase", 422, "locked"), ("erase", 404, "not_found")),
    }
    assert seen["change", 422, "locked"] > 0
    assert seen["bill", 422, "already_billed"] > 0
    where = desk.billed()
    assert where
    refused = desk.together([("PATCH", f"/time-entries/{hour}", {"duration_minutes": 1440}) for hour in where][:50])
    assert {answer.code for answer in refused if answer.status != 200} == {"locked"}
    assert desk.billed() == where


def test_a_draft_that_many_delete_frees_its_hours_once(desk):
    hours = desk.worked(20)
    draft = f"/invoices/{desk.one(*bill_by_ids('create', desk, hours, None)).data['id']}"
    calls = [("DELETE", draft)] * 20 + [bill_by_ids("create", desk, hours, None)] * 20
    random.shuffle(calls)
    answers = desk.together(calls)
    deleted = [answer for answer, call in zip(answers, calls, strict=True) if call[0] == "DELETE"]
    billed = [answer for answer, call in zip(answers, calls, strict=True) if call[0] == "POST"]
    assert statuses(deleted) == {204: 1, 404: 19}
    assert statuses(billed) in ({422: 20}, {201: 1, 422: 19})
    won = [answer.data["id"] for answer in billed if answer.status == 201]
    assert desk.billed() == {hour: invoice for hour in hours for invoice in won}
    assert [invoice["id"] for invoice in desk.invoices()] == won


def test_the_database_itself_refuses_an_hour_on_two_live_invoices(desk):
    first, second = desk.worked(2)
    desk.one(*bill_by_ids("create", desk, [first], None))
    desk.one(*bill_by_ids("create", desk, [second], None))
    twice = f"UPDATE allocations SET time_entry_id = {first} WHERE time_entry_id = {second}"
    with pytest.raises((Sqlite.driver.IntegrityError, psycopg.IntegrityError), match=r"(?i)unique"):
        query(desk.servers.database, twice)


def checked_invoice(desk, path):
    """An invoice, which says the same as its payments and credit notes."""
    invoice = desk.get(path)
    total, paid = Decimal(invoice["total"]), added(payment["amount"] for payment in invoice["payments"])
    credited = added(note["total"] for note in invoice["credit_notes"])
    applied = min(credited, total - paid)
    assert credited <= total
    assert paid <= total
    assert [Decimal(invoice[name]) for name in ("amount_paid", "amount_credited")] == [paid, credited]
    assert Decimal(invoice["refund_due"]) == credited - applied
    assert added(note["applied_amount"] for note in invoice["credit_notes"]) == applied
    assert added(note["refundable_amount"] for note in invoice["credit_notes"]) == credited - applied
    if invoice["status"] == "void":
        assert (invoice["payments"], invoice["credit_notes"], invoice["balance_due"]) == ([], [], "0.00")
    else:
        due = total - paid - applied
        assert Decimal(invoice["balance_due"]) == due
        assert invoice["status"] == ("paid" if due == 0 else "partially_paid" if paid + applied else "sent")
        assert (invoice["paid_at"] is not None) == (due == 0)
    return invoice


def issued(desk, lines):
    body = {"client_id": desk.client, "status": "sent", "lines": lines}
    return f"/invoices/{desk.one('POST', '/invoices', body).data['id']}"


@pytest.mark.parametrize(("payment", "paid"), [({"amount": "100"}, "100.00"), ({}, "595.00")])
def test_fifty_payments_with_one_reference_are_one_payment(desk, payment, paid):
    path = issued(desk, [DESIGN])
    answers = desk.together([("PATCH", path, {"record_payment": payment | {"reference": "wire"}})] * 50)
    assert statuses(answers) == {200: 50}
    assert {answer.data["amount_paid"] for answer in answers} == {paid}
    assert [each["amount"] for each in checked_invoice(desk, path)["payments"]] == [paid]


def cents(rng, count):
    """Amounts of 5.01 to 60.00, each a multiple of 0.03: no sum of them is 595.00 or 916.00, so a rest remains."""
    return [f"{Decimal(rng.randrange(501, 6001, 3)) / 100:.2f}" for _ in range(count)]


def test_fifty_payments_never_pay_more_than_is_due(desk):
    path, amounts = issued(desk, [DESIGN]), cents(random.Random(3), 50)
    answers = desk.together(
        [
            ("PATCH", path, {"record_payment": {"amount": sum_, "reference": f"wire {n}"}})
            for n, sum_ in enumerate(amounts)
        ]
    )
    invoice = checked_invoice(desk, path)
    taken = [amount for amount, answer in zip(amounts, answers, strict=True) if answer.status == 200]
    assert sorted(taken) == sorted(payment["amount"] for payment in invoice["payments"])
    for amount, answer in zip(amounts, answers, strict=True):
        if answer.status != 200:
            assert (answer.status, answer.code) == (422, "validation_failed")
            assert set(answer.json["errors"]) <= {"record_payment", "record_payment.amount"}
            assert Decimal(amount) > Decimal(invoice["balance_due"])


@only_full
def test_fifty_credit_notes_never_credit_more_than_the_invoice(desk):
    lines = [DESIGN, {"description": "Books", "unit_price": "300", "tax_rate": "7"}]
    path, amounts = issued(desk, lines), cents(random.Random(4), 50)
    answers = desk.together([("POST", f"{path}/credit-notes", {"amount": amount}) for amount in amounts])
    invoice = checked_invoice(desk, path)
    taken = [amount for amount, answer in zip(amounts, answers, strict=True) if answer.status == 201]
    assert sorted(taken) == sorted(note["total"] for note in invoice["credit_notes"])
    for amount, answer in zip(amounts, answers, strict=True):
        if answer.status != 201:
            assert (answer.status, answer.code) == (422, "validation_failed")
            assert list(answer.json["errors"]) == ["amount"]
            assert Decimal(amount) > Decimal(invoice["balance_due"])
    last = desk.together([("POST", f"{path}/credit-notes", {})] * 50)
    assert statuses(last) == {201: 1, 422: 49}
    invoice = checked_invoice(desk, path)
    assert (invoice["status"], invoice["amount_credited"]) == ("paid", "916.00")
    shares = [share for note in invoice["credit_notes"] for share in note["tax_breakdown"]]
    for rate, taxable, tax in (("7", 300, 21), ("19", 500, 95)):
        assert added(share["taxable_amount"] for share in shares if share["tax_rate"] == rate) == taxable
        assert added(share["tax_amount"] for share in shares if share["tax_rate"] == rate) == tax
    numbers = sorted(int(note["number"][-4:]) for note in invoice["credit_notes"])
    assert numbers == list(range(1, len(taken) + 2))


def test_void_payment_and_credit_at_once_leave_one_state_and_free_the_hours_once(desk):
    hours = desk.worked(20)
    for _ in range(length(3)):
        pairs = {issued(desk, [{"time_entry_ids": pair}]): pair for pair in zip(hours[::2], hours[1::2], strict=True)}
        steps = [
            ("PATCH", "", {"status": "void"}),
            ("PATCH", "", {"record_payment": {"amount": "1", "reference": "wire"}}),
            ("POST", "/credit-notes", {}),
            ("PATCH", "", {"status": "paid"}),
        ]
        calls = [(method, path + more, body) for path in pairs for method, more, body in steps]
        calls += [bill_by_ids("create", desk, pair, None) for pair in pairs.values()]
        order = random.sample(range(50), 50)
        shuffled = desk.together([calls[n] for n in order])
        answers = [shuffled[order.index(n)] for n in range(50)]
        again = {}
        for n, (path, pair) in enumerate(pairs.items()):
            void, payment, credit, paid = answers[4 * n : 4 * n + 4]
            invoice, new = checked_invoice(desk, path), answers[40 + n]
            if invoice["status"] == "void":
                assert (void.status, payment.code, credit.code) == (200, "validation_failed", "locked")
                assert "Cannot become paid from void." in paid.json["errors"]["status"][0]
            else:
                assert (void.code, credit.status, paid.status) == ("invalid_transition", 201, 200)
                assert payment.status == 200 or list(payment.json["errors"]) == ["record_payment"]
            if new.status == 201:
                again |= dict.fromkeys(pair, new.data["id"])
            else:
                assert (new.status, new.code) == (422, "already_billed")
        assert desk.billed() == again
        for invoice_id in set(again.values()):
            assert desk.one("DELETE", f"/invoices/{invoice_id}").status == 204
