"""Tax categories of EN 16931 (UNTDID 5305): they follow from the rate, and from countries and numbers of both sides."""

from decimal import Decimal
from typing import Literal

from retainer.documents.facts import Customer, Document, Issuer
from retainer.values.vat_numbers import VatNumber, read_vat_number, vat_territory

Category = Literal["S", "AE", "G", "E", "O"]


def vat_number(party: Issuer | Customer) -> VatNumber | None:
    """Return the VAT number of the European Union that a party has.

    A client's number can lack its prefix. An issuer's without one is a national tax number, which can look the same.
    """
    return read_vat_number(party.vat_number, party.country if isinstance(party, Customer) else None)


def tax_number(party: Issuer | Customer) -> str | None:
    """Return a number of a party that is no VAT number of the EU; None for words, such as `none` or `applied for`."""
    text = (party.vat_number or "").strip()
    return text if vat_number(party) is None and any(map(str.isdecimal, text)) else None


def category_of(document: Document, rate: Decimal) -> Category:
    """Return the category of a tax rate.

    S: a rate above 0. Without tax, the services of an agency are AE for a business elsewhere in the EU (it owes the
    tax), G for a client outside the EU, and else E, exempt. O: an issuer without any tax number that charges no tax.
    Only a VAT number allows G (BR-G-02); a national tax number, like a German Steuernummer, allows the others.
    """
    if rate > 0:
        return "S"
    issuer, customer = document.issuer, document.customer
    own, theirs = vat_number(issuer), vat_number(customer)
    if own is None and tax_number(issuer) is None:
        return "O"
    here, there = vat_territory(issuer.country), vat_territory(customer.country)
    if here and customer.country and here != there:
        if there is None:
            return "G" if own else "E"
        if theirs and vat_territory(theirs.state) not in {None, here}:
            return "AE"
    return "E"


def categories(document: Document) -> list[Category]:
    """Return the categories of a document, without repetition, in the order of its tax rates."""
    return list(dict.fromkeys(category_of(document, tax.tax_rate) for tax in document.taxes))
