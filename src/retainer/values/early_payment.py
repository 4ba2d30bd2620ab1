"""Early-payment discounts: the percentage and the days of one, which belong together."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated

from retainer.values.kinds import exact

FIELDS = PERCENT, DAYS = "early_payment_discount_percent", "early_payment_discount_days"

DiscountPercent = Annotated[
    Decimal, exact(Decimal(0), Decimal(100), 2, "a percentage from 0 to 100 with at most 2 decimal places", "2.5")
]
"""XRechnung has two decimal places for it."""


def missing_terms(percent: object, days: int | None) -> Iterator[tuple[str, str]]:
    """Yield the field that is missing beside the other one, with its error. Without a discount, no days are needed."""
    if percent and days is None:
        yield DAYS, f"Is needed with {PERCENT}: the days from the issue of an invoice in which clients can deduct it."
    if percent is None and days is not None:
        yield PERCENT, f"Is needed with {DAYS}: the percentage that clients can deduct, or 0 for none."
