"""The action that bills a client or a project: choose the unbilled work, see the lines, and create the draft."""

from collections.abc import Iterator, Sequence
from typing import Any

from retainer.billing.invoices.types import Invoice, UnbilledTime
from retainer.console.actions.action import Action, Seen
from retainer.console.actions.basis import new_of
from retainer.console.catalogue import Kind
from retainer.console.editing.fields import Field, options_of
from retainer.console.editing.sheet import Sheet
from retainer.console.kinds.projects import LEFT_OUT
from retainer.console.page_context import PageContext
from retainer.console.reports.tables import hours
from retainer.console.shapes import declared
from retainer.crm.clients import Client
from retainer.errors import Refusal, invalid
from retainer.identity import audit
from retainer.identity.audit import Target
from retainer.store.tx import Tx
from retainer.work.projects import Project

WORK = {"time": "Time", "expenses": "Expenses", "milestones": "Completed milestones", "fees": "Months of retainers"}
WITHOUT_DAYS = ("milestones",)
GROUPS = tuple(options_of(declared(UnbilledTime.__annotations__["group_by"])))


class Bill(Action[Client | Project]):
    """Create a draft invoice from unbilled work."""

    path, label, title, button = "bill", "Bill…", "Bill {name}", "Create draft"
    operation = ("POST", "/invoices")

    def is_offered(self, record: Client | Project) -> bool:
        is_billed = isinstance(record, Project) and record.client_id and record.billing_type != "non_billable"
        return isinstance(record, Client) or bool(is_billed)

    def is_next(self, record: Client | Project) -> bool:  # noqa: ARG002
        return True

    def find(self, tx: Tx, context: PageContext) -> tuple[Kind, Client | Project]:
        """Return the client or the project of the path. Raises `not_found`, also for internal projects."""
        kind, record = super().find(tx, context)
        if not isinstance(record, Client) and not (isinstance(record, Project) and record.client_id):
            raise Refusal("not_found", "Only clients and their projects are billed.")
        return kind, record

    def fields(self, record: Client | Project) -> Sequence[Field]:
        covered = " that the fee covers" if is_covered(record) else ""
        work = [Field(name, f"{text}{covered if name == 'time' else ''}", "flag") for name, text in WORK.items()]
        return [
            *work,
            Field("from", "From", "day", hint="If blank: all work before the last day."),
            Field("to", "To", "day", hint="If blank: all work so far."),
            Field("group_by", "One line of time for each", "choice", is_required=True, options=GROUPS),
        ]

    def preset(self, tx: Tx, record: Client | Project) -> dict[str, str]:  # noqa: ARG002
        usual = {work: "no" if work == "time" and is_covered(record) else "yes" for work in WORK}
        return {**usual, "group_by": "project"}

    def build_body(self, record: Client | Project, values: dict[str, object]) -> dict[str, object]:
        chosen = [work for work in WORK if values.get(work) is True]
        if not chosen:
            raise invalid({"time": ["Select what to bill."]})
        days = {name: values[name] for name in ("from", "to") if name in values}
        projects = {"project_ids": [record.id]} if isinstance(record, Project) else {}
        asked: dict[str, Any] = {work: projects | ({} if work in WITHOUT_DAYS else days) for work in chosen}
        if "time" in asked:
            asked["time"] |= {"group_by": values.get("group_by")}
        if isinstance(record, Project):
            return {"client_id": record.client_id, "project_id": record.id, "unbilled_work": asked}
        return {"client_id": record.id, "unbilled_work": asked}

    def run(self, tx: Tx, context: PageContext, record: Client | Project, body: dict[str, object]) -> Any:  # noqa: ARG002
        create = context.catalogue.operation(*self.operation).handler
        return create(tx, new_of(tx, Invoice, body))

    def sentences(self, seen: Seen[Client | Project]) -> Iterator[str]:
        left_out = [f"{hours(each.minutes)} h {LEFT_OUT[each.reason]}" for each in seen.made.meta.left_out]
        if left_out:
            yield f"Left out: {', '.join(left_out)}."

    def document(self, seen: Seen[Client | Project]) -> Invoice:
        draft: Invoice = seen.made.data
        return draft

    def notice(self, seen: Seen[Client | Project]) -> str:  # noqa: ARG002
        return "Draft created. Check it, then issue it. If you delete it, its work is unbilled again."

    def note(self, sheet: Sheet, kind: Kind, seen: Seen[Client | Project]) -> None:  # noqa: ARG002
        target = Target("invoice", seen.made.data.id, "draft")
        audit.note(sheet.tx, "record created", target, after=self.build_body(seen.before, sheet.read()))

    def next_path(self, kind: Kind, seen: Seen[Client | Project]) -> str:  # noqa: ARG002
        return f"/records/invoices/{seen.made.data.id}"


def is_covered(record: Client | Project) -> bool:
    return isinstance(record, Project) and record.billing_type in {"fixed_fee", "retainer"}
