"""Propagation: writing the client and currency of a project, and the project of a task, to the records below."""

from functools import cache

from sqlalchemy import ColumnElement, Select, Update, bindparam, func, select

from retainer.crm.currency import MILESTONES_OF_PROJECT, redenominate
from retainer.rollups.changes import changing
from retainer.rollups.sources import TASKS
from retainer.schema.sites import sites
from retainer.schema.support import tickets
from retainer.schema.work import milestones, tasks, time_entries
from retainer.store.announcements import updating
from retainer.store.tx import Tx

REFERRING = [
    select(table.c.id).where(table.c.project_id == bindparam("project")).limit(1) for table in (tickets, sites)
]
TASKS_OF_TICKET = select(func.count()).select_from(tasks).where(tasks.c.ticket_id == bindparam("ticket"))
MILESTONE_SUM = select(func.coalesce(func.sum(milestones.c.amount), 0)).where(
    milestones.c.project_id == bindparam("project"), milestones.c.id != bindparam("exclude_id")
)


def propagate_project(tx: Tx, project_id: int, client_id: int | None, currency: str) -> None:
    """Write a project's client to its tasks, and its currency to its milestones.

    Notes an error of `client_id` if an amount has more decimal places than the currency.
    """
    tx.run(_update_tasks("project_id", "client_id"), owner_id=project_id, client_id=client_id)
    redenominate(tx, milestones, MILESTONES_OF_PROJECT, project_id, currency, "client_id")


def propagate_task(tx: Tx, task_id: int, project_id: int | None, client_id: int | None) -> None:
    """Write a task's project and client to its subtasks, and remove the milestones of the former project."""
    values = {"project_id": project_id, "client_id": client_id, "milestone_id": None}
    with changing(tx, TASKS, task_id, by="parent_id"):
        tx.run(_update_tasks("parent_id", *values), owner_id=task_id, **values)


def is_referred_to(tx: Tx, project_id: int) -> bool:
    return any(tx.one(statement, project=project_id) for statement in REFERRING)


def validate_no_time(tx: Tx, noun: str, record_id: int, field: str) -> None:
    """Note an error if a `task` or `ticket` has time, also on its subtasks or tasks, or if a ticket has tasks."""
    entries = tx.value(_count_entries(noun), record_id=record_id)
    if entries:
        parts = "subtasks" if noun == "task" else "tasks"
        count = "1 time entry is" if entries == 1 else f"{entries} time entries are"
        tx.error(field, f"Is fixed while {count} on the {noun} or its {parts}. Move them first.")
    elif noun == "ticket":
        count = tx.value(TASKS_OF_TICKET, ticket=record_id)
        if count:
            belong = "1 task belongs" if count == 1 else f"{count} tasks belong"
            tx.error(field, f"Is fixed while {belong} to the ticket. Move them first.")


def sum_milestone_amounts(tx: Tx, project_id: int, *, exclude_id: int = 0) -> int:
    """Return the sum of a project's milestones in minor units, without one of them."""
    units: int = tx.value(MILESTONE_SUM, project=project_id, exclude_id=exclude_id)
    return units


@cache
def _update_tasks(owner: str, *names: str) -> Update:
    values: dict[str, ColumnElement[object]] = {name: bindparam(name) for name in names}
    return updating(tasks, tasks.c[owner] == bindparam("owner_id"), values=values)


@cache
def _count_entries(noun: str) -> Select[int]:
    owner = tasks.c.parent_id if noun == "task" else tasks.c.ticket_id
    on_tasks = time_entries.c.task_id.in_(select(tasks.c.id).where(owner == bindparam("record_id")))
    on_record = time_entries.c[f"{noun}_id"] == bindparam("record_id")
    return select(func.count()).select_from(time_entries).where(on_record | on_tasks)
