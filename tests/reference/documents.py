"""What documents come to: invoices, what they are taxed, and what credit notes take back.

Amounts are whole numbers of minor units; what is exact between two roundings is a Fraction. Documents and requests are
made of the texts that a caller would send.
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

from tests.reference.arithmetic import DIGITS, allocate, clamp, exact, half_up

MAX_AMOUNT = 10**12


class Refused(Exception):
    """A request that the contract does not allow; its argument is the field at fault."""


class Share(NamedTuple):
    net: int
    tax: int

    @property
    def gross(self) -> int:
        return self.net + self.tax


class Line(NamedTuple):
    """A line of an invoice: what it comes to, for how many, at which rate, and for which project."""

    amount: int
    quantity: Fraction
    unit_price: Fraction
    rate: Fraction
    project: int | None = None


class Part(NamedTuple):
    """One thing that is credited; `place` is the invoice's line that it is part of."""

    amount: int
    quantity: Fraction
    rate: Fraction
    place: int | None = None


class Note(NamedTuple):
    """A credit note."""

    parts: list[Part]
    shares: dict[Fraction, Share]
    projects: dict[int | None, int]

    @property
    def net(self) -> int:
        return sum(share.net for share in self.shares.values())

    @property
    def tax(self) -> int:
        return sum(share.tax for share in self.shares.values())


def time_amount(minutes: int, hourly_rate: str, digits: int) -> int:
    return half_up(Fraction(minutes, 60) * exact(hourly_rate) * 10**digits)


def expense(sent: dict[str, Any], digits: int) -> tuple[int, int]:
    """The net of an expense, and what its client is billed."""
    gross = exact(sent["amount"]) * 10**digits
    net = half_up(gross / (1 + exact(sent["tax_rate"]) / 100)) if sent["amount_includes_tax"] else int(gross)
    return net, half_up(net * (1 + exact(sent["markup_percent"]) / 100))


def bill(document: dict[str, Any]) -> list[Line]:
    """The lines of an invoice; one that names no project is for the invoice's."""
    digits = DIGITS[document["currency"]]
    lines = [line_of(line, digits) for line in document["lines"]]
    return [line._replace(project=document["project"]) if line.project is None else line for line in lines]


def line_of(sent: dict[str, Any], digits: int) -> Line:
    """A line; of work its quantity and price are what the work makes them."""
    rate, project = exact(sent["tax_rate"]), sent["project"]
    if "time" in sent:
        units = sum(time_amount(entry["minutes"], entry["hourly_rate"], digits) for entry in sent["time"])
        quantity = Fraction(half_up(Fraction(sum(entry["minutes"] for entry in sent["time"]), 60) * 10**4), 10**4)
        rates = {exact(entry["hourly_rate"]) for entry in sent["time"]}
        return Line(units, quantity, rates.pop() if len(rates) == 1 else price(units, quantity, digits), rate, project)
    if "expenses" in sent:
        units = sum(expense(each, digits)[1] for each in sent["expenses"])
        quantity = Fraction(-1 if units < 0 else 1)
        return Line(units, quantity, price(units, quantity, digits), rate, project)
    quantity, unit_price = exact(sent["quantity"]), exact(sent["unit_price"])
    units = half_up(quantity * unit_price * (1 - exact(sent["discount_percent"]) / 100) * 10**digits)
    return Line(units, quantity, unit_price, rate, project)


def price(units: int, quantity: Fraction, digits: int) -> Fraction:
    """What one costs, to four places."""
    return Fraction(half_up(Fraction(units, 10**digits) / quantity * 10**4), 10**4)


def breakdown(lines: Iterable[Line]) -> dict[Fraction, Share]:
    """What is taxed at each rate: the exact sum of the lines, and one rounding of the tax on it."""
    nets: dict[Fraction, int] = {}
    for line in lines:
        nets[line.rate] = nets.get(line.rate, 0) + line.amount
    return {rate: Share(net, half_up(net * rate / 100)) for rate, net in sorted(nets.items())}


class Ledger:
    """An invoice, and what of it is not yet credited: at each rate, of each line, and of each project."""

    def __init__(self, lines: list[Line], digits: int) -> None:
        self.lines, self.digits, self.notes = lines, digits, 0
        self.rates = breakdown(lines)
        self.left = [(line.amount, line.quantity) for line in lines]
        self.projects: dict[int | None, int] = {}
        for line in lines:
            self.projects[line.project] = self.projects.get(line.project, 0) + line.amount

    @property
    def gross(self) -> int:
        return sum(share.gross for share in self.rates.values())

    def credit(self, request: dict[str, Any]) -> Note:
        """What a request takes back, which is then no longer there. Raises Refused."""
        parts, shares = self.resolve(request)
        total = sum(share.gross for share in shares.values())
        if not 0 < total <= self.gross or (total == self.gross and self.leaves_remainder(shares)):
            raise Refused("lines" if "lines" in request else "amount")
        note = Note(parts, shares, self.by_project(parts, sum(share.net for share in shares.values())))
        self.notes += 1
        for rate, share in shares.items():
            self.rates[rate] = Share(self.rates[rate].net - share.net, self.rates[rate].tax - share.tax)
        for part in parts:
            if part.place is not None:
                amount, quantity = self.left[part.place]
                self.left[part.place] = (amount - part.amount, quantity - part.quantity)
        for project, units in note.projects.items():
            self.projects[project] -= units
        return note

    def leaves_remainder(self, shares: dict[Fraction, Share]) -> bool:
        """Whether anything would be left at any rate."""
        return any(shares.get(rate, (0, 0)) != left for rate, left in self.rates.items())

    def resolve(self, request: dict[str, Any]) -> tuple[list[Part], dict[Fraction, Share]]:
        """What a request says, or, when it says nothing, all that is left. Raises Refused."""
        whole, named = self.gross, request.get("lines", [])
        if whole == 0:
            raise Refused("amount")
        if not request and not self.notes:
            named = [{"invoice_line_id": place} for place, line in enumerate(self.lines) if line.quantity]
        return self.by_lines(named) if named else self.by_amount(self.requested_gross(request, whole), whole)

    def requested_gross(self, request: dict[str, Any], whole: int) -> int:
        """The gross amount of a request, which is all that is left when it says none."""
        gross = exact(request["amount"]) * 10**self.digits if "amount" in request else Fraction(whole)
        if gross > whole or gross.denominator > 1:
            raise Refused("amount")
        return int(gross)

    def by_amount(self, gross: int, whole: int) -> tuple[list[Part], dict[Fraction, Share]]:
        """A gross amount at each rate, in proportion to what is left there."""
        shares = self.rates
        if gross < whole:
            parts_by_rate = zip(
                self.rates.items(), allocate(gross, [left.gross for left in self.rates.values()]), strict=True
            )
            shares = {rate: part_at(rate, left, part) for (rate, left), part in parts_by_rate}
        shares = {rate: share for rate, share in shares.items() if share != (0, 0)}
        parts = [Part(net, Fraction(-1 if net < 0 else 1), rate) for rate, (net, _) in shares.items()]
        return parts, shares

    def by_lines(self, named: list[dict[str, Any]]) -> tuple[list[Part], dict[Fraction, Share]]:
        """Parts of lines and free lines, and the tax on both at each rate."""
        left, parts = list(self.left), []
        nets: dict[Fraction, int] = {}
        for number, credit_line in enumerate(named):
            place = credit_line.get("invoice_line_id")
            if place is None:
                part = self.free(number, credit_line)
            else:
                part = part_of(number, credit_line, self.lines[place], left[place])
                left[place] = (left[place][0] - part.amount, left[place][1] - part.quantity)
            parts.append(part)
            nets[part.rate] = nets.get(part.rate, 0) + part.amount
        shares = {}
        for rate, net in nets.items():
            left_at_rate = self.rates[rate]
            if clamp(net, (0, left_at_rate.net)) != net:
                raise Refused("lines")
            shares[rate] = (
                left_at_rate
                if net == left_at_rate.net
                else Share(net, clamp(half_up(net * rate / 100), (0, left_at_rate.tax)))
            )
        return parts, shares

    def free(self, number: int, credit_line: dict[str, Any]) -> Part:
        """A line of its own, at one of the invoice's rates."""
        rate = exact(credit_line["tax_rate"]) if "tax_rate" in credit_line else next(iter(self.rates))
        if rate not in self.rates or ("tax_rate" not in credit_line and len(self.rates) > 1):
            raise Refused(f"lines.{number}.tax_rate")
        quantity = exact(credit_line.get("quantity", "1"))
        return Part(half_up(quantity * exact(credit_line["unit_price"]) * 10**self.digits), quantity, rate)

    def by_project(self, parts: list[Part], net: int) -> dict[int | None, int]:
        """Parts of lines for those lines' projects, the rest in proportion to what is then left of each."""
        if net == sum(self.projects.values()):
            return dict(self.projects)
        others, rest = self.others(parts, net)
        more = allocate(others, list(rest.values())) if sum(rest.values()) else [others, *[0] * (len(rest) - 1)]
        rows = zip(self.projects.items(), rest.values(), more, strict=True)
        return {project: left - after + units for (project, left), after, units in rows}

    def others(self, parts: list[Part], net: int) -> tuple[int, dict[int | None, int]]:
        """How much of a net is no part of a line, and what is left of each project after the parts of lines."""
        rest = dict(self.projects)
        for part in parts:
            if part.place is not None:
                rest[self.lines[part.place].project] -= part.amount
        return net - sum(part.amount for part in parts if part.place is not None), rest


def part_at(rate: Fraction, left: Share, gross: int) -> Share:
    """A gross amount as net and tax, neither of them more than is left."""
    net = clamp(half_up(gross / (1 + rate / 100)), (0, left.net), (gross - left.tax, gross))
    return Share(net, gross - net)


def part_of(number: int, credit_line: dict[str, Any], line: Line, left: tuple[int, Fraction]) -> Part:
    """A part of an invoice's line; the last one takes all that is left of it."""
    units, rest = left
    quantity = exact(credit_line["quantity"]) if "quantity" in credit_line else rest
    if rest == 0 or not 0 < quantity / rest <= 1:
        raise Refused(f"lines.{number}.quantity")
    amount = units if quantity == rest else clamp(half_up(line.amount * quantity / line.quantity), (0, units))
    return Part(amount, quantity, line.rate, credit_line["invoice_line_id"])
