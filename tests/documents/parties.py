"""Issuers and clients of many countries, with each kind of number and without each fact.

`python -m tests.documents.parties` prints what the e-invoice of each client of a German issuer says.
"""

import csv
import sys
from collections.abc import Iterator
from itertools import combinations, product
from typing import NamedTuple, get_args

from msgspec.structs import replace

from retainer.documents.einvoice import build_einvoice
from retainer.documents.facts import CreditedDocument, Customer, Document, Issuer, TaxOutsideEu
from tests.documents.made import CUSTOMER, ISSUER, document, line, priced
from tests.documents.validators import broken_rules, texts

VALID = {
    "AT": "ATU86091390",
    "BE": "BE0246770968",
    "BG": "BG385197837",
    "CY": "CY75346462R",
    "CZ": "CZ78933331",
    "DE": "DE751571259",
    "DK": "DK75546157",
    "EE": "EE553715253",
    "ES": "ESB15771280",
    "FI": "FI58781153",
    "FR": "FR25064285364",
    "GR": "EL278272466",
    "HR": "HR25788932258",
    "HU": "HU91900294",
    "IE": "IE9718891U",
    "IT": "IT31279030303",
    "LT": "LT823355114",
    "LU": "LU68411157",
    "LV": "LV49711162313",
    "MT": "MT86978883",
    "NL": "NL725418928B07",
    "PL": "PL5728974442",
    "PT": "PT510926428",
    "RO": "RO2194771081",
    "SE": "SE745598647601",
    "SI": "SI20594208",
    "SK": "SK1537341993",
}
"""A VAT number of each member state, with its right check digits."""
OUTSIDE = {"CH": "CHE-123.456.788 MWST", "GB": "GB980780684", "US": "US12-3456789"}
WORDS = ("none", "in Beantragung seit 01.03.2026", "n/a")
FACTS = {
    "issuer": (
        *("vat_number", "registration_number", "email", "phone", "website", "iban", "bic", "bank_name", "footer"),
        *("address_line1", "postal_code", "city", "country"),
    ),
    "customer": ("vat_number", "contact_name", "email", "address_line1", "postal_code", "city", "country"),
}

CATEGORY = "ApplicableHeaderTradeSettlement/ram:ApplicableTradeTax/ram:CategoryCode"
BUYER = "BuyerTradeParty/ram:SpecifiedTaxRegistration/ram:ID"


class Case(NamedTuple):
    """An issuer and a client; `vat_number` is what BT-48 says if the category has one."""

    part: str
    issuer: Issuer
    customer: Customer
    vat_number: str | None

    def documents(self) -> Iterator[tuple[str, Document]]:
        """Yield an invoice and a credit note, with and without tax."""
        for rate in ("19", "0"):
            facts = priced([line("Work", "1", "10.00", rate)], "EUR") | self._asdict()
            names = ("part", "vat_number")
            facts = {name: value for name, value in facts.items() if name not in names}
            yield f"invoice at {rate}%", document(**facts)
            credited = {
                "kind": "credit_note",
                "due_date": None,
                "credited": CreditedDocument("RE-2026-0001", "2026-01-31"),
            }
            yield f"credit note at {rate}%", document(**(facts | credited))


def customer(country: str | None, vat_number: str | None) -> Customer:
    return replace(CUSTOMER, country=country, vat_number=vat_number)


def issuer(country: str | None, vat_number: str | None, registration: str | None = None) -> Issuer:
    return replace(ISSUER, country=country, vat_number=vat_number, registration_number=registration)


def mistyped(number: str) -> str:
    """Return a number with the same pattern and wrong check digits."""
    at = max(place for place, character in enumerate(number[:9]) if character.isdecimal())
    return f"{number[:at]}{(int(number[at]) + 1) % 10}{number[at + 1 :]}"


def numbers_of(state: str, valid: str) -> Iterator[tuple[str | None, str | None]]:
    """Yield the texts that clients of a state have as their number, and the VAT number that each stands for."""
    yield valid, valid
    yield valid[2:], valid
    yield f"{valid[:2]} {valid[2:5]} {valid[5:]}".lower(), valid
    yield f"VAT {valid}", valid
    yield f"USt-IdNr.: {valid}", valid
    yield mistyped(valid), mistyped(valid)
    for text in (None, *WORDS, "12/345/67890/1234", *(f"{state}{text}" for text in WORDS), *OUTSIDE.values()):
        yield text, None
    if state == "GR":
        yield f"GR{valid[2:]}", valid


def clients_of_a_german() -> Iterator[Case]:
    """Yield a German issuer with clients of all countries and all kinds of numbers."""
    own = replace(ISSUER, registration_number=None)
    for state, valid in VALID.items():
        for text, number in numbers_of(state, valid):
            yield Case("clients", own, customer(state, text), number)
        yield Case("clients", own, customer(state, VALID["FR"]), VALID["FR"])
        yield Case("clients", own, customer(state, ISSUER.vat_number), ISSUER.vat_number)
    for country, number in OUTSIDE.items():
        for text in (number, number[2:], None, *WORDS):
            yield Case("clients", own, customer(country, text), None)
    yield Case("clients", own, customer("GB", "XI638558106"), "XI638558106")


def issuers_of_all_countries() -> Iterator[Case]:
    """Yield issuers of all countries with each kind of number, for clients here, elsewhere in the EU, and outside."""
    for country, own in (VALID | OUTSIDE).items():
        for number in (own, own[2:], "12/345/67890", "applied for", None):
            for registration in ("HRB 12345", None):
                made = issuer(country, number, registration)
                elsewhere = "AT" if country != "AT" else "BE"
                for there in (country, elsewhere, "US"):
                    text = (VALID | OUTSIDE)[there]
                    yield Case("issuers", made, customer(there, text), VALID.get(there))


def without_facts() -> Iterator[Case]:
    """Yield a German issuer and clients here, in Austria and in the USA without each fact, and without each two."""
    optional = [(side, name) for side, names in FACTS.items() for name in names]
    for there in ("DE", "AT", "US"):
        for own in (ISSUER, replace(ISSUER, vat_number="12/345/67890")):
            for missing in (*combinations(optional, 1), *combinations(optional, 2)):
                gone = {side: {name: None for where, name in missing if where == side} for side in FACTS}
                theirs = customer(there, (VALID | OUTSIDE)[there])
                number = None if ("customer", "vat_number") in missing else VALID.get(there)
                yield Case("without facts", replace(own, **gone["issuer"]), replace(theirs, **gone["customer"]), number)


def settings_about_tax() -> Iterator[Case]:
    """Yield issuers with each setting about tax and each kind of number, for clients here, elsewhere and outside."""
    for country in ("DE", "AT", "FR", "CH"):
        own = (VALID | OUTSIDE)[country]
        for is_small, outside in product((False, True), get_args(TaxOutsideEu)):
            for number, there in product((own, "12/345/67890", None), (country, "BE", "US")):
                made = replace(issuer(country, number), is_small_business=is_small, tax_outside_eu=outside)
                yield Case("settings", made, customer(there, (VALID | OUTSIDE)[there]), VALID.get(there))


def print_clients() -> None:
    """Print category and BT-48 of an untaxed invoice to each client, with the rules that it breaks."""
    table = csv.writer(sys.stdout, delimiter="\t")
    table.writerow(("country", "number", "category", "BT-48", "broken rules"))
    for case in clients_of_a_german():
        xml = build_einvoice(dict(case.documents())["invoice at 0%"])
        (category,), found, broken = texts(xml, CATEGORY), texts(xml, BUYER), broken_rules(xml)
        table.writerow((case.customer.country, case.customer.vat_number, category, "".join(found), len(broken)))


def cases() -> Iterator[Case]:
    yield from clients_of_a_german()
    yield from issuers_of_all_countries()
    yield from settings_about_tax()
    yield from without_facts()


if __name__ == "__main__":
    print_clients()
