"""Unbilled work: everything of a client that is billable and not yet billed, as lines of an invoice."""

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from sqlalchemy import Select, Table, bindparam, literal, or_, select

from retainer.billing import documents
from retainer.billing.lines import LONGEST_WORDS, MOST_PIECES, Ids, InvoiceLine, new_line
from retainer.schema import expressions
from retainer.schema.billing import expenses
from retainer.schema.crm import clients
from retainer.schema.identity import users
from retainer.schema.work import projects, tasks, time_entries
from retainer.store import constraints
from retainer.store.tx import Tx
from retainer.values.kinds import Day


class UnbilledTime(msgspec.Struct):
    """Which time to bill, and how it is put together: one line for each entry, task, user or project."""

    project_ids: Annotated[
        Ids | None,
        "Only time on these projects; left out, all but that on fixed-fee and retainer projects, which the fee covers.",
    ] = None
    from_: Annotated[Day | None, "First day of the time, included; null: no limit."] = msgspec.field(
        name="from", default=None
    )
    to: Annotated[Day | None, "Last day of the time, included; null: no limit."] = None
    group_by: Annotated[
        Literal["entry", "task", "user", "project"], "What there is one line for; no line mixes projects."
    ] = "project"


class UnbilledExpenses(msgspec.Struct):
    """Which expenses to bill, and how they are put together: one line for each expense, category or project."""

    project_ids: Annotated[Ids | None, "Only expenses for these projects; null: all."] = None
    from_: Annotated[Day | None, "First day of the expenses, included; null: no limit."] = msgspec.field(
        name="from", default=None
    )
    to: Annotated[Day | None, "Last day of the expenses, included; null: no limit."] = None
    group_by: Annotated[
        Literal["entry", "category", "project"], "What there is one line for; no line mixes projects."
    ] = "project"


class UnbilledWork(msgspec.Struct):
    """Which work to bill: what is billable, not yet billed, of the invoice's client and in its currency."""

    time: Annotated[UnbilledTime | None, "Which time to bill, `{}` for all; null: none."] = None
    expenses: Annotated[UnbilledExpenses | None, "Which expenses to bill, `{}` for all; null: none."] = None


FIRST, LAST = "0001-01-01", "9999-12-31"
WITHOUT = {
    ("time", "task"): "Other work",
    ("time", "project"): "Work without a project",
    ("expenses", "project"): "Expenses without a project",
}
BY = {"task": (tasks, "task_id", "title"), "user": (users, "user_id", "name")}
PROJECT_CLIENT = select(projects.c.client_id).where(projects.c.id == bindparam("id"))


def gather(tx: Tx, asked: UnbilledWork, invoice: Any) -> list[InvoiceLine]:
    """Lines for all work that was asked for; `nothing_to_bill` is noted when there is none."""
    if asked.time is None and asked.expenses is None:
        tx.error("unbilled_work", 'Say what to bill: {"time": {}}, {"expenses": {}}, or both.')
        return []
    made: list[InvoiceLine] = []
    for name, member, its in (("time", "time_entry_ids", asked.time), ("expenses", "expense_ids", asked.expenses)):
        if its is not None:
            check(tx, f"unbilled_work.{name}", its, invoice.client_id)
            named = {own for line in documents.identified(invoice.lines) for own in getattr(line, member)}
            for description, ids in grouped(tx, name, its, invoice, named):
                made.append(new_line(description=description, **{member: ids}))
    if not made and not tx.errors and tx.one(constraints.exists(clients), id=invoice.client_id):
        sentence = f"Client {invoice.client_id} has nothing in {invoice.currency} that is billable and not yet billed"
        tx.error("unbilled_work", f"{sentence}, among what was asked for.", "nothing_to_bill")
    return made


def check(tx: Tx, where: str, its: Any, client: int | None) -> None:
    """Note a fault for each project that is not the client's, and for days in the wrong order."""
    for place, project in enumerate(its.project_ids or ()):
        row = tx.one(PROJECT_CLIENT, id=project)
        if row is None:
            tx.error(f"{where}.project_ids.{place}", constraints.MISSING.format("project"))
        elif client is not None and row[0] != client:
            tx.error(f"{where}.project_ids.{place}", f"Is not a project of client {client}.")
    if its.from_ and its.to and its.to < its.from_:
        tx.error(f"{where}.to", f"Must not be before from, which is {its.from_}.")


def grouped(tx: Tx, name: str, its: Any, invoice: Any, named: set[int]) -> Iterator[tuple[str | None, list[int]]]:
    """What each line says and the ids that it bills, in the order of days; no more than one request can name.

    What lines of the invoice name is left out; what stood on it and is named no more can be billed anew. So are hours
    that a fee covers, unless their project is named. A line never mixes projects (contract 3.8).
    """
    limits = {"client": invoice.client_id, "currency": invoice.currency, "invoice": invoice.id or 0}
    groups: dict[Any, tuple[str | None, str | None, list[int]]] = {}
    projects: dict[Any, set[int | None]] = {}
    for own, project, project_name, covered, key, label in tx.all(
        _unbilled(time_entries if name == "time" else expenses, its.group_by),
        first=its.from_ or FIRST,
        last=its.to or LAST,
        **limits,
    ):
        if own in named or (covered if its.project_ids is None else project not in its.project_ids):
            continue
        said = label or WITHOUT.get((name, its.group_by))
        projects.setdefault(key, set()).add(project)
        groups.setdefault((key, project), (said, project_name, []))[-1].append(own)
    for (key, _), (said, project_name, ids) in groups.items():
        parts = [said, project_name] if len(projects[key]) > 1 else [said]
        description = ", ".join(filter(None, parts))[:LONGEST_WORDS].rstrip()
        for start in range(0, len(ids), MOST_PIECES):
            yield description or None, ids[start : start + MOST_PIECES]


@cache
def _unbilled(table: Table, group_by: str) -> Select[Any]:
    """Each piece of work: its id, its project, whether a fee covers it, what it is grouped by, the words for that."""
    source: Any = table.outerjoin(projects, projects.c.id == table.c.project_id)
    covered = expressions.is_covered(projects) if table is time_entries else literal(0)
    if group_by == "project":
        key, words = table.c.project_id, projects.c.name
    elif group_by in BY:
        other, column, label = BY[group_by]
        source = source.outerjoin(other, other.c.id == table.c[column])
        key, words = table.c[column], other.c[label]
    elif group_by == "category":
        key = words = table.c.category
    else:
        key, words = table.c.id, table.c.description
    limits = (
        table.c.client_id == bindparam("client"),
        table.c.currency == bindparam("currency"),
        table.c.billable.is_(True),
        or_(table.c.invoice_line_id.is_(None), table.c.invoice_id == bindparam("invoice")),
        table.c.date.between(bindparam("first"), bindparam("last")),
    )
    wanted = (table.c.id, table.c.project_id, projects.c.name, covered, key, words)
    return select(*wanted).select_from(source).where(*limits).order_by(table.c.date, table.c.id)
