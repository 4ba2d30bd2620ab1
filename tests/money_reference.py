"""What documents come to, worked out a second time: from the contract alone, in fractions, with nothing of the product.

Amounts are whole numbers of minor units; what is exact between two roundings is a Fraction. Documents and requests are
made of the texts that a caller would send; `chance` alone decides what they are, so that each can be made again.
"""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import floor
from random import Random
from typing import Any, NamedTuple

DIGITS = {"EUR": 2, "USD": 2, "JPY": 0, "KWD": 3, "CLF": 4}
LARGEST = 10**12
PROJECTS = 3


class Ties:
    """How many exact halves were rounded: the ties."""

    count = 0


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


exact = lru_cache(100_000)(Fraction)


def rounded(number: Fraction) -> int:
    """The nearest whole number, and of two as near the one further from zero."""
    below, rest = divmod(number.numerator, number.denominator)
    beyond = 2 * rest - number.denominator
    Ties.count += beyond == 0
    return below + (beyond > 0 or (beyond == 0 and below >= 0))


def clamp(number: int, *bounds: tuple[int, int]) -> int:
    """A number, or the nearest that lies between all these pairs, each in either order."""
    return max(*map(min, bounds), min(*map(max, bounds), number))


def allocate(units: int, weights: Sequence[int]) -> list[int]:
    """Whole numbers in proportion to weights: what is left over goes to the largest remainders, one each."""
    fair = [Fraction(units * weight, sum(weights)) for weight in weights]
    parts = [floor(part) for part in fair]
    losers = sorted(range(len(fair)), key=lambda place: parts[place] - fair[place])
    for place in losers[: units - sum(parts)]:
        parts[place] += 1
    return parts


def time_amount(minutes: int, hourly_rate: str, digits: int) -> int:
    return rounded(Fraction(minutes, 60) * exact(hourly_rate) * 10**digits)


def expense(sent: dict[str, Any], digits: int) -> tuple[int, int]:
    """The net of an expense, and what its client is billed."""
    gross = exact(sent["amount"]) * 10**digits
    net = rounded(gross / (1 + exact(sent["tax_rate"]) / 100)) if sent["amount_includes_tax"] else int(gross)
    return net, rounded(net * (1 + exact(sent["markup_percent"]) / 100))


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
        quantity = Fraction(rounded(Fraction(sum(entry["minutes"] for entry in sent["time"]), 60) * 10**4), 10**4)
        rates = {exact(entry["hourly_rate"]) for entry in sent["time"]}
        return Line(units, quantity, rates.pop() if len(rates) == 1 else price(units, quantity, digits), rate, project)
    if "expenses" in sent:
        units = sum(expense(each, digits)[1] for each in sent["expenses"])
        quantity = Fraction(-1 if units < 0 else 1)
        return Line(units, quantity, price(units, quantity, digits), rate, project)
    quantity, unit_price = exact(sent["quantity"]), exact(sent["unit_price"])
    units = rounded(quantity * unit_price * (1 - exact(sent["discount_percent"]) / 100) * 10**digits)
    return Line(units, quantity, unit_price, rate, project)


def price(units: int, quantity: Fraction, digits: int) -> Fraction:
    """What one costs, to four places."""
    return Fraction(rounded(Fraction(units, 10**digits) / quantity * 10**4), 10**4)


def breakdown(lines: Iterable[Line]) -> dict[Fraction, Share]:
    """What is taxed at each rate: the exact sum of the lines, and one rounding of the tax on it."""
    nets: dict[Fraction, int] = {}
    for line in lines:
        nets[line.rate] = nets.get(line.rate, 0) + line.amount
    return {rate: Share(net, rounded(net * rate / 100)) for rate, net in sorted(nets.items())}


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
                else Share(net, clamp(rounded(net * rate / 100), (0, left_at_rate.tax)))
            )
        return parts, shares

    def free(self, number: int, credit_line: dict[str, Any]) -> Part:
        """A line of its own, at one of the invoice's rates."""
        rate = exact(credit_line["tax_rate"]) if "tax_rate" in credit_line else next(iter(self.rates))
        if rate not in self.rates or ("tax_rate" not in credit_line and len(self.rates) > 1):
            raise Refused(f"lines.{number}.tax_rate")
        quantity = exact(credit_line.get("quantity", "1"))
        return Part(rounded(quantity * exact(credit_line["unit_price"]) * 10**self.digits), quantity, rate)

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
    net = clamp(rounded(gross / (1 + rate / 100)), (0, left.net), (gross - left.tax, gross))
    return Share(net, gross - net)


def part_of(number: int, credit_line: dict[str, Any], line: Line, left: tuple[int, Fraction]) -> Part:
    """A part of an invoice's line; the last one takes all that is left of it."""
    units, rest = left
    quantity = exact(credit_line["quantity"]) if "quantity" in credit_line else rest
    if rest == 0 or not 0 < quantity / rest <= 1:
        raise Refused(f"lines.{number}.quantity")
    amount = units if quantity == rest else clamp(rounded(line.amount * quantity / line.quantity), (0, units))
    return Part(amount, quantity, line.rate, credit_line["invoice_line_id"])


RATES = ("0", "7", "19", "19.0", "20", "21", "25", "5.5", "8.1", "8.10", "2.5", "10", "12.5", "50", "60", "100")
DISCOUNTS = ("50", "100", "33.333", "12.5", "2.50", "0.001", "99.999")
LINES = {
    "usual": 40,
    "half": 22,
    "tiny": 6,
    "rebate": 8,
    "nothing": 4,
    "undone": 5,
    "time": 8,
    "expenses": 7,
    "large": 3,
}
CREDITS = {"amount": 36, "parts": 34, "free": 14, "both": 8, "all": 8}


def text(units: int, places: int) -> str:
    """A whole number of the last place as a decimal."""
    digits = str(abs(units)).rjust(places + 1, "0")
    return "-" * (units < 0) + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


def one_of(chance: Random, weights: dict[str, int]) -> str:
    return chance.choices(list(weights), list(weights.values()))[0]


def percent(chance: Random, usual: Sequence[str], most: int = 100) -> str:
    return chance.choice(usual) if chance.random() < 0.85 else text(chance.randint(0, most * 1000), 3)


def document(chance: Random, *, sent: bool = False) -> dict[str, Any]:
    """An invoice, some of but a few units; one that can be `sent` has neither work nor lines near the limit."""
    currency = chance.choices(("EUR", "JPY", "KWD", "CLF"), (5, 2, 2, 2))[0]
    rates = [percent(chance, RATES) for _ in range(chance.randint(1, 4))]
    kinds = {kind: weight for kind, weight in LINES.items() if not sent or kind not in {"time", "expenses", "large"}}
    small = chance.random() < 0.15
    kinds, lines = {"tiny": 1} if small else kinds, []
    for _ in range(chance.randint(1, 2 if small else 12)):
        kind, project = one_of(chance, kinds), chance.choice([None, *range(PROJECTS)])
        plain = [other for other in lines if not other.get("quantity", "-").startswith("-")]
        if kind == "undone" and plain:
            former = chance.choice(plain)
            lines.append({**former, "quantity": f"-{former['quantity']}", "project": project})
        else:
            terms = {"tax_rate": chance.choice(rates), "project": project}
            lines.append({**line(chance, kind, DIGITS[currency]), **terms})
    return {"currency": currency, "project": chance.choice([None, *range(PROJECTS)]), "lines": lines}


def line(chance: Random, kind: str, digits: int) -> dict[str, Any]:
    if kind == "time":
        return {"time": time(chance, digits)}
    if kind == "expenses":
        return {"expenses": [random_expense(chance, digits) for _ in range(chance.randint(1, 3))]}
    discount = "0" if chance.random() < 0.7 else percent(chance, DISCOUNTS)
    places = chance.randint(0, 4)
    quantity = "1" if chance.random() < 0.4 else text(chance.randint(1, 400 * 10 ** chance.randint(0, places)), places)
    places = chance.choice((digits, digits, chance.randint(0, 4)))
    unit_price = text(chance.randint(0, 5000 * 10 ** chance.randint(0, places)), places)
    if kind == "half":
        odd = 2 * chance.randint(0, 10 ** chance.randint(1, 6)) + 1
        ways = [("0.5", "0"), ("1", "50"), ("1.5", "0"), ("-0.5", "0"), ("-3", "50"), ("2.5", "80"), ("0.0625", "20")]
        quantity, discount = chance.choice(ways)
        unit_price = text(odd * 10, digits) if quantity == "0.0625" else text(odd, digits)
        if digits < 4 and chance.random() < 0.3:
            quantity, unit_price, discount = chance.choice(("1", "3", "-1")), text(5 * odd, digits + 1), "0"
    elif kind == "tiny":
        ways = [(text(chance.randint(1, 99), 4), text(chance.randint(1, 9999), 4))]
        ways += [(text(chance.randint(1, 12), 0), text(chance.randint(1, 30), min(digits + 1, 4)))] * 3
        quantity, unit_price = chance.choice(ways)
    elif kind == "rebate":
        quantity = f"-{quantity}"
    elif kind == "nothing":
        ways = [("0", "500", "0"), ("3", "0", "0"), ("-2", "80", "100")]
        quantity, unit_price, discount = chance.choice(ways)
    elif kind == "large":
        quantity = chance.choice(("1", "2", "3", "-7", "1000", "8.0001", "1000000000"))
        most = floor(LARGEST * 10**4 / abs(exact(quantity)))
        near = most - chance.randint(0, 3) if chance.random() < 0.5 else chance.randint(0, most)
        unit_price = text(min(near + chance.choice((0, 0, 0, 0, 4)), LARGEST * 10**4), 4)
        discount = chance.choice(("0", "0", discount))
    return {"quantity": quantity, "unit_price": unit_price, "discount_percent": discount}


def time(chance: Random, digits: int) -> list[dict[str, Any]]:
    """Hours that were worked, at one rate or at several."""
    usual = text(chance.randint(0, 20_000), digits)
    rates = [usual if chance.random() < 0.7 else text(chance.randint(0, 20_000), digits) for _ in range(4)]
    minutes = [chance.choice((1, 5, 20, 30, 45, 90, chance.randint(1, 1440))) for _ in range(chance.randint(1, 4))]
    return [{"minutes": worked, "hourly_rate": rate} for worked, rate in zip(minutes, rates, strict=False)]


def random_expense(chance: Random, digits: int) -> dict[str, Any]:
    """An expense, or, less than nothing, a refund."""
    units = chance.randint(1, 10 ** chance.randint(1, 7)) * chance.choice((1, 1, 1, -1))
    markup = percent(chance, ("0", "10", "12.5", "50", "100", "7.5"), 1000)
    includes = chance.random() < 0.7
    rate = percent(chance, RATES)
    return {"amount": text(units, digits), "tax_rate": rate, "amount_includes_tax": includes, "markup_percent": markup}


def requests(chance: Random, ledger: Ledger) -> Iterator[dict[str, Any]]:
    """Credit notes that are asked for one after the other, each with regard to what is left then."""
    for _ in range(chance.randint(0, 5)):
        if ledger.gross:
            credit_request = request(chance, ledger)
            if not is_skipped(ledger, credit_request):
                yield credit_request
    if ledger.gross and chance.random() < 0.6:
        yield {}


def is_skipped(ledger: Ledger, credit_request: dict[str, Any]) -> bool:
    """Whether lines below nothing make a request one that is not compared.

    It takes more of the projects than is left of them together, or it comes to all that is left with too much at one
    rate and too little at another.
    """
    met = Ties.count
    try:
        parts, shares = ledger.resolve(credit_request)
    except Refused:
        return False
    finally:
        Ties.count = met
    others, rest = ledger.others(parts, sum(share.net for share in shares.values()))
    total = sum(share.gross for share in shares.values())
    every = {rate for rate, left in ledger.rates.items() if left.net}
    uneven = total == ledger.gross and every <= shares.keys() and ledger.leaves_remainder(shares)
    return uneven or others != clamp(others, (0, sum(rest.values())))


def request(chance: Random, ledger: Ledger) -> dict[str, Any]:
    kind, whole, places = one_of(chance, CREDITS), ledger.gross, range(len(ledger.lines))
    if kind == "amount":
        units = (chance.randint(1, whole), min(whole, chance.randint(1, 20)), whole // 2, whole - 1, whole, whole + 1)
        amount = text(chance.choices(units, (9, 4, 2, 2, 2, 1))[0], ledger.digits)
        return {"amount": amount if chance.random() < 0.98 else f"{amount}{'' if ledger.digits else '.'}5"}
    if kind == "all":
        return {}
    named = []
    if kind in {"parts", "both"}:
        wanted = chance.sample(places, chance.randint(1, min(4, len(places))))
        wanted += wanted[:1] if chance.random() < 0.1 else []
        named = [part(chance, place, ledger) for place in wanted if ledger.left[place][1]]
        half = half_of(ledger.lines[wanted[0]]) if chance.random() < 0.1 and ledger.left[wanted[0]][1] > 0 else None
        if half:
            named = [{"invoice_line_id": wanted[0], "quantity": text(half, 4)}] * chance.randint(1, 6)
    if kind in {"free", "both"} or not named:
        named += [free(chance, ledger) for _ in range(chance.randint(1, 2))]
    chance.shuffle(named)
    return {"lines": named}


def part(chance: Random, place: int, ledger: Ledger) -> dict[str, Any]:
    """Part of a line's quantity, or all that is left of it; at times more than that, often one that ends in a half."""
    line, rest = ledger.lines[place], ledger.left[place][1]
    units, sign = abs(int(rest * 10**4)), -1 if rest < 0 else 1
    ways = [units, chance.randint(1, units), chance.randint(1, units), 1, -(-units // 2), units + 1, None]
    half = half_of(line)
    ways.append(half and half * (2 * chance.randint(0, units // (2 * half)) + 1))
    chosen = chance.choices(ways, (1, 6, 6, 2, 3, 1, 6, 8))[0]
    return {"invoice_line_id": place} | ({} if chosen is None else {"quantity": text(sign * chosen, 4)})


def half_of(line: Line) -> int | None:
    """The least quantity that comes to so many units and a half, in ten-thousandths; its odd multiples do, too."""
    whole, units = abs(int(line.quantity * 10**4)), abs(line.amount)
    odd = Fraction(2 * units, whole).numerator
    return whole * odd // (2 * units) if odd % 2 else None


def free(chance: Random, ledger: Ledger) -> dict[str, Any]:
    """Something else that is credited at one of the rates, mostly no more than is left there."""
    rate = chance.choice([rate for rate, left in ledger.rates.items() if left.net] or list(ledger.rates))
    units = ledger.rates[rate].net
    sign = "-" if units < 0 else ""
    most = abs(units) + (chance.random() < 0.05)
    wanted = chance.choice((most, chance.randint(0, most), chance.randint(0, most)))
    ways = [("1", text(wanted, ledger.digits)), ("0.5", text(wanted, ledger.digits)), ("2.5", text(wanted // 3, 4))]
    quantity, unit_price = chance.choice(ways)
    known = chance.random() < (0.5 if len(ledger.rates) == 1 else 0.03)
    tax_rate = "47.11" if chance.random() < 0.02 else text(int(rate * 1000), 3)
    return {"quantity": sign + quantity, "unit_price": unit_price} | ({} if known else {"tax_rate": tax_rate})
