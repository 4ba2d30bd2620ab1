"""What a client page shows: the newest paper of a document, what became of it since, and its files."""

import base64
from typing import Any, NamedTuple
from urllib.parse import quote

from retainer.billing import files as documents
from retainer.billing.files import PaperFile
from retainer.billing.invoices.invoices import load_invoice
from retainer.billing.invoices.types import Invoice
from retainer.billing.quotes.quotes import load_quote
from retainer.billing.quotes.types import Quote, QuoteLine
from retainer.client_pages.visitors import Visitor
from retainer.client_pages.wording import WORDS
from retainer.documents.einvoice import missing_facts
from retainer.documents.layout import build_layout
from retainer.documents.printable import BREAK
from retainer.documents.wording import date_text, money_text
from retainer.files.files import File, list_shown
from retainer.store.tx import Tx
from retainer.values.exact import decimal_text, local_day
from retainer.web.direction import isolated

MAX_FILES = 100
"""Files that a page lists, the oldest first."""
DAYS = {"accepted": "accepted_at", "declined": "declined_at"}
"""The moments that the sentence about a quote names, by its status."""


class ShownDocument(NamedTuple):
    """A document as a client sees it, read in one snapshot."""

    record: Invoice | Quote
    pdf: PaperFile
    files: list[File]
    today: str
    timezone: str

    @property
    def words(self) -> dict[str, str]:
        return WORDS[self.pdf.document.language]

    @property
    def is_open_quote(self) -> bool:
        return isinstance(self.record, Quote) and self.record.status == "sent"

    @property
    def options(self) -> list[QuoteLine]:
        return [line for line in self.record.lines if isinstance(line, QuoteLine) and line.is_optional]

    @property
    def version(self) -> str:
        """Return the version of the paper, which an answer names: it accepts what was shown, nothing else."""
        return str(self.pdf.document.version)

    def money(self, amount: object) -> str:
        return money_text(amount, self.record.currency, self.pdf.document.language)  # type: ignore[arg-type]


def load_record(tx: Tx, visitor: Visitor) -> Invoice | Quote:
    """Return the document of a link. Raises `not_found`."""
    return load_quote(tx, visitor.quote_id) if visitor.quote_id else load_invoice(tx, visitor.invoice_id or 0)


def load_shown(tx: Tx, visitor: Visitor) -> ShownDocument:
    record = load_record(tx, visitor)
    holder = "quote" if isinstance(record, Quote) else "invoice"
    pdf = documents.prepare("pdf", tx, record)
    return ShownDocument(record, pdf, list_shown(tx, holder, record.id, MAX_FILES), tx.today, tx.actor.timezone)


def sentence_about(shown: ShownDocument, is_late: bool) -> tuple[str, str]:  # noqa: FBT001
    """Return the tone and the sentence of what has become of a document, and of what the client can do now."""
    record, words, document = shown.record, shown.words, shown.pdf.document
    issuer = document.issuer.name
    if isinstance(record, Quote):
        moment = getattr(record, DAYS.get(record.status, ""), None)
        day = local_day(moment, shown.timezone) if moment else record.valid_until
        states = {"sent": "open", "accepted": "accepted_by" if record.accepted_by else "accepted"}
        sentence = words[f"quote_{states.get(record.status, record.status)}"]
        tone = {"sent": "", "accepted": "good"}.get(record.status, "warn")
        name = isolated(record.accepted_by or "")
        return tone, sentence.format(date=date_text(day, document.language), issuer=issuer, name=name)
    if record.status == "void":
        return "warn", words["invoice_void"]
    if is_late and record.due_date:
        return "bad", words["overdue"].format(date=date_text(record.due_date, document.language))
    return "", ""


def payment_link(template: str | None, record: Invoice | Quote) -> str:
    """Return the address at which an invoice is paid, from the template of the account; empty without one."""
    if not template or not isinstance(record, Invoice):
        return ""
    facts = {"number": record.number or "", "amount": decimal_text(record.balance_due), "currency": record.currency}
    for name, text in facts.items():
        template = template.replace(f"{{{name}}}", quote(text, safe=""))
    return template


def has_einvoice(record: Invoice | Quote) -> bool:
    return isinstance(record, Invoice) and record.status != "void" and not record.is_imported


def whole(value: Any) -> Any:
    """Return texts of a layout without their places to break: browsers need none, and would copy them."""
    if isinstance(value, dict):
        return {name: whole(each) for name, each in value.items() if name != "content"}  # the bytes of the logo
    if isinstance(value, list | tuple):
        return [whole(each) for each in value]
    return value.replace(BREAK, "") if isinstance(value, str) else value


def context_of(shown: ShownDocument, visitor: Visitor) -> dict[str, object]:
    """Return what the template needs: the texts of the PDF, which client and document have in common, and the state."""
    document, record, words = shown.pdf.document, shown.record, shown.words
    layout = whole(build_layout(document))
    payment = layout["payment"]
    is_late = isinstance(record, Invoice) and record.is_overdue
    tone, sentence = sentence_about(shown, is_late)
    standing, code = [], ""
    if isinstance(record, Invoice):
        less = (("paid", record.amount_paid), ("credited", record.amount_credited))
        standing = [(words[name], shown.money(-amount)) for name, amount in less if amount]
        if payment or standing:
            standing.append((words["balance_due"], shown.money(record.balance_due)))
    if isinstance(payment, dict) and payment["code"]:
        code = f"data:image/svg+xml;base64,{base64.b64encode(payment['code'].encode()).decode()}"
    logo = document.logo and f"data:image/png;base64,{base64.b64encode(document.logo).decode()}"
    return {
        "layout": layout,
        "words": words,
        "language": document.language,
        "issuer": document.issuer.name,
        "logo": logo,
        "tone": tone,
        "sentence": sentence,
        "standing": standing,
        "code": code,
        "pay": payment_link(visitor.payment_url, record) if payment else "",
        "has_xml": has_einvoice(record) and not missing_facts(document),
        "shown": shown,
    }
