"""Tax categories of EN 16931 (UNTDID 5305), which follow from rate, countries and numbers; and reasons without tax."""

import re
from decimal import Decimal
from typing import Literal, Protocol

import msgspec

from retainer.documents.facts import Customer, Document, Issuer, TaxOutsideEu
from retainer.documents.wording import SMALL_BUSINESS, words_of
from retainer.values.vat_numbers import VatNumber, read_vat_number, vat_territory

Category = Literal["S", "AE", "G", "E", "O"]
DATES = re.compile(r"\b(\d{1,2}[./]\d{1,2}[./](\d{2}|\d{4})|\d{4}-\d{2}-\d{2})\b")
FEWEST_DIGITS = 5
"""The digits of the shortest tax numbers; fewer are a year, or part of a remark."""
PRESCRIBED: tuple[Category, ...] = ("AE", "G")
OUTSIDE_EU: dict[TaxOutsideEu, Category] = {"not_subject": "O", "exempt": "E", "export": "G"}


class Sides(Protocol):
    """Both parties of a document, from which its tax categories follow."""

    @property
    def issuer(self) -> Issuer: ...

    @property
    def customer(self) -> Customer: ...


def vat_number(party: Issuer | Customer) -> VatNumber | None:
    """Return the VAT number of the European Union that a party has.

    A client's number can lack its prefix. An issuer's without one is a national tax number, which can look the same.
    """
    return read_vat_number(party.vat_number, party.country if isinstance(party, Customer) else None)


def tax_number(party: Issuer | Customer) -> str | None:
    """Return a number of a party that is no VAT number of the EU; None for words, such as `applied for on 1.3.2026`."""
    text = (party.vat_number or "").strip()
    digits = sum(map(str.isdecimal, DATES.sub("", text)))
    return text if vat_number(party) is None and digits >= FEWEST_DIGITS else None


def is_numbered(issuer: Issuer) -> bool:
    return vat_number(issuer) is not None or tax_number(issuer) is not None


def is_outside_eu(document: Sides) -> bool:
    issuer, customer = document.issuer.country, document.customer.country
    return vat_territory(issuer) is not None and customer is not None and vat_territory(customer) is None


def is_elsewhere_in_eu(document: Sides) -> bool:
    here, there = vat_territory(document.issuer.country), vat_territory(document.customer.country)
    return here is not None and there is not None and here != there


def is_business_elsewhere_in_eu(document: Sides) -> bool:
    """Return whether the client owes the tax of a service: a business in another member state, by its VAT number."""
    number = vat_number(document.customer)
    here = vat_territory(document.issuer.country)
    return is_elsewhere_in_eu(document) and number is not None and vat_territory(number.state) not in {None, here}


def category_of(document: Sides, rate: Decimal) -> Category:
    """Return the category of a tax rate.

    S: a rate above 0. Without tax, the services of an agency in the EU are AE for a business elsewhere in the EU, which
    owes the tax; for a client outside the EU what the account chose, by default O, not subject to tax; and else E,
    exempt. O is also what an issuer without any tax number charges, unless it is exempt as a small business.
    Only a VAT number allows G, export (BR-G-02); a national tax number, like a German Steuernummer, allows the others.
    """
    if rate > 0:
        return "S"
    issuer = document.issuer
    if not is_numbered(issuer) and (is_outside_eu(document) or not issuer.is_small_business):
        return "O"
    if is_outside_eu(document):
        chosen = OUTSIDE_EU[issuer.tax_outside_eu]
        return "E" if chosen == "G" and vat_number(issuer) is None else chosen
    return "AE" if is_business_elsewhere_in_eu(document) and is_numbered(issuer) else "E"


def categories(document: Document) -> list[Category]:
    """Return the categories of a document, without repetition, in the order of its tax rates."""
    return list(dict.fromkeys(category_of(document, tax.tax_rate) for tax in document.tax_breakdown))


def with_reasons(document: Document) -> Document:
    """Return a document with why each of its categories has no tax, as the rules of today say it."""
    untaxed = [category for category in categories(document) if category != "S"]
    reasons = {category: exemption_reason(document, category) for category in untaxed}
    return msgspec.structs.replace(document, exemption_reasons=reasons)


def exemption_reason(document: Document, category: Category) -> str:
    """Return why a category has no tax: what the document said when its facts were made, else what its rules say.

    The document's own reason takes the place of a general sentence. It is added to what the law prescribes word for
    word: reverse charge (article 226 (11a) of the VAT directive), and exports. The account's is about lines that are
    exempt, and about no other category.
    """
    if document.exemption_reasons and category in document.exemption_reasons:
        return document.exemption_reasons[category]
    issuer, own, words = document.issuer, document.tax_exemption_reason, words_of(document)
    if category != "E" and own == issuer.tax_exemption_reason:
        own = None
    if category in PRESCRIBED:
        return " ".join(filter(None, (words[category], own)))
    if category == "E" and issuer.is_small_business:
        return own or _small_business(document)
    return own or words["outside_eu" if category == "O" and is_outside_eu(document) else category]


def _small_business(document: Document) -> str:
    words, country = words_of(document), vat_territory(document.issuer.country)
    if country is None:
        return words["O"]
    return SMALL_BUSINESS.get(country) or words.get(f"small_business_{country}", words["small_business"])
