"""Milestones: the stages of a project, and the parts of its fixed fee.

Amounts are in the project's currency; their sum is at most its `fixed_fee`. `invoice_id` is the invoice that bills a
milestone. It becomes null when the invoice is void, or when the line or the whole invoice is credited.
"""

from typing import Annotated, Literal

from msgspec import Meta
from sqlalchemy import bindparam, func, select

from retainer.billing import allocation_types
from retainer.errors import Refusal, part
from retainer.kernel.body import New, Patch
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.schema import expressions
from retainer.schema.filters import since, truth, until
from retainer.schema.work import milestones, projects
from retainer.shared import relations
from retainer.store.row_mapper import Derived, RefersTo
from retainer.store.tx import Tx
from retainer.values.exact import amount_of
from retainer.values.kinds import Currency, Day, Id, Instant, Money, Position, Text191, Text5000
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, Record
from retainer.work.project_types import Project
from retainer.work.projects import sum_milestone_amounts

Status = Annotated[
    Literal["open", "completed"], Meta(title="MilestoneStatus"), "`completed` sets `completed_at`, `open` clears it."
]


class Milestone(Record):
    """A stage of a project."""

    name: Annotated[Text191, "The result, like Design approved."]
    project_id: Annotated[Id, "The project in the path."] = READ_ONLY
    description: Annotated[Text5000 | None, "Details. `q` searches them."] = None
    status: Status = "open"
    start_date: Annotated[Day | None, "First day of the work."] = None
    due_date: Annotated[Day | None, "Not before `start_date`. An open milestone is overdue from the next day on."] = (
        None
    )
    amount: Annotated[
        Money | None,
        "Part of the project's `fixed_fee`, which the sum must not exceed. Fixed while it is on an invoice.",
    ] = None
    currency: Annotated[Currency, "Currency of the project."] = READ_ONLY
    position: Annotated[Position, "Order within the project, lowest first. Default: the last."] = SERVER_DEFAULT
    completed_at: Annotated[Instant | None, "When the milestone became `completed`; null while it is open."] = READ_ONLY
    invoice_id: Annotated[
        Id | None,
        allocation_types.MILESTONE_INVOICE,
        RefersTo("invoices"),
        "Invoice that bills it; null while it is not billed.",
    ] = READ_ONLY
    tasks_count: Annotated[int, "Tasks of the milestone, in any status."] = READ_ONLY
    tasks_done_count: Annotated[int, "Tasks of the milestone with status `done`."] = READ_ONLY
    is_overdue: Annotated[
        bool, Derived(expressions.overdue("open"), bool), "True if the milestone is open and its `due_date` has passed."
    ] = READ_ONLY


class MilestoneFilter(Filter):
    sorts = ("position", "due_date")
    status: OneOf[Status] | None = None
    due_date_from: Annotated[Day | None, since("due_date")] = None
    due_date_to: Annotated[Day | None, until("due_date")] = None
    overdue: Annotated[
        bool | None, truth(expressions.overdue("open"), "open milestones whose `due_date` has passed")
    ] = None


LAST_POSITION = select(func.coalesce(func.max(milestones.c.position), 0)).where(
    milestones.c.project_id == bindparam("project")
)


def build_milestone(tx: Tx, milestone: Milestone, project: Project) -> Milestone:
    milestone.project_id, milestone.currency = project.id, project.currency
    if milestone.position is None:
        milestone.position = relations.next_position(tx.value(LAST_POSITION, project=project.id))
    milestone.completed_at = (milestone.completed_at or tx.now) if milestone.status == "completed" else None
    relations.validate_date_order(tx, milestone)
    others = sum_milestone_amounts(tx, project.id, exclude_id=milestone.id or 0)
    allotted = amount_of(others, milestone.currency)
    if milestone.amount and project.billing_type != "fixed_fee":
        only = "Only projects with a fixed fee have milestones with an amount."
        tx.error("amount", f"{only} The billing type of this project is {part(f'`{project.billing_type}`')}.")
    elif milestone.amount and milestone.amount + allotted > (project.fixed_fee or 0):
        fee = f"{part(project.fixed_fee)} {milestone.currency}" if project.fixed_fee is not None else "not set"
        tx.error(
            "amount",
            f"Exceeds the project's {part('fixed_fee')}, which is {fee}; other milestones hold {part(allotted)} of it.",
        )
    return milestone


api = Resource(
    "/projects/{project_id}/milestones", tag="Milestones", scope="projects", table=milestones, parent=projects
)
api.lists(Milestone, MilestoneFilter, "List the milestones of a project, by position.")


@api.post()
def create_milestone(tx: Tx, project_id: Id, body: New[Milestone]) -> Milestone:
    """Add a milestone to a project. Default position: the last."""
    project = tx.get(projects, project_id, Project)
    relations.validate_open(tx, "project_id", part(f"Project {project_id}"), project.status)
    relations.validate_client_open(tx, "project_id", project)
    return tx.get(milestones, tx.insert(milestones, build_milestone(tx, body, project)), Milestone)


@api.patch("/{milestone_id}")
def update_milestone(tx: Tx, project_id: Id, milestone_id: Id, patch: Patch[Milestone]) -> Milestone:
    """Change a milestone; omitted fields keep their value."""
    before = tx.get(milestones, milestone_id, Milestone, project_id=project_id)
    after = build_milestone(tx, patch.apply_to(before), tx.get(projects, project_id, Project))
    if after.amount != before.amount and before.invoice_id is not None:
        tx.error("amount", f"Cannot be changed any more: this milestone is on invoice {before.invoice_id}.", "locked")
    tx.update(milestones, after)
    return tx.get(milestones, milestone_id, Milestone)


@api.delete("/{milestone_id}")
def delete_milestone(tx: Tx, project_id: Id, milestone_id: Id) -> None:
    """Delete a milestone that is not billed; its tasks stay, without a milestone."""
    milestone = tx.get(milestones, milestone_id, Milestone, project_id=project_id)
    if milestone.invoice_id is not None:
        message = (
            f"This milestone is on invoice {milestone.invoice_id} and cannot be deleted. "
            "Remove its line first, while the invoice is a draft."
        )
        raise Refusal("in_use", message, errors={"invoices": [message]})
    tx.delete(milestones, milestone_id)
