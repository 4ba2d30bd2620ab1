"""Projects: work for a client, or for the agency itself, with its budget and what it has come to.

A project without a client is internal and never billed. Its currency is its client's, else the account's; when the
client gets another currency, the figures of its projects stay as they are. `budget_used_percent` is the billable value
of `budget_amount` or the tracked time of `budget_minutes`, whichever is further on. Templates are projects that others
begin with: milestones and tasks are copied, and budget and due date where the copy says no others. Dates are moved as
far as the start of the copy lies from the template's, or from the earliest date in it; without a start it has none.
"""

from typing import Annotated, Literal

from msgspec import Meta
from sqlalchemy import bindparam, func, select

from retainer.billing.quotes import conversion
from retainer.billing.quotes import types as quote_types
from retainer.crm.tags import TagFilter, TagIds, set_tags
from retainer.kernel import etag
from retainer.kernel.body import New, Patch
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups import changes
from retainer.rollups.sources import PROJECTS
from retainer.schema import expressions
from retainer.schema.crm import clients
from retainer.schema.filters import DefaultExclusion, since, truth, until
from retainer.schema.work import projects
from retainer.shared import relations
from retainer.store.records import Derived
from retainer.store.tx import Tx
from retainer.values.common import ExternalId
from retainer.values.exact import amount_of, percent
from retainer.values.kinds import Currency, Day, Id, Instant, Money, SignedMoney, Text30, Text191, Text10000
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, WRITE_ONLY, AllowedOn, Record, RequiredUnless
from retainer.work import progress, propagation, templates

Status = Annotated[
    Literal["planned", "active", "on_hold", "completed", "archived"],
    Meta(title="ProjectStatus"),
    "`completed` and `archived` are closed, and reopened as `active`; `archived` takes no tasks, time or expenses.",
]
BillingType = Annotated[
    Literal["time_and_materials", "fixed_fee", "retainer", "non_billable"],
    Meta(title="ProjectBillingType"),
    "How the client pays: for time and expenses, one sum in all, a sum a month, or nothing.",
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
"""Fields that only one billing type has."""


class Project(Record):
    """Work for a client, or, without one, for the agency itself."""

    name: Annotated[
        Text191, RequiredUnless("quote_id"), "Required, unless `quote_id` gives it: then the quote's title or number."
    ]
    client_id: Annotated[
        Id | None, "Null for internal work, which is never billed; fixed once work was recorded for the client."
    ] = None
    code: Annotated[Text30 | None, "A short name of your own, unique in the account."] = None
    description: Annotated[Text10000 | None, "What is to be done; `q` searches it."] = None
    status: Status = "active"
    billing_type: Annotated[
        BillingType, "When left out, `time_and_materials` with a client and `non_billable` without one."
    ] = SERVER_DEFAULT
    currency: Annotated[Currency, "That of the client, or of the account for internal work."] = READ_ONLY
    hourly_rate: Annotated[
        Money | None,
        "For time on the project, before the rates of client, user and account; null: one of theirs applies.",
    ] = None
    fixed_fee: Annotated[
        Money | None,
        "What the whole project costs the client; only for the billing type `fixed_fee`. Milestones share it.",
    ] = None
    retainer_amount: Annotated[Money | None, "What the client pays a month; only for billing type `retainer`."] = None
    budget_amount: Annotated[Money | None, "What `billable_amount` should not exceed, before tax."] = None
    budget_minutes: Annotated[
        Annotated[int, Meta(ge=0, le=1_000_000_000)] | None, "What `tracked_minutes` should not exceed."
    ] = None
    start_date: Annotated[Day | None, "First day of the work; dates copied from a template move with it."] = None
    due_date: Annotated[Day | None, "Not before `start_date`; from the day after it an open project is overdue."] = None
    manager_id: Annotated[Id | None, "User in charge of it, who must be active when chosen."] = None
    quote_id: Annotated[
        Id | None,
        AllowedOn("Create"),
        quote_types.made_from("converted_project_id"),
        "Accepted quote that it is made from: gives name, client and `budget_amount`. Only on creation, each quote "
        "once.",
    ] = None
    is_template: Annotated[
        bool,
        AllowedOn("Create"),
        "Only on creation. Templates are left out of lists, counts and reports, and take no time or money.",
    ] = False
    completed_at: Annotated[
        Instant | None, "When it became `completed`; null again when it is reopened, kept when it is archived."
    ] = READ_ONLY
    archived_at: Annotated[Instant | None, "When it became `archived`; null otherwise."] = READ_ONLY
    external_id: ExternalId = None
    tag_ids: TagIds = []
    tracked_minutes: Annotated[int, "Time on the project, billable or not."] = READ_ONLY
    billable_minutes: Annotated[int, "Time on the project that is billable, billed or not."] = READ_ONLY
    unbilled_minutes: Annotated[
        int,
        Derived(progress.unbilled("unbilled_minutes")),
        "Billable time with a rate that is on no invoice; 0 where a fixed fee or retainer covers it.",
    ] = READ_ONLY
    billable_amount: Annotated[
        Money, "What the billable time in the project's currency is worth, billed or not, before tax."
    ] = READ_ONLY
    unbilled_amount: Annotated[
        Money,
        Derived(progress.unbilled("unbilled_amount"), money=True),
        "What that time is worth in the project's currency, before tax; 0 where a fee covers it.",
    ] = READ_ONLY
    invoiced_amount: Annotated[
        SignedMoney, "Net of the lines for it on issued invoices, less credits; in the project's currency."
    ] = READ_ONLY
    expense_amount: Annotated[
        SignedMoney, "Net of the project's expenses that are in its currency, billable or not."
    ] = READ_ONLY
    budget_used_percent: Annotated[
        float | None,
        Derived(progress.budget_used, percent),
        "`billable_amount` of `budget_amount`, or tracked time of `budget_minutes`: the greater. Null without budget.",
    ] = READ_ONLY
    progress_percent: Annotated[
        float | None,
        Derived(progress.done_ratio, percent),
        "Done tasks as a share of all that are not cancelled; null without any.",
    ] = READ_ONLY
    template_id: Annotated[
        Id | None,
        AllowedOn("Create"),
        "Template to copy: its milestones, tasks, budget and due date; dates move with `start_date`. Only on creation.",
    ] = WRITE_ONLY


TEMPLATES = select(func.count()).select_from(projects).where(projects.c.is_template.is_(True))


class ProjectFilter(Filter):
    """Which projects; templates only when they are asked for."""

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
        bool | None, truth(progress.over_budget, "projects beyond `budget_amount` or `budget_minutes`")
    ] = None
    code: OneOf[Text30] | None = None
    external_id: OneOf[Text191] | None = None
    tag_id: TagFilter = None


CLIENT = select(clients.c.status, clients.c.currency).where(clients.c.id == bindparam("id"))


def prepare(tx: Tx, project: Project, before: Project | None = None) -> Project:
    """Fill in what a project has from its client, how it is billed, and when it was completed and archived."""
    status, project.currency = tx.one(CLIENT, id=project.client_id) or ("active", tx.actor.currency)
    if before is None and project.is_template and project.quote_id is not None:
        tx.error("is_template", "Must be false with quote_id: a template takes no money. Create it without the quote.")
    if before is None or project.client_id != before.client_id:
        relations.check_open(tx, "client_id", f"Client {project.client_id}", status)
    deciding = ("billing_type",) if project.billing_type else ("billing_type", "client_id")
    project.billing_type = project.billing_type or ("time_and_materials" if project.client_id else "non_billable")
    if project.client_id is None and project.billing_type != "non_billable" and tx.readable("client_id"):
        tx.error("billing_type", "Must be non_billable, or null, without a client: nobody could be billed.")
    for field, billing_type in ONLY_FOR.items():
        is_set = getattr(project, field) is not None
        if is_set and project.billing_type != billing_type and tx.readable(*deciding):
            tx.error(
                field, f"Is only for the billing_type {billing_type}, not for {project.billing_type}. Send null here."
            )
    relations.check_date_order(tx, project)
    relations.resolve_user(tx, project, "manager_id", before.manager_id if before else None)
    relations.check_transition(tx, before.status if before else None, project.status, TRANSITIONS)
    project.completed_at = None if project.status in OPEN else project.completed_at
    project.archived_at = (project.archived_at or tx.now) if project.status == "archived" else None
    if project.status == "completed":
        project.completed_at = project.completed_at or tx.now
    return project


def check_change(tx: Tx, project: Project, before: Project) -> None:
    """Note errors when what lies under a project does not allow its new client or its new fixed fee."""
    blocking = tx.blocking(projects, project.id) if project.client_id != before.client_id else {}
    for messages in blocking.values():
        tx.error("client_id", f"Is fixed once work was recorded for the client. {messages[0]}")
    if project.client_id != before.client_id and propagation.is_referred_to(tx, project.id):
        tx.error("client_id", "Is fixed while tickets or sites refer to the project. Move them first.")
    allotted = amount_of(propagation.sum_milestone_amounts(tx, project.id), before.currency)
    if allotted > (project.fixed_fee or 0):
        tx.error("fixed_fee", f"Its milestones hold {allotted} {before.currency} of it. Change their amounts first.")


def propagate_client(tx: Tx, project: Project, before: Project) -> None:
    """Write a project's new client to its tasks and that client's currency to its milestones."""
    if project.client_id != before.client_id and (project.client_id is None or tx.one(CLIENT, id=project.client_id)):
        propagation.propagate_project(tx, project.id, project.client_id, project.currency)


api = Resource("/projects", tag="Projects", scope="projects", table=projects)


@api.get()
def list_projects(tx: Tx, filters: ProjectFilter, page: Page) -> Paged[Project]:
    """List projects, by name; templates are left out unless is_template=true."""
    return listing(tx, projects, Project, filters, page)


@api.post()
def create_project(tx: Tx, body: New[Project]) -> Project:
    """Create a project; template_id names one that it is a copy of, moved with start_date."""
    template = templates.load_template(tx, body.template_id)
    conversion.fill_project(tx, body)
    templates.fill_project(tx, body, template)
    project_id = changes.insert(tx, PROJECTS, projects, prepare(tx, body))
    set_tags(tx, projects, project_id, body, body.tag_ids)
    conversion.save_conversion(tx, body.quote_id, project_id)
    if template is not None:
        templates.copy_work(tx, template, project_id)
    return tx.get(projects, project_id, Project)


@api.get("/{project_id}")
def get_project(tx: Tx, project_id: Id) -> Project:
    """Read a project."""
    return tx.get(projects, project_id, Project)


@api.put("/{project_id}")
@api.patch("/{project_id}")
def update_project(tx: Tx, project_id: Id, patch: Patch[Project]) -> Project:
    """Change a project; members left out keep their value."""
    before = tx.get(projects, project_id, Project)
    after = prepare(tx, patch.apply_to(before), before)
    check_change(tx, after, before)
    propagate_client(tx, after, before)
    changes.update(tx, PROJECTS, projects, before, after)
    set_tags(tx, projects, project_id, after, after.tag_ids, before.tag_ids)
    return tx.get(projects, project_id, Project)


@api.delete("/{project_id}")
def delete_project(tx: Tx, project_id: Id) -> None:
    """Delete a project with its milestones and tasks; refused while time is recorded on it."""
    changes.delete(tx, projects, etag.check_unchanged(tx, projects, tx.get(projects, project_id, Project)))
