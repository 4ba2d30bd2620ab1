"""A year of quotes in all states, and of what was spent."""

import random
from datetime import date, timedelta

import msgspec

from retainer import schema
from retainer.billing import expenses
from retainer.billing.quotes import quotes
from retainer.billing.quotes.types import Quote
from retainer.crm import clients
from retainer.demo.agencies import KINDS, Kind
from retainer.demo.make import at, make
from retainer.store.tx import Tx
from retainer.work import projects

OUTCOMES = ("accepted",) * 4 + ("declined",) * 3 + ("sent", "cancelled", "draft")
SPENT = [
    ("hosting", "Nordrack", "Server for a month", 15, 120),
    ("domains", "Nordrack", "Domain for a year", 12, 40),
    ("stock", "Bildfang", "Photographs", 30, 400),
    ("stock", "Letterhouse", "Licence of a typeface", 50, 600),
    ("travel", "Railway", "To the client's workshop", 25, 260),
    ("software", "Plugwerk", "Plugin licence for a year", 40, 250),
    ("print", "Druckerei Lang", "Proofs", 20, 180),
]
REASONS = ("Over our budget this year", "We decided for another agency", "The project was put off")


def offer(tx: Tx, rng: random.Random, customers: list[clients.Client]) -> None:
    """Write two or three quotes for every client, sent at once and decided days later; the newest are undecided."""
    today = date.fromisoformat(tx.today)
    plans = [
        (today - timedelta(days=_age(rng, customer, turn)), place, turn, customer)
        for place, customer in enumerate(customers)
        for turn in range(2 + place % 2)
    ]
    for issued, place, turn, customer in sorted(plans, key=lambda plan: plan[:3]):
        kind = KINDS[(place + turn * 3) % len(KINDS)]
        status = rng.choice(OUTCOMES)
        decided = issued + timedelta(days=rng.randint(3, 18))
        at(tx, issued)
        quote = _quote(tx, rng, customer, kind, issued, "draft" if status == "draft" else "sent")
        if status not in {"draft", "sent"} and decided <= today:
            at(tx, decided)
            before = quotes.load_quote(tx, quote)
            after = msgspec.structs.replace(before, status=status)
            after.decline_reason = rng.choice(REASONS) if status == "declined" else None
            tx.update(schema.billing.quotes, quotes.build_quote(tx, after, before))
    at(tx, today)


def _age(rng: random.Random, customer: clients.Client, turn: int) -> int:
    """Return how many days ago a quote was written: the first of each client lately, unless the client is archived."""
    if customer.status == "archived":
        return rng.randint(260, 360)
    return rng.randint(1, 24) if turn == 0 else rng.randint(25, 360)


def _quote(tx: Tx, rng: random.Random, customer: clients.Client, kind: Kind, issued: date, status: str) -> int:
    """Write a quote for the stages of a kind of project; return its id."""
    rate = str(customer.hourly_rate or 100)
    lines = [
        {"description": name, "quantity": hours, "unit": "hours", "unit_price": rate}
        for name, hours in ((stage, rng.randint(8, 60)) for stage in kind.stages or kind.tasks[:3])
    ]
    if rng.random() < 0.3:
        lines.append({"description": "Rebate for new clients", "quantity": -1, "unit_price": rate})
    fields = {"client_id": customer.id, "title": f"{kind.name} {customer.name}", "status": status, "lines": lines}
    return quotes.create_quote(tx, make(Quote, issue_date=issued.isoformat(), **fields)).id


def spend(tx: Tx, rng: random.Random, people: list[int], booked: list[projects.Project]) -> None:
    """Record a year of expenses, most of them on these projects."""
    today = date.fromisoformat(tx.today)
    for _ in range(140):
        category, vendor, description, low, high = rng.choice(SPENT)
        project = rng.choice(booked) if rng.random() < 0.7 else None
        expense = make(
            expenses.Expense,
            amount=f"{rng.randint(low, high)}.{rng.randint(0, 99):02}",
            project_id=project.id if project else None,
            user_id=rng.choice(people),
            date=(today - timedelta(days=rng.randint(0, 364))).isoformat(),
            category=category,
            vendor=vendor,
            description=description,
            tax_rate="19",
            markup_percent="10" if project and category == "stock" else "0",
            reimbursable=category == "travel",
        )
        expenses.save_expense(tx, expense)
