"""Tasks: what is to be done, by whom, and until when.

The project follows from a milestone, a parent task or a ticket, the client from the project. Subtasks go with their
task into another project; once time was recorded on any of them, project and client are fixed. `tracked_minutes` is the
time on the task itself, without that on its subtasks.

Tasks of templates are a plan and not work: lists leave them out unless `project_id` names the template, or `ids` them;
reports never count them. Whether they are billable is what their copies are, where those can be billed at all.
"""

from typing import Annotated, Literal, NamedTuple

from msgspec import Meta
from sqlalchemy import ColumnElement, Table, bindparam, func, select

from retainer.crm.tags import TagFilter, TagIds, set_tags
from retainer.kernel import etag
from retainer.kernel.body import New, Patch
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups import changes
from retainer.rollups.sources import TASKS
from retainer.schema import expressions
from retainer.schema.columns import in_literals
from retainer.schema.crm import clients
from retainer.schema.filters import DefaultExclusion, since, truth, until
from retainer.schema.support import tickets
from retainer.schema.work import milestones, projects, tasks
from retainer.shared import relations
from retainer.store.records import Derived
from retainer.store.tx import Tx
from retainer.values.common import ExternalId, Priority
from retainer.values.kinds import Day, Id, Instant, Position, Text191, Text255, Text20000, UserId
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, Record
from retainer.work import progress, propagation

Status = Annotated[
    Literal["todo", "in_progress", "in_review", "done", "cancelled"],
    Meta(title="TaskStatus"),
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
    ] = SERVER_DEFAULT
    position: Annotated[Position, "Order within the project, lowest first; behind all others when left out."] = (
        SERVER_DEFAULT
    )
    created_by_id: Annotated[Id, "User whose key created it."] = READ_ONLY
    started_at: Annotated[Instant | None, "When it first became `in_progress`; never cleared."] = READ_ONLY
    completed_at: Annotated[Instant | None, "When it became `done` or `cancelled`; null while it is open."] = READ_ONLY
    external_id: ExternalId = None
    tag_ids: TagIds = []
    tracked_minutes: Annotated[int, "Time on the task itself, without that on its subtasks."] = READ_ONLY
    remaining_minutes: Annotated[
        int | None,
        progress.REMAINING,
        "`estimated_minutes` less `tracked_minutes`, at least 0; null without an estimate.",
    ] = READ_ONLY
    is_overdue: Annotated[
        bool, Derived(expressions.overdue(*OPEN), bool), "True while it is open and its `due_date` has passed."
    ] = READ_ONLY
    subtasks_count: Annotated[int, "Tasks whose `parent_id` is this one, in any status."] = READ_ONLY


TEMPLATES = select(projects.c.id).where(projects.c.is_template.is_(True))
TEMPLATE_TASKS = select(func.coalesce(func.sum(projects.c.tasks_count), 0)).where(projects.c.is_template.is_(True))


def in_template(table: Table) -> ColumnElement[bool]:
    """Whether a task belongs to a template: a plan, and not work."""
    return table.c.project_id.in_(TEMPLATES)


class TaskFilter(Filter):
    """Which tasks; those of templates only when project_id or ids names them."""

    default_exclusion = DefaultExclusion(in_template, frozenset({"project_id", "ids"}), TEMPLATE_TASKS)
    sorts = ("-created_at", "due_date", "priority", "position", "status", "updated_at")
    project_id: OneOf[Id | None] | None = None
    client_id: OneOf[Id] | None = None
    milestone_id: OneOf[Id | None] | None = None
    parent_id: OneOf[Id | None] | None = None
    ticket_id: OneOf[Id] | None = None
    assignee_id: OneOf[UserId | None] | None = None
    status: OneOf[Status] | None = None
    open: Annotated[
        bool | None,
        truth(lambda table: in_literals(table.c.status, OPEN), "tasks that are neither `done` nor `cancelled`"),
    ] = None
    priority: OneOf[Priority] | None = None
    billable: bool | None = None
    due_date_from: Annotated[Day | None, since("due_date")] = None
    due_date_to: Annotated[Day | None, until("due_date")] = None
    overdue: Annotated[bool | None, truth(expressions.overdue(*OPEN), "open tasks whose `due_date` has passed")] = None
    external_id: OneOf[Text191] | None = None
    tag_id: TagFilter = None


class ParentTask(NamedTuple):
    """The task of a subtask, as far as the subtask follows from it."""

    project_id: int | None
    client_id: int | None
    parent_id: int | None


class TaskProject(NamedTuple):
    """The project of a task, as far as the task follows from it."""

    client_id: int | None
    status: str
    billing_type: str
    is_template: bool
    client_status: str | None


MILESTONE = select(milestones.c.project_id).where(milestones.c.id == bindparam("id"))
PARENT = select(*tasks.c[ParentTask._fields]).where(tasks.c.id == bindparam("id"))
TICKET = select(*tickets.c["project_id", "client_id"]).where(tickets.c.id == bindparam("id"))
PROJECT = (
    select(*projects.c[TaskProject._fields[:-1]], clients.c.status)
    .select_from(projects.outerjoin(clients, clients.c.id == projects.c.client_id))
    .where(projects.c.id == bindparam("id"))
)
CLIENT = select(clients.c.status).where(clients.c.id == bindparam("id"))
LAST_POSITION = select(func.coalesce(func.max(tasks.c.position), 0)).where(
    tasks.c.project_id.is_not_distinct_from(bindparam("project"))
)


def derive_parents(tx: Tx, task: Task, before: Task | None, sent: relations.SentFields) -> None:
    """Derive a task's project from milestone, parent or ticket, and its client from the project.

    Relations that disagree are noted as errors of the narrower one, and those to a project or client that takes nothing
    new. `sent` holds the fields of the body, and gets those that followed from them.
    """
    named = relations.named_fields(task, sent, *RELATIONS)
    narrow = relations.first_named(named, *RELATIONS[1:])
    milestone = tx.one(MILESTONE, id=task.milestone_id) if task.milestone_id else None
    if milestone:
        relations.derive_parent(tx, task, sent, "milestone_id", "project_id", milestone[0])
    parent = _load_parent(tx, task)
    if parent:
        if task.parent_id == task.id or parent.parent_id or (before and before.subtasks_count):
            tx.error("parent_id", "Must be a task that is no subtask, of a task without subtasks: there is one level.")
        relations.derive_parent(tx, task, sent, "parent_id", "project_id", parent.project_id)
        if task.project_id is None:
            relations.derive_parent(tx, task, sent, "parent_id", "client_id", parent.client_id)
    ticket = tx.one(TICKET, id=task.ticket_id) if task.ticket_id else None
    if ticket and ticket[0] is not None:
        relations.derive_parent(tx, task, sent, "ticket_id", "project_id", ticket[0])
    project = _load_project(tx, task)
    if project:
        relations.derive_parent(tx, task, sent, narrow, "client_id", project.client_id)
        if before is None or task.project_id != before.project_id:
            relations.check_open(tx, narrow, f"Project {task.project_id}", project.status)
    if ticket and ticket[0] is None and ticket[1] is not None:
        relations.derive_parent(tx, task, sent, "ticket_id", "client_id", ticket[1])
    check_client_open(tx, task, before, project, relations.first_named(named, *RELATIONS))
    if task.billable is None:
        # what is not billed in a template may be in its copies: there, only false that was sent is a choice
        is_billed = project is not None and (project.billing_type != "non_billable" or project.is_template)
        task.billable = is_billed if project else task.client_id is not None


def check_client_open(tx: Tx, task: Task, before: Task | None, project: TaskProject | None, field: str) -> None:
    """Note an error of a field when a task comes to an archived client."""
    if task.client_id is not None and (before is None or task.client_id != before.client_id):
        status = project.client_status if project else tx.value(CLIENT, id=task.client_id)
        relations.check_open(tx, field, f"Client {task.client_id}", status)


def _load_parent(tx: Tx, task: Task) -> ParentTask | None:
    row = tx.one(PARENT, id=task.parent_id) if task.parent_id else None
    return ParentTask(*row) if row else None


def _load_project(tx: Tx, task: Task) -> TaskProject | None:
    row = tx.one(PROJECT, id=task.project_id) if task.project_id else None
    return TaskProject(*row) if row else None


def prepare(tx: Tx, task: Task, before: Task | None, sent: relations.SentFields) -> Task:
    """Fill in where a task belongs, who does it, its position, and when it was begun and completed."""
    if task.billable is None or relations.concerns(before, sent, *RELATIONS):
        derive_parents(tx, task, before, sent)
    relations.resolve_user(tx, task, "assignee_id", before.assignee_id if before else None)
    relations.check_date_order(tx, task)
    task.created_by_id = task.created_by_id or tx.actor.user_id
    if task.position is None:
        task.position = relations.next_position(tx.value(LAST_POSITION, project=task.project_id))
    if task.status == "in_progress":
        task.started_at = task.started_at or tx.now
    task.completed_at = None if task.status in OPEN else task.completed_at or tx.now
    return task


api = Resource("/tasks", tag="Tasks", scope="tasks", table=tasks)


@api.get()
def list_tasks(tx: Tx, filters: TaskFilter, page: Page) -> Paged[Task]:
    """List tasks, newest first; those of templates only when project_id or ids names them."""
    return listing(tx, tasks, Task, filters, page)


@api.post()
def create_task(tx: Tx, body: New[Task]) -> Task:
    """Create a task; the client follows from the project, the project from a milestone or a parent task."""
    task_id = changes.insert(tx, TASKS, tasks, prepare(tx, body, None, relations.sent_fields(body)))
    set_tags(tx, tasks, task_id, body, body.tag_ids)
    return tx.get(tasks, task_id, Task)


@api.get("/{task_id}")
def get_task(tx: Tx, task_id: Id) -> Task:
    """Read a task."""
    return tx.get(tasks, task_id, Task)


@api.put("/{task_id}")
@api.patch("/{task_id}")
def update_task(tx: Tx, task_id: Id, patch: Patch[Task]) -> Task:
    """Change a task; members left out keep their value. Its subtasks go with it into another project."""
    before = tx.get(tasks, task_id, Task)
    after = prepare(tx, patch.apply_to(before), before, patch.given)
    changed = [
        name for name in ("project_id", "client_id", "ticket_id") if getattr(after, name) != getattr(before, name)
    ]
    if changed:
        propagation.check_no_time(tx, "task", task_id, changed[0])
    changes.update(tx, TASKS, tasks, before, after)
    if before.subtasks_count and changed and changed != ["ticket_id"]:
        propagation.propagate_task(tx, task_id, after.project_id, after.client_id)
    set_tags(tx, tasks, task_id, after, after.tag_ids, before.tag_ids)
    return tx.get(tasks, task_id, Task)


@api.delete("/{task_id}")
def delete_task(tx: Tx, task_id: Id) -> None:
    """Delete a task with its subtasks; time that was recorded on them stays, without a task."""
    changes.delete(tx, tasks, etag.check_unchanged(tx, tasks, tx.get(tasks, task_id, Task)))
