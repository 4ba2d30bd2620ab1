"""The page of a site: its uptime of 90 days, incidents, response times, certificate, and plugins."""

from bisect import bisect_right
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import NamedTuple

from sqlalchemy import bindparam, select

from retainer.console import words
from retainer.console.charts import Series, column_chart
from retainer.console.records.blocks import Block, ChartBlock, Column, DayBar, Fact, TableBlock, UptimeBlock
from retainer.console.records.page import RecordPage
from retainer.console.records.values import NOTHING, Value, percent_text, span
from retainer.console.words import short_day
from retainer.schema.sites import site_hours
from retainer.sites.incidents import Incident, list_incidents
from retainer.sites.sites import Site
from retainer.sites.uptime import share
from retainer.values.exact import as_instant, day_after, instant_after

DAYS, CHART_DAYS = 90, 30
INCIDENTS, PLUGINS = 10, 300
BAR_HEIGHT, MIN_DOWN = 40, 9
"""Pixels of a day's bar, and at least of its failed share, which must be seen."""
SOON = timedelta(days=14)
"""Time before the end of a certificate from which on it needs attention."""
HIDDEN = frozenset(
    {
        *("name", "url", "status", "client_id", "uptime_percent_24h", "uptime_percent_7d", "uptime_percent_30d"),
        *("response_time_ms", "ssl_expires_at", "last_checked_at", "plugins", "plugins_count", "last_error"),
        *("plugin_updates_count", "core_update_available", "down_since", "wp_version", "wp_update_version"),
        *("php_version", "last_synced_at", "last_status_code", "environment", "platform"),
    }
)
HOURS = (
    select(*site_hours.c["hour", "up", "down", "responses", "response_ms"])
    .where(site_hours.c.site_id == bindparam("site"), site_hours.c.hour >= bindparam("since"))
    .order_by(site_hours.c.hour)
)


class Hour(NamedTuple):
    """The checks of an hour: how many found the site up and down, and the sum of the response times."""

    hour: str
    up: int
    down: int
    responses: int
    response_ms: int


class Day(NamedTuple):
    """The sums of the hours of a day in the account's time zone."""

    up: int = 0
    down: int = 0
    responses: int = 0
    response_ms: int = 0


def facts(page: RecordPage) -> list[Fact]:
    """Return whether the site is up, how reliable and how fast it is, and when its certificate ends."""
    site = page.record
    if not isinstance(site, Site):
        return []
    found = page.facts("client_id")
    if site.down_since is not None:
        since = Value("since", moment=page.context.moment(site.down_since), tone="bad")
        found.append(Fact("Down since", since, note=site.last_error or ""))
    found += page.facts("response_time_ms") if is_untold(site) else page.facts("uptime_percent_30d", "response_time_ms")
    if site.ssl_expires_at is not None:
        is_soon = site.ssl_expires_at < instant_after(page.tx.now, SOON)
        moment = page.context.moment(site.ssl_expires_at)
        value = Value("since", moment=moment, tone="bad" if is_soon else "")
        found.append(Fact("Certificate expires", value, note=moment.day if moment else ""))
    updates = site.plugin_updates_count + int(site.core_update_available)
    if site.plugins_count or site.core_update_available:
        found.append(Fact("Updates", Value("number", f"{updates:,}", tone="warn" if updates else "")))
    return found


def blocks(page: RecordPage) -> Iterator[Block]:
    """Yield uptime, incidents, response times, software and plugins."""
    site = page.record
    if not isinstance(site, Site):
        return
    days = load_days(page)
    if any(day.up or day.down for day in days.values()) and not is_untold(site):
        yield uptime_block(days)
    yield incident_table(page)
    if any(day.responses for day in days.values()):
        yield response_chart(days)
    software = page.fields(
        "Site",
        (
            *("url", "environment", "platform", "wp_version", "wp_update_version", "php_version", "last_synced_at"),
            *("last_checked_at", "last_status_code", "last_error"),
        ),
    )
    yield software._replace(unset=())
    if site.plugins:
        yield plugin_table(page, site)


def is_untold(site: Site) -> bool:
    """Return whether no check has told yet how a site is: only a first one has failed, and the next one decides."""
    return site.status == "unknown" and site.uptime_percent_30d == 0


def plugin_table(page: RecordPage, site: Site) -> TableBlock:
    """Return the plugins of a site, those with an available update first."""
    plugins = sorted(site.plugins, key=lambda plugin: not plugin.update_available)[:PLUGINS]
    rows = [
        [
            *(page.values.field(plugin, name) for name in ("name", "version")),
            Value("badge", plugin.update_version or "", tone="warn") if plugin.update_available else NOTHING,
            *(page.values.field(plugin, name) for name in ("status", "auto_update")),
        ]
        for plugin in plugins
    ]
    titles = ("Plugin", "Version", "Update", "Status", "Auto-update")
    return TableBlock("Plugins", [Column(title) for title in titles], rows, site.plugins_count)


def load_days(page: RecordPage) -> dict[str, Day]:
    """Return the checks of the last 90 days by day in the account's time zone, the oldest first."""
    days = [day_after(page.tx.today, -ago) for ago in range(DAYS - 1, -1, -1)]
    zone = words.zone(page.tx.actor.timezone)
    starts = [as_instant(datetime.combine(date.fromisoformat(day), time(), zone)) for day in days]
    sums = [Day() for _ in days]
    for hour in map(Hour._make, page.tx.all(HOURS, site=page.record.id, since=starts[0][:13])):
        place = bisect_right(starts, f"{hour.hour}:00:00.000000Z") - 1
        if place >= 0:
            have = sums[place]
            sums[place] = Day(
                have.up + hour.up,
                have.down + hour.down,
                have.responses + hour.responses,
                have.response_ms + hour.response_ms,
            )
    return dict(zip(days, sums, strict=True))


def uptime_block(days: dict[str, Day]) -> UptimeBlock:
    """Return the days as bars, with those on which a check failed as a table."""
    bars, failing = [], []
    for day, checks in days.items():
        total = checks.up + checks.down
        text = f"{uptime_text(checks.up, total)} up" if total else "not checked"
        height = max(MIN_DOWN, checks.down * BAR_HEIGHT // total) if checks.down else 0
        bars.append(DayBar(short_day(day), height, bool(total), f"{short_day(day)}: {text}"))
        if checks.down:
            figures = (uptime_text(checks.up, total), f"{checks.down:,}", f"{total:,}")
            failing.append([Value("text", short_day(day)), *(Value("number", figure) for figure in figures)])
    up, down = (sum(getattr(day, name) for day in days.values()) for name in ("up", "down"))
    columns = [Column("Day"), *(Column(title, is_number=True) for title in ("Uptime", "Failed checks", "Checks"))]
    count = words.count(len(failing), "day") + " with a failed check" if failing else "no failed check"
    summary = f"{uptime_text(up, up + down)} in 90 days, {count}"
    return UptimeBlock("Uptime", summary, bars, TableBlock("Days with a failed check", columns, failing[::-1]))


def uptime_text(up: int, total: int) -> str:
    """Return a share of checks as the API rounds it."""
    return f"{percent_text(Decimal(share(up, total) or 0).scaleb(-3))}%"


def incident_table(page: RecordPage) -> TableBlock:
    """Return the newest incidents with their length and their cause."""
    found = list_incidents(page.tx, page.record.id, INCIDENTS)
    rows = [
        [
            Value("moment", moment=page.context.moment(incident.started_at)),
            length(page, incident),
            Value("text", incident.cause) if incident.cause else NOTHING,
        ]
        for incident in found
    ]
    note = "" if rows else "No incident in 90 days."
    return TableBlock("Incidents", [Column("Start"), Column("Length"), Column("Cause")], rows, note=note)


def length(page: RecordPage, incident: Incident) -> Value:
    """Return how long an incident took; one that has not ended is a badge."""
    ended = incident.ended_at or page.context.now
    text = span(incident.started_at, ended)
    return Value("text", text) if incident.ended_at else Value("badge", f"Down for {text}", tone="bad")


def response_chart(days: dict[str, Day]) -> ChartBlock:
    """Return the average response times of the last 30 days."""
    shown = dict(list(days.items())[-CHART_DAYS:])
    averages = [Decimal(day.response_ms // day.responses) if day.responses else None for day in shown.values()]
    labels = [short_day(day).rsplit(" ", 1)[0] for day in shown]
    chart = column_chart(
        "Response time, daily average in ms", "milliseconds", labels, [Series("Average", "line", averages)]
    )
    rows = [
        [Value("text", short_day(day)), Value("number", f"{average:,f} ms")]
        for day, average in zip(shown, averages, strict=True)
        if average is not None
    ]
    columns = [Column("Day"), Column("Average", is_number=True)]
    return ChartBlock(chart, TableBlock("Response times", columns, rows[::-1]))
