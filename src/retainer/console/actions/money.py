"""Actions on invoices, and on what becomes one: bill work, record and remove payments, and credit."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.invoices.preview import load_currencies
from retainer.billing.invoices.types import Invoice
from retainer.billing.invoices.unbilled import WITH_DAYS, UnbilledTime
from retainer.console.actions.action import Action, Stage
from retainer.console.actions.drafts import DraftAction
from retainer.console.catalogue import Kind
from retainer.console.controls.control import Field
from retainer.console.controls.days import Day
from retainer.console.controls.plain import Choice, Flag, Number
from retainer.console.editing.fields import choose_fields, options_of
from retainer.console.editing.sheet import Sheet
from retainer.console.kinds.projects import left_out_text
from retainer.console.page_context import PageContext
from retainer.console.shapes import declared
from retainer.console.values import Values
from retainer.console.words import money, number
from retainer.crm.clients import Client
from retainer.documents.wording import unit_text
from retainer.errors import FieldErrors, Refusal, Unreadable
from retainer.schema.billing import credit_notes
from retainer.store.tx import Tx
from retainer.values.reading import REQUIRED
from retainer.work.project_types import Project

WORK = {
    "time": "Time",
    "expenses": "Expenses",
    "milestones": "Completed milestones",
    "fees": "Monthly fees",
    "fixed_fees": "What is left of fixed fees",
}
ALL_DAYS = "All of them, whatever the days below."
GROUPS = tuple(
    (value, "Person" if value == "user" else text)
    for value, text in options_of(declared(UnbilledTime.__annotations__["group_by"]))
)


class WorkAction(Action, frozen=True, kw_only=True):
    """Puts unbilled work on a draft, by kinds of work and days."""

    def fields_of(self, record: Client | Project | Invoice) -> Sequence[Field]:
        covered = " that the fee covers" if is_covered(record) else ""
        return [
            *(
                Field(name, f"{text}{covered * (name == 'time')}", Flag(), "" if name in WITH_DAYS else ALL_DAYS)
                for name, text in WORK.items()
            ),
            Field("from", "From", Day(), "Blank: from the first unbilled day."),
            Field("to", "To", Day(), "Blank: until today."),
            Field("group_by", "Group time by", Choice(GROUPS), is_required=True),
        ]

    def preset(self, _tx: Tx, _record: Any) -> dict[str, str]:
        return {**dict.fromkeys(WORK, "yes"), "group_by": "project"}

    def build_body(
        self, record: Client | Project | Invoice, values: dict[str, Any], errors: FieldErrors
    ) -> dict[str, Any]:
        chosen = [work for work in WORK if values.get(work) is True]
        if not chosen:
            errors.note("time", "Select what to bill.")
        days = {name: values[name] for name in ("from", "to") if name in values}
        projects = {"project_ids": [record.id]} if isinstance(record, Project) else {}
        asked: dict[str, Any] = {work: projects | (days if work in WITH_DAYS else {}) for work in chosen}
        if "time" in asked:
            asked["time"] |= {"group_by": values.get("group_by")}
        if isinstance(record, Invoice):
            return {"unbilled_work": asked} if asked else {}
        if isinstance(record, Project):
            billed = {"client_id": record.client_id, "project_id": record.id}
        else:
            billed = {"client_id": record.id}
        return {**billed, "currency": values.get("currency")} | ({"unbilled_work": asked} if asked else {})

    def facts(self, stage: Stage, values: Values) -> dict[str, Any]:
        found = getattr(stage.meta, "left_out", ())
        parts = [left_out_text(each) for each in found if each.reason != "other_currency"]
        others = [left_out_text(each) for each in found if each.reason == "other_currency"]
        more = {"left_out": ", ".join(parts), "others": " and ".join(others)}
        return super().facts(stage, values) | more


class Bill(WorkAction, DraftAction, frozen=True, kw_only=True):
    def sheet(self, kind: Kind, tx: Tx, context: PageContext, record: Client | Project) -> Sheet:
        """Return the form about a client or a project. Raises `not_found` for internal projects."""
        if isinstance(record, Project) and record.client_id is None:
            raise Refusal("not_found", "Only clients and their projects are billed.")
        sheet = super().sheet(kind, tx, context, record)
        found = {record.currency, *currencies_of(tx, record)}
        if len(found) > 1:
            options = tuple((currency, currency) for currency in sorted(found))
            sheet.fields = [*sheet.fields, Field("currency", "Currency", Choice(options), is_required=True)]
        return sheet

    def preset(self, tx: Tx, record: Client | Project) -> dict[str, str]:
        usual = super().preset(tx, record) | {"currency": currencies_of(tx, record)[0]}
        if is_covered(record):
            usual["time"] = "no"
        if isinstance(record, Project) and record.status != "completed":
            usual["fixed_fees"] = "no"
        return usual

    def heading(self, name: str) -> str:
        return f"{self.word} {name}"


def currencies_of(tx: Tx, record: Client | Project) -> list[str]:
    """Return the currencies in which a record has unbilled work, its own first; without any, its own."""
    found = load_currencies(tx, "project_id" if isinstance(record, Project) else "client_id", record.id)
    return sorted(found or {record.currency}, key=lambda currency: (currency != record.currency, currency))


def is_covered(record: Client | Project | Invoice) -> bool:
    return isinstance(record, Project) and record.billing_type in {"fixed_fee", "retainer"}


CREDITED, REASON, CREDIT_DAY, DESCRIPTION = choose_fields(
    CreditNote, credit_notes, "amount", "reason", "issue_date", "description"
)
CREDITABLE = {"amount": "An amount", "lines": "Selected lines"}
NO_QUANTITY = "Enter a quantity for at least one line."
LINE = "line_"
"""The prefix of the fields with quantities of lines."""


class Credit(Action, frozen=True, kw_only=True):
    def fields_of(self, record: Invoice) -> Sequence[Field]:
        lines = list(creditable_lines(record))
        everything = ("everything", f"The full remaining amount, {left_of(record)}")
        parts = [(name, text) for name, text in CREDITABLE.items() if name != "lines" or lines]
        return [
            Field("what", "What to credit", Choice((everything, *parts)), is_required=True),
            *lines,
            CREDITED._replace(label="Amount with tax", hint=""),
            REASON,
            CREDIT_DAY._replace(label="Date", hint="Counts in reports on this date."),
            DESCRIPTION._replace(label="Explanation", hint="Printed on the credit note."),
        ]

    def preset(self, tx: Tx, record: Invoice) -> dict[str, str]:
        day = max(tx.today, record.issue_date or tx.today)
        return {"what": "everything", "reason": "correction", "issue_date": day}

    def build_body(self, _: Invoice, values: dict[str, Any], errors: FieldErrors) -> dict[str, Any]:
        what, amount = values.pop("what"), values.pop("amount", None)
        if isinstance(what, Unreadable):
            errors.note("what", what.message)
            return values
        names = [name for name in values if name.startswith(LINE)]
        parts = [{"invoice_line_id": int(name.removeprefix(LINE)), "quantity": values.pop(name)} for name in names]
        for other, value in (("amount", amount), ("lines", parts)):
            if value and what != other:
                errors.note("what", f"Select “{CREDITABLE[other]}”, or leave the {other} blank.")
        if what == "amount":
            return values | {"amount": Unreadable(REQUIRED) if amount is None else amount}
        return values | ({"lines": parts or Unreadable(NO_QUANTITY)} if what == "lines" else {})

    def field_of(self, path: str, body: dict[str, Any]) -> str:
        first, _, rest = path.partition(".")
        if first == "lines":
            return f"{LINE}{body['lines'][int(rest.partition('.')[0])]['invoice_line_id']}" if rest else "what"
        return path

    def facts(self, stage: Stage, values: Values) -> dict[str, Any]:
        return super().facts(stage, values) | {"left": left_of(stage.record)}


def left_of(invoice: Invoice) -> str:
    return money(invoice.total - invoice.amount_credited, invoice.currency)


def creditable_lines(invoice: Invoice) -> Iterator[Field]:
    """Yield a field for the quantity of each line that is not credited in full."""
    former = [part for credit_note in invoice.credit_notes for part in credit_note.lines]
    for line in invoice.lines:
        parts = [part for part in former if part.invoice_line_id == line.id]
        quantity = line.quantity - sum((part.quantity for part in parts), Decimal(0))
        if quantity:
            amount = line.amount - sum((part.amount for part in parts), Decimal(0))
            unit = f" {unit_text(line.unit, quantity, 'en')}" if line.unit else ""
            left = f"{number(quantity.normalize())}{unit} left ({money(amount, line.currency)} before tax)"
            hint = f"Quantity, of {left}."
            yield Field(f"{LINE}{line.id}", line.description, Number(), hint)
