"""A year of quotes in all states."""

import random
from datetime import date, timedelta

from retainer.api import clients, quotes
from retainer.demo.agencies import KINDS
from retainer.demo.records import make
from retainer.store.tx import Tx

OUTCOMES = ("accepted", "accepted", "accepted", "declined", "sent", "sent", "cancelled", "draft")
REASONS = ("Over our budget this year", "We decided for another agency", "The project was put off")


def offer(tx: Tx, chance: random.Random, customers: list[clients.Client]) -> None:
    """Two or three quotes for every client; the newest are still open."""
    today = date.fromisoformat(tx.today)
    for place, customer in enumerate(customers):
        for turn in range(2 + place % 2):
            kind = KINDS[(place + turn * 3) % len(KINDS)]
            issued = today - timedelta(days=chance.randint(1, 360))
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
