"""SQL expressions that several areas share: overdue, not a template, covered by a fee, in a client's language."""

from collections.abc import Callable

from sqlalchemy import ColumnElement, FromClause, Select, Table, and_, case, func, or_, select

from retainer.schema.columns import in_literals
from retainer.schema.crm import clients
from retainer.schema.identity import LANGUAGES, accounts
from retainer.schema.work import projects
from retainer.store.tables import TODAY

COVERED = ("fixed_fee", "retainer")
"""The billing types of projects whose fee covers the hours, so that these are not billed separately."""
COVERED_PROJECTS: Select[int] = select(projects.c.id).where(in_literals(projects.c.billing_type, COVERED))
"""The ids of the projects whose hours are covered by their fee."""

DOCUMENT_LANGUAGE = func.coalesce(clients.c.language, accounts.c.document_language)
"""The language of a client's documents, in a statement that joins the client and the account."""


def in_document_language(name: str) -> ColumnElement[str | None]:
    """Return one of the account's texts by language, in the language of a client's documents."""
    return case({language: accounts.c[f"{name}_{language}"] for language in LANGUAGES}, value=DOCUMENT_LANGUAGE)


def in_any_language(name: str) -> ColumnElement[str | None]:
    """Return a text as `in_document_language` does; where it is empty, that of another language."""
    return func.coalesce(in_document_language(name), *(accounts.c[f"{name}_{language}"] for language in LANGUAGES))


def is_covered(table: Table) -> ColumnElement[bool]:
    return in_literals(table.c.billing_type, COVERED)


def has_covered_hours(table: Table) -> ColumnElement[bool]:
    project = projects.alias()
    billing_type = select(project.c.billing_type).where(project.c.id == table.c.project_id).scalar_subquery()
    return in_literals(billing_type, COVERED)


def is_unpriced(table: Table) -> ColumnElement[bool]:
    return and_(table.c.billable.is_(True), table.c.amount.is_(None), table.c.is_settled.is_(False))


def is_live(table: FromClause) -> ColumnElement[bool]:
    return table.c.is_template.is_(False)


def is_unbilled(table: Table) -> ColumnElement[bool]:
    """Return whether time or an expense is billable and not billed: the condition of the index of those."""
    return and_(table.c.invoice_line_id.is_(None), table.c.billable.is_(True), table.c.is_settled.is_(False))


def is_billed(table: Table) -> ColumnElement[bool]:
    """Return whether time or an expense is on an invoice, of Retainer or of another program."""
    return or_(table.c.invoice_line_id.is_not(None), table.c.is_settled.is_(True))


def ratio(part: ColumnElement[int], whole: ColumnElement[int]) -> ColumnElement[int | None]:
    """Return a part of a whole in hundredths of a percent, halves up; null if the whole is not positive."""
    return case((whole > 0, (20000 * part + whole) // (2 * whole)))


def is_past_due(table: FromClause) -> ColumnElement[bool]:
    return table.c.due_date < TODAY


def overdue(*open_statuses: str) -> Callable[[FromClause], ColumnElement[bool]]:
    """Return a condition: whether the `due_date` has passed while the status is one of these."""
    return lambda table: and_(in_literals(table.c.status, open_statuses), is_past_due(table))
