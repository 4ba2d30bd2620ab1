"""Random invoices and requests for credit notes; each is decided by its generator of random numbers alone."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import floor
from random import Random
from typing import Any

from tests.reference.arithmetic import DIGITS, Ties, clamp, exact
from tests.reference.documents import MAX_AMOUNT, Ledger, Line, Refused

PROJECTS = 3
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


def one_of(rng: Random, weights: dict[str, int]) -> str:
    return rng.choices(list(weights), list(weights.values()))[0]


def percent(rng: Random, usual: Sequence[str], most: int = 100) -> str:
    return rng.choice(usual) if rng.random() < 0.85 else text(rng.randint(0, most * 1000), 3)


def document(rng: Random, *, sent: bool = False) -> dict[str, Any]:
    """An invoice, some of but a few units; one that can be `sent` has neither work nor lines near the limit."""
    currency = rng.choices(("EUR", "JPY", "KWD", "CLF"), (5, 2, 2, 2))[0]
    rates = [percent(rng, RATES) for _ in range(rng.randint(1, 4))]
    kinds = {kind: weight for kind, weight in LINES.items() if not sent or kind not in {"time", "expenses", "large"}}
    small = rng.random() < 0.15
    kinds, lines = {"tiny": 1} if small else kinds, []
    for _ in range(rng.randint(1, 2 if small else 12)):
        kind, project = one_of(rng, kinds), rng.choice([None, *range(PROJECTS)])
        plain = [other for other in lines if not other.get("quantity", "-").startswith("-")]
        if kind == "undone" and plain:
            former = rng.choice(plain)
            lines.append({**former, "quantity": f"-{former['quantity']}", "project": project})
        else:
            terms = {"tax_rate": rng.choice(rates), "project": project}
            lines.append({**line(rng, kind, DIGITS[currency]), **terms})
    return {"currency": currency, "project": rng.choice([None, *range(PROJECTS)]), "lines": lines}


def line(rng: Random, kind: str, digits: int) -> dict[str, Any]:
    if kind == "time":
        return {"time": time(rng, digits)}
    if kind == "expenses":
        return {"expenses": [random_expense(rng, digits) for _ in range(rng.randint(1, 3))]}
    discount = "0" if rng.random() < 0.7 else percent(rng, DISCOUNTS)
    places = rng.randint(0, 4)
    quantity = "1" if rng.random() < 0.4 else text(rng.randint(1, 400 * 10 ** rng.randint(0, places)), places)
    places = rng.choice((digits, digits, rng.randint(0, 4)))
    unit_price = text(rng.randint(0, 5000 * 10 ** rng.randint(0, places)), places)
    if kind == "half":
        odd = 2 * rng.randint(0, 10 ** rng.randint(1, 6)) + 1
        ways = [("0.5", "0"), ("1", "50"), ("1.5", "0"), ("-0.5", "0"), ("-3", "50"), ("2.5", "80"), ("0.0625", "20")]
        quantity, discount = rng.choice(ways)
        unit_price = text(odd * 10, digits) if quantity == "0.0625" else text(odd, digits)
        if digits < 4 and rng.random() < 0.3:
            quantity, unit_price, discount = rng.choice(("1", "3", "-1")), text(5 * odd, digits + 1), "0"
    elif kind == "tiny":
        ways = [(text(rng.randint(1, 99), 4), text(rng.randint(1, 9999), 4))]
        ways += [(text(rng.randint(1, 12), 0), text(rng.randint(1, 30), min(digits + 1, 4)))] * 3
        quantity, unit_price = rng.choice(ways)
    elif kind == "rebate":
        quantity = f"-{quantity}"
    elif kind == "nothing":
        ways = [("0", "500", "0"), ("3", "0", "0"), ("-2", "80", "100")]
        quantity, unit_price, discount = rng.choice(ways)
    elif kind == "large":
        quantity = rng.choice(("1", "2", "3", "-7", "1000", "8.0001", "1000000000"))
        most = floor(MAX_AMOUNT * 10**4 / abs(exact(quantity)))
        near = most - rng.randint(0, 3) if rng.random() < 0.5 else rng.randint(0, most)
        unit_price = text(min(near + rng.choice((0, 0, 0, 0, 4)), MAX_AMOUNT * 10**4), 4)
        discount = rng.choice(("0", "0", discount))
    return {"quantity": quantity, "unit_price": unit_price, "discount_percent": discount}


def time(rng: Random, digits: int) -> list[dict[str, Any]]:
    """Hours that were worked, at one rate or at several."""
    usual = text(rng.randint(0, 20_000), digits)
    rates = [usual if rng.random() < 0.7 else text(rng.randint(0, 20_000), digits) for _ in range(4)]
    minutes = [rng.choice((1, 5, 20, 30, 45, 90, rng.randint(1, 1440))) for _ in range(rng.randint(1, 4))]
    return [{"minutes": worked, "hourly_rate": rate} for worked, rate in zip(minutes, rates, strict=False)]


def random_expense(rng: Random, digits: int) -> dict[str, Any]:
    """An expense, or, less than nothing, a refund."""
    units = rng.randint(1, 10 ** rng.randint(1, 7)) * rng.choice((1, 1, 1, -1))
    markup = percent(rng, ("0", "10", "12.5", "50", "100", "7.5"), 1000)
    includes = rng.random() < 0.7
    rate = percent(rng, RATES)
    return {"amount": text(units, digits), "tax_rate": rate, "amount_includes_tax": includes, "markup_percent": markup}


def requests(rng: Random, ledger: Ledger) -> Iterator[dict[str, Any]]:
    """Credit notes that are asked for one after the other, each with regard to what is left then."""
    for _ in range(rng.randint(0, 5)):
        if ledger.gross:
            credit_request = request(rng, ledger)
            if not is_skipped(ledger, credit_request):
                yield credit_request
    if ledger.gross and rng.random() < 0.6:
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


def request(rng: Random, ledger: Ledger) -> dict[str, Any]:
    kind, whole, places = one_of(rng, CREDITS), ledger.gross, range(len(ledger.lines))
    if kind == "amount":
        units = (rng.randint(1, whole), min(whole, rng.randint(1, 20)), whole // 2, whole - 1, whole, whole + 1)
        amount = text(rng.choices(units, (9, 4, 2, 2, 2, 1))[0], ledger.digits)
        return {"amount": amount if rng.random() < 0.98 else f"{amount}{'' if ledger.digits else '.'}5"}
    if kind == "all":
        return {}
    named = []
    if kind in {"parts", "both"}:
        wanted = rng.sample(places, rng.randint(1, min(4, len(places))))
        wanted += wanted[:1] if rng.random() < 0.1 else []
        named = [part(rng, place, ledger) for place in wanted if ledger.left[place][1]]
        half = half_of(ledger.lines[wanted[0]]) if rng.random() < 0.1 and ledger.left[wanted[0]][1] > 0 else None
        if half:
            named = [{"invoice_line_id": wanted[0], "quantity": text(half, 4)}] * rng.randint(1, 6)
    if kind in {"free", "both"} or not named:
        named += [free(rng, ledger) for _ in range(rng.randint(1, 2))]
    rng.shuffle(named)
    return {"lines": named}


def part(rng: Random, place: int, ledger: Ledger) -> dict[str, Any]:
    """Part of a line's quantity, or all that is left of it; at times more than that, often one that ends in a half."""
    line, rest = ledger.lines[place], ledger.left[place][1]
    units, sign = abs(int(rest * 10**4)), -1 if rest < 0 else 1
    ways = [units, rng.randint(1, units), rng.randint(1, units), 1, -(-units // 2), units + 1, None]
    half = half_of(line)
    ways.append(half and half * (2 * rng.randint(0, units // (2 * half)) + 1))
    chosen = rng.choices(ways, (1, 6, 6, 2, 3, 1, 6, 8))[0]
    return {"invoice_line_id": place} | ({} if chosen is None else {"quantity": text(sign * chosen, 4)})


def half_of(line: Line) -> int | None:
    """The least quantity that comes to so many units and a half, in ten-thousandths; its odd multiples do, too."""
    whole, units = abs(int(line.quantity * 10**4)), abs(line.amount)
    odd = Fraction(2 * units, whole).numerator
    return whole * odd // (2 * units) if odd % 2 else None


def free(rng: Random, ledger: Ledger) -> dict[str, Any]:
    """Something else that is credited at one of the rates, mostly no more than is left there."""
    rate = rng.choice([rate for rate, left in ledger.rates.items() if left.net] or list(ledger.rates))
    units = ledger.rates[rate].net
    sign = "-" if units < 0 else ""
    most = abs(units) + (rng.random() < 0.05)
    wanted = rng.choice((most, rng.randint(0, most), rng.randint(0, most)))
    ways = [("1", text(wanted, ledger.digits)), ("0.5", text(wanted, ledger.digits)), ("2.5", text(wanted // 3, 4))]
    quantity, unit_price = rng.choice(ways)
    known = rng.random() < (0.5 if len(ledger.rates) == 1 else 0.03)
    tax_rate = "47.11" if rng.random() < 0.02 else text(int(rate * 1000), 3)
    return {"quantity": sign + quantity, "unit_price": unit_price} | ({} if known else {"tax_rate": tax_rate})
