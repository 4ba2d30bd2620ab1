"""What changes with a project or a task, because it is derived from it, and what fixes them once work was recorded."""

from functools import cache
from typing import Any

from sqlalchemy import Select, Update, bindparam, func, select, update

from retainer.crm.currency import MILESTONES_OF_PROJECT, redenominate
from retainer.schema.sites import sites
from retainer.schema.support import tickets
from retainer.schema.work import milestones, tasks, time_entries
from retainer.store.tx import Tx

REFERRING = [select(table.c.id).where(table.c.project_id == bindparam("of")).limit(1) for table in (tickets, sites)]
TASKS_OF_TICKET = select(func.count()).select_from(tasks).where(tasks.c.ticket_id == bindparam("of"))
HELD_BY_OTHERS = select(func.coalesce(func.sum(milestones.c.amount), 0)).where(
    milestones.c.project_id == bindparam("of"), milestones.c.id != bindparam("exclude_id")
)


def propagate_project(tx: Tx, project_id: int, client_id: int | None, currency: str) -> None:
    """Write a project's client to its tasks, and its currency to its milestones."""
    tx.run(_move_tasks("project_id", "client_id"), of=project_id, client_id=client_id, now=tx.now)
    redenominate(tx, milestones, MILESTONES_OF_PROJECT, project_id, currency, "client_id")


def propagate_task(tx: Tx, task_id: int, project_id: int | None, client_id: int | None) -> None:
    """Write a task's project and client to its subtasks, which leave the milestones of the former project."""
    moved = {"project_id": project_id, "client_id": client_id, "milestone_id": None}
    tx.run(_move_tasks("parent_id", *moved), of=task_id, now=tx.now, **moved)


def is_referred_to(tx: Tx, project_id: int) -> bool:
    """Whether tickets or sites refer to a project."""
    return any(tx.one(statement, of=project_id) for statement in REFERRING)


def check_no_time(tx: Tx, noun: str, record_id: int, field: str) -> None:
    """Note an error when time was recorded on a `task` or `ticket`, or on a task within; a ticket is fixed by tasks."""
    entries = tx.value(_entries_on(noun), of=record_id)
    if entries:
        count = "1 time entry is" if entries == 1 else f"{entries} time entries are"
        tx.error(field, f"Is fixed while {count} on the {noun} or the tasks within. Move them first.")
    elif noun == "ticket":
        _check_no_tasks(tx, record_id, field)


def held_by_milestones(tx: Tx, project_id: int, exclude_id: int = 0) -> int:
    """How much of a project's fixed fee its milestones hold, but for one of them; in minor units."""
    held: int = tx.value(HELD_BY_OTHERS, of=project_id, exclude_id=exclude_id)
    return held


def _check_no_tasks(tx: Tx, ticket_id: int, field: str) -> None:
    count = tx.value(TASKS_OF_TICKET, of=ticket_id)
    if count:
        belong = "1 task belongs" if count == 1 else f"{count} tasks belong"
        tx.error(field, f"Is fixed while {belong} to the ticket. Move them first.")


@cache
def _move_tasks(of: str, *names: str) -> Update:
    values: dict[str, Any] = {name: bindparam(name) for name in names}
    return update(tasks).where(tasks.c[of] == bindparam("of")).values(updated_at=bindparam("now"), **values)


@cache
def _entries_on(noun: str) -> Select[Any]:
    within = tasks.c.parent_id if noun == "task" else tasks.c.ticket_id
    on_tasks = time_entries.c.task_id.in_(select(tasks.c.id).where(within == bindparam("of")))
    on_record = time_entries.c[f"{noun}_id"] == bindparam("of")
    return select(func.count()).select_from(time_entries).where(on_record | on_tasks)
