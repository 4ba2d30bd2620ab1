"""Answering: a client accepts or declines a quote with a name, as a request of the API would."""

from collections.abc import Collection
from decimal import Decimal
from typing import NamedTuple

from retainer.billing.invoices.types import Invoice
from retainer.billing.quotes.quotes import load_quote, save_quote
from retainer.billing.quotes.types import Quote
from retainer.billing.rules import is_counted, shares_of
from retainer.client_pages.shown import ShownDocument
from retainer.client_pages.visitors import Visitor
from retainer.errors import InvalidValue
from retainer.identity import audit
from retainer.identity.audit import Action, Target
from retainer.kernel.body import Patch, RequestBody
from retainer.mail.answers import tell_of_answer
from retainer.store.tx import Tx
from retainer.values.exact import amount_of, decimal_text
from retainer.values.parameters import read_whole
from retainer.values.texts import LINE, clean, is_blank
from retainer.web.forms import Form

LONGEST = {"name": 191, "reason": 1000}


class ClientAnswer(NamedTuple):
    """What a client has answered, and the version of the quote that it was about."""

    accepts: bool
    name: str
    reason: str
    line_ids: list[int]
    version: str


def read_answer(form: Form, shown: ShownDocument) -> ClientAnswer | None:
    """Return what a form says; None with the errors of its fields, in the language of the quote."""
    words, accepts = shown.words, form.text("answer") == "accept"
    answer = ClientAnswer(
        accepts,
        " ".join(form.text("name").split()),  # a name that was pasted may have tabs and line breaks
        "" if accepts else form.text("reason"),
        [read_whole(text) or 0 for text in form.texts_of("line")] if accepts else [],
        form.text("version"),
    )
    if is_blank(answer.name):
        form.errors.note("name", words["name_missing"])
    elif not is_line(answer.name):
        form.errors.note("name", words["name_controls"])
    for field, length in LONGEST.items():
        if len(form.text(field)) > length:
            form.errors.note(field, words["too_long"].format(length=length))
    offered = {line.id for line in shown.options}
    if accepts and not offered.intersection(answer.line_ids) and not any(map(is_counted, shown.record.lines)):
        form.errors.note("line", words["choose_one"])
    is_known = form.text("answer") in {"accept", "decline"}
    if not is_known or answer.version != shown.version or not offered.issuperset(answer.line_ids):
        form.message = words["changed"]
    confirmed = form.texts.pop("total", [])
    if answer.line_ids and not form.errors and not form.message:
        total = total_with(shown.record, answer.line_ids)
        if confirmed != [decimal_text(total)]:
            form.texts["total"] = [decimal_text(total)]
            form.message = words["confirm_total"].format(total=shown.money(total))
    return None if form.errors or form.message else answer


def total_with(record: Invoice | Quote, line_ids: Collection[int]) -> Decimal:
    """Return the total of a quote with the optional lines that a client has chosen."""
    chosen = [line for line in record.lines if is_counted(line) or line.id in line_ids]
    return amount_of(sum(share.gross for share in shares_of(chosen, record.currency)), record.currency)


def is_line(text: str) -> bool:
    try:
        return clean(text, LINE) == text
    except InvalidValue:
        return False


def save_answer(tx: Tx, visitor: Visitor, answer: ClientAnswer, site: str) -> bool:
    """Accept or decline a quote, note it in the audit log with the link, and tell who sent that.

    Returns False, and writes nothing, if the quote is no longer open, or has changed since the client read it. Raises
    the errors of the API.
    """
    quote = load_quote(tx, visitor.quote_id or 0)
    if quote.status != "sent" or str(quote.document_version) != answer.version:
        return False
    fields: dict[str, object] = {"status": "declined", "decline_reason": answer.reason or None}
    action: Action = "quote declined"
    if answer.accepts:
        fields = {"status": "accepted", "accepted_by": answer.name}
        fields |= {"accepted_line_ids": answer.line_ids} if answer.line_ids else {}
        action = "quote accepted"
    patch: Patch[Quote] = Patch(tx, RequestBody(fields, Quote, "Update"))
    saved = save_quote(tx, patch.apply_to(quote), quote).data
    target = Target("quote", quote.id, " · ".join(filter(None, (quote.number, quote.title))))
    audit.note(tx, action, target, before={"status": quote.status}, after={"name": answer.name, **fields})
    tx.raise_errors()
    tell_of_answer(tx, saved, answer.name, visitor.link_id, site)
    return True
