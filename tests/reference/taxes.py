"""What the tax report comes to, from the records that the API answers: an independent second implementation.

Amounts are whole numbers of minor units.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from tests.reference.arithmetic import allocate, exact, in_units

Record = dict[str, Any]
ISSUED = ("sent", "partially_paid", "paid", "written_off")


class Figures(NamedTuple):
    net: int = 0
    tax: int = 0
    credited: int = 0
    credited_tax: int = 0
    discounts: int = 0
    discounts_tax: int = 0
    written_off: int = 0
    written_off_tax: int = 0

    def __add__(self, other: Iterable[int]) -> "Figures":  # type: ignore[override]
        return Figures(*(one + another for one, another in zip(self, other, strict=True)))


Report = dict[tuple[str, str], Figures]
"""Figures by currency and rate, without those that are all 0."""


def shares(document: Record) -> dict[str, tuple[int, int]]:
    """The net and the tax of a document, or of a discount, at each rate."""
    units = {}
    for share in document["tax_breakdown"]:
        net, tax = (in_units(share[name], document["currency"]) for name in ("taxable_amount", "tax_amount"))
        units[share["tax_rate"]] = (int(net), int(tax))
    return units


def by_issue(invoices: Iterable[Record], notes: list[Record], first: str, last: str) -> Report:
    found: Report = defaultdict(Figures)
    taken = [(note, note["issue_date"], note, False) for note in notes]
    for invoice in invoices:
        taken += [(invoice, each["paid_date"], each, True) for each in discounts_of(invoice)]
        if invoice["status"] in ISSUED and first <= invoice["issue_date"] <= last:
            for rate, (net, tax) in shares(invoice).items():
                found[invoice["currency"], rate] += Figures(net, tax)
        if invoice["written_off_at"] and first <= local_day(invoice["written_off_at"]) <= last:
            for rate, (net, tax) in unpaid(invoice, notes, last):
                found[invoice["currency"], rate] += Figures(written_off=net, written_off_tax=tax)
    for owner, day, record, is_discount in taken:
        for rate, (net, tax) in shares(record).items() if first <= day <= last else ():
            discounted = (net, tax) if is_discount else (0, 0)
            found[owner["currency"], rate] += Figures(-net, -tax, net, tax, *discounted)
    return without_zeros(found)


def discounts_of(invoice: Record) -> list[Record]:
    return [each for each in invoice["payments"] if each["kind"] == "discount"]


def local_day(moment: str) -> str:
    return datetime.fromisoformat(moment).astimezone(ZoneInfo("Europe/Berlin")).date().isoformat()


def unpaid(invoice: Record, notes: list[Record], last: str) -> list[tuple[str, tuple[int, int]]]:
    """What was owed at each rate at the end of a day, of an invoice that was issued by then."""
    taken = [each for each in notes if each["invoice_id"] == invoice["id"] and each["issue_date"] <= last]
    taken += [each for each in discounts_of(invoice) if each["paid_date"] <= last]
    paid = sum(
        int(in_units(each["amount"], invoice["currency"]))
        for each in invoice["payments"]
        if each["kind"] != "discount" and each["paid_date"] <= last
    )
    left = [(rate, place, units) for rate, both in shares(invoice).items() for place, units in enumerate(both)]
    for record in taken:
        part = shares(record)
        left = [(rate, place, units - part.get(rate, (0, 0))[place]) for rate, place, units in left]
    weights = [units for *_, units in left]
    if invoice["issue_date"] > last or paid >= sum(weights):
        return []
    rest = [units - gone for units, gone in zip(weights, allocate(paid, weights), strict=True)]
    rates = [rate for rate, place, _ in left if place == 0]
    return list(zip(rates, zip(rest[::2], rest[1::2], strict=True), strict=True))


def by_payment(invoices: Iterable[Record], notes: list[Record], first: str, last: str) -> Report:
    found: Report = defaultdict(Figures)
    for invoice in invoices:
        own = [note for note in notes if note["invoice_id"] == invoice["id"]]
        for day, is_refund, rate, net, tax in movements(invoice, own):
            if first <= day <= last:
                refunded = (-net, -tax) if is_refund else (0, 0)
                found[invoice["currency"], rate] += Figures(net, tax, *refunded)
    return without_zeros(found)


def movements(invoice: Record, notes: list[Record]) -> Iterator[tuple[str, bool, str, int, int]]:
    """What each payment, refund, discount and credit note adds to what was received at each rate."""
    events = [(note["issue_date"], 0, note["id"], note) for note in notes]
    events += [
        (payment["paid_date"], int(payment["kind"] != "discount"), payment["id"], payment)
        for payment in invoice["payments"]
    ]
    whole = shares(invoice)
    before = dict.fromkeys(whole, (0, 0))
    for place, (day, is_payment, _, record) in enumerate(sorted(events, key=lambda event: event[:3]), start=1):
        now = received(invoice, whole, [event[-1] for event in sorted(events, key=lambda event: event[:3])[:place]])
        for rate, (net, tax) in now.items():
            is_refund = bool(is_payment) and exact(record["amount"]) < 0
            yield day, is_refund, rate, net - before[rate][0], tax - before[rate][1]
        before = now


def received(invoice: Record, whole: dict[str, tuple[int, int]], until: list[Record]) -> dict[str, tuple[int, int]]:
    """What was received at each rate after some payments, discounts and credit notes."""
    money_moved = [each for each in until if each.get("kind") in {"payment", "refund"}]
    paid = sum(int(in_units(each["amount"], invoice["currency"])) for each in money_moved)
    gone = dict.fromkeys(whole, (0, 0))
    for note in (each for each in until if each not in money_moved):
        for rate, (net, tax) in shares(note).items():
            gone[rate] = (gone[rate][0] + net, gone[rate][1] + tax)
    places = [(rate, place) for rate in whole for place in (0, 1)]
    credited = [gone[rate][place] for rate, place in places]
    left = [whole[rate][place] - gone[rate][place] for rate, place in places]
    beyond = paid - sum(left)
    parts = [allocate(paid, left) if beyond < 0 else left]
    if 0 < beyond < sum(credited):
        parts.append(allocate(beyond, credited))
    elif beyond > 0:
        parts.append(credited)
    if beyond > sum(credited):
        parts.append(allocate(beyond - sum(credited), [whole[rate][place] for rate, place in places]))
    found = dict(zip(places, map(sum, zip(*parts, strict=True)), strict=True))
    return {rate: (found[rate, 0], found[rate, 1]) for rate in whole}


def without_zeros(report: Report) -> Report:
    return {key: figures for key, figures in report.items() if any(figures)}


def reported(rows: Iterable[Record]) -> Report:
    """The rows of the tax report, whatever their category is."""
    found: Report = defaultdict(Figures)
    for row in rows:
        assert (row["tax_category"] == "S") == (exact(row["tax_rate"]) > 0), row
        found[row["currency"], row["tax_rate"]] += [
            int(in_units(row[name], row["currency"])) for name in Figures._fields
        ]
    return without_zeros(found)
