"""The page that records payments of several open invoices at once, in one transaction."""

from typing import Any

from sqlalchemy import bindparam, select

from retainer.billing.payments import SURPLUS
from retainer.console import typed, words
from retainer.console.actions.payments import DAY, METHODS, OTHER_DAY, doubt_about
from retainer.console.controls.control import Field, FormPlace, Place
from retainer.console.controls.plain import Amount, Flag
from retainer.console.editing.calls import call
from retainer.console.editing.form_pages import FormPage, Section
from retainer.console.editing.sheet import Sheet
from retainer.console.labels import in_words
from retainer.console.page_context import PageContext, Reply
from retainer.errors import FieldErrors, Refusal, invalid
from retainer.identity import audit
from retainer.identity.audit import Fields, Target
from retainer.schema.billing import OPEN_INVOICES, invoices
from retainer.schema.columns import in_literals
from retainer.schema.crm import clients
from retainer.store.engines.base import Row
from retainer.store.tx import Tx
from retainer.values.exact import DIGITS, amount_of
from retainer.web.direction import isolated

MAX_SHOWN = 50
"""Invoices on the page. Each that is chosen is a change of its own, and all are one transaction."""
CHOSEN, AMOUNT = "invoice_", "amount_"
"""The prefixes of the fields of an invoice."""
SHOWN = (
    select(*invoices.c["id", "number", "currency", "balance_due", "due_date"], clients.c.name)
    .select_from(invoices.join(clients, clients.c.id == invoices.c.client_id))
    .where(in_literals(invoices.c.status, OPEN_INVOICES))
    .order_by(clients.c.name_sort, invoices.c.due_date, invoices.c.id)
    .limit(MAX_SHOWN + 1)
)
OF_CLIENT = SHOWN.where(invoices.c.client_id == bindparam("client_id"))
TOLD = (
    "Select what was paid. A blank amount is the balance due; a part of it is still due afterwards.",
    "If anything is wrong, nothing is recorded.",
)
ELSEWHERE = "Record a surplus on the page of the invoice."
MORE = f"These are the first {MAX_SHOWN} open invoices. For others, filter the list of invoices by client first."


def client_of(context: PageContext) -> str:
    """Return the id of the client that a link names; empty for all."""
    text = context.typed.text("client_id")
    return text if text.isdecimal() and len(text) < len(f"{10**18}") else ""


def rows_of(tx: Tx, context: PageContext) -> list[Row]:
    client = client_of(context)
    return tx.all(OF_CLIENT, client_id=int(client)) if client else tx.all(SHOWN)


class AmountIn(Amount, frozen=True):
    """An amount in the currency of one invoice, next to the button that records its payment alone."""

    currency: str = ""
    macro = "payable"

    def query(self, text: str, at: Place, _: str) -> str:
        return typed.read_number(typed.without_unit(text, self.currency), at.language, DIGITS[self.currency])

    def label(self, text: str, _: FormPlace) -> str:
        return f"{text}, {self.currency}"


def sheet_of(tx: Tx, context: PageContext, _: Any) -> Sheet:
    day = DAY._replace(label="Payment date", hint="", is_required=True, default=tx.today)
    fields = [day, METHODS]
    if context.form.text("paid_date")[:4] not in {"", tx.today[:4]}:
        fields.append(OTHER_DAY)
    for id_, number, currency, due, due_date, name in rows_of(tx, context)[:MAX_SHOWN]:
        amount = amount_of(due, currency)
        hint = f"{words.money(amount, currency)}, due on {words.short_day(due_date)}"
        fields.append(Field(f"{CHOSEN}{id_}", f"{number} · {isolated(name)}", Flag(), hint))
        fields.append(Field(f"{AMOUNT}{id_}", f"Amount for {number}", AmountIn(currency=currency), default=amount))
    return Sheet(tx, context, fields)


def record(tx: Tx, context: PageContext, _: Any, body: Fields) -> Reply:
    """Record a payment of each invoice that was chosen. Raises all errors together, and then records nothing."""
    errors, made = FieldErrors(), list[Any]()
    sent = context.form.texts.items()
    step = context.form.text("step")
    chosen = [name.removeprefix(CHOSEN) for name, texts in sent if name.startswith(CHOSEN) and texts[-1] == "yes"]
    chosen = [step.removeprefix(AMOUNT)] if step.startswith(AMOUNT) else chosen
    kind = context.catalogue.find("invoices", "changing")
    shared: dict[str, Any] = {name: body[name] for name in ("paid_date", "method") if name in body}
    for id_ in sorted(int(text) for text in chosen if text.isdecimal()):
        payment = shared | {"amount": body.get(f"{AMOUNT}{id_}")}  # null is all that is due
        try:
            made.append(call(tx, kind.changing, id_, body={"record_payment": payment}).data)
        except Refusal as refusal:
            note(errors, id_, refusal)
            tx.errors.clear()  # the refusal has the same errors
    if not chosen:
        errors.setdefault("", []).append("Select at least one invoice.")
    day = shared.get("paid_date")
    doubts = [why for each in made if isinstance(day, str) and (why := doubt_about(day, each, tx.today))]
    if doubts and body.get(OTHER_DAY.name) is not True and str(day)[:4] != tx.today[:4]:
        errors[OTHER_DAY.name] = [f"{words.short_day(str(day))} {doubts[0]}. Tick this if it is right."]
    if errors:
        raise invalid(errors)
    for each in made:
        paid = {"amount": str(each.payments[-1].amount), **shared, "status": each.status}
        audit.note(tx, "payment recorded", Target("invoice", each.id, each.number), after=paid)
    said = f"{words.count(len(made), 'payment')} recorded."
    if step.startswith(AMOUNT):
        client = client_of(context)
        return context.redirect(f"/records/payments/new{f'?client_id={client}' if client else ''}", said)
    return context.redirect("/records/payments", said)


def note(errors: FieldErrors, id_: int, refusal: Refusal) -> None:
    """Note what the API refuses of a payment at the fields of its invoice, or at those that all payments share."""
    fields = {"record_payment.amount": f"{AMOUNT}{id_}"}
    fields |= {f"record_payment.{name}": name for name in ("paid_date", "method")}
    found: dict[str, list[str]] = refusal.members.get("errors") or {"": [refusal.message]}
    for path, messages in found.items():
        said = errors.setdefault(fields.get(path, f"{CHOSEN}{id_}"), [])
        texts = (in_words(text, (), {SURPLUS: ELSEWHERE}) for text in messages)
        said.extend(text for text in texts if text not in said)


def tell(tx: Tx, context: PageContext, _: Any) -> list[str]:
    return [*TOLD, MORE] if len(rows_of(tx, context)) > MAX_SHOWN else [*TOLD]


def obstacle(tx: Tx, context: PageContext, _: Any) -> str:
    return "" if rows_of(tx, context) else "No invoice is open."


def choose(_: Tx, context: PageContext) -> FormPage:
    """Return the page. Raises `not_found` for a role without invoices."""
    context.catalogue.find("invoices", "changing")
    return FormPage(
        *(Section("Payments", "/records/payments"), "Record payments", "Record payments", record, tell),
        obstacle=obstacle,
        sheet_of=sheet_of,
        reads_on=True,
        hidden={"client_id": client_of(context)},
    )
