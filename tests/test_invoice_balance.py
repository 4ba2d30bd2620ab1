import json
import random
from collections import Counter, defaultdict
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import pytest
import time_machine
from sqlalchemy import select

from retainer.errors import Refusal
from retainer.schema.billing import credit_note_shares
from retainer.schema.identity import audit_entries
from tests.length import length
from tests.reference.arithmetic import DIGITS, clamp, half_up

FIGURES = ("amount_paid", "amount_credited", "balance_due", "refund_due")
LINE = {"description": "Design", "unit_price": "100", "tax_rate": "19"}  # 119.00 with tax

REMOVED = audit_entries.c.action == "payment removed"


def issued(api, *lines, **members):
    return api.make("/invoices", status="sent", lines=list(lines or [LINE]), **members)


def credit(api, invoice, **members):
    return api.post(f"/invoices/{invoice['id']}/credit-notes", members)


def change(api, invoice, **members):
    return api.patch(f"/invoices/{invoice['id']}", members)


def pay(api, invoice, amount, **members):
    return change(api, invoice, record_payment={"amount": amount} | members)


def remove(api, invoice, place):
    return api.remove_payment(now(api, invoice)["payments"][place]["id"])


def now(api, invoice):
    return api.get(f"/invoices/{invoice['id']}").data


def pick(record, *names):
    return [record[name] for name in names]


@pytest.mark.parametrize(
    ("paid", "credited", "after", "status"),
    [
        ("0.00", "19.00", ["19.00", "0.00", "100.00"], "partially_paid"),
        ("0.00", "119.00", ["119.00", "0.00", "0.00"], "paid"),
        ("100.00", "18.99", ["18.99", "0.00", "0.01"], "partially_paid"),
        ("100.00", "19.00", ["19.00", "0.00", "0.00"], "paid"),
        ("100.00", "50.00", ["19.00", "31.00", "0.00"], "paid"),
        ("119.00", "119.00", ["0.00", "119.00", "0.00"], "paid"),
    ],
)
def test_a_credit_lowers_the_balance_and_the_rest_is_refundable(api, paid, credited, after, status):
    invoice = issued(api)
    paid_at = pay(api, invoice, paid).data["paid_at"] if paid != "0.00" else None
    note = credit(api, invoice, amount=credited).data
    after_credit = now(api, invoice)
    assert [*pick(note, "applied_amount", "refundable_amount"), after_credit["balance_due"]] == after
    figures = pick(after_credit, "status", "amount_credited", "amount_paid", "refund_due")
    assert figures == [status, credited, paid, after[1]]
    assert (after_credit["paid_at"] is not None) == (status == "paid")
    assert paid_at in {None, after_credit["paid_at"]}


def test_a_credited_amount_is_no_longer_due(api):
    invoice = issued(api)
    note = credit(api, invoice, amount="19").data
    assert change(api, invoice, status="void").code == "invalid_transition"
    assert "100.00" in pay(api, invoice, "100.01").errors["record_payment.amount"][0]
    assert pay(api, invoice, "60").data["balance_due"] == "40.00"
    paid = change(api, invoice, status="paid").data
    assert [payment["amount"] for payment in paid["payments"]] == ["60.00", "40.00"]
    assert pick(paid, "status", *FIGURES) == ["paid", "100.00", "19.00", "0.00", "0.00"]
    assert paid["credit_notes"] == [note]


def test_a_written_off_invoice_stays_so_after_a_credit_but_not_after_a_payment(api):
    invoice, other = issued(api), issued(api)
    for written_off in (invoice, other):
        written_off_at = change(api, written_off, status="written_off").data["written_off_at"]
        assert credit(api, written_off, amount="19").data["applied_amount"] == "19.00"
        after = now(api, written_off)
        assert pick(after, "status", "balance_due", "paid_at") == ["written_off", "100.00", None]
        assert after["written_off_at"] == written_off_at
    credit(api, invoice)
    assert pick(now(api, invoice), "status", "balance_due", "paid_at") == ["written_off", "0.00", None]
    assert pick(pay(api, other, "40").data, "status", "balance_due", "written_off_at") == [
        "partially_paid", "60.00", None,
    ]  # fmt: skip
    credit(api, other)
    assert pick(now(api, other), "status", "balance_due") == ["paid", "0.00"]


def test_the_amount_of_a_removed_payment_is_due_again(api):
    invoice = issued(api)
    pay(api, invoice, "40")
    first = pay(api, invoice, "79").data
    tag = api.get(f"/invoices/{invoice['id']}").headers["etag"]
    assert pick(first, "status", "balance_due") == ["paid", "0.00"]
    removed = remove(api, invoice, 1)
    after = now(api, invoice)
    expected = (removed.payment_id, removed.amount, removed.invoice_number, removed.invoice_status, removed.balance_due)
    assert expected == (first["payments"][1]["id"], "79.00", invoice["number"], "partially_paid", "79.00")
    assert after["payments"] == first["payments"][:1]
    assert pick(after, "status", *FIGURES, "paid_at") == ["partially_paid", "40.00", "0.00", "79.00", "0.00", None]
    assert after["updated_at"] > first["updated_at"]
    assert api.get(f"/invoices/{invoice['id']}").headers["etag"] != tag
    remove(api, invoice, 0)
    after = now(api, invoice)
    assert pick(after, "status", *FIGURES, "payments") == ["sent", "0.00", "0.00", "119.00", "0.00", []]
    assert change(api, invoice, status="void").data["status"] == "void"


@pytest.mark.parametrize(
    ("paid", "credited", "removed", "notes", "after"),
    [
        (["100"], ["50"], 0, [("50.00", "0.00")], ["partially_paid", "0.00", "50.00", "69.00", "0.00"]),
        (["100", "19"], ["50"], 0, [("50.00", "0.00")], ["partially_paid", "19.00", "50.00", "50.00", "0.00"]),
        (["100", "19"], ["50"], 1, [("19.00", "31.00")], ["paid", "100.00", "50.00", "0.00", "31.00"]),
        (["119"], ["60", "59"], 0, [("60.00", "0.00"), ("59.00", "0.00")], ["paid", "0.00", "119.00", "0.00", "0.00"]),
        (
            ["60", "59"], ["50", "30"], 1, [("50.00", "0.00"), ("9.00", "21.00")],
            ["paid", "60.00", "80.00", "0.00", "21.00"],
        ),
        (["60", "59"], ["9"], 1, [("9.00", "0.00")], ["partially_paid", "60.00", "9.00", "50.00", "0.00"]),
    ],
)  # fmt: skip
def test_a_refundable_amount_is_applied_when_a_payment_is_removed(api, paid, credited, removed, notes, after):
    invoice = issued(api)
    for amount in paid:
        paid_at = pay(api, invoice, amount).data["paid_at"]
    for amount in credited:
        credit(api, invoice, amount=amount)
    paid_at = now(api, invoice)["paid_at"] or paid_at
    remove(api, invoice, removed)
    current = now(api, invoice)
    assert [(note["applied_amount"], note["refundable_amount"]) for note in current["credit_notes"]] == notes
    assert pick(current, "status", *FIGURES) == after
    assert current["paid_at"] == (paid_at if after[0] == "paid" else None)
    assert [api.get(f"/credit-notes/{note['id']}").data for note in current["credit_notes"]] == current["credit_notes"]


def test_after_a_removal_the_same_reference_can_pay_again(api):
    with time_machine.travel("2026-05-01T10:00:00Z", tick=False):
        invoice = issued(api)
        pay(api, invoice, "119", reference="r-1")
    remove(api, invoice, 0)
    with time_machine.travel("2026-05-03T10:00:00Z", tick=False):
        paid = pay(api, invoice, "119", reference="r-1").data
    assert pick(paid, "status", "amount_paid", "paid_at") == ["paid", "119.00", "2026-05-03T10:00:00.000000Z"]
    assert [payment["reference"] for payment in paid["payments"]] == ["r-1"]


def test_a_written_off_invoice_stays_so_when_a_payment_is_removed(api):
    invoice = issued(api)
    pay(api, invoice, "40")
    written_off_at = change(api, invoice, status="written_off").data["written_off_at"]
    remove(api, invoice, 0)
    current = now(api, invoice)
    assert pick(current, "status", *FIGURES, "payments") == ["written_off", "0.00", "0.00", "119.00", "0.00", []]
    assert current["written_off_at"] == written_off_at


def test_the_audit_keeps_all_fields_of_a_removed_payment(api, other_tenant):
    expected = {"paid_date": "2026-05-01", "method": "card", "reference": "r-1", "notes": "By mistake"}
    foreign = issued(other_tenant)
    theirs = pay(other_tenant, foreign, "1").data["payments"]
    invoice = issued(api)
    known = pay(api, invoice, "119", **expected).data["payments"][0]
    remove(api, invoice, 0)
    wanted = audit_entries.c["account_id", "before", "created_at"]
    with api.store.unscoped() as tx:
        rows = tx.all(select(*wanted).where(REMOVED))
    ((account_id, before, created_at),) = rows
    assert account_id == api.account_id
    assert json.loads(before) == known
    assert created_at == now(api, invoice)["updated_at"]
    assert now(other_tenant, foreign)["payments"] == theirs


def test_removing_an_unknown_payment_is_not_found(api):
    invoice = issued(api)
    payment = pay(api, invoice, "40").data["payments"][0]["id"]
    api.remove_payment(payment)
    before = now(api, invoice)
    for unknown in (payment, 10**15):
        with pytest.raises(Refusal, match="no such payment") as refusal:
            api.remove_payment(unknown)
        assert refusal.value.code == "not_found"
    assert now(api, invoice) == before
    with api.store.unscoped() as tx:
        assert len(tx.all(select(audit_entries.c.id).where(REMOVED))) == 1


class Model:
    """An invoice in minor units, computed by the rules alone."""

    def __init__(self, currency, lines):
        self.scale = 10 ** DIGITS[currency]
        self.lines = [(Fraction(q), half_up(Fraction(q) * Fraction(p) * self.scale), Fraction(r)) for q, p, r in lines]
        rates = sorted({rate for *_, rate in self.lines})
        net = {rate: sum(amount for _, amount, line_rate in self.lines if line_rate == rate) for rate in rates}
        self.net, self.tax = net, {rate: half_up(net[rate] * rate / 100) for rate in rates}
        self.total = sum(self.net.values()) + sum(self.tax.values())
        self.left = [(quantity, amount) for quantity, amount, _ in self.lines]
        self.paid, self.notes, self.status = [], [], "sent"

    def recompute_balance(self, *, by_payment=False):
        due = self.total - sum(self.paid)
        for note in self.notes:
            note.applied = min(note.net + note.tax, due)
            due -= note.applied
        if by_payment or self.status != "written_off":
            settled = self.paid or any(note.applied for note in self.notes)
            self.status = "paid" if due == 0 else "partially_paid" if settled else "sent"

    @property
    def due(self):
        return self.total - sum(self.paid) - sum(note.applied for note in self.notes)

    @property
    def room(self):
        return sum(self.net.values()) + sum(self.tax.values())

    def pay(self, amount):
        if self.status == "paid" or not 0 < amount <= self.due:
            return False
        self.paid.append(amount)
        self.recompute_balance(by_payment=True)
        return True

    def remove(self, place):
        del self.paid[place]
        self.recompute_balance()

    def write_off(self):
        if self.status not in {"sent", "partially_paid"}:
            return False
        self.status = "written_off"
        return True

    def credit(self, gross, parts, free):
        """Return the credit at each rate, or nothing if it is refused."""
        left = list(self.left)
        if gross is None and not parts and not free and not self.notes:
            parts = [(place, None) for place in range(len(self.lines))]
        if parts or free:
            shares = self.by_lines(parts, free, left)
        else:
            shares = self.by_amount(self.room if gross is None else gross)
        net, tax = (sum(share[n] for share in shares.values()) for n in (0, 1))
        if net + tax <= 0:
            return False
        for rate, share in shares.items():
            self.net[rate] -= share[0]
            self.tax[rate] -= share[1]
        self.left = left
        self.notes.append(SimpleNamespace(net=net, tax=tax, shares=shares, applied=0))
        self.recompute_balance()
        return True

    def by_amount(self, gross):
        if not 0 < gross <= self.room:
            return {}
        exact = {rate: Fraction(gross * (self.net[rate] + self.tax[rate]), self.room) for rate in self.net}
        parts = {rate: int(part) for rate, part in exact.items()}
        for rate in sorted(exact, key=lambda rate: parts[rate] - exact[rate])[: gross - sum(parts.values())]:
            parts[rate] += 1
        shares = {}
        for rate, part in parts.items():
            fewest, most = max(0, part - self.tax[rate]), min(part, self.net[rate])
            net = clamp(half_up(part / (1 + rate / 100)), (fewest, most))
            if part:
                shares[rate] = (net, part - net)
        return shares

    def by_lines(self, parts, free, left):
        nets = {}
        for place, asked in parts:
            (quantity, amount, rate), (rest, worth) = self.lines[place], left[place]
            taken = rest if asked is None else asked
            if not 0 < taken / quantity <= rest / quantity:
                return {}
            part = worth if taken == rest else clamp(half_up(amount * taken / quantity), (0, worth))
            left[place] = (rest - taken, worth - part)
            nets[rate] = nets.get(rate, 0) + part
        for price, rate in free:
            nets[rate] = nets.get(rate, 0) + half_up(price * self.scale)
        if any(not 0 <= net <= self.net[rate] for rate, net in nets.items()):
            return {}
        taxes = {rate: min(half_up(net * rate / 100), self.tax[rate]) for rate, net in nets.items()}
        return {
            rate: (net, self.tax[rate] if net == self.net[rate] else taxes[rate]) for rate, net in sorted(nets.items())
        }

    def money(self):
        """Return all amounts as they are shown."""
        credited = sum(note.net + note.tax for note in self.notes)
        to_refund = sum(note.net + note.tax - note.applied for note in self.notes)
        return {
            "invoice": [self.status, self.total, sum(self.paid), credited, self.due, to_refund],
            "payments": self.paid,
            "notes": [
                [note.net, note.tax, note.net + note.tax, note.applied, note.net + note.tax - note.applied]
                for note in self.notes
            ],
            "shares": [note.shares for note in self.notes],
        }


def money_of(invoice):
    """Return all amounts of an invoice that was read, in minor units."""
    scale = 10 ** DIGITS[invoice["currency"]]

    def units(record, *names):
        return [Fraction(record[name]) * scale for name in names]

    def shares(note):
        rows = (
            (Fraction(share["tax_rate"]), units(share, "taxable_amount", "tax_amount"))
            for share in note["tax_breakdown"]
        )
        return {rate: tuple(amounts) for rate, amounts in rows}

    names = ("subtotal", "tax_total", "total", "applied_amount", "refundable_amount")
    return {
        "invoice": [invoice["status"], *units(invoice, "total", *FIGURES)],
        "payments": [units(payment, "amount")[0] for payment in invoice["payments"]],
        "notes": [units(note, *names) for note in invoice["credit_notes"]],
        "shares": [shares(note) for note in invoice["credit_notes"]],
    }


INVOICES = [
    ("EUR", [("7", "14.2857", "19"), ("3", "33.33", "7"), ("1", "0.05", "7")]),
    ("EUR", [("2.5", "17.777", "19"), ("-1", "9.99", "19"), ("12", "1.01", "0"), ("0.3333", "99", "8.125")]),
    ("JPY", [("3", "333.3", "10"), ("5", "41", "8")]),
    ("KWD", [("3", "0.0037", "5"), ("9", "1.2345", "5")]),
]


class Walk:
    """Random steps, each taken in the application and in the model."""

    def __init__(self, api, seed):
        self.api, self.rng = api, random.Random(seed)
        client = api.make("/clients")["id"]
        projects = [None, *(api.make("/projects", client_id=client)["id"] for _ in range(2))]
        self.pairs, self.taken = [], Counter()
        for currency, lines in INVOICES:
            sent = [
                {"description": "A", "quantity": q, "unit_price": p, "tax_rate": r, "project_id": projects[n % 3]}
                for n, (q, p, r) in enumerate(lines)
            ]
            made = issued(api, *sent, currency=currency, client_id=client)
            self.pairs.append((made, Model(currency, lines)))

    def text(self, units, model):
        return str(Decimal(units) / model.scale)

    def amount_up_to(self, most):
        """Return an amount: mostly a small part, sometimes a few units, all of it, or too much."""
        part, few = self.rng.randint(0, most // 6), self.rng.randint(1, 3)
        return self.rng.choices([part, few, most, most + 1], (7, 2, 1, 1))[0]

    def pay(self, invoice, model):
        amount = self.amount_up_to(model.due)
        return pay(self.api, invoice, self.text(amount, model)), model.pay(amount)

    def write_off(self, invoice, model):
        if self.rng.random() < 0.7 or model.status == "written_off":
            return None
        return change(self.api, invoice, status="written_off"), model.write_off()

    def remove(self, invoice, model):
        if model.paid:
            place = self.rng.randrange(len(model.paid))
            remove(self.api, invoice, place)
            model.remove(place)

    def credit_amount(self, invoice, model):
        gross = self.amount_up_to(model.room)
        return credit(self.api, invoice, amount=self.text(gross, model)), model.credit(gross, [], [])

    def credit_lines(self, invoice, model):
        parts, sent, free = [], [], []
        for place in self.rng.sample(range(len(model.lines)), self.rng.randint(1, 2)):
            rest = model.left[place][0]
            asked = self.rng.choice([None, *(Fraction(int(rest * some), 10000) for some in (5000, 2500, 999, 10000))])
            parts.append((place, asked))
            quantity = {} if asked is None else {"quantity": str(Decimal(asked.numerator) / asked.denominator)}
            sent.append({"invoice_line_id": invoice["lines"][place]["id"]} | quantity)
        if self.rng.random() < 0.4:
            rate = self.rng.choice(list(model.net))
            price = Fraction(self.rng.randint(0, model.net[rate] * 2), model.scale * 10)
            free.append((price, rate))
            terms = {"unit_price": str(Decimal(price.numerator) / price.denominator), "tax_rate": str(float(rate))}
            sent.append({"description": "B"} | terms)
        return credit(self.api, invoice, lines=sent), model.credit(None, parts, free)

    def credit_rest(self, invoice, model):
        if self.rng.random() < 0.7:
            return None
        return credit(self.api, invoice), model.credit(None, [], [])

    def step(self):
        invoice, model = self.rng.choice(self.pairs)
        steps = (self.pay, self.write_off, self.remove, self.credit_amount, self.credit_lines, self.credit_rest)
        (take,) = self.rng.choices(steps, (4, 1, 3, 4, 4, 1))
        took = take(invoice, model)
        if took:
            answer, accepted = took
            assert answer.status in ({200, 201} if accepted else {422}), (answer, model.money())
            self.taken[take.__name__, accepted] += 1
        current = now(self.api, invoice)
        assert money_of(current) == model.money()
        stamped = [status for status in ("paid", "written_off") if current[f"{status}_at"]]
        assert stamped == [status for status in ("paid", "written_off") if status == model.status]


def credited_of_projects(api):
    """Return the share of each project in each credit note."""
    with api.store.unscoped() as tx:
        rows = tx.all(select(*credit_note_shares.c["credit_note_id", "project_id", "amount"]))
    found = defaultdict(Counter)
    for note, project, amount in rows:
        found[note][project] += amount
    return found


@pytest.mark.parametrize("seed", range(length(4)))
def test_all_amounts_are_right_after_any_payments_credits_removals_and_write_offs(api, seed):
    walk = Walk(api, seed)
    for _ in range(100):
        walk.step()
    assert set(walk.taken) >= {
        (name, accepted) for name in ("pay", "credit_amount", "credit_lines") for accepted in (True, False)
    }
    credited = credited_of_projects(api)
    for invoice, model in walk.pairs:
        current = now(api, invoice)
        assert money_of(current) == model.money()
        of_notes = [credited[note["id"]] for note in current["credit_notes"]]
        assert [share.total() for share in of_notes] == [net for net, *_ in model.money()["notes"]]
        rest = Counter()
        for line, (_, amount, _) in zip(invoice["lines"], model.lines, strict=True):
            rest[line["project_id"]] += amount
        for share in of_notes:
            rest.subtract(share)
        assert model.room or not any(rest.values())
