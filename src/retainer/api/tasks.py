"""Tasks: what is to be done, by whom, and until when.

The project follows from a milestone, a parent task or a ticket, the client from the project. Subtasks go with their
task into another project; once time was recorded on any of them, project and client are fixed. `tracked_minutes` is the
time on the task itself, without that on its subtasks.

Tasks of templates are a plan and not work: lists leave them out unless `project_id` names the template, or `ids` them;
reports never count them. Whether they are billable is what their copies are, where those can be billed at all.
"""

from typing import Annotated, Literal

from msgspec import Meta
from sqlalchemy import ColumnElement, Index, Table, bindparam, func, select

from retainer.api.milestones import milestones
from retainer.api.projects import projects
from retainer.api.tags import TagFilter, TagIds, set_tags, tag_links
from retainer.api.tickets import tickets
from retainer.domain import consequences, relations, work
from retainer.domain.fields import ExternalId, Priority
from retainer.domain.filters import LeftOut, since, truth, until
from retainer.domain.values import Day, Id, Instant, Position, Text191, Text255, Text20000, UserId
from retainer.kernel import etag
from retainer.kernel.body import Change, New
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.store.columns import among, day, flag, folded, instant, integer, ref, sparse, text, unique
from retainer.store.records import Derived, Record, auto, ro
from retainer.store.tables import tenant_table
from retainer.store.tx import Tx

tasks = tenant_table(
    "tasks",
    text("title"),
    text("description", optional=True),
    *ref("client_id", "clients", optional=True, on_delete="detach"),
    *ref("project_id", "projects", optional=True, on_delete="cascade"),
    *ref("milestone_id", "milestones", optional=True, on_delete="detach"),
    *ref("parent_id", "tasks", optional=True, on_delete="cascade"),
    *ref("ticket_id", "tickets", optional=True, on_delete="detach"),
    text("status"),
    text("priority"),
    *ref("assignee_id", "users", optional=True),
    day("start_date", optional=True),
    day("due_date", optional=True),
    integer("estimated_minutes", optional=True),
    flag("billable"),
    integer("position"),
    *ref("created_by_id", "users"),
    instant("started_at", optional=True),
    instant("completed_at", optional=True),
    text("external_id", optional=True),
    folded("title", "description", into="search"),
    unique("external_id"),
    Index("tasks_by_created_at", "account_id", "created_at", "id", "project_id"),  # with the project, so that for a
    Index("tasks_by_updated_at", "account_id", "updated_at", "id", "project_id"),  # task of a template no row need be
    Index("tasks_by_due_date", "account_id", "due_date", "id", "project_id"),  # read to leave it out
    Index(None, "account_id", "project_id", "position", "id"),
    Index(None, "account_id", "project_id", "created_at", "id"),
    Index("tasks_by_client", "account_id", "client_id", "created_at", "id", "project_id"),
    Index(None, "account_id", "milestone_id", "created_at", "id"),
    Index(None, "account_id", "parent_id", "created_at", "id"),
    Index("tasks_by_assignee", "account_id", "assignee_id", "created_at", "id", "project_id"),
    sparse("tasks", "ticket_id", "created_at", "id"),
    Index("tasks_by_status_and_due_date", "account_id", "status", "due_date", "project_id"),
    Index("tasks_by_status_and_completed_at", "account_id", "status", "completed_at", "project_id"),
)
tag_links("tasks")

Status = Annotated[
    Literal["todo", "in_progress", "in_review", "done", "cancelled"],
    "Any can become any. `done` and `cancelled` are closed and set `completed_at`; the others clear it.",
]
RELATIONS = ("client_id", "project_id", "milestone_id", "parent_id", "ticket_id")
OPEN = ("todo", "in_progress", "in_review")


class Task(Record):
    """Something to be done, in a project, for a client, or by itself."""

    title: Annotated[Text255, "What is to be done, in one line."]
    description: Annotated[Text20000 | None, "Details, kept as they were sent; `q` searches them."] = None
    client_id: Annotated[Id | None, "Follows from project, parent task or ticket, and must agree with them."] = None
    project_id: Annotated[Id | None, "Follows from milestone, parent task or ticket, and must agree with them."] = None
    milestone_id: Annotated[Id | None, "A milestone of the same project; null again when that is deleted."] = None
    parent_id: Annotated[
        Id | None, "Makes it a subtask of this task, in the same project; a subtask has none of its own."
    ] = None
    ticket_id: Annotated[Id | None, "Ticket that asked for it; null again when that is deleted."] = None
    status: Status = "todo"
    priority: Priority = "normal"
    assignee_id: Annotated[UserId | None, "User who does it, who must be active when chosen; null: nobody yet."] = None
    start_date: Annotated[Day | None, "First day of the work on it."] = None
    due_date: Annotated[Day | None, "Not before `start_date`; from the day after it an open task is overdue."] = None
    estimated_minutes: Annotated[
        Annotated[int, Meta(ge=0, le=1_000_000)] | None, "How long it should take; null: not estimated."
    ] = None
    billable: Annotated[
        bool, "Default of time on it. When left out, as the project is billed; without project, true with a client."
    ] = auto
    position: Annotated[Position, "Order within the project, lowest first; behind all others when left out."] = auto
    created_by_id: Annotated[Id, "User whose key created it."] = ro
    started_at: Annotated[Instant | None, "When it first became `in_progress`; never cleared."] = ro
    completed_at: Annotated[Instant | None, "When it became `done` or `cancelled`; null while it is open."] = ro
    external_id: ExternalId = None
    tag_ids: TagIds = []
    tracked_minutes: Annotated[
        int, work.minutes("task_id"), "Time on the task itself, without that on its subtasks."
    ] = ro
    remaining_minutes: Annotated[
        int | None,
        work.remaining("task_id"),
        "`estimated_minutes` less `tracked_minutes`, at least 0; null without an estimate.",
    ] = ro
    is_overdue: Annotated[
        bool, Derived(work.overdue(*OPEN), bool), "True while it is open and its `due_date` has passed."
    ] = ro
    subtasks_count: Annotated[
        int, work.count_of("tasks", "parent_id"), "Tasks whose `parent_id` is this one, in any status."
    ] = ro


TEMPLATES = select(projects.c.id).where(projects.c.is_template.is_(True))


def in_template(table: Table) -> ColumnElement[bool]:
    """Whether a task is of a template: a plan, and not work."""
    return table.c.project_id.in_(TEMPLATES)


class TaskFilter(Filter):
    """Which tasks; those of templates only when project_id or ids names them."""

    left_out = LeftOut(in_template, frozenset({"project_id", "ids"}))
    sorts = ("-created_at", "due_date", "priority", "position", "status", "updated_at")
    project_id: OneOf[Id | None] | None = None
    client_id: OneOf[Id] | None = None
    milestone_id: OneOf[Id | None] | None = None
    parent_id: OneOf[Id | None] | None = None
    ticket_id: OneOf[Id] | None = None
    assignee_id: OneOf[UserId | None] | None = None
    status: OneOf[Status] | None = None
    open: Annotated[
        bool | None, truth(lambda table: among(table.c.status, OPEN), "tasks that are neither `done` nor `cancelled`")
    ] = None
    priority: OneOf[Priority] | None = None
    billable: bool | None = None
    due_date_from: Annotated[Day | None, since("due_date")] = None
    due_date_to: Annotated[Day | None, until("due_date")] = None
    overdue: Annotated[bool | None, truth(work.overdue(*OPEN), "open tasks whose `due_date` has passed")] = None
    external_id: OneOf[Text191] | None = None
    tag_id: TagFilter = None


MILESTONE = select(milestones.c.project_id).where(milestones.c.id == bindparam("id"))
PARENT = select(*tasks.c["project_id", "client_id", "parent_id"]).where(tasks.c.id == bindparam("id"))
TICKET = select(*tickets.c["project_id", "client_id"]).where(tickets.c.id == bindparam("id"))
PROJECT = select(*projects.c["client_id", "status", "billing_type", "is_template"]).where(
    projects.c.id == bindparam("id")
)
LAST = select(func.coalesce(func.max(tasks.c.position), 0)).where(
    tasks.c.project_id.is_not_distinct_from(bindparam("project"))
)


def place(tx: Tx, it: Task, before: Task | None, given: relations.Given) -> None:
    """Milestone, parent and ticket say in which project a task is, the project says for which client."""
    inner = ("project_id", "milestone_id", "parent_id", "ticket_id")
    narrow = relations.first(relations.named(it, given, *inner), *inner)
    milestone = tx.one(MILESTONE, id=it.milestone_id) if it.milestone_id else None
    if milestone:
        relations.follow(tx, it, given, "milestone_id", "project_id", milestone[0])
    parent = tx.one(PARENT, id=it.parent_id) if it.parent_id else None
    if parent:
        if it.parent_id == it.id or parent[2] or (before and before.subtasks_count):
            tx.fault("parent_id", "Must be a task that is no subtask, of a task without subtasks: there is one level.")
        relations.follow(tx, it, given, "parent_id", "project_id", parent[0])
        if it.project_id is None:
            relations.follow(tx, it, given, "parent_id", "client_id", parent[1])
    ticket = tx.one(TICKET, id=it.ticket_id) if it.ticket_id else None
    if ticket and ticket[0] is not None:
        relations.follow(tx, it, given, "ticket_id", "project_id", ticket[0])
    project = tx.one(PROJECT, id=it.project_id) if it.project_id else None
    if project:
        relations.follow(tx, it, given, narrow, "client_id", project[0])
        if before is None or it.project_id != before.project_id:
            relations.open_for_more(tx, narrow, f"Project {it.project_id}", project[1])
    if ticket and ticket[0] is None and ticket[1] is not None:
        relations.follow(tx, it, given, "ticket_id", "client_id", ticket[1])
    if it.billable is None:
        # what is not billed in a template may be in its copies: there, only false that was sent is a choice
        billed = bool(project) and (project[2] != "non_billable" or project[3])
        it.billable = billed if project else it.client_id is not None


def settle(tx: Tx, it: Task, before: Task | None, given: relations.Given) -> Task:
    """Where a task belongs, who does it, and when it was begun and closed."""
    if it.billable is None or relations.said(before, given, *RELATIONS):
        place(tx, it, before, given)
    relations.user(tx, it, "assignee_id", before.assignee_id if before else None)
    relations.in_order(tx, it)
    it.created_by_id = it.created_by_id or tx.actor.user_id
    if it.position is None:
        it.position = relations.last_but(tx.value(LAST, project=it.project_id))
    if it.status == "in_progress":
        it.started_at = it.started_at or tx.now
    it.completed_at = None if it.status in OPEN else it.completed_at or tx.now
    return it


api = Resource("/tasks", tag="Tasks", scope="tasks", table=tasks)


@api.get()
def list_tasks(tx: Tx, only: TaskFilter, page: Page) -> Paged[Task]:
    """List tasks, newest first; those of templates only when project_id or ids names them."""
    return listing(tx, tasks, Task, only, page)


@api.post()
def create_task(tx: Tx, body: New[Task]) -> Task:
    """Create a task; the client follows from the project, the project from a milestone or a parent task."""
    task = tx.insert(tasks, settle(tx, body, None, relations.sent(body)))
    set_tags(tx, tasks, task, body.tag_ids, new=True)
    return tx.get(tasks, task, Task)


@api.get("/{task}")
def get_task(tx: Tx, task: Id) -> Task:
    """Read a task."""
    return tx.get(tasks, task, Task)


@api.put("/{task}")
@api.patch("/{task}")
def update_task(tx: Tx, task: Id, change: Change[Task]) -> Task:
    """Change a task; members left out keep their value. Its subtasks go with it into another project."""
    before = tx.get(tasks, task, Task)
    it = settle(tx, change.onto(before), before, change.given)
    changed = [name for name in ("project_id", "client_id", "ticket_id") if getattr(it, name) != getattr(before, name)]
    if changed:
        consequences.fixed_by_time(tx, "task", task, changed[0])
    tx.update(tasks, it)
    if changed and changed != ["ticket_id"]:
        consequences.of_task(tx, task, it.project_id, it.client_id)
    set_tags(tx, tasks, task, it.tag_ids)
    return tx.get(tasks, task, Task)


@api.delete("/{task}")
def delete_task(tx: Tx, task: Id) -> None:
    """Delete a task with its subtasks; time that was recorded on them stays, without a task."""
    tx.delete(tasks, etag.unchanged(tx, tx.get(tasks, task, Task)).id)
