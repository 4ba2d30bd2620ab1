"""Layout: the facts of a document as the texts that the template sets, all formatted and printable."""

import io
import re
from decimal import Decimal

from retainer.documents.facts import ENDED, Address, Customer, Document, Issuer, Line
from retainer.documents.printable import LONGEST_IN_PROSE, font_names, printable, printable_line
from retainer.documents.tax_categories import categories, exemption_reason, tax_number, vat_number
from retainer.documents.wording import (
    NO_VAT,
    amount_text,
    country_name,
    date_text,
    discount_sentence,
    money_text,
    percent_text,
    period_text,
    quantity_text,
    unit_text,
    words_of,
)
from retainer.values.common import grouped
from retainer.values.vat_numbers import vat_territory

BRIGHTEST = 119_000_000
"""Brightness up to which a color is read on white: a contrast of at least 4.5 (WCAG 2.2, 1.4.3)."""
SCHEME = re.compile(r"^https?://", re.IGNORECASE)
WIDEST_QUANTITY = 16
"""Characters of a quantity and its unit on one line; longer ones would leave no room for the description."""
LONGEST_TIED, MOST_TIED = 400, 12
"""Characters of the last line, and its lines or those of the totals, up to which they stand on one page for sure."""
INK = "#16202c"
MAX_NAME, MAX_TEXT = 70, 140
"""The characters of a name and a text that EPC069-12 takes."""


def build_layout(document: Document) -> dict[str, object]:
    language, words, issuer = document.language, words_of(document), document.issuer
    name = printable_line(issuer.name)
    customer, contact = document.customer, document.customer.contact_name
    attention = [words["attention"].format(name=contact)] if contact and contact != customer.name else []
    can_accept = document.kind == "quote" and is_open(document)
    accepted_by = date_text(document.valid_until, language) if can_accept and document.valid_until else ""
    return {
        "language": language,
        "fonts": font_names(customer.country),
        "title": printable_line(f"{words[f'title_{document.kind}']} {document.number or ''}"),
        "watermark": _watermark(document),
        "shade": 93 if document.is_draft else 82,
        "color": issuer.color,
        "ink": issuer.color if is_readable(issuer.color) else INK,
        "name": name,
        "logo": document.logo and {"content": list(document.logo), "alt": words["logo_alt"].format(name=name)},
        "date": [int(part) for part in document.issue_date.split("-")],
        "sender": " · ".join([name, *(printable_line(line) for line in address_lines(issuer, document))]),
        "recipient": [printable_line(each) for each in (customer.name, *attention, *address_lines(customer, document))],
        "details": _details(document),
        "subject": printable_line(document.subject or ""),
        "notes": printable(document.notes or "", LONGEST_IN_PROSE),
        "terms": printable(document.terms or "", LONGEST_IN_PROSE),
        **_table(document),
        "options_title": words["options"],
        "totals": _totals(document),
        "total": [_total_label(document), money_text(document.total, document.currency, language)],
        "remarks": _remarks(document),
        "payment": _payment(document),
        "acceptance": [words["accept"].format(date=accepted_by), words["signature"]] if accepted_by else [],
        "footer": _footer(document),
        "footer_note": printable(issuer.footer or ""),
        "page": words["page"],
    }


def address_lines(address: Address, document: Document) -> list[str]:
    """Return the lines of a postal address, with its country if issuer and customer are in different ones."""
    if address.country in {"US", "CA"}:
        state = " ".join(filter(None, (address.region, address.postal_code)))
        town = [", ".join(filter(None, (address.city, state)))]
    elif address.country in {"GB", "IE"}:
        town = [part or "" for part in (address.city, address.region, address.postal_code)]
    else:
        town = [" ".join(filter(None, (address.postal_code, address.city))), address.region or ""]
    is_abroad = address.country and document.issuer.country != document.customer.country
    country = country_name(address.country or "", document.language).upper() if is_abroad else ""
    return [line for line in (address.address_line1, address.address_line2, *town, country) if line]


def is_readable(color: str) -> bool:
    """Return whether text in a color like `#1f3a5f` can be read on white, by its luminance with a gamma of 2."""
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return 2126 * red**2 + 7152 * green**2 + 722 * blue**2 <= BRIGHTEST


def is_open(document: Document) -> bool:
    """Return whether a document can still be paid or accepted, as far as its facts say."""
    return document.standing is None or document.standing.kind == "open"


def balance_due(document: Document) -> Decimal:
    return document.total if document.standing is None else document.standing.balance_due


def _watermark(document: Document) -> str:
    words = words_of(document)
    if document.is_draft:
        return words["draft"]
    return words[document.standing.kind] if document.standing and document.standing.kind in ENDED else ""


def _total_label(document: Document) -> str:
    """Return the label of the total; it is not called due where less of it is."""
    is_due = is_open(document) and balance_due(document) == document.total
    return words_of(document)[f"total_{document.kind}" if is_due else "total_quote"]


def _details(document: Document) -> list[list[str]]:
    language = document.language
    details: list[tuple[str, str | None]] = [
        (f"number_{document.kind}", document.number),
        ("issue_date", date_text(document.issue_date, language)),
        ("due_date", date_text(document.due_date, language) if document.due_date and is_open(document) else None),
        ("valid_until", document.valid_until and date_text(document.valid_until, language)),
    ]
    first, last = document.service_from, document.service_to or document.service_from
    if first and last:
        name = "service_date" if first == last else "service_period"
        details.append((name, period_text(first, last, language)))
    if document.credited:
        details.append(("credited", document.credited.number))
        details.append(("credited_date", date_text(document.credited.issue_date, language)))
    details += [("purchase_order", document.purchase_order), _tax_number_of(document.customer, "customer_")]
    words = words_of(document)
    return [[words[name], printable_line(text)] for name, text in details if text]


def _tax_number_of(party: Issuer | Customer, whose: str = "") -> tuple[str, str | None]:
    """Return the label of a party's number for taxes, and the number.

    Outside the EU, it is a VAT number if the country has such a tax; within, any other number is a national tax number.
    """
    found = vat_number(party)
    if found:
        return f"{whose}vat", found.text
    has_own_vat = party.country not in {None, *NO_VAT} and vat_territory(party.country) is None
    return f"{whose}{'vat' if has_own_vat else 'tax_number'}", tax_number(party)


def _table(document: Document) -> dict[str, object]:
    """Return the table of the lines: its columns and rows; discount and tax have a column if lines differ in them.

    Optional lines have rows of their own, which continue the positions.
    """
    language, words = document.language, words_of(document)
    columns = ["position", "description", "quantity", "unit_price", "discount", "tax_rate", "amount"]
    if not any(line.discount_percent for line in document.lines):
        columns.remove("discount")
    if len({line.tax_rate for line in document.lines}) < 2:
        columns.remove("tax_rate")
    rows, counted = [], [line for line in document.lines if not line.is_optional]
    for position, line in enumerate([*counted, *(line for line in document.lines if line.is_optional)], start=1):
        cells = {
            "position": str(position),
            "description": printable(line.description),
            "quantity": _quantity(line, document),
            "unit_price": amount_text(line.unit_price, document.currency, language),
            "discount": percent_text(line.discount_percent, language) if line.discount_percent else "",
            "tax_rate": percent_text(line.tax_rate, language),
            "amount": amount_text(line.amount, document.currency, language),
        }
        rows.append([cells[name] for name in columns])
    options, rows = rows[len(counted) :], rows[: len(counted)]
    last = rows[-1][1] if rows else ""
    lines = max(last.count("\n") + 1, len(document.tax_breakdown))
    is_tied = len(last) <= LONGEST_TIED and lines <= MOST_TIED
    heads = [words[name] for name in columns]
    return {"columns": columns, "heads": heads, "rows": rows, "options": options, "tied": is_tied}


def _quantity(line: Line, document: Document) -> str:
    unit = line.unit or (words_of(document)["hours"] if line.is_time else "")
    unit = printable_line(unit_text(unit, line.quantity, document.language))
    parts = [part for part in (quantity_text(line.quantity, document.language), unit) if part]
    return (" " if len("".join(parts)) < WIDEST_QUANTITY else "\n").join(parts)


def _totals(document: Document) -> list[list[str]]:
    language, words, currency = document.language, words_of(document), document.currency
    totals = [[words["subtotal"], money_text(document.subtotal, currency, language)]]
    for tax in document.tax_breakdown if any(tax.tax_rate for tax in document.tax_breakdown) else ():
        rate, taxable = percent_text(tax.tax_rate, language), money_text(tax.taxable_amount, currency, language)
        totals.append([words["tax"].format(rate=rate, taxable=taxable), money_text(tax.tax_amount, currency, language)])
    return totals


def _remarks(document: Document) -> list[str]:
    """Return the sentences below the totals: why no tax is charged, when the work was done, what became of it."""
    words, language = words_of(document), document.language
    remarks = [exemption_reason(document, category) for category in categories(document) if category != "S"]
    if document.kind == "invoice" and not document.service_from:
        remarks.append(words["service_note"])
    if document.kind == "credit_note":
        remarks.append(words["offset"])
    if document.version_date:
        date = date_text(document.version_date, language)
        remarks.append(words["version"].format(version=document.version, date=date))
    if document.standing and document.total > 0:
        remarks.append(words.get(f"settled_{document.standing.kind}", ""))
    return [remark for remark in remarks if remark]


def _payment(document: Document) -> dict[str, object] | None:
    """Return how to pay an invoice; None for other documents, and when nothing is due."""
    language, words, issuer = document.language, words_of(document), document.issuer
    due = balance_due(document)
    if document.kind != "invoice" or due <= 0 or not document.due_date or not is_open(document):
        return None
    name = "pay_rest" if due != document.total else "pay_by" if issuer.is_payable else "pay_no_account"
    sentence = words[name].format(
        total=money_text(document.total, document.currency, language),
        due_amount=money_text(due, document.currency, language),
        due=date_text(document.due_date, language),
        number=document.number or words["no_number"],
    )
    account = [
        (words["account_holder"], issuer.name),
        *_bank_details(document),
        (words["bank"], issuer.bank_name),
        (words["reference"], document.number),
    ]
    return {
        "sentence": printable_line(sentence),
        "account": [[label, printable_line(text)] for label, text in account if text] if issuer.is_payable else [],
        "code": payment_code(document),
        "discount": printable_line(discount_sentence(document)),
        "scan": words["scan"],
        "code_alt": words["code_alt"],
    }


def _bank_details(document: Document) -> list[tuple[str, str]]:
    """Return what names the account of the issuer, with labels; empty without an account, and if nothing can be due."""
    issuer, words = document.issuer, words_of(document)
    if not issuer.is_payable or (document.standing and document.standing.kind == "void"):
        return []
    details = [
        (words["sort_code"], issuer.sort_code),
        (words["account_number"], issuer.account_number),
        ("IBAN", grouped(issuer.iban or "")),
        ("BIC", issuer.bic),
    ]
    return [(label, text) for label, text in details if text]


def _footer(document: Document) -> list[list[str]]:
    issuer, words = document.issuer, words_of(document)
    label, number = _tax_number_of(issuer)
    registration = issuer.registration_number
    account = [f"{label} {text}" for label, text in _bank_details(document)]
    columns = (
        (issuer.name, *address_lines(issuer, document)),
        (issuer.phone, issuer.email, SCHEME.sub("", issuer.website or "").rstrip("/")),
        (issuer.bank_name, *account) if account else (),
        (number and f"{words[label]} {number}", registration and f"{words['registration']} {registration}"),
    )
    texts = [[printable_line(text) for text in column if text] for column in columns]
    return [column for column in texts if column]


def payment_code(document: Document) -> str | None:
    """Return the QR code of EPC069-12 that banking apps read, as SVG.

    None unless an issued invoice is due in euros to a bank account, and for what the code cannot hold, such as an IBAN
    of 40 characters or an amount of a billion: no code is better than a wrong one.
    """
    issuer = document.issuer
    if document.kind != "invoice" or document.is_draft or document.currency != "EUR" or not issuer.iban:
        return None
    from segno import helpers  # noqa: PLC0415  # only documents and second factors need it

    try:
        code = helpers.make_epc_qr(
            name=" ".join(issuer.name.split())[:MAX_NAME],  # a line break would begin the next field of the code
            iban=issuer.iban,
            amount=balance_due(document),
            text=(document.number or "")[:MAX_TEXT],
            bic=issuer.bic,
            encoding="UTF-8",
        )
    except ValueError:
        return None
    out = io.BytesIO()
    code.save(out, kind="svg", border=0, xmldecl=False, svgclass=None, lineclass=None, omitsize=True)
    return out.getvalue().decode()
