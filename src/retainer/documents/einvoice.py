"""E-invoices: an invoice or credit note as XML of EN 16931, in the syntax CII and the profile of Factur-X.

The elements stand in the order of the schema. Codes in comments are business terms of the norm. Amounts are those of
the API, to the cent; `docs/decisions` explains the lines whose amount is not quantity x price.
"""

import re
from decimal import Decimal
from typing import NamedTuple
from xml.etree import ElementTree as ET

from retainer.documents.early_payment import discount_terms
from retainer.documents.facts import Address, Customer, Document, Issuer, Line, gross_amount
from retainer.documents.tax_categories import (
    categories,
    category_of,
    exemption_reason,
    is_numbered,
    tax_number,
    vat_number,
)
from retainer.documents.wording import words_of
from retainer.values.exact import DIGITS, decimal_text

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
TYPE_CODES = {"invoice": "380", "credit_note": "381"}
"""UNTDID 1001."""
EXEMPTION_CODES = {"AE": "VATEX-EU-AE", "G": "VATEX-EU-G", "O": "VATEX-EU-O"}
SEPA_TRANSFER, CREDIT_TRANSFER = "58", "30"
"""UNTDID 4461."""
MAX_DIGITS = 2


class Missing(NamedTuple):
    """A fact that an e-invoice lacks: the field of the document that it concerns, if any, and a sentence."""

    field: str | None
    message: str


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


def missing_facts(document: Document) -> list[Missing]:
    """Return what an e-invoice of this document lacks; empty if it can be written."""
    issuer, customer, found = document.issuer, document.customer, categories(document)
    has_number = is_numbered(issuer)
    if document.kind == "quote":
        return [Missing(None, "A quote has no e-invoice.")]
    if document.is_draft:
        return [Missing("status", "A draft has no e-invoice: issue the invoice first.")]
    missing = []
    if not issuer.country:
        missing.append(Missing(None, "The agency has no country: add it in the console under Settings."))
    if not customer.country:
        missing.append(Missing("client_id", f"The client has no country: add `country` to {customer.name}."))
    if not has_number and found != ["O"]:
        missing.append(Missing(None, "The agency's VAT number is missing: correct it in the console under Settings."))
    elif not has_number and not clean(issuer.registration_number or ""):
        message = "The agency has no VAT number, tax number or registration number, by which clients know it: add one"
        missing.append(Missing(None, f"{message} in the console under Settings."))
    elif "O" in found and found != ["O"]:
        message = "EN 16931 allows no tax beside lines that are not subject to VAT: bill them with two invoices."
        missing.append(Missing("lines", message))
    if DIGITS[document.currency] > MAX_DIGITS:
        message = f"EN 16931 allows two decimal places; amounts in {document.currency} have more."
        missing.append(Missing("currency", message))
    return missing


def build_einvoice(document: Document) -> bytes:
    """Return the XML of an issued invoice or credit note. Raises ValueError if facts are missing."""
    if missing := missing_facts(document):
        raise ValueError(" ".join(fact.message for fact in missing))
    root = ET.Element("rsm:CrossIndustryInvoice", {f"xmlns:{prefix}": name for prefix, name in NAMESPACES.items()})
    context = add(root, "rsm:ExchangedDocumentContext")
    add(add(context, "ram:GuidelineSpecifiedDocumentContextParameter"), "ram:ID", PROFILE)  # BT-24
    header = add(root, "rsm:ExchangedDocument")
    add(header, "ram:ID", document.number)  # BT-1
    add(header, "ram:TypeCode", TYPE_CODES[document.kind])  # BT-3
    add_day(header, "ram:IssueDateTime", document.issue_date)  # BT-2
    for note in (document.subject, document.notes):
        if note and clean(note):
            add(add(header, "ram:IncludedNote"), "ram:Content", note)  # BT-22
    transaction = add(root, "rsm:SupplyChainTradeTransaction")
    for number, line in enumerate(document.lines, start=1):
        _add_line(transaction, number, line, document)
    _add_agreement(transaction, document)
    delivery = add(add(transaction, "ram:ApplicableHeaderTradeDelivery"), "ram:ActualDeliverySupplyChainEvent")
    add_day(delivery, "ram:OccurrenceDateTime", _service_date(document))  # BT-72
    _add_settlement(transaction, document)
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="UTF-8", xml_declaration=True)
    return text + b"\n"


def _service_date(document: Document) -> str:
    """Return the last day of the work; without one, the date of the invoice, as the document says in words."""
    invoice_date = document.credited.issue_date if document.credited else document.issue_date
    return document.service_to or document.service_from or invoice_date


def _add_line(transaction: ET.Element, number: int, line: Line, document: Document) -> None:
    item = add(transaction, "ram:IncludedSupplyChainTradeLineItem")
    add(add(item, "ram:AssociatedDocumentLineDocument"), "ram:LineID", str(number))  # BT-126
    product = add(item, "ram:SpecifiedTradeProduct")
    name, _, rest = clean(line.description).partition("\n")
    add(product, "ram:Name", name)  # BT-153
    if clean(rest):
        add(product, "ram:Description", rest)  # BT-154
    price = price_of(line, document.currency)
    unit = UNITS.get((line.unit or ("h" if line.is_time else "")).casefold().strip(" ."), "C62")
    agreement = add(add(item, "ram:SpecifiedLineTradeAgreement"), "ram:NetPriceProductTradePrice")
    add(agreement, "ram:ChargeAmount", decimal_text(price.net))  # BT-146
    if price.base_quantity is not None:
        add(agreement, "ram:BasisQuantity", decimal_text(price.base_quantity), unitCode=unit)  # BT-149
    delivery = add(item, "ram:SpecifiedLineTradeDelivery")
    add(delivery, "ram:BilledQuantity", decimal_text(price.quantity), unitCode=unit)  # BT-129
    settlement = add(item, "ram:SpecifiedLineTradeSettlement")
    _add_tax(add(settlement, "ram:ApplicableTradeTax"), line.tax_rate, document)
    if line.discount_percent:
        _add_discount(settlement, line, document)
    summation = add(settlement, "ram:SpecifiedTradeSettlementLineMonetarySummation")
    add(summation, "ram:LineTotalAmount", amount(line.amount))  # BT-131


def _add_discount(settlement: ET.Element, line: Line, document: Document) -> None:
    """Add the discount of a line: an allowance, or a charge where it raises a negative amount."""
    gross = gross_amount(line, document.currency)
    discount = gross - line.amount
    if discount == 0:
        return
    allowance = add(settlement, "ram:SpecifiedTradeAllowanceCharge")
    add(add(allowance, "ram:ChargeIndicator"), "udt:Indicator", "false" if discount > 0 else "true")
    add(allowance, "ram:CalculationPercent", decimal_text(line.discount_percent))  # BT-138, BT-143
    add(allowance, "ram:BasisAmount", amount(abs(gross)))  # BT-137, BT-142
    add(allowance, "ram:ActualAmount", amount(abs(discount)))  # BT-136, BT-141
    add(allowance, "ram:Reason", words_of(document)["discount"])  # BT-139, BT-144


def _add_tax(tax: ET.Element, rate: Decimal, document: Document) -> None:
    """Add category and rate of a line's tax; what is not subject to tax has no rate (BR-O-05)."""
    category = category_of(document, rate)
    add(tax, "ram:TypeCode", "VAT")
    add(tax, "ram:CategoryCode", category)  # BT-151
    if category != "O":
        add(tax, "ram:RateApplicablePercent", decimal_text(rate))  # BT-152


def _add_agreement(transaction: ET.Element, document: Document) -> None:
    agreement = add(transaction, "ram:ApplicableHeaderTradeAgreement")
    seller, buyer = (add(agreement, f"ram:{side}TradeParty") for side in ("Seller", "Buyer"))
    issuer, customer = document.issuer, document.customer
    is_taxable = "O" not in categories(document)  # what is not subject to tax names no VAT number (BR-O-02)
    own, theirs = (vat_number(side) for side in (issuer, customer))
    number, registration = tax_number(issuer), clean(issuer.registration_number or "")
    if not (registration or (is_taxable and own)):  # clients know the seller by one of three numbers (BR-CO-26)
        add(seller, "ram:ID", own.text if own else number)  # BT-29
    _add_party(seller, issuer, registration, (issuer.name, issuer.phone, issuer.email))
    _add_party(buyer, customer, None, (customer.contact_name, None, None))
    for party, found in ((seller, own), (buyer, theirs)):
        if is_taxable and found:
            add(add(party, "ram:SpecifiedTaxRegistration"), "ram:ID", found.text, schemeID="VA")  # BT-31, BT-48
    if number:
        add(add(seller, "ram:SpecifiedTaxRegistration"), "ram:ID", number, schemeID="FC")  # BT-32
    if document.purchase_order:
        order = add(agreement, "ram:BuyerOrderReferencedDocument")
        add(order, "ram:IssuerAssignedID", document.purchase_order)  # BT-13


def _add_party(
    party: ET.Element, side: Issuer | Customer, registration: str | None, contact: tuple[str | None, ...]
) -> None:
    """Add the seller or the buyer; `contact` is name, telephone and e-mail."""
    add(party, "ram:Name", side.name)  # BT-27, BT-44
    if registration:
        add(add(party, "ram:SpecifiedLegalOrganization"), "ram:ID", registration)  # BT-30
    name, phone, email = contact
    if name:
        person = add(party, "ram:DefinedTradeContact")
        add(person, "ram:PersonName", name)  # BT-41, BT-56
        if phone:
            add(add(person, "ram:TelephoneUniversalCommunication"), "ram:CompleteNumber", phone)  # BT-42
        if email:
            add(add(person, "ram:EmailURIUniversalCommunication"), "ram:URIID", email)  # BT-43
    _add_address(add(party, "ram:PostalTradeAddress"), side)
    if side.email:
        add(add(party, "ram:URIUniversalCommunication"), "ram:URIID", side.email, schemeID="EM")  # BT-34, BT-49


def _add_address(parent: ET.Element, address: Address) -> None:
    for name, text in (
        ("PostcodeCode", address.postal_code),
        ("LineOne", address.address_line1),
        ("LineTwo", address.address_line2),
        ("CityName", address.city),
        ("CountryID", address.country),
        ("CountrySubDivisionName", address.region),
    ):
        if text:
            add(parent, f"ram:{name}", text)


def _add_settlement(transaction: ET.Element, document: Document) -> None:
    settlement = add(transaction, "ram:ApplicableHeaderTradeSettlement")
    words, issuer, is_invoice = words_of(document), document.issuer, document.kind == "invoice"
    if is_invoice:
        add(settlement, "ram:PaymentReference", document.number)  # BT-83
    add(settlement, "ram:InvoiceCurrencyCode", document.currency)  # BT-5
    if is_invoice and issuer.iban:
        _add_payment_means(settlement, document)
    _add_tax_breakdown(settlement, document)
    if document.service_from and document.service_to:
        period = add(settlement, "ram:BillingSpecifiedPeriod")
        add_day(period, "ram:StartDateTime", document.service_from)  # BT-73
        add_day(period, "ram:EndDateTime", document.service_to)  # BT-74
    terms = add(settlement, "ram:SpecifiedTradePaymentTerms")
    descriptions = (discount_terms(document), document.terms) if is_invoice else (words["offset"],)
    if description := "\n".join(text for text in descriptions if text):
        add(terms, "ram:Description", description)  # BT-20
    if document.due_date:
        add_day(terms, "ram:DueDateDateTime", document.due_date)  # BT-9
    _add_totals(settlement, document)
    if document.credited:
        reference = add(settlement, "ram:InvoiceReferencedDocument")
        add(reference, "ram:IssuerAssignedID", document.credited.number)  # BT-25
        add_day(reference, "ram:FormattedIssueDateTime", document.credited.issue_date, kind="qdt")  # BT-26


def _add_payment_means(settlement: ET.Element, document: Document) -> None:
    issuer = document.issuer
    means = add(settlement, "ram:SpecifiedTradeSettlementPaymentMeans")
    add(means, "ram:TypeCode", SEPA_TRANSFER if document.currency == "EUR" else CREDIT_TRANSFER)  # BT-81
    account = add(means, "ram:PayeePartyCreditorFinancialAccount")
    add(account, "ram:IBANID", "".join((issuer.iban or "").split()))  # BT-84
    add(account, "ram:AccountName", issuer.name)  # BT-85
    if issuer.bic:
        bank = add(means, "ram:PayeeSpecifiedCreditorFinancialInstitution")
        add(bank, "ram:BICID", "".join(issuer.bic.split()))  # BT-86


def _add_tax_breakdown(settlement: ET.Element, document: Document) -> None:
    for share in document.taxes:
        category = category_of(document, share.tax_rate)
        tax = add(settlement, "ram:ApplicableTradeTax")
        add(tax, "ram:CalculatedAmount", amount(share.tax_amount))  # BT-117
        add(tax, "ram:TypeCode", "VAT")
        if category != "S":
            add(tax, "ram:ExemptionReason", exemption_reason(document, category))  # BT-120
        add(tax, "ram:BasisAmount", amount(share.taxable_amount))  # BT-116
        add(tax, "ram:CategoryCode", category)  # BT-118
        if category in EXEMPTION_CODES:
            add(tax, "ram:ExemptionReasonCode", EXEMPTION_CODES[category])  # BT-121
        if category != "O":
            add(tax, "ram:RateApplicablePercent", decimal_text(share.tax_rate))  # BT-119


def _add_totals(settlement: ET.Element, document: Document) -> None:
    """Add the totals. Nothing is paid yet: the document keeps the state in which it was issued."""
    summation = add(settlement, "ram:SpecifiedTradeSettlementHeaderMonetarySummation")
    add(summation, "ram:LineTotalAmount", amount(document.subtotal))  # BT-106
    add(summation, "ram:TaxBasisTotalAmount", amount(document.subtotal))  # BT-109
    add(summation, "ram:TaxTotalAmount", amount(document.tax_total), currencyID=document.currency)  # BT-110
    add(summation, "ram:GrandTotalAmount", amount(document.total))  # BT-112
    add(summation, "ram:DuePayableAmount", amount(document.total))  # BT-115
