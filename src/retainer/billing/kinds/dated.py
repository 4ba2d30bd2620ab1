"""Dated work: time at its rates, and expenses at their billable amounts.

The rows refer to their line, and `unbilled_work` groups them by day into lines. Covered time is billed only with its
project named.
"""

import json
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple

import sqlalchemy as sa

from retainer.billing.invoices.types import MAX_DESCRIPTION, Invoice, InvoiceLine
from retainer.billing.invoices.unbilled import MAX_ITEMS, LeftOut, UnbilledExpenses, UnbilledTime
from retainer.billing.kinds.base import (
    LineContext,
    LineTerms,
    RecordedItem,
    UnbilledMatch,
    WorkKind,
    ids_of,
    on_lines,
    other_currency,
    select_items,
)
from retainer.documents.wording import WORDS
from retainer.errors import part
from retainer.rollups import changes
from retainer.rollups.sources import BILLED_TIME
from retainer.schema import expressions
from retainer.schema.billing import allocations, expenses
from retainer.schema.identity import users
from retainer.schema.work import projects, tasks, time_entries
from retainer.store.announcements import updating
from retainer.store.engines.sql import INTEGER, is_listed, listed
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values import money
from retainer.values.exact import amount_of
from retainer.values.reading import with_defaults

DatedSelection = UnbilledTime | UnbilledExpenses


class LineGroup(NamedTuple):
    """How work is grouped into lines: by a column, and with which text as their description."""

    key: sa.Column[Any]
    text: sa.Column[str] | None = None
    """None for lines that pricing describes by their work."""
    without_text: str | None = None
    """The description of work without a text, by its name in the words of documents."""
    unnamed: str | None = None
    """The text that stands for none."""


class DatedKind(WorkKind):
    """Work that counts for a day."""

    totals: ClassVar[tuple[sa.ColumnElement[int], sa.ColumnElement[int]]]
    """The sum of the minutes and that of the amounts, in minor units."""
    priced_by: ClassVar[tuple[sa.ColumnElement[Any], sa.ColumnElement[Any]]]
    """The minutes and the rate of a piece of work."""
    groups: ClassVar[dict[str, LineGroup]]

    @abstractmethod
    def state(self, *, takes_covered: bool) -> sa.ColumnElement[str]:
        """Return whether work can be billed, or why not; covered work can, or is left out."""

    def attach(self, tx: Tx, invoice_id: int, lines: Sequence[InvoiceLine]) -> None:
        super().attach(tx, invoice_id, lines)
        tx.run(_mark(self), lines=ids_of(lines), invoice=invoice_id)

    def detach(self, tx: Tx, lines: Sequence[InvoiceLine], after: Mapping[int, InvoiceLine], *, is_kept: bool) -> None:
        stays = [key for line in lines if line.id in after for key in self.keys_of(after[line.id])]
        tx.run(_unmark(self), lines=ids_of(lines), stays=json.dumps(stays))
        super().detach(tx, lines, after, is_kept=is_kept)

    def find(
        self,
        tx: Tx,
        selection: DatedSelection,
        invoice: Invoice,
        terms: LineTerms,
        *,
        takes_covered: bool | None = None,
    ) -> UnbilledMatch:
        """Return the work that can be billed, and what is left out; without `takes_covered`, the projects decide."""
        by_project = selection.project_ids is not None
        is_taken = by_project if takes_covered is None else takes_covered
        statement = _select_matches(self, by_project=by_project, takes_covered=is_taken)
        parameters = self.parameters(selection, invoice, tx.today)
        size = minutes = amount = 0
        left_out = []
        for state, currency, count, duration, units in sorted(tx.all(statement, **parameters)):
            if currency == invoice.currency and state == "billable":
                size, minutes, amount = count, duration, units
            elif currency == invoice.currency:
                value = None if state == "unpriced" else amount_of(units, currency)
                left_out.append(LeftOut(state, count, duration, currency, value))
            elif state == "billable":
                left_out.append(other_currency(currency, count, units, duration))
        return UnbilledMatch(size, amount, self.build_lines(tx, selection, parameters, terms), minutes, left_out)

    def build_lines(
        self, tx: Tx, selection: DatedSelection, parameters: dict[str, object], terms: LineTerms
    ) -> Iterator[InvoiceLine]:
        """Yield a line for each group, by day, with at most MAX_ITEMS. A line never mixes projects.

        Rounded lines do not mix rates either, so that each has a quantity that can differ from its hours.
        What would become 0 keeps its hours.
        """
        group = self.groups[selection.group_by]
        rounding = selection.rounding or terms.rounding if isinstance(selection, UnbilledTime) else None
        if not tx.readable("unbilled_work.time.rounding"):
            rounding = None
        statement = _select_items(self, selection.group_by, by_project=selection.project_ids is not None)
        groups = defaultdict[tuple[Any, ...], list[tuple[int, int]]](list)
        for item_id, minutes, rate, *key_and_project in tx.all(statement, **parameters):
            groups[rate if rounding else None, *key_and_project].append((item_id, minutes))
        without_text = group.without_text and WORDS[terms.language][group.without_text]
        projects_of_key = Counter(key for key, _ in {(key, project) for _, key, _, project, _ in groups})
        for (_, key, text, _, project_name), items in groups.items():
            named = None if text == group.unnamed else text
            parts = (named or without_text, project_name if projects_of_key[key] > 1 else None)
            description = ", ".join(filter(None, parts))[:MAX_DESCRIPTION].rstrip()
            for chunk in (items[start : start + MAX_ITEMS] for start in range(0, len(items), MAX_ITEMS)):
                work: dict[str, object] = {self.field: [item_id for item_id, _ in chunk]}
                if rounding and (rounded := rounding.sum_up([minutes for _, minutes in chunk])):
                    work["quantity"] = money.hours(rounded)
                yield with_defaults(InvoiceLine, description=description or None, **work)


@cache
def _mark(kind: DatedKind) -> sa.Update:
    """Set the references from items to their lines; the second table needs a condition for the account."""
    columns, line_id = kind.table.c, allocations.c.invoice_line_id
    is_new = columns.invoice_line_id.is_distinct_from(line_id)
    pairs = (allocations.c.account_id == ACCOUNT, kind.allocated == columns.id, on_lines(line_id), is_new)
    return updating(kind.table, *pairs, values={"invoice_line_id": line_id, "invoice_id": sa.bindparam("invoice")})


@cache
def _unmark(kind: DatedKind) -> sa.Update:
    columns = kind.table.c
    leaves = (on_lines(columns.invoice_line_id), columns.id.not_in(listed("stays", INTEGER)))
    return updating(kind.table, *leaves, values={"invoice_line_id": None, "invoice_id": None})


@cache
def _select_matches(kind: DatedKind, *, by_project: bool, takes_covered: bool) -> sa.Select[str, str, int, int, int]:
    """Select how much selected work is in each state: state, currency, size, minutes, and amount in minor units."""
    state, currency = kind.state(takes_covered=takes_covered).label("state"), kind.table.c.currency
    matches = sa.select(state, currency, sa.func.count(), *kind.totals).select_from(_with_projects(kind))
    return matches.where(*_matching(kind, by_project=by_project)).group_by(state, currency)


@cache
def _select_items(kind: DatedKind, group_by: str, *, by_project: bool) -> sa.Select[int]:
    """Select the ids of selected work that can be billed, with minutes, rate, key, text, project and its name."""
    columns, source = kind.table.c, _with_projects(kind)
    key, text, *_ = kind.groups[group_by]
    if text is not None and text.table not in {kind.table, projects}:
        source = source.outerjoin(text.table, text.table.c.id == key)
    minutes, rate = kind.priced_by
    shown = (columns.id, minutes, rate, key, sa.null() if text is None else text, columns.project_id, projects.c.name)
    is_billable = kind.state(takes_covered=by_project) == "billable"
    in_currency = columns.currency == sa.bindparam("currency")
    items = (
        sa.select(*shown).select_from(source).where(*_matching(kind, by_project=by_project), in_currency, is_billable)
    )
    return items.order_by(columns.date, columns.id)


def _with_projects(kind: DatedKind) -> sa.FromClause:
    return kind.table.outerjoin(projects, projects.c.id == kind.table.c.project_id)


def _matching(kind: DatedKind, *, by_project: bool) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions of selected work: on no other invoice, and not named by a line of the request."""
    columns = kind.table.c
    wanted = (is_listed(columns.project_id, "wanted"),) if by_project else ()
    return (
        columns.client_id == sa.bindparam("client"),
        columns.billable.is_(True),
        columns.is_settled.is_(False),
        sa.or_(columns.invoice_line_id.is_(None), columns.invoice_id == sa.bindparam("invoice")),
        columns.date.between(sa.bindparam("first"), sa.bindparam("last")),
        columns.id.not_in(listed("named", INTEGER)),
        *wanted,
    )


class Time(DatedKind):
    name = "time"
    field = "time_entry_ids"
    selection = "time"
    noun = "time entry"
    heading = "work"
    without_amount = f"has no rate. Give it an {part('hourly_rate')} first, or leave it out."
    table = time_entries
    items = select_items(
        time_entries, day=time_entries.c.date, minutes=time_entries.c.duration_minutes, rate=time_entries.c.hourly_rate
    )
    priced_by = (time_entries.c.duration_minutes, time_entries.c.hourly_rate)
    totals = (sa.func.sum(time_entries.c.duration_minutes), sa.func.coalesce(sa.func.sum(time_entries.c.amount), 0))
    groups = {
        "entry": LineGroup(time_entries.c.id, time_entries.c.description),
        "task": LineGroup(time_entries.c.task_id, tasks.c.title, "other_work"),
        "user": LineGroup(time_entries.c.user_id, users.c.name),
        "project": LineGroup(time_entries.c.project_id, projects.c.name, "work_without_project"),
    }

    def attach(self, tx: Tx, invoice_id: int, lines: Sequence[InvoiceLine]) -> None:
        super().attach(tx, invoice_id, lines)
        changes.added(tx, BILLED_TIME, [line.id for line in lines])

    def detach(self, tx: Tx, lines: Sequence[InvoiceLine], after: Mapping[int, InvoiceLine], *, is_kept: bool) -> None:
        changes.removed(tx, BILLED_TIME, [line.id for line in lines])
        super().detach(tx, lines, after, is_kept=is_kept)

    def state(self, *, takes_covered: bool) -> sa.ColumnElement[str]:
        covered = () if takes_covered else ((expressions.is_covered(projects), "covered"),)
        return sa.case(*covered, (expressions.is_unpriced(time_entries), "unpriced"), else_="billable")


class Expenses(DatedKind):
    name = "expense"
    field = "expense_ids"
    selection = "expenses"
    noun = "expense"
    heading = "expenses"
    table = expenses
    items = select_items(
        expenses, amount=expenses.c.billable_amount, day=expenses.c.date, minutes=sa.literal(0, INTEGER)
    )
    priced_by = (sa.literal(0, INTEGER), sa.null())
    totals = (sa.literal(0), sa.func.coalesce(sa.func.sum(expenses.c.billable_amount), 0))
    groups = {
        "entry": LineGroup(expenses.c.id, expenses.c.description),
        "category": LineGroup(expenses.c.category, expenses.c.category, "other_expenses", unnamed="other"),
        "project": LineGroup(expenses.c.project_id),
    }

    def state(self, *, takes_covered: bool) -> sa.ColumnElement[str]:
        return sa.case((expenses.c.billable, "billable"))  # always; but PostgreSQL groups by no constant

    def default_description(self, items: Sequence[RecordedItem], context: LineContext) -> str:
        """Return the descriptions of all expenses, by day, if each has one and they fit; otherwise, their days."""
        by_day = sorted(items, key=lambda item: (item.day or "", item.id))
        texts = dict.fromkeys(item.description for item in by_day)
        text = ", ".join(filter(None, texts))
        is_whole = None not in texts and len(text) <= MAX_DESCRIPTION
        return text if is_whole else super().default_description(items, context)


TIME, EXPENSES = Time(), Expenses()
