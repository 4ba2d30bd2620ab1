"""Consequences: what changes with a client, a project or a task, because it is derived from them."""

from collections.abc import Callable
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, Update, bindparam, func, select, update

from retainer.domain import work
from retainer.exact import amount_of, minor_units
from retainer.store.rules import singular
from retainer.store.tables import metadata
from retainer.store.tx import Tx


def of_client(tx: Tx, client: int, currency: str) -> None:
    """A client's currency is that of its projects and their milestones; the figures stay as they are."""
    _denominate(tx, "milestones", _of_client, client, currency, "currency")
    _denominate(tx, "projects", _of_client, client, currency, "currency")
    work.recount(tx, "client_id", client)


def of_project(tx: Tx, project: int, client: int | None, currency: str) -> None:
    """A project's client is that of its tasks, and its currency that of its milestones."""
    tx.run(_moved("project_id", "client_id"), of=project, client_id=client, now=tx.now)
    _denominate(tx, "milestones", _of_project, project, currency, "client_id")


def cared_for(tx: Tx, project: int) -> bool:
    """Whether tickets or sites refer to a project."""
    return any(tx.one(_of_care(name), of=project) for name in ("tickets", "sites"))


@cache
def _of_care(name: str) -> Select[Any]:
    its = metadata.tables[name]
    return select(its.c.id).where(its.c.project_id == bindparam("of")).limit(1)


def fixed_by_time(tx: Tx, what: str, own: int, member: str) -> None:
    """A task's or ticket's project and client are fixed once time is on it or on a task within; a ticket's by tasks."""
    entries = tx.value(_entries_on(what), of=own)
    if entries:
        count = "1 time entry is" if entries == 1 else f"{entries} time entries are"
        tx.fault(member, f"Is fixed while {count} on the {what} or the tasks within. Move them first.")
    elif what == "ticket":
        _fixed_by_tasks(tx, own, member)


def of_task(tx: Tx, task: int, project: int | None, client: int | None) -> None:
    """A task's project and client are those of its subtasks, which leave the milestones of the former project."""
    moved = {"project_id": project, "client_id": client, "milestone_id": None}
    tx.run(_moved("parent_id", *moved), of=task, now=tx.now, **moved)


@cache
def _moved(of: str, *names: str) -> Update:
    tasks = metadata.tables["tasks"]
    values: dict[str, Any] = {name: bindparam(name) for name in names}
    return update(tasks).where(tasks.c[of] == bindparam("of")).values(updated_at=bindparam("now"), **values)


def _fixed_by_tasks(tx: Tx, ticket: int, member: str) -> None:
    tasks = tx.value(_tasks_of(), of=ticket)
    if tasks:
        count = "1 task belongs" if tasks == 1 else f"{tasks} tasks belong"
        tx.fault(member, f"Is fixed while {count} to the ticket. Move them first.")


@cache
def _tasks_of() -> Select[Any]:
    tasks = metadata.tables["tasks"]
    return select(func.count()).select_from(tasks).where(tasks.c.ticket_id == bindparam("of"))


@cache
def _entries_on(what: str) -> Select[Any]:
    tasks, entries = metadata.tables["tasks"], metadata.tables["time_entries"]
    within = tasks.c.parent_id if what == "task" else tasks.c.ticket_id
    on_tasks = entries.c.task_id.in_(select(tasks.c.id).where(within == bindparam("of")))
    its = entries.c[f"{what}_id"] == bindparam("of")
    return select(func.count()).select_from(entries).where(its | on_tasks)


def sliced(tx: Tx, project: int, without: int = 0) -> int:
    """How much of a project's fixed fee its milestones hold, but for one of them; in minor units."""
    held: int = tx.value(_sliced(), of=project, without=without)
    return held


@cache
def _sliced() -> Select[Any]:
    milestones = metadata.tables["milestones"]
    others = (milestones.c.project_id == bindparam("of")) & (milestones.c.id != bindparam("without"))
    return select(func.coalesce(func.sum(milestones.c.amount), 0)).where(others)


def _of_client(table: Table) -> ColumnElement[bool]:
    projects = metadata.tables["projects"]
    its = projects.c.client_id == bindparam("of")
    return its if table is projects else table.c.project_id.in_(select(projects.c.id).where(its))


def _of_project(table: Table) -> ColumnElement[bool]:
    return table.c.project_id == bindparam("of")


@cache
def _priced(name: str, which: Callable[[Table], ColumnElement[bool]]) -> tuple[list[str], Select[Any], Update]:
    """The amounts of a table, the rows that are meant, and the change of one of them."""
    table = metadata.tables[name]
    names = [column.name for column in table.c if column.info.get("money") and column.nullable]  # sums are counted anew
    values: dict[str, Any] = {name: bindparam(name) for name in (*names, "currency")}
    change = update(table).where(table.c.id == bindparam("own")).values(updated_at=bindparam("now"), **values)
    return names, select(*table.c["id", "currency", *names]).where(which(table)), change


def _denominate(tx: Tx, name: str, which: Any, of: int, currency: str, member: str) -> None:
    """Write amounts anew in another currency; one that it cannot hold is a fault of the member that changes it."""
    names, rows, change = _priced(name, which)
    for row_id, former, *amounts in tx.all(rows, of=of):
        if former == currency:
            continue
        values = dict(zip(names, amounts, strict=True))
        try:
            for priced, units in values.items():
                values[priced] = None if units is None else minor_units(amount_of(units, former), currency)
        except ValueError as error:
            tx.fault(member, f"{error} It stands in {singular(metadata.tables[name])} {row_id}.")
        else:
            tx.run(change, own=row_id, now=tx.now, currency=currency, **values)
