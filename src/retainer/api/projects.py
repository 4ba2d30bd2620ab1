"""Projects: work for a client, or for the agency itself, with its budget and what it has come to.

A project without a client is internal and never billed. Its currency is its client's, else the account's; when the
client gets another currency, the figures of its projects stay as they are. `budget_used_percent` is the billable value
of `budget_amount` or the tracked time of `budget_minutes`, whichever is further on. Templates are projects that others
begin with: a copy's dates are moved as far as its start lies from the template's, or from the earliest date in it; a
copy without a start has no dates.
"""

from typing import Annotated, Literal

from msgspec import Meta
from sqlalchemy import Index, bindparam, select

from retainer.api.clients import clients
from retainer.api.tags import TagFilter, TagIds, set_tags, tag_links
from retainer.domain import agreed, consequences, relations, templates, work
from retainer.domain.fields import ExternalId
from retainer.domain.filters import since, truth, until
from retainer.domain.values import Currency, Day, Id, Instant, Money, SignedMoney, Text30, Text191, Text10000
from retainer.exact import amount_of
from retainer.kernel import etag
from retainer.kernel.body import Change, New
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.store import rules
from retainer.store.columns import day, flag, folded, instant, integer, money, ref, sortable, text, unique
from retainer.store.records import Derived, Only, Record, Unless, auto, ro, wo
from retainer.store.tables import tenant_table
from retainer.store.tx import Tx

projects = tenant_table(
    "projects",
    *ref("client_id", "clients", optional=True),
    text("name"),
    text("code", optional=True),
    text("description", optional=True),
    text("status"),
    text("billing_type"),
    text("currency"),
    money("hourly_rate", optional=True),
    money("fixed_fee", optional=True),
    money("retainer_amount", optional=True),
    money("budget_amount", optional=True),
    integer("budget_minutes", optional=True),
    day("start_date", optional=True),
    day("due_date", optional=True),
    *ref("manager_id", "users", optional=True),
    flag("is_template"),
    instant("completed_at", optional=True),
    instant("archived_at", optional=True),
    integer("tracked_minutes"),
    integer("billable_minutes"),
    integer("unbilled_minutes"),
    money("billable_amount"),
    money("unbilled_amount"),
    money("invoiced_amount", server_default="0"),
    text("external_id", optional=True),
    sortable("name"),
    folded("name", "code", "description", into="search"),
    unique("code"),
    unique("external_id"),
    Index(None, "account_id", "is_template", "name_sort", "id"),
    Index("projects_by_client", "account_id", "client_id", "is_template"),
    Index(None, "account_id", "created_at", "id"),
    Index(None, "account_id", "updated_at", "id"),
)
tag_links("projects")

Status = Annotated[
    Literal["planned", "active", "on_hold", "completed", "archived"],
    "`completed` and `archived` are closed, and reopened as `active`; `archived` takes no tasks, time or expenses.",
]
BillingType = Annotated[
    Literal["time_and_materials", "fixed_fee", "retainer", "non_billable"],
    "How the client pays: for time and expenses, one sum in all, a sum a month, or nothing.",
]

MOVES = {
    "planned": ("active", "on_hold", "completed", "archived"),
    "active": ("planned", "on_hold", "completed", "archived"),
    "on_hold": ("planned", "active", "completed", "archived"),
    "completed": ("active", "archived"),
    "archived": ("active",),
}
OPEN = ("planned", "active", "on_hold")
ONLY_FOR = {"fixed_fee": "fixed_fee", "retainer_amount": "retainer"}


class Project(Record):
    """Work for a client, or, without one, for the agency itself."""

    name: Annotated[
        Text191, Unless("quote_id"), "Required, unless `quote_id` gives it: then the quote's title or number."
    ]
    client_id: Annotated[
        Id | None, "Null for internal work, which is never billed; fixed once work was recorded for the client."
    ] = None
    code: Annotated[Text30 | None, "A short name of your own, unique in the account."] = None
    description: Annotated[Text10000 | None, "What is to be done; `q` searches it."] = None
    status: Status = "active"
    billing_type: Annotated[
        BillingType, "When left out, `time_and_materials` with a client and `non_billable` without one."
    ] = auto
    currency: Annotated[Currency, "That of the client, or of the account for internal work."] = ro
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
        Only("Create"),
        agreed.made_from("converted_project_id"),
        "Accepted quote that it is made from: gives name, client and `budget_amount`. Only on creation, each quote "
        "once.",
    ] = None
    is_template: Annotated[
        bool,
        Only("Create"),
        "Only on creation. Templates are left out of lists, counts and reports, and take no time or money.",
    ] = False
    completed_at: Annotated[
        Instant | None, "When it became `completed`; null again when it is reopened, kept when it is archived."
    ] = ro
    archived_at: Annotated[Instant | None, "When it became `archived`; null otherwise."] = ro
    external_id: ExternalId = None
    tag_ids: TagIds = []
    tracked_minutes: Annotated[int, "Time on the project, billable or not."] = ro
    billable_minutes: Annotated[int, "Time on the project that is billable, billed or not."] = ro
    unbilled_minutes: Annotated[
        int, "Billable time that is on no invoice; 0 where a fixed fee or retainer covers it."
    ] = ro
    billable_amount: Annotated[
        Money, "What the billable time in the project's currency is worth, billed or not, before tax."
    ] = ro
    unbilled_amount: Annotated[
        Money, "What that time is worth in the project's currency, before tax; 0 where a fee covers it."
    ] = ro
    invoiced_amount: Annotated[
        SignedMoney, "Net of the lines for it on issued invoices, less credits; in the project's currency."
    ] = ro
    expense_amount: Annotated[
        SignedMoney,
        work.spent("project_id"),
        "Net of the project's expenses that are in its currency, billable or not.",
    ] = ro
    budget_used_percent: Annotated[
        float | None,
        Derived(work.budget_used, work.percent),
        "`billable_amount` of `budget_amount`, or tracked time of `budget_minutes`: the greater. Null without budget.",
    ] = ro
    progress_percent: Annotated[
        float | None,
        Derived(work.progress, work.percent),
        "Done tasks as a share of all that are not cancelled; null without any.",
    ] = ro
    template_id: Annotated[
        Id | None,
        Only("Create"),
        "Template whose milestones and tasks are copied; their dates move with `start_date`. Only on creation.",
    ] = wo


class ProjectFilter(Filter):
    """Which projects; templates only when they are asked for."""

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
    overdue: Annotated[bool | None, truth(work.overdue(*OPEN), "open projects whose `due_date` has passed")] = None
    over_budget: Annotated[
        bool | None, truth(work.over_budget, "projects beyond `budget_amount` or `budget_minutes`")
    ] = None
    code: OneOf[Text30] | None = None
    external_id: OneOf[Text191] | None = None
    tag_id: TagFilter = None


CLIENT = select(clients.c.status, clients.c.currency).where(clients.c.id == bindparam("id"))


def settle(tx: Tx, it: Project, before: Project | None = None) -> Project:
    """What a project has from its client, how it is billed, and when it was closed."""
    status, it.currency = tx.one(CLIENT, id=it.client_id) or ("active", tx.actor.currency)
    if before is None:
        work.begin(it)
        if it.is_template and it.quote_id is not None:
            tx.fault(
                "is_template", "Must be false with quote_id: a template takes no money. Create it without the quote."
            )
    if before is None or it.client_id != before.client_id:
        relations.open_for_more(tx, "client_id", f"Client {it.client_id}", status)
    decides = ("billing_type",) if it.billing_type else ("billing_type", "client_id")
    it.billing_type = it.billing_type or ("time_and_materials" if it.client_id else "non_billable")
    if it.client_id is None and it.billing_type != "non_billable" and tx.knows("client_id"):
        tx.fault("billing_type", "Must be non_billable, or null, without a client: nobody could be billed.")
    for member, billing_type in ONLY_FOR.items():
        is_set = getattr(it, member) is not None
        if is_set and it.billing_type != billing_type and tx.knows(*decides):
            tx.fault(member, f"Is only for the billing_type {billing_type}, not for {it.billing_type}. Send null here.")
    relations.in_order(tx, it)
    relations.user(tx, it, "manager_id", before.manager_id if before else None)
    relations.move(tx, before.status if before else None, it.status, MOVES)
    it.completed_at = None if it.status in OPEN else it.completed_at
    it.archived_at = (it.archived_at or tx.now) if it.status == "archived" else None
    if it.status == "completed":
        it.completed_at = it.completed_at or tx.now
    return it


def check_change(tx: Tx, it: Project, before: Project) -> None:
    """What already happened under a project limits how it can be changed, and goes with it to another client."""
    blocking = rules.blocking(tx, projects, it.id) if it.client_id != before.client_id else {}
    for sentences in blocking.values():
        tx.fault("client_id", f"Is fixed once work was recorded for the client. {sentences[0]}")
    if it.client_id != before.client_id and consequences.cared_for(tx, it.id):
        tx.fault("client_id", "Is fixed while tickets or sites refer to the project. Move them first.")
    slices = amount_of(consequences.sliced(tx, it.id), before.currency)
    if slices > (it.fixed_fee or 0):
        tx.fault("fixed_fee", f"Its milestones hold {slices} {before.currency} of it. Change their amounts first.")
    if it.client_id != before.client_id and (it.client_id is None or tx.one(CLIENT, id=it.client_id)):
        consequences.of_project(tx, it.id, it.client_id, it.currency)


api = Resource("/projects", tag="Projects", scope="projects", table=projects)


@api.get()
def list_projects(tx: Tx, only: ProjectFilter, page: Page) -> Paged[Project]:
    """List projects, by name; templates are left out unless is_template=true."""
    return listing(tx, projects, Project, only, page)


@api.post()
def create_project(tx: Tx, body: New[Project]) -> Project:
    """Create a project; template_id names one whose milestones and tasks are copied, moved with start_date."""
    templates.check(tx, body.template_id)
    agreed.fill_project(tx, body)
    project = tx.insert(projects, settle(tx, body))
    set_tags(tx, projects, project, body.tag_ids, new=True)
    agreed.convert(tx, body.quote_id, project)
    if body.template_id is not None:
        templates.copy_work(tx, body.template_id, project)
    return tx.get(projects, project, Project)


@api.get("/{project}")
def get_project(tx: Tx, project: Id) -> Project:
    """Read a project."""
    return tx.get(projects, project, Project)


@api.put("/{project}")
@api.patch("/{project}")
def update_project(tx: Tx, project: Id, change: Change[Project]) -> Project:
    """Change a project; members left out keep their value."""
    before = tx.get(projects, project, Project)
    it = settle(tx, change.onto(before), before)
    check_change(tx, it, before)
    tx.update(projects, it)
    if it.billing_type != before.billing_type:
        work.recount(tx, "id", project)
    set_tags(tx, projects, project, it.tag_ids)
    return tx.get(projects, project, Project)


@api.delete("/{project}")
def delete_project(tx: Tx, project: Id) -> None:
    """Delete a project with its milestones and tasks; refused while time is recorded on it."""
    tx.delete(projects, etag.unchanged(tx, tx.get(projects, project, Project)).id)
