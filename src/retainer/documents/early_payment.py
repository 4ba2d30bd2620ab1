"""Early payment: the discount that an invoice offers, as a sentence and as XRechnung writes it (BT-20)."""

from decimal import Decimal
from typing import NamedTuple

from retainer.documents.facts import Document
from retainer.documents.wording import date_text, money_text, percent_text, words_of
from retainer.values import money
from retainer.values.exact import amount_of, day_after


class EarlyPayment(NamedTuple):
    """The discount of an invoice: its percentage, its days, the last of them, and the total less the discount."""

    percent: Decimal
    days: int
    last_day: str
    total: Decimal


def early_payment(document: Document) -> EarlyPayment | None:
    """Return the discount of an invoice; None for other documents, and without a discount or anything to pay."""
    percent, days = document.issuer.early_payment_discount_percent, document.issuer.early_payment_discount_days
    if document.kind != "invoice" or document.total <= 0 or not percent or days is None:
        return None
    units = money.line_amount(Decimal(1), document.total, percent, document.currency)
    return EarlyPayment(percent, days, day_after(document.issue_date, days), amount_of(units, document.currency))


def discount_sentence(document: Document) -> str:
    """Return until when a client can deduct how much, and what it then pays; empty without a discount."""
    found, language = early_payment(document), document.language
    if found is None:
        return ""
    return words_of(document)["early_payment"].format(
        date=date_text(found.last_day, language),
        percent=percent_text(found.percent, language),
        amount=money_text(found.total, document.currency, language),
    )


def discount_terms(document: Document) -> str:
    """Return the sentence, after the line that programs in Germany read (BR-DE-18 of XRechnung), if a side is there.

    CII has elements for discounts in the profile EXTENDED alone; the profile of EN 16931 has the text BT-20.
    """
    found, sentence = early_payment(document), discount_sentence(document)
    if found is None or "DE" not in {document.issuer.country, document.customer.country}:
        return sentence
    whole, _, places = f"{found.percent:f}".partition(".")
    return f"#SKONTO#TAGE={found.days}#PROZENT={whole}.{places:0<2}#\n{sentence}"
