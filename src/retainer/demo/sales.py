"""A year of quotes in all states, and of what was spent."""

import random
from datetime import date, timedelta

from retainer.api import clients, expenses, projects, quotes
from retainer.demo.agencies import KINDS
from retainer.demo.records import at, make
from retainer.store.tx import Tx

OUTCOMES = ("accepted", "accepted", "accepted", "declined", "sent", "sent", "cancelled", "draft")
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


def offer(tx: Tx, chance: random.Random, customers: list[clients.Client]) -> None:
    """Two or three quotes for every client; the newest are still open."""
    today = date.fromisoformat(tx.today)
    for place, customer in enumerate(customers):
        for turn in range(2 + place % 2):
            kind = KINDS[(place + turn * 3) % len(KINDS)]
            issued = today - timedelta(days=chance.randint(1, 360))
            at(tx, issued)
            recent = today - issued < timedelta(days=45)
            status = chance.choice(("draft", "sent", "sent")) if recent else chance.choice(OUTCOMES)
            rate = str(customer.hourly_rate or 100)
            lines = [
                {"description": name, "quantity": hours, "unit": "hours", "unit_price": rate, "tax_rate": "19"}
                for name, hours in ((stage, chance.randint(8, 60)) for stage in kind.stages or kind.tasks[:3])
            ]
            if chance.random() < 0.3:
                lines.append(
                    {"description": "Rebate for new clients", "quantity": -1, "unit_price": rate, "tax_rate": "19"}
                )
            quotes.create_quote(
                tx,
                make(
                    quotes.Quote,
                    client_id=customer.id,
                    title=f"{kind.name} {customer.name}",
                    status=status,
                    issue_date=issued.isoformat(),
                    lines=lines,
                    decline_reason=chance.choice(REASONS) if status == "declined" else None,
                ),
            )
    at(tx, today)


def spend(tx: Tx, chance: random.Random, people: list[int], its: list[projects.Project]) -> None:
    """What the projects cost beside time, a few things a month."""
    today = date.fromisoformat(tx.today)
    for _ in range(140):
        category, vendor, description, low, high = chance.choice(SPENT)
        project = chance.choice(its) if chance.random() < 0.7 else None
        it = make(
            expenses.Expense,
            amount=f"{chance.randint(low, high)}.{chance.randint(0, 99):02}",
            project_id=project.id if project else None,
            user_id=chance.choice(people),
            date=(today - timedelta(days=chance.randint(0, 364))).isoformat(),
            category=category,
            vendor=vendor,
            description=description,
            tax_rate="19",
            markup_percent="10" if project and category == "stock" else "0",
            reimbursable=category == "travel",
        )
        expenses.record(tx, it)
