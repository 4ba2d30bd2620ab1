import re
from collections import Counter
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import bindparam, select

from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.invoices.types import Invoice
from retainer.errors import part
from retainer.reports.taxed import CREDIT, PAYMENT, MoneyEvent, received
from retainer.schema.billing import credit_note_shares
from retainer.values import money
from retainer.values.exact import DIGITS, amount_of, half_up, minor_units
from retainer.values.money import Share
from tests.length import length
from tests.reference import arithmetic, random_documents
from tests.reference import documents as reference
from tests.reference.comparison import Product, agree_on_lines, agree_on_note, agree_on_totals, compare_all
from tests.reference.documents import Ledger, Refused

DOCUMENTS = length(2500)
NUMBERS = msgspec.json.Encoder(decimal_format="number")
FIGURES = {"quantity", "unit_price", "discount_percent", "tax_rate", "amount"}
SHORTEST = re.compile(r"-?\d+(\.\d*[1-9])?")
SHARES = select(credit_note_shares.c.project_id, credit_note_shares.c.amount).where(
    credit_note_shares.c.credit_note_id == bindparam("note")
)


@pytest.mark.parametrize("seed", range(4))
def test_ten_thousand_invoices_and_their_credit_notes_are_exact_to_the_last_unit(api, seed):
    seen, differences = compare_all(Product(api), seed, range(DOCUMENTS))
    assert differences == []
    assert seen["documents"] == DOCUMENTS
    least = min(seen[what] for what in ("credit notes", "refused credit notes", "credited as a whole", "ties"))
    assert least > DOCUMENTS // 3


def sent(api, path, body, number):
    """Send the figures of every other body as JSON numbers, the rest as strings."""
    return api.post(path, raw=NUMBERS.encode(as_numbers(body) if number % 2 else body))


def as_numbers(body):
    if isinstance(body, list):
        return [as_numbers(item) for item in body]
    if not isinstance(body, dict):
        return body
    return {name: Decimal(value) if name in FIGURES else as_numbers(value) for name, value in body.items()}


def line_to_send(line, projects):
    members = {name: value for name, value in line.items() if name != "project"}
    return {"description": "Design", "project_id": projects[line["project"]], **members}


def credit_to_send(request, ids):
    lines = [
        {"description": "Goodwill", **line} | ({"invoice_line_id": ids[place]} if place is not None else {})
        for line in request.get("lines", ())
        for place in [line.get("invoice_line_id")]
    ]
    return request | ({"lines": lines} if lines else {})


def not_shortest(document, *names):
    """Return the figures with trailing zeros; a unit price ends with the digits of its currency."""
    rows = [*document["lines"], *document["tax_breakdown"]]
    figures = [each[name] for each in rows for name in names if name in each]
    wrong = [figure for figure in figures if not SHORTEST.fullmatch(figure)]
    digits = arithmetic.DIGITS[document["currency"]]
    prices = [line["unit_price"].partition(".")[2] for line in document["lines"]]
    return wrong + [places for places in prices if len(places) < digits or places[digits:].endswith("0")]


def credit(api, invoice, request, ledger, projects):
    body = credit_to_send(request, [line.id for line in invoice.lines])
    answer = sent(api, f"/invoices/{invoice.id}/credit-notes", body, invoice.id)
    try:
        note = ledger.credit(request)
    except Refused as fault:
        member = fault.args[0]
        assert member in answer.errors, request
    else:
        created = msgspec.convert(answer.data, CreditNote)
        with api.store.unscoped() as tx:
            taken = dict(tx.all(SHARES, note=created.id))
        agree_on_note(created, taken, note, projects)
        assert (created.applied_amount, created.refundable_amount) == (created.total, 0)
        assert not_shortest(answer.data, "discount_percent", "tax_rate") == []
        assert api.get(f"/credit-notes/{created.id}").data == answer.data
    after = api.get(f"/invoices/{invoice.id}").data
    assert Fraction(after["balance_due"]) * 10**ledger.digits == ledger.gross
    assert Fraction(after["amount_credited"]) == Fraction(after["total"]) - Fraction(after["balance_due"])
    assert Fraction(after["refund_due"]) == 0
    assert after["status"] == ("paid" if ledger.gross == 0 else "partially_paid" if ledger.notes else "sent")


@pytest.mark.parametrize("seed", range(8))
def test_two_hundred_invoices_and_their_credit_notes_are_exact_through_the_api(api, seed):
    client = api.make("/clients")["id"]
    ids = [api.make("/projects", client_id=client)["id"] for _ in range(random_documents.PROJECTS)]
    projects = {None: None, **dict(enumerate(ids))}
    for number in range(length(25)):
        rng = Random(seed * 10**6 + number)
        document = random_documents.document(rng, sent=True)
        currency = document["currency"]
        ledger = Ledger(reference.bill(document), arithmetic.DIGITS[currency])
        lines = [line_to_send(line, projects) for line in document["lines"]]
        status = "sent" if ledger.gross > 0 else "draft"
        members = {"client_id": client, "currency": currency, "project_id": projects[document["project"]]}
        made = sent(api, "/invoices", members | {"status": status, "lines": lines}, number).data
        assert not_shortest(made, "quantity", "discount_percent", "tax_rate") == []
        invoice = msgspec.convert(made, Invoice)
        agree_on_lines(invoice.lines, ledger.lines, currency)
        agree_on_totals(invoice, ledger.rates)
        if status == "sent":
            for request in random_documents.requests(rng, ledger):
                credit(api, invoice, request, ledger, projects)


UNITS = st.integers(-(10**17), 10**17)


@given(st.integers(-(10**20), 10**20), st.integers(1, 10**12))
def test_rounding_is_off_by_at_most_a_half_and_halves_go_away_from_zero(numerator, denominator):
    exact, whole = Fraction(numerator, denominator), half_up(numerator, denominator)
    assert abs(whole - exact) <= Fraction(1, 2)
    assert abs(whole - exact) < Fraction(1, 2) or abs(whole) > abs(exact)


@given(UNITS, st.sampled_from(sorted(DIGITS)))
def test_minor_units_and_amounts_are_the_same(units, currency):
    amount = amount_of(units, currency)
    assert Fraction(amount) * 10 ** DIGITS[currency] == units
    assert -amount.as_tuple().exponent == DIGITS[currency]
    assert minor_units(amount, currency) == units


@pytest.mark.parametrize(
    ("amount", "currency"), [("0.5", "JPY"), ("0.001", "EUR"), ("1.0001", "KWD"), ("1.00001", "CLF")]
)
def test_an_amount_with_more_digits_than_its_currency_has_no_minor_units(amount, currency):
    with pytest.raises(ValueError, match=f"{currency} has .*: {part(amount)} has more"):
        minor_units(Decimal(amount), currency)


@pytest.mark.parametrize(
    ("quantity", "unit_price", "discount", "currency", "units"),
    [
        ("2", "500", "0", "EUR", 100000),
        ("0.5", "0.01", "0", "EUR", 1),  # 0.005
        ("-0.5", "0.01", "0", "EUR", -1),
        ("2.5", "1", "0", "JPY", 3),
        ("0.4999", "1", "0", "JPY", 0),
        ("3", "33.3333", "0", "EUR", 10000),  # 99.9999
        ("1", "100", "33.333", "EUR", 6667),  # 66.667
        ("1", "0.05", "50", "EUR", 3),  # 0.025; the discount by itself, rounded, would leave 0.02
        ("0.5", "0.05", "50", "EUR", 1),  # 0.0125; 0.025 rounded first would leave 0.02
        ("10000", "0.0001", "33.333", "EUR", 67),  # 0.66667; a price of 0.0001 after the discount would leave 1.00
        ("7", "10", "100", "EUR", 0),
        ("1.5", "0.333", "0", "KWD", 500),  # 0.4995
        ("0.0001", "0.5", "0", "CLF", 1),  # 0.00005
        ("1000000000", "1000000000000", "0", "CLF", 10**25),
        ("123456789.1234", "999999999.9999", "0", "EUR", 12345678912338765432),  # 123456789123400000 - 12345.67891234
        ("999999999.9999", "999999999999.9999", "0", "EUR", 100 * (10**21 - 10**8 - 10**5)),
    ],
)
def test_a_line_is_rounded_once_half_up(quantity, unit_price, discount, currency, units):
    assert money.line_amount(Decimal(quantity), Decimal(unit_price), Decimal(discount), currency) == units


@pytest.mark.parametrize(
    ("taxable", "rate", "tax"),
    [
        (10000, "19", 1900),
        (50, "1", 1),  # 0.5
        (150, "1", 2),  # 1.5
        (250, "1", 3),  # 2.5
        (-250, "1", -3),
        (249, "1", 2),
        (12345, "0", 0),
        (12345, "100", 12345),
        (10, "99.999", 10),
        (4999, "0.01", 0),  # 0.4999
        (5000, "0.01", 1),
        (2 * 10**18, "12.345", 246900000000000000),
        (310336660, "2.5", 7758417),  # 7758416.5
        (10**17 + 1, "100", 10**17 + 1),
    ],
)
def test_tax_is_rounded_half_up(taxable, rate, tax):
    assert money.tax_on(taxable, Decimal(rate)) == tax


def test_tax_is_rounded_once_for_each_rate_and_not_for_each_line():
    seven, ten = Decimal(7), Decimal(10)
    assert money.shares([(5, ten), (7, seven), (5, Decimal("10.000")), (-7, seven)]) == [(seven, 0, 0), (ten, 10, 1)]


@pytest.mark.parametrize(
    ("gross", "rate", "net"),
    [
        (11900, "19", 10000),
        (1, "100", 1),  # 0.5
        (3, "100", 2),  # 1.5
        (-3, "100", -2),
        (4, "60", 3),  # 2.5
        (100, "0", 100),
        (100, "7", 93),  # 93.46
        (10**16, "25", 8 * 10**15),
    ],
)
def test_the_net_of_a_gross_amount_is_rounded_half_up(gross, rate, net):
    assert money.net_of(gross, Decimal(rate)) == net


@pytest.mark.parametrize(
    ("net", "markup", "units"),
    [(1000, "15", 1150), (1, "50", 2), (-1, "50", -2), (3, "12.5", 3), (7, "1000", 77), (5, "0", 5)],
)
def test_a_markup_is_rounded_half_up(net, markup, units):
    assert money.marked_up(net, Decimal(markup)) == units


@pytest.mark.parametrize(
    ("minutes", "rate", "currency", "amount"),
    [
        (90, "100.00", "EUR", "150.00"),
        (1, "600.00", "EUR", "10.00"),  # and not those of 0.0167 hours
        (1, "0.30", "EUR", "0.01"),  # 0.005
        (20, "100.00", "EUR", "33.33"),
        (40, "100.00", "EUR", "66.67"),
        (30, "5", "JPY", "3"),  # 2.5
        (1, "29", "JPY", "0"),
        (1, "0.030", "KWD", "0.001"),  # 0.0005
        (1440, "0", "EUR", "0.00"),
    ],
)
def test_minutes_get_their_part_of_the_hourly_rate_rounded_half_up(minutes, rate, currency, amount):
    assert str(money.time_amount(minutes, Decimal(rate), currency)) == amount


@pytest.mark.parametrize(
    ("minutes", "hours"),
    [(1, "0.0167"), (20, "0.3333"), (40, "0.6667"), (60, "1"), (90, "1.5"), (600, "10"), (1_440_000, "24000")],
)
def test_minutes_are_hours_with_at_most_four_places(minutes, hours):
    assert str(money.hours(minutes)) == hours


@pytest.mark.parametrize(
    ("units", "quantity", "currency", "unit_price"),
    [
        (20000, "1.5", "EUR", "133.3333"),
        (20000, "3", "EUR", "66.6667"),
        (1, "8", "EUR", "0.0013"),  # 0.00125
        (10000, "4", "EUR", "25.00"),
        (-10050, "-1", "EUR", "100.50"),
        (1000, "1", "JPY", "1000"),
        (1000, "3", "JPY", "333.3333"),
        (15000, "1.5", "KWD", "10.000"),
        (1, "3", "CLF", "0.0000"),
        (0, "2", "EUR", "0.00"),
    ],
)
def test_a_unit_price_has_the_digits_of_its_currency_to_four_places(units, quantity, currency, unit_price):
    assert str(money.unit_price(units, Decimal(quantity), currency)) == unit_price


@pytest.mark.parametrize(
    ("given", "currency", "padded"),
    [
        ("500", "EUR", "500.00"),
        ("7.5", "EUR", "7.50"),
        ("33.3333", "EUR", "33.3333"),
        ("1E+3", "EUR", "1000.00"),
        ("1E+3", "JPY", "1000"),
        ("1.5", "JPY", "1.5"),
        ("7.5", "KWD", "7.500"),
        ("7.5", "CLF", "7.5000"),
        ("1000000000000", "CLF", "1000000000000.0000"),
    ],
)
def test_a_unit_price_has_at_least_the_digits_of_its_currency(given, currency, padded):
    assert str(money.pad_price(Decimal(given), currency)) == padded


@pytest.mark.parametrize(
    ("units", "one", "other", "bounded"),
    [
        (5, 0, 10, 5),
        (5, 10, 0, 5),
        (-1, 0, 10, 0),
        (11, 0, 10, 10),
        (-5, 0, -10, -5),
        (-11, 0, -10, -10),
        (3, 0, -9, 0),
    ],
)
def test_units_are_clamped_between_two_bounds_in_either_order(units, one, other, bounded):
    assert money.clamp(units, one, other) == bounded


@pytest.mark.parametrize(
    ("amount", "quantity", "whole", "part"),
    [
        (10000, "1", "3", 3333),
        (10000, "2", "3", 6667),
        (1, "0.5", "1", 1),  # 0.5
        (3, "5", "6", 3),  # 2.5
        (-1, "-0.5", "-1", -1),
        (-9000, "-1", "-3", -3000),
        (10**16, "0.0001", "1000000000", 1000),
    ],
)
def test_a_part_of_a_line_is_rounded_half_up(amount, quantity, whole, part):
    assert money.part_of(amount, Decimal(quantity), Decimal(whole)) == part


@pytest.mark.parametrize(
    ("taxable", "left", "tax"),
    [
        (500, ("19", 1000, 190), 95),
        (1000, ("19", 1000, 190), 190),
        (1000, ("19", 1000, 191), 191),  # the last takes what earlier roundings left
        (999, ("19", 1000, 189), 189),  # 189.81 would be 190
        (1, ("50", 3, 0), 0),
        (0, ("19", 1000, 190), 0),
        (0, ("19", 0, 1), 1),
        (-500, ("19", -1000, -190), -95),
        (-999, ("19", -1000, -189), -189),
    ],
)
def test_the_tax_of_a_part_is_never_more_than_is_left_and_all_of_it_with_the_last(taxable, left, tax):
    rate, *rest = left
    assert money.tax_of_part(taxable, Share(Decimal(rate), *rest)) == tax


@pytest.mark.parametrize(
    ("gross", "left", "net"),
    [
        (1190, ("19", 10000, 1900), 1000),
        (11900, ("19", 10000, 1900), 10000),
        (1, ("19", 10000, 1900), 1),  # 0.84
        (3, ("100", 10, 10), 2),  # 1.5
        (14, ("19", 10, 5), 10),  # 11.76, and only 10 are left
        (50, ("19", 100, 0), 50),  # 42.02, and no tax is left
        (50, ("19", 100, 3), 47),
        (2, ("0", 0, 3), 0),
        (-1190, ("19", -10000, -1900), -1000),
        (-50, ("19", -100, -3), -47),
    ],
)
def test_neither_the_net_of_a_part_nor_its_tax_is_more_than_is_left(gross, left, net):
    rate, *rest = left
    assert money.net_of_part(gross, Share(Decimal(rate), *rest)) == net


@pytest.mark.parametrize(
    ("units", "weights", "parts"),
    [
        (100, [1, 1, 1], [34, 33, 33]),
        (101, [1, 1, 1], [34, 34, 33]),
        (10, [1, 2, 4], [1, 3, 6]),  # 1.43, 2.86, 5.71
        (1, [1, 3, 2], [0, 1, 0]),
        (1, [2, 2], [1, 0]),
        (0, [3, 4], [0, 0]),
        (7, [3, 4], [3, 4]),
        (5, [0, 10, 0], [0, 5, 0]),
        (50, [200, -100], [100, -50]),
        (1, [3, -1], [2, -1]),  # 1.5, -0.5: both end in a half, and the first comes first
        (-1, [1, 1], [0, -1]),
    ],
)
def test_the_remainder_goes_to_the_largest_fractions(units, weights, parts):
    assert money.allocate(units, weights) == parts


WEIGHTS = st.lists(st.integers(0, 10**18), min_size=1, max_size=8).filter(any)
SIGNED = st.lists(st.integers(-(10**18), 10**18), min_size=1, max_size=8).filter(sum)


@given(UNITS, SIGNED)
def test_parts_add_up_and_deviate_from_their_proportion_by_less_than_one(units, weights):
    parts = money.allocate(units, weights)
    assert sum(parts) == units
    assert all(
        abs(part - Fraction(units * weight, sum(weights))) < 1 for part, weight in zip(parts, weights, strict=True)
    )


@given(st.data(), st.one_of(WEIGHTS, SIGNED))
def test_no_part_exceeds_its_weight_unless_the_whole_exceeds_all_weights(data, weights):
    units = data.draw(st.integers(min(0, sum(weights)), max(0, sum(weights))))
    for share, weight in zip(money.allocate(units, weights), weights, strict=True):
        assert money.clamp(share, 0, weight) == share


@given(UNITS, st.lists(st.integers(0, 50), min_size=1, max_size=8).filter(any))
def test_parts_rounded_up_have_the_largest_remainders_and_come_first_among_equals(units, weights):
    fair = [Fraction(units * weight, sum(weights)) for weight in weights]
    remainders = [part % 1 for part in fair]
    got = [have > part for have, part in zip(money.allocate(units, weights), fair, strict=True)]
    order = sorted(range(len(fair)), key=lambda place: -remainders[place])
    assert [place for place in order if got[place]] == order[: sum(got)]


RATE = st.decimals(0, 100, places=3)


@settings(max_examples=length(300))
@given(st.data(), RATE, st.integers(0, 10**16), st.integers(0, 10**16), st.sampled_from((1, -1)))
def test_a_part_by_gross_amount_leaves_room_of_the_same_sign(data, rate, taxable, tax, sign):
    gross = data.draw(st.integers(0, taxable + tax))
    left = Share(rate, sign * taxable, sign * tax)
    net = money.net_of_part(sign * gross, left)
    assert 0 <= sign * net <= taxable
    assert 0 <= sign * (sign * gross - net) <= tax


def payments_and_credits(rng, ledger):
    """Events of an invoice in any order, until nothing is due and nothing is to be refunded."""
    paid, day, asked = 0, 1, random_documents.requests(rng, ledger)
    while True:
        day += rng.randint(0, 1)
        due = ledger.gross - paid
        if rng.random() < 0.4:
            with suppress(Refused):
                note = ledger.credit(next(asked, {"amount": "0"}))
                credited = [Share(rate, *share) for rate, share in note.shares.items()]
                yield MoneyEvent(f"2026-{day:06}", CREDIT, day, credited=credited)
                continue
        if due == 0 and rng.random() < 0.5:
            return
        surplus = due + rng.randint(0, ledger.gross)
        part = rng.choice((due, due, rng.randint(min(due, 0), max(due, 0)), (due > 0) - (due < 0), surplus))
        paid += part
        if part:
            yield MoneyEvent(f"2026-{day:06}", PAYMENT, day, part)


def test_the_payments_of_an_invoice_add_up_to_what_is_left_of_it_at_each_rate():
    seen = Counter()
    for seed in range(length(2000)):
        rng = Random(seed)
        document = random_documents.document(rng)
        ledger = Ledger(reference.bill(document), arithmetic.DIGITS[document["currency"]])
        if ledger.gross <= 0:
            continue
        shares = [Share(rate, *share) for rate, share in ledger.rates.items()]
        events = [event._replace(id=place) for place, event in enumerate(payments_and_credits(rng, ledger))]
        sums = dict.fromkeys(ledger.rates, (0, 0))
        for event, added in received(shares, rng.sample(events, len(events))):
            assert sum(share.gross for share in added) == event.paid
            for rate, net, tax in added:
                sums[rate] = (sums[rate][0] + net, sums[rate][1] + tax)
        assert sums == ledger.rates
        seen.update("refund" if event.paid < 0 else "credit" if event.credited else "payment" for event in events)
    assert min(seen[what] for what in ("refund", "credit", "payment")) > length(2000) // 10
