"""Money: the only module that rounds amounts, half away from zero; all other arithmetic is exact."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from retainer.values.exact import DIGITS, amount_of, decimal_text, half_up

MAX_AMOUNT = 10**12
"""The largest amount, in major units; sums of many still fit into the database's integers."""


class Share(NamedTuple):
    """The taxable amount at one tax rate and its tax, in minor units."""

    tax_rate: Decimal
    taxable: int
    tax: int

    @property
    def gross(self) -> int:
        return self.taxable + self.tax


def time_amount(minutes: int, hourly_rate: Decimal, currency: str) -> Decimal:
    """Return the amount for minutes at an hourly rate, rounded half up to the digits of the currency."""
    return amount_of(half_up(minutes * int(hourly_rate.scaleb(DIGITS[currency])), 60), currency)


def line_amount(quantity: Decimal, unit_price: Decimal, discount_percent: Decimal, currency: str) -> int:
    """Return quantity x unit_price x (1 - discount), rounded half up, in minor units."""
    exact = Fraction(quantity) * Fraction(unit_price) * (1 - Fraction(discount_percent) / 100)
    return _rounded(exact * 10 ** DIGITS[currency])


def tax_on(taxable: int, rate: Decimal) -> int:
    """Return the tax on minor units at a rate in percent, rounded half up."""
    return _rounded(taxable * Fraction(rate) / 100)


def shares(lines: Iterable[tuple[int, Decimal]]) -> list[Share]:
    """Return the sums of lines by tax rate; tax is rounded once per rate (EN 16931).

    A line is an amount in minor units and a rate.
    """
    taxable: dict[Decimal, int] = {}
    for amount, rate in lines:
        taxable[rate] = taxable.get(rate, 0) + amount
    return [Share(rate, amount, tax_on(amount, rate)) for rate, amount in sorted(taxable.items())]


def net_of(gross: int, rate: Decimal) -> int:
    """Return the net of a gross amount in minor units, rounded half up."""
    return _rounded(gross / (1 + Fraction(rate) / 100))


def rate_of(tax: int, taxable: int, places: int) -> Decimal:
    """Return the percentage that a tax is of an amount, rounded half up to a number of decimal places."""
    return Decimal(_rounded(Fraction(tax * 100 * 10**places, taxable))).scaleb(-places)


def marked_up(net: int, markup_percent: Decimal) -> int:
    """Return minor units plus a surcharge in percent, rounded half up."""
    return _rounded(net * (1 + Fraction(markup_percent) / 100))


def hours(minutes: int) -> Decimal:
    """Return minutes in hours with at most four decimal places, rounded half up."""
    return Decimal(decimal_text(Decimal(half_up(minutes * 10_000, 60)).scaleb(-4)))


def unit_price(amount: int, quantity: Decimal, currency: str) -> Decimal:
    """Return minor units divided by a quantity: at most four places, at least the digits of the currency."""
    digits = DIGITS[currency]
    price = Decimal(_rounded(Fraction(amount, 10**digits) / Fraction(quantity) * 10_000)).scaleb(-4)
    return pad_price(Decimal(decimal_text(price)), currency)


def pad_price(unit_price: Decimal, currency: str) -> Decimal:
    """Return a unit price with zeros appended, up to the digits of its currency."""
    digits = -DIGITS[currency]
    exponent = unit_price.as_tuple().exponent
    return (
        unit_price.quantize(Decimal(1).scaleb(digits))
        if isinstance(exponent, int) and exponent > digits
        else unit_price
    )


def part_of(amount: int, quantity: Decimal, whole: Decimal) -> int:
    return _rounded(amount * Fraction(quantity) / Fraction(whole))


def tax_of_part(taxable: int, left: Share) -> int:
    """Return the tax on part of the remainder at a rate: at most the remaining tax, and all of it for the last part."""
    return left.tax if taxable == left.taxable else clamp(tax_on(taxable, left.tax_rate), 0, left.tax)


def net_of_part(gross: int, left: Share) -> int:
    """Return the net of part of the remaining gross at a rate; neither net nor tax exceeds the remainder."""
    net = clamp(net_of(gross, left.tax_rate), 0, left.taxable)
    return gross - clamp(gross - net, 0, left.tax)


def clamp(units: int, one: int, other: int) -> int:
    """Return minor units limited to the range between two bounds, given in any order."""
    return max(min(one, other), min(units, max(one, other)))


def allocate(units: int, weights: Sequence[int]) -> list[int]:
    """Return minor units split in proportion to weights by largest remainder; ties go in the order of the weights.

    The parts add up to the units exactly. The sum of the weights must not be 0. If the units do not exceed it, no
    part exceeds its weight.
    """
    whole = sum(weights)
    parts = [divmod(units * weight, whole) for weight in weights]
    order = sorted(range(len(weights)), key=lambda place: abs(parts[place][1]), reverse=True)
    shares = [part for part, _ in parts]
    for place in order[: units - sum(shares)]:
        shares[place] += 1
    return shares


def _rounded(exact: Fraction) -> int:
    return half_up(exact.numerator, exact.denominator)
