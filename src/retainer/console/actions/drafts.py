"""Actions that make a draft of another document: a copy of an invoice or a quote, and the invoice of a quote."""

from collections.abc import Sequence
from typing import Any

import msgspec

from retainer.billing.invoices.types import Invoice
from retainer.billing.quotes.types import Quote
from retainer.console.actions.action import Action, Stage
from retainer.console.controls.control import Field
from retainer.console.controls.plain import Flag
from retainer.console.editing.calls import create_record
from retainer.console.editing.fields import LINE_FIELDS
from retainer.console.names import title_of
from retainer.errors import FieldErrors
from retainer.identity import audit
from retainer.identity.audit import Target
from retainer.schema.crm import clients
from retainer.store.tx import Tx

COPIED = (
    *("client_id", "contact_id", "project_id", "currency", "subject", "title", "notes", "terms"),
    "tax_exemption_reason",
)
"""The fields that a copy takes over: no number, no day and no order of the client."""


class DraftAction(Action, frozen=True, kw_only=True):
    """Creates a draft, whose page comes next."""

    def note(self, stage: Stage) -> None:
        kind = stage.context.catalogue.by_table[self.creates.removeprefix("/")]
        target = Target(kind.noun, stage.made.id, title_of(stage.tx, kind.table, stage.made))
        body = self.build_body(stage.record, stage.values, FieldErrors())
        audit.note(stage.tx, "record created", target, after=body)

    def next_path(self, stage: Stage) -> str:
        return f"/records{self.creates}/{stage.made.id}"


class Copy(DraftAction, frozen=True, kw_only=True):
    def build_body(self, record: Invoice | Quote, _values: dict[str, Any], _errors: FieldErrors) -> dict[str, Any]:
        lines = [_fields_of(line, LINE_FIELDS) for line in record.lines]
        return {**_fields_of(record, COPIED), **({"lines": lines} if lines else {})}


WITH_PROJECT = Field("with_project", "Create the project, too", Flag(), "The price of the quote becomes its fixed fee.")


def project_of(tx: Tx, quote: Quote) -> dict[str, Any]:
    """Return the body that makes a quote's project; its price becomes the fee, if it is in the client's currency."""
    is_fee = quote.subtotal > 0 and tx.field(clients.c.currency, quote.client_id) == quote.currency
    return {"quote_id": quote.id, **({"billing_type": "fixed_fee"} if is_fee else {})}


class BillQuote(DraftAction, frozen=True, kw_only=True):
    """Creates the invoice of a quote, and unless it has one or the form says otherwise, its project."""

    def fields_of(self, record: Quote) -> Sequence[Field]:
        return [] if record.converted_project_id or record.project_id else [WITH_PROJECT]

    def preset(self, _tx: Tx, _record: Quote) -> dict[str, str]:
        return {WITH_PROJECT.name: "yes"}

    def run(self, stage: Stage, body: dict[str, Any]) -> Any:
        if stage.values.get(WITH_PROJECT.name) is True:
            projects = stage.context.catalogue.find("projects", "creating")
            create_record(stage.tx, projects, project_of(stage.tx, stage.record))
        return super().run(stage, body)

    def build_body(self, record: Quote, _values: dict[str, Any], _errors: FieldErrors) -> dict[str, Any]:
        return {"quote_id": record.id}


def _fields_of(record: msgspec.Struct, names: tuple[str, ...]) -> dict[str, Any]:
    """Return fields of a record as a body has them, those of other kinds left out."""
    found = {name: getattr(record, name) for name in names if hasattr(record, name)}
    return {name: msgspec.to_builtins(value, enc_hook=str) for name, value in found.items()}


def copy_of(creates: str) -> Action:
    return Copy(
        path="copy",
        creates=creates,
        label="Copy…",
        button="Create draft",
        sentences=(
            "Makes a new draft for {client} with the same lines and texts.",
            "It gets its own number and dates. The client's order number and recorded work are not copied.",
        ),
        notice=("Draft created. Check it, then send it.",),
    )


BILL_QUOTE = BillQuote(
    path="invoice",
    creates="/invoices",
    label="Create invoice…",
    button="Create draft",
    when=lambda quote: quote.status == "accepted" and quote.invoice_id is None,
    next_in=("accepted",),
    is_inline=True,
    sentences=("Makes a draft for {client} with these lines. You can change it until you issue it.",),
    notice=("Draft created. Check it, then issue it.",),
)
