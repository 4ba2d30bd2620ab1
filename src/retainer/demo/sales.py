"""A year of quotes in all states, and of expenses."""

import random
from datetime import date, timedelta
from typing import Any

from retainer.billing import expenses
from retainer.billing.quotes import quotes
from retainer.crm import clients
from retainer.demo.agencies import KINDS, Kind
from retainer.demo.make import at, change, create
from retainer.store.tx import Tx
from retainer.work import projects

OUTCOMES = ("accepted",) * 4 + ("declined",) * 3 + ("sent", "cancelled", "draft")
REASONS = ("Over our budget this year", "We chose another agency", "The project was postponed")
SPENT = [
    ("Hosting", "Nordrack", "Server hosting", 15, 120),
    ("Domains", "Nordrack", "Domain renewal", 12, 40),
    ("Stock", "Bildfang", "Photographs", 30, 400),
    ("Stock", "Letterhouse", "Font licence", 50, 600),
    ("Travel", "Railway", "Trip to a client workshop", 25, 260),
    ("Software", "Plugwerk", "Plugin licence", 40, 250),
    ("Print", "Druckerei Lang", "Proofs", 20, 180),
]


def offer(tx: Tx, rng: random.Random, customers: list[clients.Client]) -> None:
    """Write two or three quotes for every client; the newest are undecided."""
    today = date.fromisoformat(tx.today)
    plans = [
        (today - timedelta(days=_age(rng, customer, turn)), index, turn)
        for index, customer in enumerate(customers)
        for turn in range(2 + index % 2)
    ]
    for issued, index, turn in sorted(plans):
        status = rng.choice(OUTCOMES)
        at(tx, issued)
        is_sent = status != "draft"
        quote_id = _quote(tx, rng, customers[index], KINDS[(index + turn * 3) % len(KINDS)], is_sent=is_sent)
        decided = issued + timedelta(days=rng.randint(3, 18))
        if status not in {"draft", "sent"} and decided <= today:
            at(tx, decided)
            reason = rng.choice(REASONS) if status == "declined" else None
            change(quotes.update_quote, tx, quote_id, status=status, decline_reason=reason)
    at(tx, today)


def _age(rng: random.Random, customer: clients.Client, turn: int) -> int:
    """Return the age of a quote in days: each client has a recent one, unless the client is archived."""
    if customer.status == "archived":
        return rng.randint(260, 360)
    return rng.randint(1, 24) if turn == 0 else rng.randint(25, 360)


def _quote(tx: Tx, rng: random.Random, customer: clients.Client, kind: Kind, *, is_sent: bool) -> int:
    """Write a quote for the stages of a kind of project; return its id."""
    rate = str(customer.hourly_rate or 100)
    lines: list[dict[str, Any]] = [
        {"description": stage, "quantity": rng.randint(8, 60), "unit": "hours", "unit_price": rate}
        for stage in kind.stages or kind.tasks[:3]
    ]
    if rng.random() < 0.3:
        lines.append({"description": "New client discount", "quantity": -1, "unit_price": rate})
    title, status = f"{kind.name} {customer.name}", "sent" if is_sent else "draft"
    return create(quotes.create_quote, tx, client_id=customer.id, title=title, status=status, lines=lines).data.id


def spend(tx: Tx, rng: random.Random, people: list[int], booked: list[projects.Project]) -> None:
    """Record a year of expenses, most of them on these projects."""
    today = date.fromisoformat(tx.today)
    for _ in range(140):
        category, vendor, description, low, high = rng.choice(SPENT)
        project = rng.choice(booked) if rng.random() < 0.7 else None
        create(
            expenses.create_expense,
            tx,
            amount=f"{rng.randint(low, high)}.{rng.randint(0, 99):02}",
            project_id=project.id if project else None,
            user_id=rng.choice(people),
            date=(today - timedelta(days=rng.randint(0, 364))).isoformat(),
            category=category,
            vendor=vendor,
            description=description,
            tax_rate="19",
            markup_percent="10" if project and category == "Stock" else "0",
            reimbursable=category == "Travel",
        )
