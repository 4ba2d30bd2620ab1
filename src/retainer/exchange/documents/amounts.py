"""Amounts of an invoice of another program: its lines, its taxes and its total, as they came.

Nothing is computed that the file says. What it does not say, such as the rate of a tax of which it has the amount,
must agree with what it says, to one minor unit for each line at a rate; else the invoice is refused.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import NamedTuple

from retainer.billing.invoices.history import PastLine, is_tolerable
from retainer.documents.facts import TaxShare
from retainer.errors import part
from retainer.exchange.columns import CellForm, Cells
from retainer.exchange.tables import BadCell, read_decimal
from retainer.values import money
from retainer.values.exact import amount_of, decimal_text, minor_units
from retainer.values.money import Share, tax_on

MAX_DESCRIPTION = 2000
PLACES = 4
"""Decimal places of quantities and prices; a rate has one less."""
HUNDRED = Decimal(100)
ONE, NONE = Decimal(1), Decimal(0)


class AmountLine(NamedTuple):
    """A line of the file; amounts in minor units. Quantity and price are as the file has them, whatever they give."""

    description: str
    net: int
    tax: int | None = None
    rate: Decimal | None = None
    quantity: Decimal = ONE
    price: Decimal | None = None
    discount: Decimal = NONE

    def past(self, rate: Decimal, currency: str) -> PastLine:
        """Return the line to write: if its quantity and price do not give its amount, they stand in its description."""
        if self.price is not None and is_within(self.quantity, self.price) and NONE <= self.discount <= HUNDRED:
            exact = money.line_amount(self.quantity, self.price, self.discount, currency)
            if self.price >= 0 and exact == self.net:
                price = money.pad_price(self.price, currency)
                return PastLine(
                    self.description, self.quantity, price, self.discount, rate, amount_of(self.net, currency)
                )
        text = self.description
        if self.price is not None and self.quantity != ONE:
            text += f" ({decimal_text(self.quantity)} x {decimal_text(self.price)})"
        sign = Decimal(-1 if self.net < 0 else 1)
        return PastLine(text, sign, amount_of(abs(self.net), currency), NONE, rate, amount_of(self.net, currency))


class Amounts(NamedTuple):
    """What a file says about the amounts of an invoice, in minor units; None: nothing."""

    currency: str
    lines: list[AmountLine]
    total: int | None
    tax: int | None
    discount: Decimal | None
    """Of the whole invoice: an amount or a percentage, which programs do not say."""
    is_gross: bool = False
    """Whether the file has no more than the total, of which the one line is the net."""

    @property
    def net(self) -> int:
        return sum(line.net for line in self.lines)


def is_within(*numbers: Decimal) -> bool:
    return all(-int(number.as_tuple().exponent) <= PLACES for number in numbers)


def is_rate(rate: Decimal) -> bool:
    return NONE <= rate <= HUNDRED and -int(rate.as_tuple().exponent) < PLACES


def first(rows: Iterable[Cells], field: str) -> str:
    """Return what the rows of an invoice say about the whole of it: the first that says something."""
    return next((cells[field] for cells in rows if cells[field]), "")


def read_number(text: str, field: str, form: CellForm) -> Decimal | None:
    """Return a number without zeros at its end; None for an empty cell. Raises BadCell."""
    if not text:
        return None
    number = Decimal(decimal_text(read_decimal(text, form.marks[field])))
    if abs(number) > money.MAX_AMOUNT:
        raise BadCell(f"“{text}” is too large.")
    return number


def read_units(text: str, field: str, form: CellForm, currency: str) -> int | None:
    """Return an amount in minor units; None for an empty cell. Raises BadCell."""
    number = read_number(text, field, form)
    try:
        return None if number is None else minor_units(number, currency)
    except ValueError as error:
        raise BadCell(str(error)) from None


def read_amounts(rows: Sequence[Cells], form: CellForm, currency: str) -> Amounts:
    """Return what the rows of an invoice say about its amounts. Raises BadCell."""
    total, tax = (read_units(first(rows, field), field, form, currency) for field in ("total", "tax"))
    lines = [line for line in (_read_line(cells, form, currency) for cells in rows) if line is not None]
    if not lines:
        if total is None:
            raise BadCell("Has no amount.")
        text = first(rows, "subject") or f"Invoice {first(rows, 'number')}"
        line = AmountLine(text, total - (tax or 0), rate=_read_rate(rows[0], form))
        return Amounts(currency, [line], total, tax, None, is_gross=tax is None)
    return Amounts(currency, lines, total, tax, read_number(first(rows, "discount"), "discount", form) or None)


def _read_line(cells: Cells, form: CellForm, currency: str) -> AmountLine | None:
    """Return the line of a row; None if the row has none."""

    def number(field: str) -> Decimal | None:
        return read_number(cells[field], field, form)

    def units(field: str) -> int | None:
        return read_units(cells[field], field, form, currency)

    price, net = number("unit_price"), units("line_net")
    if price is None and net is None:
        return None
    text = "\n".join(dict.fromkeys(filter(None, (cells["item"], cells["description"])))) or "Item"
    if len(text) > MAX_DESCRIPTION:
        raise BadCell(f"Has a description of more than {MAX_DESCRIPTION} characters.")
    quantity, discount = number("quantity"), number("line_discount") or NONE
    quantity = ONE if quantity is None else quantity
    if net is None:
        net = money.line_amount(quantity, price or NONE, discount, currency)
    taxes = [each for each in (units("line_tax"), units("line_tax_2")) if each is not None]
    tax, gross = sum(taxes) if taxes else None, units("line_total")
    if gross is not None and tax is not None and gross != net + tax:
        whole, added = (part(amount_of(units, currency)) for units in (gross, net + tax))
        raise BadCell(f"Has a line of {whole}, but its net and its tax are {added}.")
    return AmountLine(text, net, tax, _read_rate(cells, form), quantity, price, discount)


def _read_rate(cells: Cells, form: CellForm) -> Decimal | None:
    rate = read_number(cells["tax_rate"], "tax_rate", form)
    if rate is not None and not is_rate(rate):
        raise BadCell(f"“{cells['tax_rate']}” is not a tax rate in percent.")
    return rate


class Rates:
    """The rates that a file charges, found from the net and the tax of its lines, the largest of them first.

    What a small amount says about its rate is coarse, so it has one of the rates of larger ones if it can.
    """

    def __init__(self, invoices: Iterable[Amounts]) -> None:
        self.known: dict[Decimal, None] = {}
        for net, tax in sorted({pair for each in invoices for pair in _taxed(each)}, reverse=True):
            with suppress(BadCell):
                self.known[self.find(net, tax)] = None

    def find(self, net: int, tax: int) -> Decimal:
        """Return the rate at which a tax is due on a net amount, to one minor unit. Raises BadCell."""
        if not tax:
            return NONE
        if net * tax <= 0:
            raise BadCell("Has a tax of which no rate is known.")
        rounded = (money.rate_of(tax, net, places) for places in range(PLACES))
        for rate in (*self.known, *rounded):
            if 0 < rate <= HUNDRED and abs(tax_on(net, rate) - tax) <= 1:
                return rate
        raise BadCell("Has a tax of which no rate is known.")


def _taxed(amounts: Amounts) -> Iterator[tuple[int, int]]:
    for line in amounts.lines:
        if line.tax and line.rate is None:
            yield abs(line.net), abs(line.tax)
    if amounts.tax:
        yield abs(amounts.net), abs(amounts.tax)


def complete(amounts: Amounts, rates: Rates, default: Decimal) -> tuple[list[PastLine], list[TaxShare]]:
    """Return the lines and the taxes of an invoice. Raises BadCell unless they add up to its total."""
    try:
        return _completed(amounts, rates, default)
    except BadCell:
        if amounts.discount is None or len({line.rate for line in amounts.lines}) > 1:
            raise
        for units in _discounts(amounts):
            line = AmountLine("Discount", -units, rate=amounts.lines[0].rate)
            with suppress(BadCell):
                return _completed(amounts._replace(lines=[*amounts.lines, line]), rates, default)
        raise


def _discounts(amounts: Amounts) -> Iterator[int]:
    """Yield what the discount of an invoice can be: an amount, and a percentage of its lines."""
    amount = amounts.discount or NONE
    yield money.line_amount(ONE, amount, NONE, amounts.currency)
    yield tax_on(amounts.net, amount)


def _completed(amounts: Amounts, rates: Rates, default: Decimal) -> tuple[list[PastLine], list[TaxShare]]:
    if amounts.total is not None and amounts.tax is not None:
        gap = amounts.total - amounts.tax - amounts.net
        if 0 < abs(gap) <= len(amounts.lines):
            rounding = AmountLine("Rounding", gap, rate=amounts.lines[0].rate)
            amounts = amounts._replace(lines=[*amounts.lines, rounding])
    if amounts.is_gross:
        (line,) = amounts.lines
        net = money.net_of(line.net, default if line.rate is None else line.rate)
        amounts = amounts._replace(lines=[line._replace(net=net)])
    rated = [(line, _rate_of(line, amounts, rates, default)) for line in amounts.lines]
    shares = money.shares((line.net, rate) for line, rate in rated)
    counts = {share.tax_rate: sum(rate == share.tax_rate for _, rate in rated) for share in shares}
    if all(line.tax is not None for line, _ in rated):
        shares = [
            share._replace(tax=sum(line.tax or 0 for line, rate in rated if rate == share.tax_rate)) for share in shares
        ]
    elif amounts.tax is not None and len(shares) == 1:
        shares = [shares[0]._replace(tax=amounts.tax)]
    elif amounts.total is not None:
        shares = _fitted(shares, counts, amounts.total)
    for share in shares:
        if not is_tolerable(share, counts[share.tax_rate]):
            due, of = (part(amount_of(units, amounts.currency)) for units in (share.tax, share.taxable))
            raise BadCell(f"Has {due} of tax on {of}, which is not {part(f'{share.tax_rate:f}')} %.")
    _require(amounts, shares)
    currency = amounts.currency
    taxes = [TaxShare(rate, amount_of(net, currency), amount_of(tax, currency)) for rate, net, tax in shares]
    return [line.past(rate, currency) for line, rate in rated], taxes


def _rate_of(line: AmountLine, amounts: Amounts, rates: Rates, default: Decimal) -> Decimal:
    if line.rate is not None:
        return line.rate
    if line.tax is not None:
        return rates.find(line.net, line.tax)
    return default if amounts.tax is None else rates.find(amounts.net, amounts.tax)


def _fitted(shares: list[Share], counts: dict[Decimal, int], total: int) -> list[Share]:
    """Return shares whose computed taxes were moved to give a total, each by no more than the rounding of its lines."""
    gap, found = total - sum(share.gross for share in shares), []
    for share in shares:
        room = counts[share.tax_rate] if share.tax_rate else 0
        moved = money.clamp(gap, -room, room)
        found.append(share._replace(tax=share.tax + moved))
        gap -= moved
    return found


def _require(amounts: Amounts, shares: list[Share]) -> None:
    """Raise BadCell unless the shares of an invoice give the total and the tax that the file says."""
    said = (("total", amounts.total, [share.gross for share in shares]), ("tax", amounts.tax, [s.tax for s in shares]))
    for name, whole, parts in said:
        if whole is not None and whole != sum(parts):
            stated, given = (part(amount_of(each, amounts.currency)) for each in (whole, sum(parts)))
            raise BadCell(f"Its lines give a {name} of {given}, but it says {stated}.")
    if sum(share.gross for share in shares) < 0:
        raise BadCell("Is negative, as a credit note is. Credit the invoice that it corrects.")
