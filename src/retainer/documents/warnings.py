"""Warnings: what a quote or an invoice probably should not say, found in its facts before it is issued."""

import unicodedata
from collections.abc import Iterator
from datetime import date
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from retainer.documents.einvoice import missing_facts
from retainer.documents.facts import Address, Document, early_payment
from retainer.documents.printable import unprintable_characters
from retainer.documents.tax_categories import (
    is_business_elsewhere_in_eu,
    is_elsewhere_in_eu,
    is_numbered,
    is_outside_eu,
    tax_number,
    vat_number,
)
from retainer.documents.wording import NO_VAT, country_name
from retainer.errors import Sentence, marked, part, titled
from retainer.values.exact import decimal_text
from retainer.values.vat_numbers import vat_territory

DISTANT_DAYS = 30
ISSUER_TEXTS = ("name", "vat_number", "registration_number", "email", "phone", "website", "bank_name", "footer")
SHOWN_CHARACTERS = 10
UNNUMBERED = ("US", "HK")
"""Countries whose invoices need no number of the issuer."""


class DocumentWarning(msgspec.Struct):
    """Something that is allowed and probably not meant."""

    code: Annotated[
        Literal[
            "client_without_country",
            "zero_rate_without_vat_number",
            "zero_rate_without_reason",
            "tax_for_business_abroad",
            "tax_of_small_business",
            "wrong_check_digits",
            "distant_issue_date",
            "date_before_preceding_invoice",
            "date_before_service",
            "early_payment_over",
            "due_date_past",
            "issuer_without_tax_number",
            "issuer_without_address",
            "client_without_address",
            "unprintable_characters",
            "no_einvoice",
        ],
        Meta(title="DocumentWarningCode"),
        "What is probably not meant, [code by code](/docs/values#warnings-about-documents). New codes may be added.",
    ]
    field: Annotated[str | None, "The field that it is about; null if it is about the settings of the account."]
    message: Annotated[str, "What is probably wrong, and what to do about it."]

    def __post_init__(self) -> None:
        self.message = Sentence(self.message)


class PrecedingInvoice(NamedTuple):
    """The invoice that was issued before this one, in the same series of numbers."""

    number: str
    issue_date: str


def warnings_of(document: Document, today: str, preceding: PrecedingInvoice | None = None) -> list[DocumentWarning]:
    """Return the warnings about a quote or an invoice, as if it were issued today if it has no date."""
    about_tax = (*_about_client(document), *_about_untaxed_lines(document), *_about_taxed_lines(document))
    about_days = _about_days(document, today, preceding) if document.kind == "invoice" else ()
    particulars = _about_particulars(document) if document.kind == "invoice" else ()
    about_issuing = (*_about_issuing(document, today), *about_days, *particulars)
    return [*about_tax, *about_issuing, *_about_characters(document)]


def _about_client(document: Document) -> Iterator[DocumentWarning]:
    customer = document.customer
    if not customer.country:
        message = (
            f"{titled(customer.name)} has no country, which decides about tax. Set the client's {part('`country`')}."
        )
        if document.kind != "quote":
            message = f"{message} Without it, there will be no e-invoice."
        yield DocumentWarning("client_without_country", "client_id", message)
    number = vat_number(customer)
    if number and not number.is_consistent:
        message = (
            f"The check digits of {titled(customer.name)}'s VAT number {number.text} are wrong. Correct the client."
        )
        yield DocumentWarning("wrong_check_digits", "client_id", message)


def _about_untaxed_lines(document: Document) -> Iterator[DocumentWarning]:
    issuer, customer = document.issuer, document.customer
    field = _rate_field(document, is_taxed=False)
    if field is None:
        return
    country = country_name(customer.country or "", "en")
    here, there = ((vat_territory(party.country) or party.country) for party in (issuer, customer))
    if is_elsewhere_in_eu(document) and vat_number(customer) is None:
        known = f"`{customer.vat_number}` is no VAT number" if customer.vat_number else "there is no VAT number"
        yield DocumentWarning(
            "zero_rate_without_vat_number",
            field,
            f"{titled(customer.name)} in {country} is billed without tax, and {known}. Add {part('`vat_number`')} to "
            "the client if it is a business that owes the tax, or charge tax.",
        )
    has_reason = issuer.is_small_business or document.tax_exemption_reason
    if here == there and here not in {None, *NO_VAT} and not has_reason:
        message = "No tax is charged to a client at home, and the document does not say why. Add the reason."
        yield DocumentWarning("zero_rate_without_reason", "tax_exemption_reason", message)


def _about_taxed_lines(document: Document) -> Iterator[DocumentWarning]:
    issuer, customer = document.issuer, document.customer
    field = _rate_field(document, is_taxed=True)
    if field is None:
        return
    rate = decimal_text(max(line.tax_rate for line in document.lines))
    if issuer.is_small_business:
        message = f"{part(rate)}% tax is charged, and the settings say that the agency is a small business without tax."
        yield DocumentWarning("tax_of_small_business", field, f"{message} Set the rate to 0, or change the settings.")
    elif is_business_elsewhere_in_eu(document) or (is_outside_eu(document) and tax_number(customer)):
        country = country_name(customer.country or "", "en")
        owed = "owes the tax itself (reverse charge)" if is_elsewhere_in_eu(document) else "is outside the EU"
        yield DocumentWarning(
            "tax_for_business_abroad",
            field,
            f"{part(rate)}% tax is charged to {titled(customer.name)} in {country}, a business that {owed}. Set the "
            "rate to 0, unless the service is taxed where the agency is.",
        )


def _about_issuing(document: Document, today: str) -> Iterator[DocumentWarning]:
    distance = date.fromisoformat(document.issue_date) - date.fromisoformat(today)
    if abs(distance.days) > DISTANT_DAYS:
        when = f"{abs(distance.days)} days {'from now' if distance.days > 0 else 'ago'}"
        message = f"The date of the document is {part(document.issue_date)}, {when}. Check the year and the month."
        yield DocumentWarning("distant_issue_date", "issue_date", message)
    if document.kind == "quote":
        return
    for missing in missing_facts(msgspec.structs.replace(document, is_draft=False)):
        yield DocumentWarning("no_einvoice", missing.field, f"There will be no e-invoice. {marked(missing.message)}")


def _about_days(document: Document, today: str, preceding: PrecedingInvoice | None) -> Iterator[DocumentWarning]:
    if preceding is not None and document.issue_date < preceding.issue_date:
        message = (
            f"The date of the document is {part(document.issue_date)}, but invoice {preceding.number}, which was issued"
        )
        advice = "Dates should follow the order of numbers: choose that day or a later one."
        message = f"{message} before it, bears {part(preceding.issue_date)}. {advice}"
        yield DocumentWarning("date_before_preceding_invoice", "issue_date", message)
    if document.service_from is not None and document.issue_date < document.service_from:
        message = f"The date of the document is {part(document.issue_date)}, before its work, which begins on"
        message = f"{message} {part(document.service_from)}. Choose a later date, unless the client pays in advance."
        yield DocumentWarning("date_before_service", "issue_date", message)
    discount = early_payment(document)
    if discount is not None and discount.last_day < today:
        message = (
            f"The discount for early payment ends on {part(discount.last_day)}, before today. Choose a later date."
        )
        yield DocumentWarning("early_payment_over", "issue_date", message)
    if document.due_date is not None and document.due_date < today:
        message = f"The invoice is due on {part(document.due_date)}, before today. Choose a later day."
        yield DocumentWarning("due_date_past", "due_date", message)


def _about_particulars(document: Document) -> Iterator[DocumentWarning]:
    """Yield a warning for each particular that an invoice must have and lacks: article 226 (3) to (5) of the directive.

    § 14 (4) no. 1 and 2 UStG asks the same in Germany. Without them, the client cannot deduct the tax.
    """
    issuer, customer = document.issuer, document.customer
    is_taxed = any(tax.tax_rate > 0 for tax in document.tax_breakdown)
    is_reverse_charge = not is_taxed and is_business_elsewhere_in_eu(document)
    if (is_taxed or is_reverse_charge) and not is_numbered(issuer) and issuer.country not in UNNUMBERED:
        why = "charges tax" if is_taxed else "leaves the tax to the client (reverse charge)"
        message = f"The invoice {why}, and the agency's tax number or VAT number is missing"
        message = f"{message}. Without it, the client cannot deduct the tax. Add it in the console under Settings."
        yield DocumentWarning("issuer_without_tax_number", None, message)
    if not _has_address(issuer):
        message = "The agency's address is missing or incomplete, which an invoice must have. Add it in the console"
        yield DocumentWarning("issuer_without_address", None, f"{message} under Settings.")
    if not _has_address(customer):
        message = f"The address of {titled(customer.name)} is missing or incomplete, which an invoice must have."
        yield DocumentWarning("client_without_address", "client_id", f"{message} Add it to the client.")


def _has_address(party: Address) -> bool:
    """Return whether a letter would arrive: at a street, a box or a postal code of its own, in a city."""
    return bool(party.city and (party.address_line1 or party.postal_code))


def _about_characters(document: Document) -> Iterator[DocumentWarning]:
    """Yield a warning for each field with characters that the fonts of documents lack."""
    printed = {field: " ".join(filter(None, parts)) for field, parts in _printed_texts(document)}
    if not unprintable_characters(" ".join(printed.values())):  # of nearly every document, which is looked at once
        return
    for field, text in printed.items():
        if found := unprintable_characters(text):
            more = len(found) - SHOWN_CHARACTERS
            shown = " ".join(map(_visible, found[:SHOWN_CHARACTERS])) + (f" and {more} more" if more > 0 else "")
            yield DocumentWarning("unprintable_characters", field, f"The PDF prints squares instead of {shown}.")


def _visible(character: str) -> str:
    is_mark = unicodedata.category(character)[0] == "M"
    return f"U+{ord(character):04X}" if is_mark or not character.isprintable() else character


def _printed_texts(document: Document) -> list[tuple[str | None, list[str | None]]]:
    issuer, customer = document.issuer, document.customer
    here, there = ([getattr(party, name) for name in Address.__struct_fields__] for party in (issuer, customer))
    names = ("purchase_order", "subject", "notes", "terms", "tax_exemption_reason")
    renamed = {"subject": "title"} if document.kind == "quote" else {}
    return [
        ("client_id", [customer.name, *there, customer.vat_number]),
        ("contact_id", [customer.contact_name]),
        (None, [*here, *(getattr(issuer, name) for name in ISSUER_TEXTS)]),
        *((renamed.get(name, name), [getattr(document, name)]) for name in names),
        *((f"lines.{place}.description", [line.description, line.unit]) for place, line in enumerate(document.lines)),
    ]


def _rate_field(document: Document, *, is_taxed: bool) -> str | None:
    """Return the field of the first rate above 0, or of the first 0; None without one."""
    places = (place for place, line in enumerate(document.lines) if (line.tax_rate > 0) == is_taxed)
    return next((f"lines.{place}.tax_rate" for place in places), None)
