"""Wording: the words of documents in each language, and numbers, amounts and dates in the reader's habit."""

import gettext
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import date
from decimal import Decimal
from functools import lru_cache

import pycountry

from retainer.documents.facts import Document, Kind, Language
from retainer.values import money
from retainer.values.exact import decimal_text

NO_BREAK = "\u00a0"
MINUS = "\u2212"
DASH = "\u2013"
SYMBOLS = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥"}
"""The signs that stand for one currency; others keep their code, since a dollar sign means many."""
MONTHS = {
    "en": [
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ],
    "de": [
        *("Januar", "Februar", "März", "April", "Mai", "Juni"),
        *("Juli", "August", "September", "Oktober", "November", "Dezember"),
    ],
}
FEES: dict[Language, str] = {"en": "Retainer", "de": "Monatspauschale"}
TITLES: dict[Language, dict[Kind, str]] = {
    "en": {"invoice": "Invoice", "quote": "Quote", "credit_note": "Credit note"},
    "de": {"invoice": "Rechnung", "quote": "Angebot", "credit_note": "Rechnungskorrektur"},
}
"""German law calls a bill that the recipient writes a "Gutschrift", so a credit note is a "Rechnungskorrektur"."""
WORDS: dict[Language, dict[str, str]] = {
    "en": {
        "number_invoice": "Invoice no.",
        "number_quote": "Quote no.",
        "number_credit_note": "Credit note no.",
        "issue_date": "Date",
        "due_date": "Due date",
        "valid_until": "Valid until",
        "service_date": "Service date",
        "service_period": "Service period",
        "purchase_order": "Your order",
        "customer_vat": "Your VAT no.",
        "customer_tax_number": "Your tax no.",
        "credited": "Corrects invoice",
        "credited_date": "Invoice date",
        "position": "No.",
        "description": "Description",
        "quantity": "Quantity",
        "unit_price": "Unit price",
        "discount": "Discount",
        "tax_rate": "VAT",
        "amount": "Amount",
        "hours": "h",
        "subtotal": "Subtotal",
        "tax": "VAT {rate} on {taxable}",
        "total_invoice": "Amount due",
        "total_quote": "Total",
        "total_credit_note": "Amount credited",
        "pay_by": "Please pay {total} by {due} to this account:",
        "pay_no_account": "Please pay {total} by {due}, quoting {number}.",
        "early_payment": "If you pay by {date}, you can deduct a discount of {percent} and pay {amount}.",
        "no_number": "the invoice number",
        "scan": "Scan to pay",
        "code_alt": "QR code for a SEPA credit transfer",
        "logo_alt": "Logo of {name}",
        "account_holder": "Account holder",
        "reference": "Reference",
        "offset": "We will set this amount off against the invoice or refund it if it was already paid.",
        "accept": "To accept this quote, sign here and send it back by {date}.",
        "signature": "Place, date, signature",
        "service_note": "Unless stated otherwise, the service date is the invoice date.",
        "attention": "Attn. {name}",
        "page": "Page {page} of {pages}",
        "draft": "Draft",
        "vat": "VAT no.",
        "tax_number": "Tax no.",
        "registration": "Reg. no.",
        "bank": "Bank",
        "AE": "Reverse charge: the recipient is liable for the VAT.",
        "G": "Exempt from VAT: export outside the EU.",
        "outside_eu": "Not subject to VAT in the country of the supplier: the recipient is established outside the EU.",
        "E": "Exempt from VAT",
        "O": "No VAT is charged.",
    },
    "de": {
        "number_invoice": "Rechnungsnummer",
        "number_quote": "Angebotsnummer",
        "number_credit_note": "Belegnummer",
        "issue_date": "Datum",
        "due_date": "Zahlbar bis",
        "valid_until": "Gültig bis",
        "service_date": "Leistungsdatum",
        "service_period": "Leistungszeitraum",
        "purchase_order": "Ihre Bestellung",
        "customer_vat": "Ihre USt-IdNr.",
        "customer_tax_number": "Ihre Steuernummer",
        "credited": "Zur Rechnung",
        "credited_date": "Rechnung vom",
        "position": "Pos.",
        "description": "Beschreibung",
        "quantity": "Menge",
        "unit_price": "Einzelpreis",
        "discount": "Rabatt",
        "tax_rate": "USt.",
        "amount": "Betrag",
        "hours": "Std.",
        "subtotal": "Nettobetrag",
        "tax": "zzgl. {rate} USt. auf {taxable}",
        "total_invoice": "Rechnungsbetrag",
        "total_quote": "Gesamtbetrag",
        "total_credit_note": "Gutgeschriebener Betrag",
        "pay_by": "Bitte überweisen Sie {total} bis zum {due} auf dieses Konto:",
        "pay_no_account": "Bitte zahlen Sie {total} bis zum {due} und geben Sie dabei {number} an.",
        "early_payment": "Bei Zahlung bis zum {date} gewähren wir {percent} Skonto: Sie zahlen dann {amount}.",
        "no_number": "die Rechnungsnummer",
        "scan": "Scannen und bezahlen",
        "code_alt": "QR-Code für eine SEPA-Überweisung",
        "logo_alt": "Logo von {name}",
        "account_holder": "Kontoinhaber",
        "reference": "Verwendungszweck",
        "offset": "Wir verrechnen diesen Betrag mit der Rechnung oder erstatten ihn, falls sie bereits bezahlt ist.",
        "accept": "Um dieses Angebot anzunehmen, unterschreiben Sie bitte hier und senden es bis {date} zurück.",
        "signature": "Ort, Datum, Unterschrift",
        "service_note": "Soweit nicht anders angegeben, entspricht das Leistungsdatum dem Rechnungsdatum.",
        "attention": "z. Hd. {name}",
        "page": "Seite {page} von {pages}",
        "draft": "Entwurf",
        "vat": "USt-IdNr.",
        "tax_number": "Steuernummer",
        "registration": "Reg.-Nr.",
        "bank": "Bank",
        "AE": "Steuerschuldnerschaft des Leistungsempfängers (Reverse Charge).",
        "G": "Steuerfreie Ausfuhr in ein Land außerhalb der EU.",
        "outside_eu": "Im Inland nicht steuerbar: Der Leistungsempfänger ist außerhalb der EU ansässig.",
        "E": "Umsatzsteuerfrei",
        "O": "Es wird keine Umsatzsteuer berechnet.",
    },
}

NO_VAT: AbstractSet[str] = frozenset(["AU", "CA", "HK", "IN", "JP", "MY", "NZ", "SG", "US"])
"""Countries whose tax is no VAT: sales tax, GST, consumption tax."""
REGISTERS = {"DE": "Handelsregister", "AT": "Firmenbuch", **dict.fromkeys(("CH", "LI", "LU"), "Handelsregister")}
"""The German names of the registers of companies."""
TAX_WORDS = {
    "customer_vat": "Your tax no.",
    "tax_rate": "Tax",
    "tax": "Tax {rate} on {taxable}",
    "vat": "Tax no.",
    "E": "Exempt from tax",
    "O": "No tax is charged.",
}


def words_of(document: Document) -> Mapping[str, str]:
    """Return the words of a document: by its language, and by the tax of the issuer's country."""
    words, country = WORDS[document.language], document.issuer.country
    if document.language == "de":
        return words | {"registration": REGISTERS.get(country or "", words["registration"])}
    return words | TAX_WORDS if country in NO_VAT else words


UNITS: dict[Language, dict[str, tuple[str, str]]] = {
    "en": {name: (name, f"{name}s") for name in ("hour", "day", "week", "month", "year")},
    "de": {
        "hour": ("Std.", "Std."),
        "day": ("Tag", "Tage"),
        "week": ("Woche", "Wochen"),
        "month": ("Monat", "Monate"),
        "year": ("Jahr", "Jahre"),
    },
}
"""The units that documents translate, for one and for more."""


def unit_text(unit: str, quantity: Decimal, language: Language) -> str:
    """Return a unit in the language of a document, `month` or `months` by its quantity; other units as they are."""
    one, more = UNITS[language].get(unit.casefold().removesuffix("s"), (unit, unit))
    return one if abs(quantity) == 1 else more


def number_text(value: Decimal, language: Language) -> str:
    """Return a number with the decimal places that it has: `1,234.50` in English, `1.234,50` in German."""
    text = format(abs(value), ",f")
    if language == "de":
        text = text.translate(str.maketrans(",.", ".,"))
    return f"{MINUS}{text}" if value < 0 else text


def quantity_text(value: Decimal, language: Language) -> str:
    return number_text(Decimal(decimal_text(value)), language)


def amount_text(value: Decimal, currency: str, language: Language) -> str:
    """Return an amount with at least the decimal places of its currency, without its sign."""
    return number_text(money.pad_price(value, currency), language)


def money_text(value: Decimal, currency: str, language: Language) -> str:
    """Return an amount with its currency: `€1,234.50` or `CHF 1,234.50` in English, `1.234,50 €` in German."""
    amount = amount_text(abs(value), currency, language)
    sign, symbol = MINUS if value < 0 else "", SYMBOLS.get(currency)
    if language == "de":
        return f"{sign}{amount}{NO_BREAK}{symbol or currency}"
    return f"{sign}{symbol}{amount}" if symbol else f"{sign}{currency}{NO_BREAK}{amount}"


def percent_text(value: Decimal, language: Language) -> str:
    """Return a percentage: `19%` in English, `19 %` in German."""
    return f"{quantity_text(value, language)}{NO_BREAK if language == 'de' else ''}%"


def date_text(day: str, language: Language) -> str:
    """Return a day: `3 March 2026` in English, `3. März 2026` in German."""
    when = date.fromisoformat(day)
    dot = "." if language == "de" else ""
    return f"{when.day}{dot}{NO_BREAK}{MONTHS[language][when.month - 1]}{NO_BREAK}{when.year}"


def period_text(first: str, last: str, language: Language) -> str:
    """Return a range of days, as short as its ends allow; one day alone as a date."""
    start, end = date.fromisoformat(first), date.fromisoformat(last)
    if start == end:
        return date_text(first, language)
    dot = "." if language == "de" else ""
    if (start.year, start.month) == (end.year, end.month):
        return f"{start.day}{dot}{DASH}{date_text(last, language)}"
    if start.year == end.year:
        begin = f"{start.day}{dot}{NO_BREAK}{MONTHS[language][start.month - 1]}"
        return f"{begin} {DASH} {date_text(last, language)}"
    return f"{date_text(first, language)} {DASH} {date_text(last, language)}"


def fee_text(month: str, language: Language) -> str:
    """Return the description of a month of a retainer, like `Retainer September 2026`."""
    return f"{FEES[language]} {MONTHS[language][int(month[5:]) - 1]} {int(month[:4])}"


@lru_cache(maxsize=1024)
def country_name(code: str, language: Language) -> str:
    """Return the name of a country in a language; the code itself for an unknown one."""
    country = pycountry.countries.get(alpha_2=code)
    if country is None:
        return code
    name: str = getattr(country, "common_name", country.name)
    if language == "en":
        return name
    return gettext.translation("iso3166-1", pycountry.LOCALES_DIR, languages=[language]).gettext(name)
