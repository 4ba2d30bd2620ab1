"""Tax categories of EN 16931 (UNTDID 5305), which follow from the rate and from the countries of both sides."""

import re
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import Literal

import pycountry

from retainer.documents.einvoice_parts import clean
from retainer.documents.facts import Document

Category = Literal["S", "AE", "G", "E", "O"]
EU: AbstractSet[str] = frozenset(
    [
        "AT",
        "BE",
        "BG",
        "CY",
        "CZ",
        "DE",
        "DK",
        "EE",
        "ES",
        "FI",
        "FR",
        "GR",
        "HR",
        "HU",
        "IE",
        "IT",
        "LT",
        "LU",
        "LV",
        "MT",
        "NL",
        "PL",
        "PT",
        "RO",
        "SE",
        "SI",
        "SK",
    ]
)


NOT_ALPHANUMERIC = re.compile(r"[^A-Z0-9]")


def vat_id(number: str | None) -> str | None:
    """Return a VAT number as a VAT identifier, which begins with a country code (BR-CO-09); None if it does not."""
    compact = NOT_ALPHANUMERIC.sub("", (number or "").upper())
    prefix = compact[:2]
    is_known = prefix in {"EL", "XI"} or pycountry.countries.get(alpha_2=prefix) is not None
    return compact if len(compact) > 2 and is_known else None


def category_of(document: Document, rate: Decimal) -> Category:
    """Return the category of a tax rate.

    S: a rate above 0. Without tax, the services of an agency are AE for a business elsewhere in the EU (it owes the
    tax), G for a client outside the EU, and else E, exempt. O: an issuer without any tax number that charges no tax.
    Only a VAT identifier allows G (BR-G-02); a national tax number, like a German Steuernummer, allows the others.
    """
    if rate > 0:
        return "S"
    issuer, customer = document.issuer, document.customer
    if not clean(issuer.vat_number or ""):
        return "O"
    if issuer.country in EU and customer.country and customer.country != issuer.country:
        if customer.country not in EU:
            return "G" if vat_id(issuer.vat_number) else "E"
        if vat_id(customer.vat_number):
            return "AE"
    return "E"


def categories(document: Document) -> list[Category]:
    """Return the categories of a document, without repetition, in the order of its tax rates."""
    return list(dict.fromkeys(category_of(document, tax.tax_rate) for tax in document.taxes))
