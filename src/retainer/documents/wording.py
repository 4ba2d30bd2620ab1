"""Wording: the words of documents in each language, and numbers, amounts and dates in the reader's habit."""

import gettext
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date
from decimal import Decimal
from functools import lru_cache

import pycountry

from retainer.documents.facts import Document, Language, early_payment
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
TEXTS = {
    "title_invoice": ("Invoice", "Rechnung"),
    "title_quote": ("Quote", "Angebot"),
    "title_credit_note": ("Credit note", "Rechnungskorrektur"),
    "number_invoice": ("Invoice no.", "Rechnungsnummer"),
    "number_quote": ("Quote no.", "Angebotsnummer"),
    "number_credit_note": ("Credit note no.", "Belegnummer"),
    "issue_date": ("Date", "Datum"),
    "due_date": ("Due date", "Zahlbar bis"),
    "valid_until": ("Valid until", "Gültig bis"),
    "service_date": ("Service date", "Leistungsdatum"),
    "service_period": ("Service period", "Leistungszeitraum"),
    "purchase_order": ("Your order", "Ihre Bestellung"),
    "customer_vat": ("Your VAT no.", "Ihre USt-IdNr."),
    "customer_tax_number": ("Your tax no.", "Ihre Steuernummer"),
    "credited": ("Corrects invoice", "Zur Rechnung"),
    "credited_date": ("Invoice date", "Rechnung vom"),
    "position": ("No.", "Pos."),
    "description": ("Description", "Beschreibung"),
    "quantity": ("Quantity", "Menge"),
    "unit_price": ("Unit price", "Einzelpreis"),
    "discount": ("Discount", "Rabatt"),
    "tax_rate": ("VAT", "USt."),
    "amount": ("Amount", "Betrag"),
    "hours": ("h", "Std."),
    "subtotal": ("Subtotal", "Nettobetrag"),
    "tax": ("VAT {rate} on {taxable}", "zzgl. {rate} USt. auf {taxable}"),
    "total_invoice": ("Amount due", "Rechnungsbetrag"),
    "total_quote": ("Total", "Gesamtbetrag"),
    "total_credit_note": ("Amount credited", "Gutgeschriebener Betrag"),
    "pay_by": (
        "Please pay {total} by {due} to this account:",
        "Bitte überweisen Sie {total} bis zum {due} auf dieses Konto:",
    ),
    "pay_no_account": (
        "Please pay {total} by {due}, quoting {number}.",
        "Bitte zahlen Sie {total} bis zum {due} und geben Sie dabei {number} an.",
    ),
    "early_payment": (
        "If you pay by {date}, you can deduct a discount of {percent} and pay {amount}.",
        "Bei Zahlung bis zum {date} gewähren wir {percent} Skonto: Sie zahlen dann {amount}.",
    ),
    "pay_rest": (
        "Of {total}, {due_amount} is still due. Please pay it by {due}, quoting {number}.",
        "Von {total} sind noch {due_amount} offen. Bitte zahlen Sie bis zum {due} und geben Sie dabei {number} an.",
    ),
    "settled_paid": ("This invoice is paid. Thank you.", "Diese Rechnung ist bezahlt. Vielen Dank."),
    "settled_credited": (
        "This invoice was credited in full. Nothing is to be paid.",
        "Diese Rechnung wurde vollständig gutgeschrieben. Es ist nichts zu zahlen.",
    ),
    "settled_written_off": (
        "This invoice was written off. Nothing is to be paid.",
        "Diese Rechnung wurde ausgebucht. Es ist nichts zu zahlen.",
    ),
    "void": ("Void", "Storniert"),
    "declined": ("Declined", "Abgelehnt"),
    "expired": ("Expired", "Abgelaufen"),
    "cancelled": ("Cancelled", "Zurückgezogen"),
    "version": (
        "Version {version} of {date}. It replaces the earlier version.",
        "Version {version} vom {date}. Sie ersetzt die frühere Fassung.",
    ),
    "no_number": ("the invoice number", "die Rechnungsnummer"),
    "scan": ("Scan to pay", "Scannen und bezahlen"),
    "code_alt": ("QR code for a SEPA credit transfer", "QR-Code für eine SEPA-Überweisung"),
    "logo_alt": ("Logo of {name}", "Logo von {name}"),
    "account_holder": ("Account holder", "Kontoinhaber"),
    "sort_code": ("Sort code", "Sort Code"),
    "account_number": ("Account number", "Kontonummer"),
    "reference": ("Reference", "Verwendungszweck"),
    "offset": (
        "We will set this amount off against the invoice or refund it if it was already paid.",
        "Wir verrechnen diesen Betrag mit der Rechnung oder erstatten ihn, falls sie bereits bezahlt ist.",
    ),
    "options": ("Optional, not included in the total", "Optional, nicht im Gesamtbetrag enthalten"),
    "accept": (
        "To accept this quote, sign here and send it back by {date}.",
        "Um dieses Angebot anzunehmen, unterschreiben Sie bitte hier und senden es bis {date} zurück.",
    ),
    "signature": ("Place, date, signature", "Ort, Datum, Unterschrift"),
    "service_note": (
        "Unless stated otherwise, the service date is the invoice date.",
        "Soweit nicht anders angegeben, entspricht das Leistungsdatum dem Rechnungsdatum.",
    ),
    "attention": ("Attn. {name}", "z. Hd. {name}"),
    "page": ("Page {page} of {pages}", "Seite {page} von {pages}"),
    "draft": ("Draft", "Entwurf"),
    "credit": ("Credit on invoice {number}", "Korrektur zu Rechnung {number}"),
    "fee": ("Retainer", "Monatspauschale"),
    "fixed_fee": ("Fixed fee", "Festpreis"),
    "rest_of_fee": ("Remaining fixed fee", "Restlicher Festpreis"),
    "work": ("Work", "Leistungen"),
    "other_work": ("Other work", "Weitere Leistungen"),
    "work_without_project": ("Work without a project", "Leistungen ohne Projekt"),
    "expenses": ("Expenses", "Auslagen"),
    "other_expenses": ("Other expenses", "Weitere Auslagen"),
    "milestone": ("Milestone", "Meilenstein"),
    "on_day": ("{what} on {day}", "{what} am {day}"),
    "on_days": ("{what} from {first} to {last}", "{what} vom {first} bis {last}"),
    "vat": ("VAT no.", "USt-IdNr."),
    "tax_number": ("Tax no.", "Steuernummer"),
    "registration": ("Reg. no.", "Reg.-Nr."),
    "bank": ("Bank", "Bank"),
    "AE": (
        "Reverse charge: the recipient is liable for the VAT.",
        "Steuerschuldnerschaft des Leistungsempfängers (Reverse Charge).",
    ),
    "G": ("Exempt from VAT: export outside the EU.", "Steuerfreie Ausfuhr in ein Land außerhalb der EU."),
    "outside_eu": (
        "Not subject to VAT in the country of the supplier: the recipient is established outside the EU.",
        "Im Inland nicht steuerbar: Der Leistungsempfänger ist außerhalb der EU ansässig.",
    ),
    "E": ("Exempt from VAT", "Umsatzsteuerfrei"),
    "O": ("No VAT is charged.", "Es wird keine Umsatzsteuer berechnet."),
    "small_business": (
        "Exempt from VAT: special scheme for small enterprises (article 284 of Directive 2006/112/EC).",
        "Steuerbefreiung für Kleinunternehmen (Artikel 284 der Richtlinie 2006/112/EG).",
    ),
    "small_business_DE": (
        "The VAT exemption for small businesses applies to this service (§ 19 of the German VAT Act, UStG).",
        "Für die Leistung gilt die Steuerbefreiung für Kleinunternehmer (§ 19 UStG).",
    ),
    "small_business_AT": (
        "Exempt from VAT as a small business (§ 6 Abs. 1 Z 27 of the Austrian VAT Act, UStG).",
        "Umsatzsteuerfrei als Kleinunternehmer gemäß § 6 Abs. 1 Z 27 UStG.",
    ),
}
"""The words of documents in English and German.

The law asks small businesses for a sentence: § 34a UStDV in Germany, § 11 UStG in Austria, SMALL_BUSINESS elsewhere.

German law calls a bill that the recipient writes a "Gutschrift", so a credit note is a "Rechnungskorrektur".
"""
WORDS: dict[Language, dict[str, str]] = {
    "en": {name: english for name, (english, _) in TEXTS.items()},
    "de": {name: german for name, (_, german) in TEXTS.items()},
}
SMALL_BUSINESS = {
    # Arrêté royal n° 19 of 15 December 2024; article 56bis of the Code de la TVA
    "BE": "Régime particulier de franchise des petites entreprises / "
    "Bijzondere vrijstellingsregeling kleine ondernemingen",
    # CGI, article 293 E, which asks for these words
    "FR": "TVA non applicable, art. 293 B du CGI",
    # Legge 190/2014, art. 1, comma 58; comma 54 to 89 are the regime forfettario
    "IT": "Operazione senza applicazione dell'IVA, ai sensi dell'art. 1, commi da 54 a 89, della legge n. 190/2014",
    # Wet op de omzetbelasting 1968, artikel 25; article 226 (11) of the directive asks for a reference to it
    "NL": "Factuur vrijgesteld van btw op grond van artikel 25 van de Wet op de omzetbelasting 1968",
    # Ustawa o podatku od towarów i usług, art. 106e ust. 1 pkt 19 lit. a
    "PL": "Zwolnienie z VAT na podstawie art. 113 ust. 1 i 9 ustawy o podatku od towarów i usług",
}
"""The sentence of small businesses that a country prescribes in its own language, whatever that of the document.

Spain has no scheme for them: it has not transposed Directive 2020/285. Elsewhere the article of the directive is named.
"""
NO_VAT: AbstractSet[str] = frozenset(["AU", "CA", "HK", "IN", "JP", "MY", "NZ", "SG", "US"])
"""Countries whose tax is no VAT: sales tax, GST, consumption tax."""
REGISTERS = {"DE": "Handelsregister", "AT": "Firmenbuch", **dict.fromkeys(("CH", "LI", "LU"), "Handelsregister")}
TAX_WORDS = {
    "customer_vat": "Your tax no.",
    "tax_rate": "Tax",
    "tax": "Tax {rate} on {taxable}",
    "E": "Exempt from tax",
    "O": "No tax is charged.",
}


def words_of(document: Document) -> Mapping[str, str]:
    """Return the words of a document: by its language, and by the tax of the issuer's country."""
    words, country = WORDS[document.language], document.issuer.country
    if document.language == "de":
        return words | {"registration": REGISTERS.get(country or "", words["registration"])}
    return words | TAX_WORDS if country in NO_VAT else words


GERMAN_UNITS = {
    "hour": ("Std.", "Std."),
    "day": ("Tag", "Tage"),
    "week": ("Woche", "Wochen"),
    "month": ("Monat", "Monate"),
    "year": ("Jahr", "Jahre"),
}
"""The units that documents translate, for one and for more."""


def unit_text(unit: str, quantity: Decimal, language: Language) -> str:
    """Return a unit in the language of a document, `month` or `months` by its quantity; other units as they are."""
    name = unit.casefold().removesuffix("s")
    if name not in GERMAN_UNITS:
        return unit
    one, more = GERMAN_UNITS[name] if language == "de" else (name, f"{name}s")
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
    if first == last:
        return date_text(first, language)
    dash = DASH if first[:7] == last[:7] else f" {DASH} "
    return f"{_beginning(first, last, language)}{dash}{date_text(last, language)}"


def _beginning(first: str, last: str, language: Language) -> str:
    """Return the first day of a range without the month and the year that it shares with the last."""
    day, month, year = date_text(first, language).split(NO_BREAK)
    if first[:7] == last[:7]:
        return day
    return NO_BREAK.join((day, month) if first[:4] == last[:4] else (day, month, year))


def fee_text(month: str, language: Language) -> str:
    """Return the description of a month of a retainer, like `Retainer September 2026`."""
    return f"{WORDS[language]['fee']} {MONTHS[language][int(month[5:]) - 1]} {int(month[:4])}"


def fixed_fee_text(project: str, language: Language, *, is_rest: bool) -> str:
    """Return the description of a fixed fee, or of what is left of it, like `Fixed fee, Relaunch`."""
    return f"{WORDS[language]['rest_of_fee' if is_rest else 'fixed_fee']}, {project}"


def work_text(what: str, days: Sequence[str], language: Language) -> str:
    """Return the description of work, named as in TEXTS, with its days: `Work from 3 to 28 November 2026`."""
    words = WORDS[language]
    if not days:
        return words[what]
    first, last = min(days), max(days)
    name, end = ("on_day" if first == last else "on_days"), date_text(last, language)
    text = words[name].format(what=words[what], day=end, first=_beginning(first, last, language), last=end)
    return text.replace(NO_BREAK, " ")  # it is stored, and can be edited


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
