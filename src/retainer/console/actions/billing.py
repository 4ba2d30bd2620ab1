"""The action that bills a client or a project: choose the unbilled work, see the lines, and create the draft."""

from collections.abc import Sequence
from typing import Any

from retainer.billing.invoices.types import Invoice, UnbilledTime
from retainer.console.actions.action import Action, Seen, Stage, Wording
from retainer.console.actions.basis import new_of
from retainer.console.editing.fields import Field, options_of
from retainer.console.kinds.projects import LEFT_OUT
from retainer.console.page_context import PageContext
from retainer.console.shapes import declared
from retainer.console.values import Values
from retainer.console.words import hours
from retainer.crm.clients import Client
from retainer.errors import Refusal, invalid
from retainer.identity import audit
from retainer.identity.audit import Target
from retainer.store.tx import Tx
from retainer.work.projects import Project

WORK = {"time": "Time", "expenses": "Expenses", "milestones": "Completed milestones", "fees": "Months of retainers"}
WITHOUT_DAYS = ("milestones",)
GROUPS = tuple(options_of(declared(UnbilledTime.__annotations__["group_by"])))


class Bill(Action, frozen=True, kw_only=True):
    """Create a draft invoice from unbilled work."""

    def stage(self, name: str, tx: Tx, context: PageContext) -> Stage:
        """Return the client or the project of the path. Raises `not_found`, also for internal projects."""
        stage = super().stage(name, tx, context)
        if isinstance(stage.record, Project) and stage.record.client_id is None:
            raise Refusal("not_found", "Only clients and their projects are billed.")
        return stage

    def fields_of(self, record: Client | Project) -> Sequence[Field]:
        covered = " that the fee covers" if is_covered(record) else ""
        return [
            *(Field(name, f"{text}{covered if name == 'time' else ''}", "flag") for name, text in WORK.items()),
            Field("from", "From", "day", hint="If blank: all work before the last day."),
            Field("to", "To", "day", hint="If blank: all work so far."),
            Field("group_by", "One line of time for each", "choice", is_required=True, options=GROUPS),
        ]

    def preset(self, _: Tx, record: Client | Project) -> dict[str, str]:
        usual = {work: "no" if work == "time" and is_covered(record) else "yes" for work in WORK}
        return {**usual, "group_by": "project"}

    def build_body(self, record: Client | Project, values: dict[str, Any]) -> dict[str, Any]:
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

    def run(self, stage: Stage, body: dict[str, Any]) -> Any:
        create = stage.context.catalogue.operation("POST", "/invoices").handler
        return create(stage.tx, new_of(stage.tx, Invoice, body))

    def facts(self, stage: Stage, seen: Seen, values: Values) -> Wording:
        found = getattr(seen.meta, "left_out", ())
        left_out = ", ".join(f"{hours(each.minutes)} h {LEFT_OUT[each.reason]}" for each in found)
        return Wording(super().facts(stage, seen, values) | {"left_out": left_out})

    def note(self, stage: Stage, seen: Seen) -> None:
        body = self.build_body(stage.record, stage.sheet.read())
        audit.note(stage.tx, "record created", Target("invoice", seen.made.id, "draft"), after=body)

    def next_path(self, _: Stage, seen: Seen) -> str:
        return f"/records/invoices/{seen.made.id}"


def is_covered(record: Client | Project) -> bool:
    return isinstance(record, Project) and record.billing_type in {"fixed_fee", "retainer"}
