"""E-invoices: an invoice or credit note as XML of EN 16931, in the syntax CII and the profile of Factur-X.

The elements stand in the order of the schema. Codes in comments are business terms of the norm. Amounts are those of
the API, to the cent; `docs/decisions` explains the lines whose amount is not quantity x price.
"""

import re
from decimal import Decimal
from typing import NamedTuple
from xml.etree import ElementTree as ET

from retainer.documents import tax_categories
from retainer.documents.facts import Customer, Document, Issuer, Line, early_payment, gross_amount
from retainer.documents.wording import discount_sentence, words_of
from retainer.errors import part, titled
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


class MissingFact(NamedTuple):
    """A fact that an e-invoice lacks: the field of the document that it concerns, if any, and a sentence."""

    field: str | None
    message: str


def add(parent: ET.Element, path: str, text: str | None = None, **attributes: str) -> ET.Element:
    """Add the elements of a path, each in the one before, and return the last; those without a prefix are of `ram`."""
    for name in path.split("/"):
        parent = ET.SubElement(parent, name if ":" in name else f"ram:{name}")
    parent.attrib.update(attributes)
    parent.text = text
    return parent


def put(parent: ET.Element, path: str, text: str | None, **attributes: str) -> None:
    """Add the elements of a path with a text, if there is one; a dash stands for a text that XML cannot hold."""
    if text:
        add(parent, path, clean(text) or "-", **attributes)


def put_day(parent: ET.Element, path: str, day: str | None, kind: str = "udt") -> None:
    """Add a day, given as `YYYY-MM-DD`, if there is one."""
    put(parent, f"{path}/{kind}:DateTimeString", day and day.replace("-", ""), format=DAY_FORMAT)


def clean(text: str) -> str:
    """Return a text without what XML cannot hold, and without spaces around it."""
    return NO_XML.sub("", text.replace("\r\n", "\n")).strip()


def missing_facts(document: Document) -> list[MissingFact]:
    """Return what an e-invoice of this document lacks; empty if it can be written."""
    issuer, customer, found = document.issuer, document.customer, tax_categories.categories(document)
    has_number = tax_categories.is_numbered(issuer)
    if document.kind == "quote":
        return [MissingFact(None, "A quote has no e-invoice.")]
    if document.is_draft:
        return [MissingFact("status", "A draft has no e-invoice: issue the invoice first.")]
    missing = []
    if not issuer.country:
        missing.append(MissingFact(None, "The agency has no country: add it in the console under Settings."))
    if not customer.country:
        missing.append(
            MissingFact(
                "client_id", f"The client has no country: set the {part('`country`')} of {titled(customer.name)}."
            )
        )
    if not has_number and found != ["O"]:
        missing.append(
            MissingFact(None, "The agency's VAT number is missing: correct it in the console under Settings.")
        )
    elif not has_number and not clean(issuer.registration_number or ""):
        message = "The agency has no VAT number, tax number or registration number, by which clients know it: add one"
        missing.append(MissingFact(None, f"{message} in the console under Settings."))
    elif "O" in found and found != ["O"]:
        message = "EN 16931 allows no tax beside lines that are not subject to VAT: bill them with two invoices."
        missing.append(MissingFact("lines", message))
    if DIGITS[document.currency] > 2:
        message = f"EN 16931 allows two decimal places; amounts in {document.currency} have more."
        missing.append(MissingFact("currency", message))
    return missing


def build_einvoice(document: Document) -> bytes:
    """Return the XML of an issued invoice or credit note that lacks nothing; `missing_facts` says so."""
    root = ET.Element("rsm:CrossIndustryInvoice", {f"xmlns:{prefix}": name for prefix, name in NAMESPACES.items()})
    context = add(root, "rsm:ExchangedDocumentContext")
    put(context, "GuidelineSpecifiedDocumentContextParameter/ID", PROFILE)  # BT-24
    header = add(root, "rsm:ExchangedDocument")
    put(header, "ID", document.number)  # BT-1
    put(header, "TypeCode", TYPE_CODES[document.kind])  # BT-3
    put_day(header, "IssueDateTime", document.issue_date)  # BT-2
    for note in (document.subject, document.notes):
        put(header, "IncludedNote/Content", clean(note or ""))  # BT-22
    transaction = add(root, "rsm:SupplyChainTradeTransaction")
    for number, line in enumerate(document.lines, start=1):
        _add_line(transaction, number, line, document)
    _add_agreement(add(transaction, "ApplicableHeaderTradeAgreement"), document)
    # without days of work, the day is that of the invoice, as the document says in words
    invoice_date = document.credited.issue_date if document.credited else document.issue_date
    service_date = document.service_to or document.service_from or invoice_date
    delivery = add(transaction, "ApplicableHeaderTradeDelivery/ActualDeliverySupplyChainEvent")
    put_day(delivery, "OccurrenceDateTime", service_date)  # BT-72
    _add_settlement(add(transaction, "ApplicableHeaderTradeSettlement"), document)
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="UTF-8", xml_declaration=True)
    return text + b"\n"


def _add_line(transaction: ET.Element, number: int, line: Line, document: Document) -> None:
    item = add(transaction, "IncludedSupplyChainTradeLineItem")
    put(item, "AssociatedDocumentLineDocument/LineID", str(number))  # BT-126
    product = add(item, "SpecifiedTradeProduct")
    name, _, rest = clean(line.description).partition("\n")
    put(product, "Name", name or "-")  # BT-153
    put(product, "Description", clean(rest))  # BT-154
    price, quantity, base_quantity = _price_of(line, document.currency)
    unit = UNITS.get((line.unit or ("h" if line.is_time else "")).casefold().strip(" ."), "C62")
    agreement = add(item, "SpecifiedLineTradeAgreement/NetPriceProductTradePrice")
    put(agreement, "ChargeAmount", decimal_text(price))  # BT-146
    if base_quantity is not None:
        put(agreement, "BasisQuantity", decimal_text(base_quantity), unitCode=unit)  # BT-149
    put(item, "SpecifiedLineTradeDelivery/BilledQuantity", decimal_text(quantity), unitCode=unit)  # BT-129
    settlement = add(item, "SpecifiedLineTradeSettlement")
    tax, category = add(settlement, "ApplicableTradeTax"), tax_categories.category_of(document, line.tax_rate)
    put(tax, "TypeCode", "VAT")
    put(tax, "CategoryCode", category)  # BT-151
    if category != "O":  # what is not subject to tax has no rate (BR-O-05)
        put(tax, "RateApplicablePercent", decimal_text(line.tax_rate))  # BT-152
    gross = gross_amount(line, document.currency)
    discount = gross - line.amount
    if line.discount_percent and discount:  # an allowance, or a charge where it raises a negative amount
        allowance = add(settlement, "SpecifiedTradeAllowanceCharge")
        put(allowance, "ChargeIndicator/udt:Indicator", "false" if discount > 0 else "true")
        put(allowance, "CalculationPercent", decimal_text(line.discount_percent))  # BT-138, BT-143
        put(allowance, "BasisAmount", f"{abs(gross):f}")  # BT-137, BT-142
        put(allowance, "ActualAmount", f"{abs(discount):f}")  # BT-136, BT-141
        put(allowance, "Reason", words_of(document)["discount"])  # BT-139, BT-144
    put(settlement, "SpecifiedTradeSettlementLineMonetarySummation/LineTotalAmount", f"{line.amount:f}")  # BT-131


def _price_of(line: Line, currency: str) -> tuple[Decimal, Decimal, Decimal | None]:
    """Return price, quantity and base quantity (None for 1) of a line: never a negative price (BR-27), and exact.

    The amount of a line is quantity x price / base quantity, less its discount. That of a line that bills work is the
    sum of the work's amounts, which can differ by cents from quantity x price. Such a line has its amount as the price
    for the whole quantity: the product is exact.
    """
    if line.discount_percent or gross_amount(line, currency) == line.amount:
        return abs(line.unit_price), -line.quantity if line.unit_price < 0 else line.quantity, None
    quantity = abs(line.quantity) or Decimal(1)
    return abs(line.amount), quantity.copy_sign(line.amount), quantity


def _add_agreement(agreement: ET.Element, document: Document) -> None:
    issuer, customer = document.issuer, document.customer
    seller, buyer = add(agreement, "SellerTradeParty"), add(agreement, "BuyerTradeParty")
    # what is not subject to tax names no VAT number (BR-O-02)
    is_taxable = "O" not in tax_categories.categories(document)
    own, theirs = (tax_categories.vat_number(side) if is_taxable else None for side in (issuer, customer))
    number, registration = tax_categories.tax_number(issuer), clean(issuer.registration_number or "")
    if not (registration or own):  # clients know the seller by one of three numbers (BR-CO-26)
        known = tax_categories.vat_number(issuer)
        put(seller, "ID", known.text if known else number)  # BT-29
    _add_party(seller, issuer, registration, (issuer.name, issuer.phone, issuer.email))
    _add_party(buyer, customer, None, (customer.contact_name, None, None))
    for party, found in ((seller, own), (buyer, theirs)):
        put(party, "SpecifiedTaxRegistration/ID", found and found.text, schemeID="VA")  # BT-31, BT-48
    put(seller, "SpecifiedTaxRegistration/ID", number, schemeID="FC")  # BT-32
    put(agreement, "BuyerOrderReferencedDocument/IssuerAssignedID", document.purchase_order)  # BT-13


def _add_party(
    party: ET.Element, side: Issuer | Customer, registration: str | None, contact: tuple[str | None, ...]
) -> None:
    """Add the seller or the buyer; `contact` is name, telephone and e-mail."""
    put(party, "Name", side.name)  # BT-27, BT-44
    put(party, "SpecifiedLegalOrganization/ID", registration)  # BT-30
    name, phone, email = contact
    if name:
        person = add(party, "DefinedTradeContact")
        put(person, "PersonName", name)  # BT-41, BT-56
        put(person, "TelephoneUniversalCommunication/CompleteNumber", phone)  # BT-42
        put(person, "EmailURIUniversalCommunication/URIID", email)  # BT-43
    address = add(party, "PostalTradeAddress")
    put(address, "PostcodeCode", side.postal_code)
    put(address, "LineOne", side.address_line1)
    put(address, "LineTwo", side.address_line2)
    put(address, "CityName", side.city)
    put(address, "CountryID", side.country)
    put(address, "CountrySubDivisionName", side.region)
    put(party, "URIUniversalCommunication/URIID", side.email, schemeID="EM")  # BT-34, BT-49


def _add_settlement(settlement: ET.Element, document: Document) -> None:
    issuer, is_invoice = document.issuer, document.kind == "invoice"
    if is_invoice:
        put(settlement, "PaymentReference", document.number)  # BT-83
    put(settlement, "InvoiceCurrencyCode", document.currency)  # BT-5
    if is_invoice and issuer.is_payable:
        means, is_sepa = add(settlement, "SpecifiedTradeSettlementPaymentMeans"), document.currency == "EUR"
        put(means, "TypeCode", SEPA_TRANSFER if is_sepa and issuer.iban else CREDIT_TRANSFER)  # BT-81
        account = add(means, "PayeePartyCreditorFinancialAccount")
        put(account, "IBANID", issuer.iban)  # BT-84
        put(account, "AccountName", issuer.name)  # BT-85
        put(account, "ProprietaryID", None if issuer.iban else issuer.account_number)  # BT-84
        bank = issuer.bic or (None if issuer.iban else issuer.sort_code)
        put(means, "PayeeSpecifiedCreditorFinancialInstitution/BICID", bank)  # BT-86
    for share in document.tax_breakdown:
        category = tax_categories.category_of(document, share.tax_rate)
        tax = add(settlement, "ApplicableTradeTax")
        put(tax, "CalculatedAmount", f"{share.tax_amount:f}")  # BT-117
        put(tax, "TypeCode", "VAT")
        if category != "S":
            put(tax, "ExemptionReason", tax_categories.exemption_reason(document, category))  # BT-120
        put(tax, "BasisAmount", f"{share.taxable_amount:f}")  # BT-116
        put(tax, "CategoryCode", category)  # BT-118
        put(tax, "ExemptionReasonCode", EXEMPTION_CODES.get(category))  # BT-121
        if category != "O":
            put(tax, "RateApplicablePercent", decimal_text(share.tax_rate))  # BT-119
    if document.service_from and document.service_to:
        period = add(settlement, "BillingSpecifiedPeriod")
        put_day(period, "StartDateTime", document.service_from)  # BT-73
        put_day(period, "EndDateTime", document.service_to)  # BT-74
    terms = add(settlement, "SpecifiedTradePaymentTerms")
    texts = (_discount_terms(document), document.terms) if is_invoice else (words_of(document)["offset"],)
    put(terms, "Description", "\n".join(filter(None, texts)))  # BT-20
    put_day(terms, "DueDateDateTime", document.due_date)  # BT-9
    # nothing is paid yet: the document keeps the state in which it was issued
    summation = add(settlement, "SpecifiedTradeSettlementHeaderMonetarySummation")
    put(summation, "LineTotalAmount", f"{document.subtotal:f}")  # BT-106
    put(summation, "TaxBasisTotalAmount", f"{document.subtotal:f}")  # BT-109
    put(summation, "TaxTotalAmount", f"{document.tax_total:f}", currencyID=document.currency)  # BT-110
    put(summation, "GrandTotalAmount", f"{document.total:f}")  # BT-112
    put(summation, "DuePayableAmount", f"{document.total:f}")  # BT-115
    if document.credited:
        reference = add(settlement, "InvoiceReferencedDocument")
        put(reference, "IssuerAssignedID", document.credited.number)  # BT-25
        put_day(reference, "FormattedIssueDateTime", document.credited.issue_date, kind="qdt")  # BT-26


def _discount_terms(document: Document) -> str:
    """Return the sentence, after the line that programs in Germany read (BR-DE-18 of XRechnung), if a side is there.

    CII has elements for discounts in the profile EXTENDED alone; the profile of EN 16931 has the text BT-20.
    """
    found, sentence = early_payment(document), discount_sentence(document)
    if found is None or "DE" not in {document.issuer.country, document.customer.country}:
        return sentence
    whole, _, places = f"{found.percent:f}".partition(".")
    return f"#SKONTO#TAGE={found.days}#PROZENT={whole}.{places:0<2}#\n{sentence}"
