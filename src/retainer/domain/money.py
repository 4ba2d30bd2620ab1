"""Money: the only place that rounds amounts."""

from decimal import Decimal

from retainer.exact import DIGITS, amount_of, half_up


def worth(minutes: int, hourly_rate: Decimal, currency: str) -> Decimal:
    """What an hourly rate makes of minutes, rounded half up to the digits of the currency."""
    return amount_of(half_up(minutes * int(hourly_rate.scaleb(DIGITS[currency])), 60), currency)
