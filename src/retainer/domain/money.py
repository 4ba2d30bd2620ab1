"""Money: the only place that rounds amounts. Halves are rounded away from zero; all else is exact."""

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from retainer.exact import DIGITS, amount_of, half_up

LARGEST = 10**12
"""What an amount may come to, in major units: sums of many of them still fit into the database's integers."""


class Share(NamedTuple):
    """What is taxed at one rate, in minor units."""

    tax_rate: Decimal
    taxable: int
    tax: int


class Totals(NamedTuple):
    """What a document comes to, in minor units; its shares in the order of their rates."""

    subtotal: int
    tax_total: int
    shares: list[Share]

    @property
    def total(self) -> int:
        """Subtotal and tax."""
        return self.subtotal + self.tax_total


def worth(minutes: int, hourly_rate: Decimal, currency: str) -> Decimal:
    """What an hourly rate makes of minutes, rounded half up to the digits of the currency."""
    return amount_of(half_up(minutes * int(hourly_rate.scaleb(DIGITS[currency])), 60), currency)


def line_amount(quantity: Decimal, unit_price: Decimal, discount_percent: Decimal, currency: str) -> int:
    """Quantity x unit_price x (1 - discount), rounded half up, in minor units (contract 3.8)."""
    exact = Fraction(quantity) * Fraction(unit_price) * (1 - Fraction(discount_percent) / 100)
    return _rounded(exact * 10 ** DIGITS[currency])


def tax_on(taxable: int, rate: Decimal) -> int:
    """The tax on minor units, rounded half up."""
    return _rounded(taxable * Fraction(rate) / 100)


def totals(lines: Iterable[tuple[int, Decimal]]) -> Totals:
    """What lines come to, each an amount and its tax rate; tax is rounded once for each rate (as in EN 16931)."""
    taxable: dict[Decimal, int] = {}
    for amount, rate in lines:
        taxable[rate] = taxable.get(rate, 0) + amount
    shares = [Share(rate, amount, tax_on(amount, rate)) for rate, amount in sorted(taxable.items())]
    return Totals(sum(share.taxable for share in shares), sum(share.tax for share in shares), shares)


def net_of(gross: int, rate: Decimal) -> int:
    """The net in a gross amount of minor units, rounded half up."""
    return _rounded(gross / (1 + Fraction(rate) / 100))


def marked_up(net: int, markup_percent: Decimal) -> int:
    """Minor units with a surcharge, rounded half up."""
    return _rounded(net * (1 + Fraction(markup_percent) / 100))


def _rounded(exact: Fraction) -> int:
    return half_up(exact.numerator, exact.denominator)
