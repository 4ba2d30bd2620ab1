"""Three hundred papers: each state of each kind, of issuers and clients of many countries, in their currencies.

What a PDF says is compared with its record by a second wording; each e-invoice must pass two validators.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
import time_machine
from tests.api.test_files import PDF, XML, set_account, text_of
from tests.documents.parties import VALID
from tests.documents.validators import broken_rules, texts, values
from tests.factories import Answer, ApiClient
from tests.length import IS_FULL

from retainer.identity import bank_accounts
from retainer.identity.bank_accounts import BankAccount
from retainer.values.exact import DIGITS

Record = dict[str, Any]
TEXTS = {
    "en": {
        "invoice": "Invoice",
        "quote": "Quote",
        "credit": "Credit note",
        "void": "Void",
        "draft": "Draft",
        "declined": "Declined",
        "expired": "Expired",
        "cancelled": "Cancelled",
        "options": "Optional, not included",
        "paid": "This invoice is paid.",
        "credited": "credited in full",
        "written_off": "written off",
        "pay": "Please pay",
        "rest": "is still due",
        "version": "Version 2 of",
        "hours": "h",
        "of": "Corrects invoice",
    },
    "de": {
        "invoice": "Rechnung",
        "quote": "Angebot",
        "credit": "Rechnungskorrektur",
        "void": "Storniert",
        "draft": "Entwurf",
        "declined": "Abgelehnt",
        "expired": "Abgelaufen",
        "cancelled": "Zurückgezogen",
        "options": "Optional, nicht im Gesamtbetrag",
        "paid": "Diese Rechnung ist bezahlt.",
        "credited": "vollständig gutgeschrieben",
        "written_off": "ausgebucht",
        "pay": "Bitte",
        "rest": "noch",
        "version": "Version 2 vom",
        "hours": "Std.",
        "of": "Zur Rechnung",
    },
}
MONTHS = {
    "en": (
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ),
    "de": (
        *("Januar", "Februar", "März", "April", "Mai", "Juni"),
        *("Juli", "August", "September", "Oktober", "November", "Dezember"),
    ),
}
SIGNS = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥"}
BRITISH = BankAccount(currency="GBP", sort_code="20-00-00", account_number="55779911")
POLISH = BankAccount(currency="PLN", iban="PL61109010140000071219812874", bic="WBKPPLPP")


class Sides(NamedTuple):
    """Where a paper comes from and goes to: the country of its issuer and of its client, currency, language, rates."""

    issuer: str
    client: str | None
    currency: str
    language: str
    rates: tuple[str, ...]
    settings: Record = {}


SIDES = (
    Sides("DE", "DE", "EUR", "de", ("19", "7")),
    Sides("DE", "AT", "EUR", "de", ("0",)),
    Sides("DE", "US", "USD", "en", ("0",)),
    Sides("DE", "GB", "GBP", "en", ("0",)),
    Sides("DE", "PL", "PLN", "en", ("0",), {"tax_exemption_reason_en": "Art. 196"}),
    Sides("DE", "DE", "EUR", "de", ("0",), {"is_small_business": True}),
    Sides("AT", "AT", "EUR", "de", ("20", "10")),
    Sides("AT", "CH", "CHF", "de", ("0",), {"tax_outside_eu": "exempt"}),
    Sides("FR", "FR", "EUR", "en", ("20", "5.5")),
    Sides("FR", "DE", "EUR", "de", ("0",), {"is_small_business": True}),
    Sides("PL", "PL", "PLN", "en", ("23",)),
    Sides("PL", "JP", "JPY", "en", ("0",), {"tax_outside_eu": "export"}),
    Sides("GB", "GB", "GBP", "en", ("20",), {"vat_number": "GB980780684"}),
    Sides("CH", "DE", "CHF", "de", ("8.1",), {"vat_number": "CHE-123.456.788 MWST"}),
    Sides("US", "KW", "KWD", "en", ("0",), {"vat_number": "12-3456789"}),
)


class Paper(NamedTuple):
    """A document as it is now: its record, the answers with its files, and what it was made with."""

    kind: str
    state: str
    sides: Sides
    record: Record
    pdf: Answer
    xml: Answer
    client: Record


class Maker:
    def __init__(self, api: ApiClient, sides: Sides) -> None:
        self.api, self.sides = api, sides
        own = {"vat_number": VALID.get(sides.issuer), **sides.settings}
        set_account(api, country=sides.issuer, document_language="en", legal_name="Nordlicht & Söhne", **own)
        set_account(api, city="Stadt", address_line1="Weg 1", iban="DE89370400440532013000", bic="COBADEFFXXX")
        set_account(api, early_payment_discount_percent="2", early_payment_discount_days=10)
        with api.operating() as tx:
            for account in (BRITISH, POLISH):
                bank_accounts.set_bank_account(tx, account)
        vat = VALID.get(sides.client or "")
        fields = {"country": sides.client, "currency": sides.currency, "language": sides.language, "vat_number": vat}
        self.client = api.make("/clients", name="Bäckerei Sommer", city="Ort", address_line1="Platz 2", **fields)

    def lines(self) -> list[Record]:
        unit = Decimal(1).scaleb(-DIGITS[self.sides.currency])
        prices = [str((Decimal(price) * 1000).quantize(unit)) for price in ("1.2", "0.3333", "0.05")]
        named = zip(("Startseite & Menü", "Fotos\nzwei Tage", "Nachlass"), ("7.5", "2", "-1"), prices, strict=True)
        rates = self.sides.rates * 3
        lines = [
            {"description": text, "quantity": quantity, "unit_price": price, "tax_rate": rate}
            for (text, quantity, price), rate in zip(named, rates, strict=False)
        ]
        lines[1] |= {"discount_percent": "12.5", "unit": "days"}
        return lines

    def invoice(self, **fields: Any) -> Record:
        body = {"client_id": self.client["id"], "lines": self.lines(), "status": "sent", **fields}
        return self.api.make("/invoices", **body)

    def quote(self, **fields: Any) -> Record:
        lines = [*self.lines(), self.lines()[0] | {"description": "Wahlweise: Texte", "is_optional": True}]
        body = {"client_id": self.client["id"], "lines": lines, "title": "Neuer Auftritt", "status": "sent", **fields}
        return self.api.make("/quotes", **body)

    def change(self, record: Record, kind: str, body: Record) -> Record:
        return self.api.patch(f"/{kind}/{record['id']}", body).data

    def invoice_then(self, **body: Any) -> Record:
        return self.change(self.invoice(), "invoices", body)

    def quote_then(self, **body: Any) -> Record:
        return self.change(self.quote(), "quotes", body)

    def paid(self, share: str, **fields: Any) -> Record:
        invoice = self.invoice()
        unit = Decimal(1).scaleb(-DIGITS[self.sides.currency])
        amount = str((Decimal(invoice["total"]) * Decimal(share)).quantize(unit))
        return self.change(invoice, "invoices", {"record_payment": {"amount": amount, **fields}})

    def credit(self, **body: Any) -> Record:
        return self.api.post(f"/invoices/{self.invoice()['id']}/credit-notes", body).data

    def credited(self) -> Record:
        return self.api.get(f"/invoices/{self.credit()['invoice_id']}").data

    def accepted(self) -> Record:
        quote = self.quote()
        chosen = [line["id"] for line in quote["lines"] if line["is_optional"]]
        return self.change(quote, "quotes", {"status": "accepted", "accepted_line_ids": chosen})

    def of_line(self) -> Record:
        invoice = self.invoice()
        line = {"invoice_line_id": invoice["lines"][0]["id"], "quantity": "2.5"}
        return self.api.post(f"/invoices/{invoice['id']}/credit-notes", {"lines": [line], "description": "Kürzer"}).data


STATES: dict[str, Callable[[Maker], Record]] = {
    "invoice draft": lambda maker: maker.invoice(status="draft"),
    "invoice sent": lambda maker: maker.invoice(
        purchase_order="PO-77", notes="Danke für den Auftrag", subject="Relaunch"
    ),
    "invoice service": lambda maker: maker.invoice(service_from="2026-02-03", service_to="2026-02-28", terms="14 Tage"),
    "invoice revised": lambda maker: maker.invoice_then(due_date=day(60), purchase_order="PO-78"),
    "invoice partially_paid": lambda maker: maker.paid("0.25"),
    "invoice surplus": lambda maker: maker.paid("1.25", allow_surplus=True),
    "invoice discount": lambda maker: maker.paid("0.98", early_payment_discount=True),
    "invoice paid": lambda maker: maker.invoice_then(status="paid"),
    "invoice credited": Maker.credited,
    "invoice void": lambda maker: maker.invoice_then(status="void"),
    "invoice written_off": lambda maker: maker.invoice_then(status="written_off"),
    "credit amount": lambda maker: maker.credit(amount="50"),
    "credit line": Maker.of_line,
    "quote draft": lambda maker: maker.quote(status="draft"),
    "quote sent": Maker.quote,
    "quote accepted": Maker.accepted,
    "quote declined": lambda maker: maker.quote_then(status="declined"),
    "quote cancelled": lambda maker: maker.quote_then(status="cancelled"),
    "quote expired": Maker.quote,
    "quote revised": lambda maker: maker.quote_then(valid_until=day(90), notes="Länger gültig"),
}
PATHS = {"invoice": "invoices", "quote": "quotes", "credit": "credit-notes"}
CODES = {"invoice": "380", "credit": "381"}
PAID = ("paid", "surplus", "discount")
BANNERS = ("void", "draft", "declined", "expired", "cancelled")


def day(ahead: int) -> str:
    return str(datetime.now(UTC).date() + timedelta(days=ahead))


def make(api: ApiClient, sides: Sides, name: str) -> Paper:
    kind, state = name.split()
    maker = Maker(api, sides)
    made = STATES[name](maker)
    path = f"/{PATHS[kind]}/{made['id']}"
    with time_machine.travel(f"{day(45 if state == 'expired' else 0)}T12:00:00+00:00", tick=False):
        record = api.get(path).data
        pdf, xml = (api.get(path, headers=accept) for accept in (PDF, XML))
    return Paper(kind, state, sides, record, pdf, xml, maker.client)


def number(value: Decimal, language: str) -> str:
    text = f"{abs(value):,f}"
    if language == "de":
        text = text.replace(",", " ").replace(".", ",").replace(" ", ".")
    return f"\u2212{text}" if value < 0 else text


def money(text: str, sides: Sides) -> str:
    value, sign = Decimal(text), SIGNS.get(sides.currency)
    amount, minus = number(abs(value), sides.language), "\u2212" if value < 0 else ""
    if sides.language == "de":
        return f"{minus}{amount} {sign or sides.currency}"
    return f"{minus}{sign}{amount}" if sign else f"{minus}{sides.currency} {amount}"


def written(text: str, language: str) -> str:
    when = date.fromisoformat(text)
    return f"{when.day}{'.' if language == 'de' else ''} {MONTHS[language][when.month - 1]} {when.year}"


def expected(paper: Paper) -> Iterator[str]:
    """Yield what the PDF must say, by the record."""
    record, language, said = paper.record, paper.sides.language, TEXTS[paper.sides.language]
    yield from (said[paper.kind], "Nordlicht & Söhne", "Bäckerei Sommer", "Platz 2")
    yield from filter(None, map(record.get, ("number", "purchase_order", "subject", "title", "notes", "terms")))
    yield written(record["issue_date"] or day(0), language)
    for line in record["lines"]:
        yield from line["description"].split("\n")
        yield from (number(Decimal(line[name]), language) for name in ("amount", "unit_price", "quantity"))
    yield from (money(record[name], paper.sides) for name in ("subtotal", "total"))
    taxed = (share for share in record["tax_breakdown"] if Decimal(share["tax_rate"]))
    yield from (money(share["tax_amount"], paper.sides) for share in taxed)
    yield from what_became(paper)


def what_became(paper: Paper) -> Iterator[str]:
    record, said = paper.record, TEXTS[paper.sides.language]
    sentences = {
        "version": record.get("document_version") == 2,
        "of": paper.kind == "credit",
        "paid": paper.state in PAID,
        "options": any(line.get("is_optional") for line in record["lines"]),
        "rest": paper.state == "partially_paid",
        paper.state: paper.state in {*BANNERS, "written_off", "credited"},
    }
    yield from (said[name] for name, is_said in sentences.items() if is_said)
    if is_due(paper):
        yield from (said["pay"], money(record["balance_due"], paper.sides), *account_of(paper))
        yield written(record["due_date"] or day(30), paper.sides.language)


def is_due(paper: Paper) -> bool:
    return paper.kind == "invoice" and paper.record["status"] in {"draft", "sent", "partially_paid"}


def account_of(paper: Paper) -> tuple[str, ...]:
    if paper.sides.currency == "GBP":
        return ("20-00-00", "55779911")
    return ("PL61 1090 1014" if paper.sides.currency == "PLN" else "DE89 3704 0044",)


def unexpected(paper: Paper) -> Iterator[str]:
    """Yield what the PDF must not say."""
    said = TEXTS[paper.sides.language]
    yield from ("\u00ad", "\u200b", "{", "None", "□")
    yield from (said[banner] for banner in BANNERS if banner != paper.state)
    if not is_due(paper):
        yield from ("Please pay", "Bitte überweisen", "Bitte zahlen", "Scan to pay", "Scannen")
    if paper.state == "void":
        yield from ("DE89", "PL61", "20-00-00")
    if paper.state not in PAID:
        yield said["paid"]
    if paper.sides.currency != "EUR":
        yield from ("Scan to pay", "Scannen")


def faults_of(paper: Paper) -> Iterator[str]:
    text = text_of(paper.pdf)
    yield from (f"the PDF lacks {words!r}" for words in expected(paper) if " ".join(words.split()) not in text)
    yield from (f"the PDF says {words!r}" for words in unexpected(paper) if words in text)
    yield from faults_of_xml(paper)


def faults_of_xml(paper: Paper) -> Iterator[str]:
    record, xml = paper.record, paper.xml.body
    refused = {"void": 406, "draft": 422}.get(paper.state, 422 if DIGITS[paper.sides.currency] > 2 else 200)
    if paper.xml.status != (406 if paper.kind == "quote" else refused):
        yield f"the XML is {paper.xml.status}: {xml[:300]!r}"
    if paper.xml.status != 200:
        return
    yield from (f"the XML breaks {rule}" for rule in broken_rules(xml))
    said = {
        "ExchangedDocument/ID": record["number"],
        "GrandTotalAmount": record["total"],
        "TaxTotalAmount": record["tax_total"],
        "TaxBasisTotalAmount": record["subtotal"],
    }
    for name, value in said.items():
        found = texts(xml, name) if name != "ExchangedDocument/ID" else [value] * (value.encode() in xml)
        if found != [value]:
            yield f"the XML says {found} as {name}, and not {value}"
    if values(xml, "LineTotalAmount")[:-1] != [Decimal(line["amount"]) for line in record["lines"]]:
        yield "the XML has other amounts of lines"
    if f"<ram:TypeCode>{CODES[paper.kind]}</ram:TypeCode>".encode() not in xml:
        yield "the XML is of another kind"
    number_of = "ProprietaryID" if paper.sides.currency == "GBP" else "IBANID"
    account = texts(xml, f"PayeePartyCreditorFinancialAccount/ram:{number_of}")
    first = account_of(paper)[-1].replace(" ", "")
    if paper.kind == "invoice" and not any(text and text.startswith(first) for text in account):
        yield f"the XML is paid to {account}, and not to {first}"


@pytest.mark.parametrize("place", range(len(SIDES)), ids=lambda place: " ".join(map(str, SIDES[place][:3])))
def test_a_paper_says_what_its_record_says(api, place):
    sides, names = SIDES[place], list(STATES)
    chosen = names if IS_FULL else [names[(2 * place + each) % len(names)] for each in range(2)]
    faults = {name: found for name in chosen if (found := list(faults_of(make(api, sides, name))))}
    assert faults == {}
