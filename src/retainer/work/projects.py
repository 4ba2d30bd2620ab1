"""Projects: work for a client, or for the agency itself, with budget and progress.

A project without a client is internal and never billed. Its currency is that of the client, else of the account; if the
client gets another currency, amounts keep their figures. `budget_used_percent` is the greater of two shares: billable
value of `budget_amount`, and tracked time of `budget_minutes`.

Templates are projects to copy; one without a client is for any. A copy gets their milestones with amounts, their
tasks, and what its body leaves out: description, billing type, fee, rate, budget, manager, tags and due date. Send null
to leave a field empty. What does not fit the copy, such as an amount in another currency, is an error. Dates move by
the time between the start of the template, or its earliest date, and the start of the copy; a copy without a start has
no dates.
"""

from typing import Annotated

from msgspec import Meta
from sqlalchemy import ColumnElement, Table, and_, bindparam, func, or_, select

from retainer.billing.quotes.conversion import fill_project, save_conversion
from retainer.crm.currency import MILESTONES_OF_PROJECT, redenominate
from retainer.crm.tags import TagFilter, save_tags, update_tagged
from retainer.errors import FALSE, part
from retainer.kernel.body import New, Patch
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups import changes
from retainer.schema import expressions
from retainer.schema.crm import clients
from retainer.schema.filters import ONE_OF_CODES, DefaultExclusion, Where, since, truth, until
from retainer.schema.sites import sites
from retainer.schema.support import tickets
from retainer.schema.work import milestones, projects, tasks
from retainer.shared import relations
from retainer.shared.relations import ClientState
from retainer.store.announcements import updating
from retainer.store.constraints import MOVE
from retainer.store.tx import Tx
from retainer.values.exact import amount_of, local_day
from retainer.values.kinds import Code30, Code191, Day, Id
from retainer.work import templates
from retainer.work.project_types import BillingType, Project, Status, budget_used

TRANSITIONS = {
    "planned": ("active", "on_hold", "completed", "archived"),
    "active": ("planned", "on_hold", "completed", "archived"),
    "on_hold": ("planned", "active", "completed", "archived"),
    "completed": ("active", "archived"),
    "archived": ("active",),
}
OPEN = ("planned", "active", "on_hold")
ONLY_FOR = {"fixed_fee": "fixed_fee", "retainer_amount": "retainer"}


def is_over_budget(table: Table) -> ColumnElement[bool]:
    by_amount = and_(table.c.budget_amount > 0, table.c.billable_amount > table.c.budget_amount)
    by_minutes = and_(table.c.budget_minutes > 0, table.c.tracked_minutes > table.c.budget_minutes)
    return or_(by_amount, by_minutes)


TEMPLATES = select(func.count()).select_from(projects).where(projects.c.is_template.is_(True))


class ProjectFilter(Filter):
    default_exclusion = DefaultExclusion(
        lambda table: table.c.is_template.is_(True), frozenset({"is_template"}), TEMPLATES, (("is_template", False),)
    )
    sorts = ("name", "code", "due_date", "created_at", "updated_at")
    client_id: OneOf[Id | None] | None = None
    status: OneOf[Status] | None = None
    billing_type: OneOf[BillingType] | None = None
    manager_id: OneOf[Id] | None = None
    is_template: Annotated[bool, "With true, only templates; with false, only other projects."] = False
    start_date_from: Annotated[Day | None, since("start_date")] = None
    start_date_to: Annotated[Day | None, until("start_date")] = None
    due_date_from: Annotated[Day | None, since("due_date")] = None
    due_date_to: Annotated[Day | None, until("due_date")] = None
    overdue: Annotated[bool | None, truth(expressions.overdue(*OPEN), "open projects whose `due_date` has passed")] = (
        None
    )
    over_budget: Annotated[
        bool | None, truth(is_over_budget, "projects beyond `budget_amount` or `budget_minutes`")
    ] = None
    budget_used_percent_min: Annotated[
        Annotated[int, Meta(ge=0, le=1_000_000)] | None,
        Where(lambda table, value: budget_used(table) >= value, lambda percent: 100 * percent),
        "Projects whose `budget_used_percent` is at least this, in whole percent.",
    ] = None
    code: Annotated[OneOf[Code30] | None, ONE_OF_CODES] = None
    external_id: OneOf[Code191] | None = None
    tag_id: TagFilter = None


REFERRING = [
    select(table.c.id).where(table.c.project_id == bindparam("project")).limit(1) for table in (tickets, sites)
]
MILESTONE_SUM = select(func.coalesce(func.sum(milestones.c.amount), 0)).where(
    milestones.c.project_id == bindparam("project"), milestones.c.id != bindparam("exclude_id")
)
SET_CLIENT_OF_TASKS = updating(
    tasks, tasks.c.project_id == bindparam("project"), values={"client_id": bindparam("client_id")}
)


def sum_milestone_amounts(tx: Tx, project_id: int, *, exclude_id: int = 0) -> int:
    """Return the sum of a project's milestones in minor units, without one of them."""
    return int(tx.value(MILESTONE_SUM, project=project_id, exclude_id=exclude_id))


def build_project(tx: Tx, project: Project, before: Project | None = None) -> Project:
    client = relations.load_row(tx, ClientState, clients, project.client_id)
    former_id = before.manager_id if before else None
    project.manager_id = relations.read_user(tx, "manager_id", project.manager_id, former_id)
    if before is None and project.is_template and project.quote_id is not None:
        tx.error(
            "is_template",
            f"Must be {FALSE} with {part('quote_id')}: a template takes no money. Create it without the quote.",
        )
    relations.validate_client_open(tx, "client_id", project, before, client and client.status)
    validate_billing(tx, project)
    relations.validate_date_order(tx, project)
    relations.validate_transition(tx, before.status if before else None, project.status, TRANSITIONS)
    project.currency = client.currency if client else tx.actor.currency
    project.billing_type = project.billing_type or default_billing_type(project)
    project.archived_at = (project.archived_at or tx.now) if project.status == "archived" else None
    if project.status == "completed":
        project.completed_at = project.completed_at or tx.now
    elif project.status in OPEN:
        project.completed_at = None
    return project


def days_of_fees(tx: Tx, project: Project) -> dict[str, str | None]:
    """Return the first and the last day whose months a retainer bills; without a start, it began when it was created.

    They are stored, since they depend on the time zone of the account at that time.
    """
    if project.billing_type != "retainer" or project.is_template:
        return {"fees_from": None, "fees_to": None}
    zone = tx.actor.timezone
    ends = [local_day(moment, zone) for moment in (project.completed_at, project.archived_at) if moment]
    ends += [project.due_date] if project.due_date else []
    first = project.start_date or local_day(project.created_at or tx.now, zone)
    return {"fees_from": first, "fees_to": min(ends, default=None)}


def default_billing_type(project: Project) -> BillingType:
    return "time_and_materials" if project.client_id or project.is_template else "non_billable"


def validate_billing(tx: Tx, project: Project) -> None:
    billing_type = project.billing_type or default_billing_type(project)
    deciding = ("billing_type",) if project.billing_type else ("billing_type", "client_id")
    is_internal = project.client_id is None and not project.is_template
    if is_internal and billing_type != "non_billable" and tx.readable("client_id"):
        tx.error(
            "billing_type",
            f"Needs a client, unless it is {part('`non_billable`')}; this is {part(f'`{billing_type}`')}.",
        )
    own = part(f"`{billing_type}`")
    for field, required in ONLY_FOR.items():
        if getattr(project, field) is not None and billing_type != required and tx.readable(*deciding):
            reason = f"Is only for the {part('billing_type')} {part(f'`{required}`')}, not for {own}."
            tx.error(field, f"{reason} {part('Send null')}.")
    if project.auto_invoice != "off" and tx.readable("auto_invoice", *deciding):
        if billing_type != "retainer":
            reason = f"only a {part('`retainer`')} has months to bill, and this is {own}"
            tx.error("auto_invoice", f"Must be {part('`off`')}: {reason}.")
        elif project.is_template:
            tx.error("auto_invoice", f"Must be {part('`off`')}: a template has no months to bill.")


def validate_change(tx: Tx, project: Project, before: Project) -> None:
    is_moved = project.client_id != before.client_id
    for rows in tx.blocking(projects, project.id).values() if is_moved else ():
        tx.error("client_id", f"Is fixed once work was recorded for the client. {MOVE.format(rows)}")
    if is_moved and any(tx.one(statement, project=project.id) for statement in REFERRING):
        tx.error("client_id", "Is fixed while tickets or sites refer to the project. Move them first.")
    allotted = amount_of(sum_milestone_amounts(tx, project.id), before.currency)
    if allotted > (project.fixed_fee or 0):
        bound = f"Must be at least the sum of its milestones, {part(allotted)} {before.currency}."
        tx.error("fixed_fee", f"{bound} Reduce their amounts first.")


api = Resource("/projects", tag="Projects", scope="projects", table=projects)
api.lists(Project, ProjectFilter, "List projects, by name; templates are excluded unless `is_template=true`.")


@api.post()
def create_project(tx: Tx, body: New[Project]) -> Project:
    """Create a project; with `template_id`, as a copy of a template, whose dates move with `start_date`."""
    template = templates.load_template(tx, body.template_id)
    fill_project(tx, body)
    templates.fill_project(tx, body, template)
    project = build_project(tx, body)
    project_id = changes.insert(tx, projects, project, **days_of_fees(tx, project))
    save_tags(tx, projects, project_id, body)
    save_conversion(tx, body.quote_id, project_id)
    if template is not None:
        templates.copy_work(tx, template, project_id)
    return tx.get(projects, project_id, Project)


api.reads("/{project_id}", Project, "Read a project.")


@api.put("/{project_id}")
@api.patch("/{project_id}")
def update_project(tx: Tx, project_id: Id, patch: Patch[Project]) -> Project:
    """Change a project; omitted fields keep their value."""
    before = tx.get(projects, project_id, Project)
    after = patch.apply_to(before)
    validate_change(tx, after, before)
    after = build_project(tx, after, before)
    if (days := days_of_fees(tx, after)) != days_of_fees(tx, before):
        tx.update_columns(projects, project_id, days)
    is_moved = after.client_id != before.client_id
    if is_moved and (after.client_id is None or relations.load_row(tx, ClientState, clients, after.client_id)):
        tx.run(SET_CLIENT_OF_TASKS, project=project_id, client_id=after.client_id)
        redenominate(tx, milestones, MILESTONES_OF_PROJECT, project_id, after.currency, "client_id")
    return update_tagged(tx, projects, before, after)


@api.delete("/{project_id}")
def delete_project(tx: Tx, project_id: Id) -> None:
    """Delete a project with its milestones and tasks. A project with recorded time cannot be deleted."""
    changes.delete(tx, projects, tx.get(projects, project_id, Project))
