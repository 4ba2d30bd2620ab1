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

from collections.abc import Callable
from typing import Annotated, Literal

from msgspec import Meta
from sqlalchemy import ColumnElement, Table, and_, bindparam, case, func, or_, select

from retainer.billing.quotes import types as quote_types
from retainer.billing.quotes.quotes import fill_project, save_conversion
from retainer.crm.currency import MILESTONES_OF_PROJECT, redenominate
from retainer.crm.tags import TagFilter, TagIds, save_tags, update_tagged
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
from retainer.store.row_mapper import Derived, RefersTo
from retainer.store.tx import Tx
from retainer.values.common import BudgetShare, ExternalId, Minutes, Share
from retainer.values.exact import amount_of, percent
from retainer.values.kinds import Code30, Code191, Currency, Day, Id, Instant, Money, SignedMoney, Text191, Text10000
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, WRITE_ONLY, AllowedOn, Record, RequiredUnless
from retainer.work import templates

Status = Annotated[
    Literal["planned", "active", "on_hold", "completed", "archived"],
    Meta(title="ProjectStatus"),
    "`completed` and `archived` are closed; reopen them as `active`. `archived` accepts no tasks, time or expenses.",
]
BillingType = Annotated[
    Literal["time_and_materials", "fixed_fee", "retainer", "non_billable"],
    Meta(title="ProjectBillingType"),
    "What the client pays for: time and expenses, a fixed fee, a monthly fee, or nothing.",
]

TRANSITIONS = {
    "planned": ("active", "on_hold", "completed", "archived"),
    "active": ("planned", "on_hold", "completed", "archived"),
    "on_hold": ("planned", "active", "completed", "archived"),
    "completed": ("active", "archived"),
    "archived": ("active",),
}
OPEN = ("planned", "active", "on_hold")
ONLY_FOR = {"fixed_fee": "fixed_fee", "retainer_amount": "retainer"}


def unbilled(name: str) -> Callable[[Table], ColumnElement[int]]:
    """Return a total of unbilled time as an expression: 0 if a fee covers the project's time."""
    return lambda table: case((expressions.is_covered(table), 0), else_=table.c[name])


def budget_used(table: Table) -> ColumnElement[int | None]:
    """Return the greater share of budget_amount and budget_minutes, in hundredths of a percent; null without one."""
    of_amount = expressions.ratio(table.c.billable_amount, table.c.budget_amount)
    of_minutes = expressions.ratio(table.c.tracked_minutes, table.c.budget_minutes)
    has_both = and_(table.c.budget_amount > 0, table.c.budget_minutes > 0)
    greater = case((of_amount > of_minutes, of_amount), else_=of_minutes)
    return case((has_both, greater), (table.c.budget_amount > 0, of_amount), else_=of_minutes)


def done_ratio(table: Table) -> ColumnElement[int | None]:
    return expressions.ratio(table.c.tasks_done_count, table.c.tasks_count - table.c.tasks_cancelled_count)


def is_over_budget(table: Table) -> ColumnElement[bool]:
    by_amount = and_(table.c.budget_amount > 0, table.c.billable_amount > table.c.budget_amount)
    by_minutes = and_(table.c.budget_minutes > 0, table.c.tracked_minutes > table.c.budget_minutes)
    return or_(by_amount, by_minutes)


class Project(Record):
    """Work for a client, or without one, for the agency itself."""

    name: Annotated[
        Text191,
        RequiredUnless("quote_id"),
        "Required without `quote_id`. Default with it: the quote's title or number.",
    ]
    client_id: Annotated[
        Id | None, "Null for internal work, which is never billed. Fixed once work was recorded for the client."
    ] = None
    code: Annotated[Code30 | None, "Short name of your choice, unique in the account, ignoring case."] = None
    description: Annotated[Text10000 | None, "The work to be done. `q` searches it."] = None
    status: Status = "active"
    billing_type: Annotated[
        BillingType,
        "Default: the template's. Without one, `time_and_materials` for clients and templates, else `non_billable`.",
    ] = SERVER_DEFAULT
    currency: Annotated[Currency, "Currency of the client, or of the account for internal work."] = READ_ONLY
    hourly_rate: Annotated[
        Money | None, "For time on the project. Null: the client's rate, else the user's, else the account's."
    ] = None
    fixed_fee: Annotated[
        Money | None, "Price of the whole project, which milestones divide. Only for the billing type `fixed_fee`."
    ] = None
    retainer_amount: Annotated[Money | None, "Monthly price. Only for the billing type `retainer`."] = None
    budget_amount: Annotated[Money | None, "Limit for `billable_amount`, before tax."] = None
    budget_minutes: Annotated[
        Annotated[Minutes, Meta(ge=0, le=1_000_000_000)] | None, "Limit for `tracked_minutes`."
    ] = None
    start_date: Annotated[Day | None, "First day of the work. Dates copied from a template move with it."] = None
    due_date: Annotated[Day | None, "Not before `start_date`. An open project is overdue from the next day on."] = None
    manager_id: Annotated[Id | None, "Active user who is in charge of the project."] = None
    quote_id: Annotated[
        Id | None,
        AllowedOn("Create"),
        quote_types.made_from("converted_project_id"),
        RefersTo("quotes"),
        "Accepted quote to convert: sets name, client and `budget_amount`. Only on creation; each quote once.",
    ] = None
    is_template: Annotated[
        bool,
        AllowedOn("Create"),
        "Only on creation. Lists, counts and reports exclude templates, which accept no time or money.",
    ] = False
    completed_at: Annotated[
        Instant | None, "When the project became `completed`. Null again when it is reopened, kept when it is archived."
    ] = READ_ONLY
    archived_at: Annotated[Instant | None, "When the project became `archived`, else null."] = READ_ONLY
    external_id: ExternalId = None
    tag_ids: TagIds = []
    tracked_minutes: Annotated[Minutes, "Time on the project, billable or not."] = READ_ONLY
    billable_minutes: Annotated[Minutes, "Billable time on the project, invoiced or not."] = READ_ONLY
    unbilled_minutes: Annotated[
        Minutes,
        Derived(unbilled("unbilled_minutes")),
        "Billable time with a rate that is not invoiced; 0 if a fixed fee or retainer covers it.",
    ] = READ_ONLY
    billable_amount: Annotated[
        Money, "Value of the billable time in the project's currency, invoiced or not, before tax."
    ] = READ_ONLY
    unbilled_amount: Annotated[
        Money,
        Derived(unbilled("unbilled_amount"), money=True),
        "Value of the unbilled time in the project's currency, before tax; 0 if a fee covers it.",
    ] = READ_ONLY
    invoiced_amount: Annotated[
        SignedMoney, "Net of its lines on issued invoices, less credits, in the project's currency."
    ] = READ_ONLY
    expense_amount: Annotated[SignedMoney, "Net of its expenses in the project's currency, billable or not."] = (
        READ_ONLY
    )
    budget_used_percent: Annotated[
        BudgetShare | None,
        Derived(budget_used, percent),
        "`billable_amount` of `budget_amount`, or tracked time of `budget_minutes`: the greater. Null without budget.",
    ] = READ_ONLY
    progress_percent: Annotated[
        Share | None,
        Derived(done_ratio, percent),
        "Share of the tasks that are done, without cancelled ones; null without tasks.",
    ] = READ_ONLY
    template_id: Annotated[
        Id | None,
        AllowedOn("Create"),
        RefersTo("projects"),
        "Template to copy: its milestones, tasks, and the fields that the body leaves out. Only on creation.",
    ] = WRITE_ONLY


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
        tx.error("is_template", "Must be false with quote_id: a template takes no money. Create it without the quote.")
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


def default_billing_type(project: Project) -> BillingType:
    return "time_and_materials" if project.client_id or project.is_template else "non_billable"


def validate_billing(tx: Tx, project: Project) -> None:
    billing_type = project.billing_type or default_billing_type(project)
    deciding = ("billing_type",) if project.billing_type else ("billing_type", "client_id")
    is_internal = project.client_id is None and not project.is_template
    if is_internal and billing_type != "non_billable" and tx.readable("client_id"):
        tx.error("billing_type", f"Must be non_billable, or null, without a client; this is {billing_type}.")
    for field, required in ONLY_FOR.items():
        if getattr(project, field) is not None and billing_type != required and tx.readable(*deciding):
            tx.error(field, f"Is only for the billing_type {required}, not for {billing_type}. Send null.")


def validate_change(tx: Tx, project: Project, before: Project) -> None:
    is_moved = project.client_id != before.client_id
    for messages in tx.blocking(projects, project.id).values() if is_moved else ():
        tx.error("client_id", f"Is fixed once work was recorded for the client. {messages[0]}")
    if is_moved and any(tx.one(statement, project=project.id) for statement in REFERRING):
        tx.error("client_id", "Is fixed while tickets or sites refer to the project. Move them first.")
    allotted = amount_of(sum_milestone_amounts(tx, project.id), before.currency)
    if allotted > (project.fixed_fee or 0):
        message = (
            f"Must be at least the sum of its milestones, {allotted} {before.currency}. Reduce their amounts first."
        )
        tx.error("fixed_fee", message)


api = Resource("/projects", tag="Projects", scope="projects", table=projects)
api.lists(Project, ProjectFilter, "List projects, by name; templates are excluded unless is_template=true.")


@api.post()
def create_project(tx: Tx, body: New[Project]) -> Project:
    """Create a project; with template_id, as a copy of a template, whose dates move with start_date."""
    template = templates.load_template(tx, body.template_id)
    fill_project(tx, body)
    templates.fill_project(tx, body, template)
    project_id = changes.insert(tx, projects, build_project(tx, body))
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
    is_moved = after.client_id != before.client_id
    if is_moved and (after.client_id is None or relations.load_row(tx, ClientState, clients, after.client_id)):
        tx.run(SET_CLIENT_OF_TASKS, project=project_id, client_id=after.client_id)
        redenominate(tx, milestones, MILESTONES_OF_PROJECT, project_id, after.currency, "client_id")
    return update_tagged(tx, projects, before, after)


@api.delete("/{project_id}")
def delete_project(tx: Tx, project_id: Id) -> None:
    """Delete a project with its milestones and tasks. A project with recorded time cannot be deleted."""
    changes.delete(tx, projects, tx.get(projects, project_id, Project))
