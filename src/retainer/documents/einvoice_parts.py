"""Parts of e-invoices: elements, texts and numbers of the XML, and the form of a line's price."""

import re
from decimal import Decimal
from typing import NamedTuple
from xml.etree import ElementTree as ET

from retainer.documents.facts import Line, gross_amount
from retainer.values.exact import decimal_text

PROFILE = "urn:cen.eu:en16931:2017"
NAMESPACES = {
    "rsm": "urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100",
    "ram": "urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100",
    "qdt": "urn:un:unece:uncefact:data:standard:QualifiedDataType:100",
    "udt": "urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100",
}
NO_XML = re.compile("[^\t\n\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold (2.2), and carriage returns, which a parser would change."""
DAY_FORMAT = "102"
"""YYYYMMDD (UNTDID 2379)."""
UNITS = {
    unit: code
    for code, units in {
        "HUR": ("h", "hr", "hrs", "hour", "hours", "std", "stunde", "stunden"),
        "MIN": ("min", "minute", "minutes", "minuten"),
        "DAY": ("d", "day", "days", "tag", "tage"),
        "WEE": ("week", "weeks", "woche", "wochen"),
        "MON": ("month", "months", "monat", "monate"),
        "ANN": ("year", "years", "jahr", "jahre"),
        "KMT": ("km",),
        "LS": ("lump sum", "flat", "flat rate", "pauschal", "pauschale"),
    }.items()
    for unit in units
}
"""Codes of units (UN/ECE Recommendation 20); any other unit is `C62`, one."""


class Price(NamedTuple):
    """The price of a line: its amount is quantity x net / base quantity (1 if None), less its discount."""

    net: Decimal
    quantity: Decimal
    base_quantity: Decimal | None


def price_of(line: Line, currency: str) -> Price:
    """Return the price of a line as the norm accepts it: never negative (BR-27), and exact.

    The amount of a line that bills work is the sum of the work's amounts, which can differ by cents from quantity x
    price. Such a line has its amount as the price for the whole quantity: the product is exact.
    """
    sign = -1 if line.unit_price < 0 else 1
    if line.discount_percent or gross_amount(line, currency) == line.amount:
        return Price(abs(line.unit_price), sign * line.quantity, None)
    quantity = abs(line.quantity) or Decimal(1)
    return Price(abs(line.amount), quantity.copy_sign(line.amount), quantity)


def add(parent: ET.Element, name: str, text: str | None = None, **attributes: str) -> ET.Element:
    """Add an element and return it; a text that is empty without what XML cannot hold becomes a dash."""
    element = ET.SubElement(parent, name, attributes)
    if text is not None:
        element.text = clean(text) or "-"
    return element


def add_day(parent: ET.Element, name: str, day: str, kind: str = "udt") -> None:
    """Add a day, given as `YYYY-MM-DD`."""
    add(add(parent, name), f"{kind}:DateTimeString", day.replace("-", ""), format=DAY_FORMAT)


def clean(text: str) -> str:
    """Return a text without what XML cannot hold, and without spaces around it."""
    return NO_XML.sub("", text.replace("\r\n", "\n")).strip()


def amount(value: Decimal) -> str:
    """Return an amount with the decimal places that it has; none is longer than two (BR-DEC)."""
    return format(value, "f")


def plain(value: Decimal) -> str:
    """Return a number without exponent and trailing zeros."""
    return decimal_text(value)
