"""The action that bills a client or a project: choose the unbilled work, see the lines, and create the draft."""

from typing import NamedTuple

from retainer.billing.invoices.types import Invoice, InvoiceMeta, UnbilledTime
from retainer.console.actions.basis import Rehearsed, errors_of, filled, new_of, note, options_of
from retainer.console.catalogue import Kind
from retainer.console.editing.fields import flattened
from retainer.console.forms import Form
from retainer.console.names import title_of
from retainer.console.page_context import PageContext, Reply, View
from retainer.console.records.projects import LEFT_OUT
from retainer.console.reports.tables import hours
from retainer.crm.clients import Client
from retainer.errors import Refusal, invalid
from retainer.identity.audit import Target
from retainer.kernel.resource import WithMeta, read_id
from retainer.store.tx import Tx
from retainer.values.records import Record
from retainer.work.projects import Project

WORK = {"time": "Time", "expenses": "Expenses", "milestones": "Completed milestones", "fees": "Months of retainers"}
WITHOUT_DAYS = ("milestones",)
GROUPS = options_of(flattened(UnbilledTime.__annotations__["group_by"])[0])
NAMES = {f"unbilled_work.{work}.{end}": end for work in WORK for end in ("from", "to")}
"""The fields of the form by the names that the API's errors have."""


class Billed(NamedTuple):
    """What is billed: a client with all its projects, or one project."""

    kind: Kind
    record: Record
    client_id: int
    project: Project | None = None


def find(tx: Tx, context: PageContext) -> Billed:
    """Return the client or the project of the path. Raises `not_found`, also for internal projects."""
    kind = context.catalogue.find(context.path_parameters["kind"])
    record = kind.get(tx, read_id(context.path_parameters["record"], kind.table))
    if isinstance(record, Client):
        return Billed(kind, record, record.id)
    if isinstance(record, Project) and record.client_id is not None:
        return Billed(kind, record, record.client_id, record)
    raise Refusal("not_found", "Only clients and their projects are billed.")


def show(tx: Tx, context: PageContext) -> Reply:
    """Show the form that chooses the work. Raises `not_found`."""
    return shown(find(tx, context), context)


def shown(billed: Billed, context: PageContext, draft: WithMeta[Invoice, InvoiceMeta] | None = None) -> View:
    """Return the page, with the draft that the form describes, if it was rehearsed."""
    is_covered = billed.project is not None and billed.project.billing_type in {"fixed_fee", "retainer"}
    usual = [work for work in WORK if not (is_covered and work == "time")]
    left_out = draft.meta.left_out if draft else []
    return context.render(
        "action_bill",
        kind=billed.kind,
        label=title_of(billed.kind.table, billed.record),
        back=billed.kind.path_of(billed.record),
        work=WORK,
        chosen=context.form.texts_of("work") if context.form.texts else usual,
        is_covered=is_covered,
        groups=GROUPS,
        invoice=draft.data if draft else None,
        left_out=[f"{hours(each.minutes)} h {LEFT_OUT[each.reason]}" for each in left_out],
    )


def act(tx: Tx, context: PageContext) -> Reply:
    """Create the draft, or only show it. Raises `not_found`, Rehearsed, and the errors of the API."""
    billed = find(tx, context)
    body = {"client_id": billed.client_id, "unbilled_work": work_of(context.form, billed.project)}
    if billed.project is not None:
        body["project_id"] = billed.project.id
    with errors_of(tx, NAMES):
        create = context.catalogue.operation("POST", "/invoices").handler
        draft: WithMeta[Invoice, InvoiceMeta] = create(tx, new_of(tx, Invoice, body))
    if context.form.text("step") != "create":
        raise Rehearsed(shown(billed, context, draft))
    note(tx, "record created", Target("invoice", draft.data.id, "draft"), {}, body)
    path = f"/records/invoices/{draft.data.id}"
    return context.redirect(
        path, "Draft created. Check it, then issue it. If you delete it, its work is unbilled again."
    )


def work_of(form: Form, project: Project | None) -> dict[str, object]:
    """Return the unbilled work that a form asks for. Raises `validation_failed` if nothing is chosen."""
    chosen = [work for work in WORK if work in form.texts_of("work")]
    if not chosen:
        raise invalid({"work": ["Select what to bill."]})
    days = filled(form, "from", "to")
    projects = {"project_ids": [project.id]} if project is not None else {}
    asked = {work: projects | ({} if work in WITHOUT_DAYS else days) for work in chosen}
    if "time" in asked:
        asked["time"] = asked["time"] | filled(form, "group_by")
    return dict(asked)
