"""Milestones: the stages of a project, and the slices of its fixed fee.

Amounts are in the project's currency; together they stay within its `fixed_fee`. `invoice_id` is the invoice on which a
milestone is billed; null again when that is void, or the line or all of it is credited.
"""

from typing import Annotated, Literal

from msgspec import Meta
from sqlalchemy import bindparam, func, select

from retainer.billing import allocation_types
from retainer.errors import Refusal
from retainer.kernel import etag
from retainer.kernel.body import New, Patch
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.schema import expressions
from retainer.schema.crm import clients
from retainer.schema.filters import since, truth, until
from retainer.schema.work import milestones, projects
from retainer.shared import relations
from retainer.store.records import Derived
from retainer.store.tx import Tx
from retainer.values.exact import amount_of
from retainer.values.kinds import Currency, Day, Id, Instant, Money, Position, Text191, Text5000
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, Record
from retainer.work import propagation
from retainer.work.projects import Project

Status = Annotated[
    Literal["open", "completed"], Meta(title="MilestoneStatus"), "`completed` sets `completed_at`, `open` clears it."
]


class Milestone(Record):
    """A stage of a project."""

    name: Annotated[Text191, "What is reached with it, like Design approved."]
    project_id: Annotated[Id, "The project in the path."] = READ_ONLY
    description: Annotated[Text5000 | None, "Details of it; `q` searches them."] = None
    status: Status = "open"
    start_date: Annotated[Day | None, "First day of the work on it."] = None
    due_date: Annotated[Day | None, "Not before `start_date`; from the day after it, overdue while open."] = None
    amount: Annotated[
        Money | None,
        "Slice of the project's `fixed_fee`, within which all slices stay. Fixed while it is on an invoice.",
    ] = None
    currency: Annotated[Currency, "That of the project."] = READ_ONLY
    position: Annotated[Position, "Order within the project, lowest first; behind all others when left out."] = (
        SERVER_DEFAULT
    )
    completed_at: Annotated[Instant | None, "When it became `completed`; null while it is open."] = READ_ONLY
    invoice_id: Annotated[
        Id | None, allocation_types.MILESTONE_INVOICE, "The invoice that it is on; null while it is not billed."
    ] = READ_ONLY
    tasks_count: Annotated[int, "Tasks of the milestone in any status."] = READ_ONLY
    tasks_done_count: Annotated[int, "Tasks of the milestone with the status `done`."] = READ_ONLY
    is_overdue: Annotated[
        bool, Derived(expressions.overdue("open"), bool), "True while it is open and its `due_date` has passed."
    ] = READ_ONLY


class MilestoneFilter(Filter):
    """Which milestones of a project."""

    sorts = ("position", "due_date")
    status: OneOf[Status] | None = None
    due_date_from: Annotated[Day | None, since("due_date")] = None
    due_date_to: Annotated[Day | None, until("due_date")] = None
    overdue: Annotated[
        bool | None, truth(expressions.overdue("open"), "open milestones whose `due_date` has passed")
    ] = None


CLIENT = select(clients.c.status).where(clients.c.id == bindparam("id"))
LAST_POSITION = select(func.coalesce(func.max(milestones.c.position), 0)).where(
    milestones.c.project_id == bindparam("project")
)


def prepare(tx: Tx, milestone: Milestone, project: Project) -> Milestone:
    """Fill in what a milestone has from its project, its position and when it was completed.

    An amount beyond what other milestones leave of the project's fixed fee is noted as an error.
    """
    milestone.project_id, milestone.currency = project.id, project.currency
    if milestone.position is None:
        milestone.position = relations.next_position(tx.value(LAST_POSITION, project=project.id))
    relations.check_date_order(tx, milestone)
    milestone.completed_at = (milestone.completed_at or tx.now) if milestone.status == "completed" else None
    allotted = amount_of(
        propagation.sum_milestone_amounts(tx, project.id, exclude_id=milestone.id or 0), milestone.currency
    )
    if milestone.amount and project.billing_type != "fixed_fee":
        tx.error("amount", f"Is a slice of a fixed fee; the billing_type of the project is {project.billing_type}.")
    elif milestone.amount and milestone.amount + allotted > (project.fixed_fee or 0):
        fee = f"{project.fixed_fee} {milestone.currency}" if project.fixed_fee is not None else "not set"
        tx.error("amount", f"Exceeds the project's fixed_fee, which is {fee}; other milestones hold {allotted} of it.")
    return milestone


api = Resource(
    "/projects/{project_id}/milestones", tag="Milestones", scope="projects", table=milestones, parent=projects
)


@api.get()
def list_milestones(tx: Tx, project_id: Id, filters: MilestoneFilter, page: Page) -> Paged[Milestone]:
    """List the milestones of a project, in their order."""
    return listing(tx, milestones, Milestone, filters, page, project_id=project_id)


@api.post()
def create_milestone(tx: Tx, project_id: Id, body: New[Milestone]) -> Milestone:
    """Add a milestone to a project; the last one, unless it has a position."""
    project = tx.get(projects, project_id, Project)
    relations.check_open(tx, "project_id", f"Project {project_id}", project.status)
    if project.client_id is not None:
        status = tx.value(CLIENT, id=project.client_id)
        relations.check_open(tx, "project_id", f"Client {project.client_id}", status)
    return tx.get(milestones, tx.insert(milestones, prepare(tx, body, project)), Milestone)


@api.patch("/{milestone_id}")
def update_milestone(tx: Tx, project_id: Id, milestone_id: Id, patch: Patch[Milestone]) -> Milestone:
    """Change a milestone; members left out keep their value."""
    before = tx.get(milestones, milestone_id, Milestone, project_id=project_id)
    after = prepare(tx, patch.apply_to(before), tx.get(projects, project_id, Project))
    if after.amount != before.amount and before.invoice_id is not None:
        tx.error("amount", f"Cannot be changed any more: this milestone is on invoice {before.invoice_id}.", "locked")
    tx.update(milestones, after)
    return tx.get(milestones, milestone_id, Milestone)


@api.delete("/{milestone_id}")
def delete_milestone(tx: Tx, project_id: Id, milestone_id: Id) -> None:
    """Delete a milestone; its tasks stay, without one. One that is billed stays."""
    milestone = etag.check_unchanged(tx, milestones, tx.get(milestones, milestone_id, Milestone, project_id=project_id))
    if milestone.invoice_id is not None:
        message = (
            f"This milestone is on invoice {milestone.invoice_id} and stays. "
            "Take it off there first, while that is a draft."
        )
        raise Refusal("in_use", message, errors={"invoices": [message]})
    tx.delete(milestones, milestone_id)
