"""What a role without the area `records` sees: its user's own records, without rates, amounts and hours of others."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, NamedTuple

from sqlalchemy import ColumnElement, Table, or_

from retainer.kernel.query import Filter, OneOf
from retainer.schema.billing import expenses
from retainer.schema.filters import Where
from retainer.schema.work import projects, tasks, time_entries
from retainer.values.kinds import Id
from retainer.work.projects import ProjectFilter

HIDDEN = frozenset(
    {
        *("hourly_rate", "has_rate", "amount", "currency", "billing_status", "invoice_id", "invoice_line_id"),
        *("is_settled", "tracked_minutes", "remaining_minutes"),
    }
)
OF_EXPENSES = frozenset({"billable_amount", "markup_percent", "is_settled", "invoice_id", "invoice_line_id"})
OF_PROJECTS = HIDDEN | {
    *("billing_type", "fixed_fee", "retainer_amount", "auto_invoice", "budget_amount", "quote_id", "is_template"),
    *("billable_minutes", "unbilled_minutes", "billable_amount", "unbilled_amount", "invoiced_amount"),
    *("expense_amount", "budget_used_percent", "budget_used_percent_min", "over_budget"),
}
WORKED = ((tasks, "assignee_id"), (time_entries, "user_id"), (expenses, "user_id"))
"""What makes a project one that a user works on, besides being its manager."""


def works_on(table: Table, is_user: Callable[[ColumnElement[int]], ColumnElement[bool]]) -> ColumnElement[bool]:
    """Return whether a user works on a project."""
    found = [each.select().where(each.c.project_id == table.c.id, is_user(each.c[name])) for each, name in WORKED]
    return or_(is_user(table.c.manager_id), *(each.exists() for each in found))


class OwnProjects(ProjectFilter):
    user_id: Annotated[
        OneOf[Id] | None, Where(lambda table, values: works_on(table, lambda column: column.in_(values)))
    ] = None


class OwnAccess(NamedTuple):
    """How a role sees its user's own records of a kind, and which operations it has on them."""

    owner: str
    """The field or filter that says whose a record is."""
    hidden: frozenset[str] = HIDDEN
    """The fields and filters that are left out."""
    methods: frozenset[str] = frozenset({"POST", "PATCH", "DELETE"})
    query: type[Filter] | None = None
    """The filters with that of the owner, if the list of the API has none."""
    is_named: bool = False
    """Whether forms offer the records of everyone by name, such as open projects to record time on."""


OWN_RECORDS: Mapping[str, OwnAccess] = MappingProxyType(
    {
        "projects": OwnAccess("user_id", OF_PROJECTS, frozenset(), OwnProjects, is_named=True),
        "tasks": OwnAccess("assignee_id"),
        "time-entries": OwnAccess("user_id"),
        "expenses": OwnAccess("user_id", OF_EXPENSES),
        "tickets": OwnAccess("assignee_id", methods=frozenset({"POST", "PATCH"})),
    }
)


def is_own(table: Table, owner: str, user: ColumnElement[int]) -> ColumnElement[bool]:
    """Return whether a record is the user's own."""
    return table.c[owner] == user if table is not projects else works_on(table, lambda column: column == user)
