"""The cells of a list: values as people read them, with the names of the records that they refer to."""

import json
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy import Select, Table, bindparam, case, func, select

from retainer.console import words
from retainer.console.catalogue import Kind, shortened
from retainer.console.labels import word_of
from retainer.console.lists.views import Column, ListView
from retainer.console.names import load_names, path_of
from retainer.console.page_context import PageContext
from retainer.console.reports.tables import hours
from retainer.console.statuses import Status, status_of
from retainer.schema.billing import OPEN_INVOICES, invoices
from retainer.schema.columns import in_literals
from retainer.schema.sites import site_hours
from retainer.store.engines.sql import INTEGER, is_listed, listed
from retainer.store.tx import Tx
from retainer.values.exact import amount_of, as_instant, local_day
from retainer.values.records import Record

BAR_DAYS, BAR_HEIGHT = 30, 18
LOWEST_SHARE = Decimal("0.9")
"""The uptime of a day at and below which its bar is lowest, so that a short outage can be seen."""
IDS = listed("ids", INTEGER).scalar_subquery()
OPEN_AMOUNTS = (
    select(invoices.c.client_id, invoices.c.currency, func.sum(invoices.c.balance_due))
    .where(is_listed(invoices.c.client_id, IDS), in_literals(invoices.c.status, OPEN_INVOICES))
    .group_by(invoices.c.client_id, invoices.c.currency)
    .order_by(invoices.c.currency)
)


class Bar(NamedTuple):
    """A day of a site: its label, the share of checks that found it up in percent, and the height of its bar."""

    day: str
    share: Decimal | None
    height: int


class Cell(NamedTuple):
    """A cell: lines of text, a link, what stands below, or one of the other forms."""

    lines: tuple[str, ...] = ()
    link: str = ""
    detail: str = ""
    is_late: bool = False
    status: Status | None = None
    moment: words.Moment | None = None
    bars: tuple[Bar, ...] = ()


class Cells:
    """Builds the cells of a page; whatever they need is read once, in one statement for each table."""

    def __init__(
        self,
        tx: Tx,
        context: PageContext,
        kind: Kind,
        view: ListView,
        records: Sequence[Record],
        known: dict[str, dict[int, str]],
    ) -> None:
        self.context, self.kind, self.view = context, kind, view
        self.targets = context.catalogue.references(kind)
        self.names = read_names(tx, view, self.targets, records, known)
        forms = {column.form for column in view.columns}
        ids = json.dumps([record.id for record in records])
        self.open_amounts: dict[int, list[str]] = {}
        for client_id, currency, units in tx.all(OPEN_AMOUNTS, ids=ids) if "open_amount" in forms else ():
            if units:
                self.open_amounts.setdefault(client_id, []).append(words.money(amount_of(units, currency), currency))
        self.bars = read_bars(tx, ids) if "uptime" in forms else {}

    def row(self, record: Record) -> list[Cell]:
        return [self.cell(record, column) for column in self.view.columns]

    def cell(self, record: Record, column: Column) -> Cell:
        special = {
            "label": self.label,
            "open_amount": self.open_amount,
            "status": lambda record, column: Cell(status=status_of(record, column.field)),
            "uptime": self.uptime,
        }
        if column.form in special:
            return special[column.form](record, column)
        value = getattr(record, column.field)
        detail = self.detail(record, column)
        if value is None:
            return Cell(detail=detail)
        if column.form == "reference":
            return Cell((self.name(column.field, value),), self.link(column.field, value), detail)
        if column.form == "since":
            return Cell(moment=self.context.moment(value))
        is_late: bool = column.form == "due" and getattr(record, "is_overdue", False)
        return Cell((text_of(value, column.form, getattr(record, "currency", "")),), detail=detail, is_late=is_late)

    def open_amount(self, record: Record, _: Column) -> Cell:
        """Return what is due on the open invoices of a client, with a link to them."""
        return Cell(tuple(self.open_amounts.get(record.id, ())), f"/records/invoices?client_id={record.id}&status=open")

    def uptime(self, record: Record, column: Column) -> Cell:
        """Return the uptime of a site, with a bar for each day."""
        value: float | None = getattr(record, column.field)
        if value == 0 and getattr(record, "status", "") == "unknown":  # the next check decides
            return Cell()
        text = "" if value is None else f"{Decimal(str(value)).quantize(Decimal('0.01'))}%"
        return Cell((text,), bars=tuple(self.bars.get(record.id, ())))

    def label(self, record: Record, column: Column) -> Cell:
        """Return the cell that names a record and links to its page."""
        value = getattr(record, column.field)
        if column.field == "date":
            text = f"{words.day_label(value)} {value[:4]}"
        else:
            text = "Draft" if value is None else shortened(str(value))
        path = path_of(self.context.catalogue, self.kind.table, record.id)
        return Cell((text,), path, self.detail(record, column))

    def detail(self, record: Record, column: Column) -> str:
        value = getattr(record, column.detail) if column.detail else None
        if value is None:
            return ""
        if column.detail in self.targets:
            return self.name(column.detail, value)
        text = str(value).removeprefix("https://").removesuffix("/") if column.detail == "url" else str(value)
        return shortened(text) if text != getattr(record, column.field) else ""

    def name(self, field: str, record_id: int) -> str:
        return self.names[self.targets[field].name].get(record_id, f"{record_id}")

    def link(self, field: str, record_id: int) -> str:
        """Return the path of the page of the record that a field refers to; empty without a page."""
        return path_of(self.context.catalogue, self.targets[field], record_id)


def text_of(value: Any, form: str, currency: str) -> str:
    formats: dict[str, Callable[[], str]] = {
        "count": lambda: f"{value:,}",
        "day": lambda: words.days(value, value),
        "due": lambda: words.days(value, value),
        "minutes": lambda: hours(value),
        "money": lambda: words.money(value, currency),
        "percent": lambda: f"{Decimal(str(value)).quantize(Decimal(1))}%",
        "words": lambda: word_of(value),
    }
    return formats[form]() if form in formats else str(value)


def read_names(
    tx: Tx, view: ListView, targets: dict[str, Table], records: Sequence[Record], known: dict[str, dict[int, str]]
) -> dict[str, dict[int, str]]:
    """Return the names of all records that the columns of a page refer to, by table; `known` ones are not read."""
    fields = {name for column in view.columns for name in (column.field, column.detail) if name in targets}
    ids: dict[str, set[int]] = {}
    for field in fields:
        used = {value for record in records if (value := getattr(record, field)) is not None}
        ids.setdefault(targets[field].name, set()).update(used)
    tables = {targets[field].name: targets[field] for field in fields}
    return {
        name: known[name] if known.get(name) else load_names(tx, table, ids[name]) for name, table in tables.items()
    }


def read_bars(tx: Tx, ids: str) -> dict[int, list[Bar]]:
    """Return the uptime of the last 30 days of sites, a bar for each day in the account's time zone."""
    zone, today = ZoneInfo(tx.actor.timezone), date.fromisoformat(local_day(tx.now, tx.actor.timezone))
    days = [today - timedelta(days=BAR_DAYS - 1 - position) for position in range(BAR_DAYS)]
    begun = {f"begun_{n}": as_instant(datetime.combine(day, time(), zone))[:13] for n, day in enumerate(days)}
    shares: dict[int, dict[int, Decimal]] = {}
    for site_id, position, up, checks in tx.all(CHECKS_BY_DAY, ids=ids, **begun):
        if checks:
            shares.setdefault(site_id, {})[position] = Decimal(up) / checks
    return {
        site_id: [bar(day, by_day.get(position)) for position, day in enumerate(days)]
        for site_id, by_day in shares.items()
    }


def bar(day: date, share: Decimal | None) -> Bar:
    if share is None:
        return Bar(words.day_label(day.isoformat()), None, 1)
    part = max(Decimal(0), share - LOWEST_SHARE) / (1 - LOWEST_SHARE)
    return Bar(
        words.day_label(day.isoformat()), (100 * share).quantize(Decimal("0.1")), 3 + int(part * (BAR_HEIGHT - 3))
    )


def _checks_by_day() -> Select[int, int, int, int]:
    hour = site_hours.c.hour
    started = [(hour >= bindparam(f"begun_{position}"), position) for position in reversed(range(BAR_DAYS))]
    position = case(*started).label("position")
    return (
        select(site_hours.c.site_id, position, func.sum(site_hours.c.up), func.sum(site_hours.c.up + site_hours.c.down))
        .where(is_listed(site_hours.c.site_id, IDS), hour >= bindparam("begun_0"))
        .group_by(site_hours.c.site_id, position)
    )


CHECKS_BY_DAY = _checks_by_day()
