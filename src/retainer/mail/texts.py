"""Texts of mail that brings a document: those of the account, or ours, with what their placeholders stand for."""

from functools import cache
from typing import NamedTuple

from sqlalchemy import Select, select

from retainer.documents.facts import Document, Kind, Language, Standing
from retainer.documents.wording import date_text, money_text
from retainer.identity.placeholders import PLACEHOLDER
from retainer.schema.identity import accounts
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx

GREETING = {"en": "Hello,", "de": "Guten Tag,"}
REGARDS = {"en": "Kind regards\n{agency}", "de": "Freundliche Grüße\n{agency}"}
SUBJECTS = {
    "invoice": {"en": "Invoice {number} from {agency}", "de": "Rechnung {number} von {agency}"},
    "quote": {"en": "Quote {number} from {agency}", "de": "Angebot {number} von {agency}"},
    "credit_note": {"en": "Credit note {number} from {agency}", "de": "Rechnungskorrektur {number} von {agency}"},
}
SENTENCES = {
    "invoice": {
        "en": "Please find attached our invoice {number} of {total}. It is due on {due_date}.",
        "de": "anbei erhalten Sie unsere Rechnung {number} über {total}. Sie ist am {due_date} fällig.",
    },
    "quote": {
        "en": "Please find attached our quote {number} of {total}. It is valid until {due_date}.",
        "de": "anbei erhalten Sie unser Angebot {number} über {total}. Es gilt bis zum {due_date}.",
    },
    "credit_note": {
        "en": "Please find attached our credit note {number} of {total}.",
        "de": "anbei erhalten Sie unsere Rechnungskorrektur {number} über {total}.",
    },
}


class Texts(NamedTuple):
    """The subject and the text of a message."""

    subject: str
    text: str


@cache
def _select_texts(kind: Kind, language: Language) -> Select[str]:
    columns = (accounts.c[f"mail_{kind}_{part}_{language}"] for part in Texts._fields)
    return select(*columns).where(accounts.c.id == ACCOUNT)


def load_texts(tx: Tx, document: Document) -> Texts:
    """Return the texts of a message that brings a document, in its language, with their placeholders."""
    own = tx.one(_select_texts(document.kind, document.language)) or ()
    texts = (mine or ours for mine, ours in zip(own, default_texts(document.kind, document.language), strict=True))
    return Texts(*texts)


def default_texts(kind: Kind, language: Language) -> Texts:
    """Return our texts for mail with a document, with their placeholders."""
    text = f"{GREETING[language]}\n\n{SENTENCES[kind][language]}\n\n{REGARDS[language]}"
    return Texts(SUBJECTS[kind][language], text)


def fill(text: str, document: Document, standing: Standing | None = None) -> str:
    """Return a text with what its placeholders stand for: of a quote, `due_date` is its last day.

    `balance` is what is open of an invoice now; of other documents, it is the total.
    """
    balance = document.total if standing is None or document.kind != "invoice" else standing.balance_due
    language, last_day = document.language, document.due_date or document.valid_until
    values = {
        "number": document.number or "",
        "client": document.customer.name,
        "total": money_text(document.total, document.currency, language),
        "balance": money_text(balance, document.currency, language),
        "due_date": date_text(last_day, language) if last_day else "",
        "agency": document.issuer.name,
    }
    return PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), text)
