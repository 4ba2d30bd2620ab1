"""Dated work: time and expenses. Their rows refer to their line, and `unbilled_work` groups them by day into lines."""

import json
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterator
from functools import cache, partial
from typing import Any, ClassVar, Literal, NamedTuple

from sqlalchemy import Column, ColumnElement, FromClause, Select, Update, bindparam, func, null, or_, select

from retainer.billing.invoices.types import (
    MAX_DESCRIPTION,
    MAX_ITEMS,
    Invoice,
    InvoiceLine,
    LeftOut,
    UnbilledExpenses,
    UnbilledTime,
)
from retainer.billing.kinds.base import Found
from retainer.billing.kinds.recorded import RecordedKind, on_lines
from retainer.schema.billing import allocations
from retainer.schema.work import projects
from retainer.store.announcements import updating
from retainer.store.engines.sql import INTEGER, is_listed, listed
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.reading import with_defaults

DatedSelection = UnbilledTime | UnbilledExpenses
GroupKey = int | str | None


class Group(NamedTuple):
    """How work is grouped into lines: by a column, and with which text as their description."""

    key: Column[Any]
    text: Column[str] | None = None
    """None for lines that pricing describes by their work."""
    without_text: str | None = None


class Match(NamedTuple):
    """How much of the selected work can be billed, or is left out for a reason; the amount in minor units."""

    state: Literal["billable", "covered", "unpriced"]
    size: int
    minutes: int
    amount: int


class GroupedItem(NamedTuple):
    """A piece of work that can be billed: the key that groups it, and the text of that key."""

    id: int
    project_id: int | None
    project_name: str | None
    key: GroupKey
    text: str | None


class DatedKind(RecordedKind):
    """Work that counts for a day."""

    totals: ClassVar[tuple[ColumnElement[int], ColumnElement[int]]]
    """The sum of the minutes and that of the amounts, in minor units."""
    groups: ClassVar[dict[str, Group]]
    """The groups by the names of `group_by`."""

    @abstractmethod
    def state(self, *, takes_covered: bool) -> ColumnElement[str]:
        """Return whether work can be billed, or why not; covered work can, or is left out."""

    def mark(self, tx: Tx, invoice_id: int, line_ids: list[int]) -> None:
        tx.run(_mark(self), lines=json.dumps(line_ids), invoice=invoice_id)

    def unmark(self, tx: Tx, line_ids: list[int], stays: list[int]) -> None:
        tx.run(_unmark(self), lines=json.dumps(line_ids), stays=json.dumps(stays))

    def find(self, tx: Tx, selection: DatedSelection, invoice: Invoice, *, takes_covered: bool | None = None) -> Found:
        """Return the work that can be billed, and what is left out; without `takes_covered`, the projects decide."""
        by_project = selection.project_ids is not None
        is_taken = by_project if takes_covered is None else takes_covered
        statement = _select_matches(self, by_project=by_project, takes_covered=is_taken)
        rows = tx.all(statement, **self.parameters(selection, invoice))
        matches = sorted(map(Match._make, rows))
        left_out = [LeftOut(match.state, match.size, match.minutes) for match in matches if match.state != "billable"]
        billable = next((match for match in matches if match.state == "billable"), Match("billable", 0, 0, 0))
        build_lines = partial(self.build_lines, tx, selection, invoice)
        return Found(billable.size, billable.amount, build_lines, billable.minutes, left_out)

    def build_lines(self, tx: Tx, selection: DatedSelection, invoice: Invoice) -> Iterator[InvoiceLine]:
        """Yield a line for each group, by day, with at most MAX_ITEMS. A line never mixes projects."""
        group = self.groups[selection.group_by]
        statement = _select_items(self, selection.group_by, by_project=selection.project_ids is not None)
        groups = defaultdict[tuple[GroupKey, int | None], list[GroupedItem]](list)
        projects_of_key = defaultdict[GroupKey, set[int | None]](set)
        for item in map(GroupedItem._make, tx.all(statement, **self.parameters(selection, invoice))):
            groups[item.key, item.project_id].append(item)
            projects_of_key[item.key].add(item.project_id)
        for (key, _), items in groups.items():
            parts = [items[0].text or group.without_text]
            if len(projects_of_key[key]) > 1:
                parts.append(items[0].project_name)
            description = ", ".join(filter(None, parts))[:MAX_DESCRIPTION].rstrip()
            for start in range(0, len(items), MAX_ITEMS):
                ids = [item.id for item in items[start : start + MAX_ITEMS]]
                yield with_defaults(InvoiceLine, description=description or None, **{self.field: ids})


@cache
def _mark(kind: DatedKind) -> Update:
    """Set the references from items to their lines; the second table needs a condition for the account."""
    columns, line_id = kind.table.c, allocations.c.invoice_line_id
    is_new = columns.invoice_line_id.is_distinct_from(line_id)
    pairs = (allocations.c.account_id == ACCOUNT, kind.allocated == columns.id, on_lines(line_id), is_new)
    return updating(kind.table, *pairs, values={"invoice_line_id": line_id, "invoice_id": bindparam("invoice")})


@cache
def _unmark(kind: DatedKind) -> Update:
    columns = kind.table.c
    leaves = (on_lines(columns.invoice_line_id), columns.id.not_in(listed("stays", INTEGER)))
    return updating(kind.table, *leaves, values={"invoice_line_id": None, "invoice_id": None})


@cache
def _select_matches(kind: DatedKind, *, by_project: bool, takes_covered: bool) -> Select[str, int, int, int]:
    """In the order of Match's fields."""
    state = kind.state(takes_covered=takes_covered).label("state")
    matches = select(state, func.count(), *kind.totals).select_from(_with_projects(kind))
    return matches.where(*_matching(kind, by_project=by_project)).group_by(state)


@cache
def _select_items(kind: DatedKind, group_by: str, *, by_project: bool) -> Select[int]:
    """In the order of GroupedItem's fields."""
    columns, source = kind.table.c, _with_projects(kind)
    key, text, _ = kind.groups[group_by]
    if text is not None and text.table not in {kind.table, projects}:
        source = source.outerjoin(text.table, text.table.c.id == key)
    shown = (columns.id, columns.project_id, projects.c.name, key, null() if text is None else text)
    is_billable = kind.state(takes_covered=by_project) == "billable"
    items = select(*shown).select_from(source).where(*_matching(kind, by_project=by_project), is_billable)
    return items.order_by(columns.date, columns.id)


def _with_projects(kind: DatedKind) -> FromClause:
    return kind.table.outerjoin(projects, projects.c.id == kind.table.c.project_id)


def _matching(kind: DatedKind, *, by_project: bool) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions of selected work: on no other invoice, and not named by a line of the request."""
    columns = kind.table.c
    wanted = (is_listed(columns.project_id, listed("wanted", INTEGER).scalar_subquery()),) if by_project else ()
    return (
        columns.client_id == bindparam("client"),
        columns.currency == bindparam("currency"),
        columns.billable.is_(True),
        or_(columns.invoice_line_id.is_(None), columns.invoice_id == bindparam("invoice")),
        columns.date.between(bindparam("first"), bindparam("last")),
        columns.id.not_in(listed("named", INTEGER)),
        *wanted,
    )
