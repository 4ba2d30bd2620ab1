"""A year of quotes in all states, and of expenses."""

import random
from datetime import date, timedelta

from retainer.billing import expenses
from retainer.billing.quotes import quotes
from retainer.crm import clients
from retainer.demo.agency import CONTENT
from retainer.demo.make import at, change, create
from retainer.store.tx import Tx
from retainer.work import projects

OUTCOMES = ("accepted",) * 4 + ("declined",) * 3 + ("sent", "cancelled", "draft")


def offer(tx: Tx, rng: random.Random, customers: list[clients.Client]) -> None:
    """Write three quotes for every client; the newest is undecided, unless the client is archived."""
    today = date.fromisoformat(tx.today)
    plans = []
    for index, customer in enumerate(customers):
        for turn in range(3):
            age = rng.randint(1, 24) if turn == 0 else rng.randint(25, 360)
            plans.append((rng.randint(260, 360) if customer.status == "archived" else age, index, turn))
    for age, index, turn in sorted(plans, reverse=True):
        issued, outcome = today - timedelta(days=age), rng.choice(OUTCOMES)
        at(tx, issued)
        quote_id = _quote(tx, rng, customers[index], index + turn, is_sent=outcome != "draft")
        decided = issued + timedelta(days=rng.randint(3, 18))
        if outcome not in {"draft", "sent"} and decided <= today:
            at(tx, decided)
            reason = "Over our budget this year" if outcome == "declined" else None
            change(quotes.update_quote, tx, quote_id, status=outcome, decline_reason=reason)
    at(tx, today)


def _quote(tx: Tx, rng: random.Random, customer: clients.Client, number: int, *, is_sent: bool) -> int:
    kind = CONTENT.project_types[number % len(CONTENT.project_types)]
    lines = [
        {
            "description": text,
            "quantity": rng.randint(8, 60),
            "unit": "hours",
            "unit_price": customer.hourly_rate or "100",
        }
        for text in kind.stages or kind.tasks[:3]
    ]
    title, status = f"{kind.name} {customer.name}", "sent" if is_sent else "draft"
    return create(quotes.create_quote, tx, client_id=customer.id, title=title, status=status, lines=lines).data.id


def spend(tx: Tx, rng: random.Random, people: list[int], booked: list[projects.Project]) -> None:
    today = date.fromisoformat(tx.today)
    for _ in range(140):
        spent = rng.choice(CONTENT.expenses)
        project = rng.choice(booked) if rng.random() < 0.7 else None
        create(
            expenses.create_expense,
            tx,
            amount=f"{rng.randint(*spent.amounts)}.{rng.randint(0, 99):02}",
            project_id=project.id if project else None,
            user_id=rng.choice(people),
            date=(today - timedelta(days=rng.randint(0, 364))).isoformat(),
            category=spent.category,
            vendor=spent.vendor,
            description=spent.description,
            tax_rate="19",
            markup_percent="10" if project and spent.category == "Stock" else "0",
            reimbursable=spent.category == "Travel",
        )
