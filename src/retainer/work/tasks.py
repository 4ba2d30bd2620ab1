"""Tasks: the work to be done, with assignee, due date and estimate.

The project follows from a milestone, a parent task or a ticket, the client from the project. Subtasks move with their
task to another project; once time was recorded on any of them, project and client are fixed. `tracked_minutes` is the
time on the task itself, without its subtasks.

Tasks of templates are a plan. Lists exclude them unless `project_id` or `ids` names them, and reports never count them.
Their `billable` is that of their copies, if the copy's project can be billed.
"""

from typing import Annotated, Literal, NamedTuple

from msgspec import Meta
from sqlalchemy import ColumnElement, Table, bindparam, func, select

from retainer.crm.tags import TagFilter, TagIds, insert_tagged, update_tagged
from retainer.errors import Refusal, part
from retainer.kernel.body import New, Patch
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.kernel.roles import may
from retainer.rollups import changes
from retainer.rollups.sources import TASKS
from retainer.schema import expressions
from retainer.schema.columns import in_literals
from retainer.schema.crm import clients
from retainer.schema.filters import DefaultExclusion, since, truth, until
from retainer.schema.identity import users
from retainer.schema.support import tickets
from retainer.schema.work import milestones, projects, tasks
from retainer.shared import relations
from retainer.store.announcements import updating
from retainer.store.row_mapper import Derived
from retainer.store.tx import Tx
from retainer.values.common import ExternalId, Minutes, Priority
from retainer.values.kinds import Code191, Day, Id, Instant, Position, Text255, Text20000, UserId
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, Record

Status = Annotated[
    Literal["todo", "in_progress", "in_review", "done", "cancelled"],
    Meta(title="TaskStatus"),
    "Every change is possible. `done` and `cancelled` set `completed_at`; the others clear it.",
]
RELATIONS = ("client_id", "project_id", "milestone_id", "parent_id", "ticket_id")
OPEN = ("todo", "in_progress", "in_review")


class Task(Record):
    """Work to be done, in a project, for a client, or on its own."""

    title: Annotated[Text255, "The work to be done, in one line."]
    description: Annotated[Text20000 | None, "Details, stored as sent. `q` searches them."] = None
    client_id: Annotated[Id | None, "Follows from project, parent task or ticket, and must match them."] = None
    project_id: Annotated[Id | None, "Follows from milestone, parent task or ticket, and must match them."] = None
    milestone_id: Annotated[Id | None, "A milestone of the same project. Becomes null when it is deleted."] = None
    parent_id: Annotated[
        Id | None, "Makes the task a subtask of this one, in the same project. A subtask has no subtasks."
    ] = None
    ticket_id: Annotated[Id | None, "Ticket that the task belongs to. Becomes null when it is deleted."] = None
    status: Status = "todo"
    priority: Priority = "normal"
    assignee_id: Annotated[UserId | None, "The active user to whom the task is assigned; null: unassigned."] = None
    start_date: Annotated[Day | None, "First day of the work."] = None
    due_date: Annotated[Day | None, "Not before `start_date`. An open task is overdue from the next day on."] = None
    estimated_minutes: Annotated[
        Annotated[Minutes, Meta(ge=0, le=1_000_000)] | None, "Estimated effort; null: no estimate."
    ] = None
    billable: Annotated[
        bool, "Default for time on the task. Default: as the project; without one, billable for a client."
    ] = SERVER_DEFAULT
    position: Annotated[Position, "Order within the project, lowest first. Default: the last."] = SERVER_DEFAULT
    created_by_id: Annotated[Id, "User whose key created it."] = READ_ONLY
    started_at: Annotated[Instant | None, "When the task first became `in_progress`; never cleared."] = READ_ONLY
    completed_at: Annotated[Instant | None, "When the task became `done` or `cancelled`; null while it is open."] = (
        READ_ONLY
    )
    external_id: ExternalId = None
    tag_ids: TagIds = []
    tracked_minutes: Annotated[Minutes, "Time on the task itself, without its subtasks."] = READ_ONLY
    remaining_minutes: Annotated[
        Minutes | None,
        Derived(lambda table: table.c.estimated_minutes - table.c.tracked_minutes, lambda minutes: max(0, minutes)),
        "`estimated_minutes` less `tracked_minutes`, at least 0; null without an estimate.",
    ] = READ_ONLY
    is_overdue: Annotated[
        bool, Derived(expressions.overdue(*OPEN), bool), "True if the task is open and its `due_date` has passed."
    ] = READ_ONLY
    subtasks_count: Annotated[int, "Tasks whose `parent_id` is this one, in any status."] = READ_ONLY


TEMPLATES = select(projects.c.id).where(projects.c.is_template.is_(True))
TEMPLATE_TASKS = select(func.coalesce(func.sum(projects.c.tasks_count), 0)).where(projects.c.is_template.is_(True))


def in_template(table: Table) -> ColumnElement[bool]:
    return table.c.project_id.in_(TEMPLATES)


class TaskFilter(Filter):
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
    external_id: OneOf[Code191] | None = None
    tag_id: TagFilter = None


class TaskProject(NamedTuple):
    client_id: int | None
    status: str
    billing_type: str
    is_template: bool
    client_status: str | None


PROJECT = (
    select(*projects.c[TaskProject._fields[:-1]], clients.c.status)
    .select_from(projects.outerjoin(clients, clients.c.id == projects.c.client_id))
    .where(projects.c.id == bindparam("id"))
)
LAST_POSITION = select(func.coalesce(func.max(tasks.c.position), 0)).where(
    tasks.c.project_id.is_not_distinct_from(bindparam("project"))
)
MOVE_SUBTASKS = updating(
    tasks,
    tasks.c.parent_id == bindparam("task"),
    values={"project_id": bindparam("project_id"), "client_id": bindparam("client_id"), "milestone_id": None},
)
"""Milestones of the former project are removed."""
SUBTASK_OF_COLLEAGUE = (
    select(tasks.c.id, users.c.name, users.c.id)
    .select_from(tasks.join(users, users.c.id == tasks.c.assignee_id))
    .where(tasks.c.parent_id == bindparam("task"), users.c.id != bindparam("user"))
    .order_by(tasks.c.id)
    .limit(1)
)


def build_task(tx: Tx, task: Task, before: Task | None, sent: relations.SentFields) -> Task:
    parent = project = None
    if task.billable is None or relations.sets_any(before, sent, *RELATIONS):
        parent, project = derive_parents(tx, task, sent)
    task.assignee_id = relations.read_user(tx, "assignee_id", task.assignee_id, getattr(before, "assignee_id", None))
    task.created_by_id = task.created_by_id or tx.actor.user_id
    if task.billable is None:
        # a template may be copied into a billed project: in a template, only a false that was sent is a choice
        is_billed = project is not None and (project.billing_type != "non_billable" or bool(project.is_template))
        task.billable = is_billed if project else task.client_id is not None
    if task.position is None:
        task.position = relations.next_position(tx.value(LAST_POSITION, project=task.project_id))
    if task.status == "in_progress":
        task.started_at = task.started_at or tx.now
    task.completed_at = None if task.status in OPEN else task.completed_at or tx.now
    if parent and (task.parent_id == task.id or parent.parent_id or (before and before.subtasks_count)):
        tx.error("parent_id", "Must not be a subtask, and this task must not have subtasks: there is one level.")
    if project and (before is None or task.project_id != before.project_id):
        field = relations.first_sent(task, sent, *RELATIONS[1:])
        relations.validate_open(tx, field, part(f"Project {task.project_id}"), project.status)
    field, status = relations.first_sent(task, sent, *RELATIONS), project.client_status if project else None
    relations.validate_client_open(tx, field, task, before, status)
    relations.validate_date_order(tx, task)
    return task


def derive_parents(
    tx: Tx, task: Task, sent: relations.SentFields
) -> tuple[relations.Parent | None, TaskProject | None]:
    """Derive the project from milestone, parent or ticket, and the client; return the parent task and the project."""
    milestone = relations.load_row(tx, relations.Parent, milestones, task.milestone_id)
    if milestone:
        relations.inherit(tx, task, sent, "milestone_id", "project_id", milestone.project_id)
    parent = relations.load_row(tx, relations.Parent, tasks, task.parent_id)
    if parent:
        relations.inherit(tx, task, sent, "parent_id", "project_id", parent.project_id)
        if task.project_id is None:
            relations.inherit(tx, task, sent, "parent_id", "client_id", parent.client_id)
    ticket = relations.load_row(tx, relations.Parent, tickets, task.ticket_id)
    if ticket and ticket.project_id is not None:
        relations.inherit(tx, task, sent, "ticket_id", "project_id", ticket.project_id)
    row = tx.one(PROJECT, id=task.project_id) if task.project_id else None
    project = TaskProject(*row) if row else None
    if project:
        narrow = relations.first_sent(task, sent, *RELATIONS[1:])
        relations.inherit(tx, task, sent, narrow, "client_id", project.client_id)
    if ticket and ticket.project_id is None and ticket.client_id is not None:
        relations.inherit(tx, task, sent, "ticket_id", "client_id", ticket.client_id)
    return parent, project


api = Resource("/tasks", tag="Tasks", scope="tasks", table=tasks)
api.lists(Task, TaskFilter, "List tasks, newest first; tasks of templates only if `project_id` or `ids` names them.")


@api.post()
def create_task(tx: Tx, body: New[Task]) -> Task:
    """Create a task. The client follows from the project, the project from a milestone or a parent task."""
    return insert_tagged(tx, tasks, build_task(tx, body, None, relations.sent_fields(body)))


api.reads("/{task_id}", Task, "Read a task.")


@api.put("/{task_id}")
@api.patch("/{task_id}")
def update_task(tx: Tx, task_id: Id, patch: Patch[Task]) -> Task:
    """Change a task; omitted fields keep their value. Subtasks move with their task to another project."""
    before = tx.get(tasks, task_id, Task)
    after = build_task(tx, patch.apply_to(before), before, patch.given)
    changed = [
        name for name in ("project_id", "client_id", "ticket_id") if getattr(after, name) != getattr(before, name)
    ]
    if changed:
        relations.validate_no_time(tx, "task", task_id, changed[0])
    after = update_tagged(tx, tasks, before, after)
    if before.subtasks_count and changed and changed != ["ticket_id"]:
        with changes.changing(tx, TASKS, task_id, by="parent_id"):
            tx.run(MOVE_SUBTASKS, task=task_id, project_id=after.project_id, client_id=after.client_id)
    return after


@api.delete("/{task_id}")
def delete_task(tx: Tx, task_id: Id) -> None:
    """Delete a task with its subtasks; time that was recorded on them stays, without a task.

    A member's key deletes no task with a colleague's subtask.
    """
    before = tx.get(tasks, task_id, Task)
    if before.subtasks_count and not may(tx.actor, "records"):
        found = tx.one(SUBTASK_OF_COLLEAGUE, task=task_id, user=tx.actor.user_id)
        if found is not None:
            whose = f"Its subtask {found[0]} is assigned to {found[1]} (user {found[2]})."
            message = f"{whose} Delete that one first, or ask an admin or a manager to delete both."
            raise Refusal("not_owner", message, errors={"tasks": [message]})
    changes.delete(tx, tasks, before)
