"""Time: the time entries that a line bills, at their rates. Covered time is billed only with its project named."""

from sqlalchemy import ColumnElement, case, func

from retainer.billing.kinds.dated import DatedKind, Group
from retainer.billing.kinds.recorded import select_items
from retainer.rollups import changes
from retainer.rollups.sources import BILLED_TIME
from retainer.schema import expressions
from retainer.schema.identity import users
from retainer.schema.work import projects, tasks, time_entries
from retainer.store.tx import Tx

COLUMNS = ("client_id", "project_id", "currency", "billable", "amount", "date", "description")
REFERENCES = ("invoice_id", "invoice_line_id")


class Time(DatedKind):
    """Time entries."""

    name = "time"
    field = "time_entry_ids"
    selection = "time"
    noun = "time entry"
    heading = "Work"
    without_amount = "has no rate. Give it an hourly_rate first, or leave it out."
    table = time_entries
    items = select_items(time_entries, *time_entries.c[*COLUMNS, *REFERENCES, "duration_minutes", "hourly_rate"])
    totals = (func.sum(time_entries.c.duration_minutes), func.coalesce(func.sum(time_entries.c.amount), 0))
    groups = {
        "entry": Group(time_entries.c.id, time_entries.c.description),
        "task": Group(time_entries.c.task_id, tasks.c.title, "Other work"),
        "user": Group(time_entries.c.user_id, users.c.name),
        "project": Group(time_entries.c.project_id, projects.c.name, "Work without a project"),
    }

    def mark(self, tx: Tx, invoice_id: int, line_ids: list[int]) -> None:
        super().mark(tx, invoice_id, line_ids)
        changes.added(tx, BILLED_TIME, line_ids)

    def unmark(self, tx: Tx, line_ids: list[int], stays: list[int]) -> None:
        changes.removed(tx, BILLED_TIME, line_ids)
        super().unmark(tx, line_ids, stays)

    def state(self, *, takes_covered: bool) -> ColumnElement[str]:
        covered = () if takes_covered else ((expressions.is_covered(projects), "covered"),)
        return case(*covered, (expressions.is_unpriced(time_entries), "unpriced"), else_="billable")


TIME = Time()
