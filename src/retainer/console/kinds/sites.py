"""Sites: uptime by day, incidents, response times, certificates and plugins; those with troubles come first."""

import json
from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import Select, bindparam, case, func, select

from retainer.console import words
from retainer.console.charts import Series, draw
from retainer.console.kinds.display import Display, RecordPage
from retainer.console.values import NOTHING, NUMBERS, AnyBlock, Block, Column, Fact, TableBlock, Value, Values, table_of
from retainer.schema.sites import site_hours
from retainer.sites.sites import Site, find_obstacle
from retainer.sites.uptime import list_incidents, share
from retainer.store.engines.sql import is_listed
from retainer.store.tx import Tx
from retainer.values.exact import day_after, day_start, instant_after

DAYS, CHART_DAYS = 90, 30
INCIDENTS, PLUGINS = 10, 300
BAR_HEIGHT, LOWEST_SHARE = 18, 90_000
"""Height of a day's bar, and the thousandths of a percent at which it is lowest, to show short outages."""
SOON = timedelta(days=14)
"""Time before the end of a certificate from which on it needs attention."""
SOFTWARE = (
    *("url", "environment", "platform", "wp_version", "wp_update_version", "php_version", "last_synced_at"),
    *("last_checked_at", "last_status_code", "last_error"),
)


class Checks(NamedTuple):
    up: int = 0
    down: int = 0
    responses: int = 0
    response_ms: int = 0

    @property
    def total(self) -> int:
        return self.up + self.down


@lru_cache(maxsize=2)
def checks_by_day(days: int) -> Select[int, int, int, int, int, int]:
    """Return the statement that adds up the hours of sites by the place of their day, of which each has its begin."""
    hour = site_hours.c.hour
    started = [(hour >= bindparam(f"begun_{place}"), place) for place in reversed(range(days))]
    place = case(*started).label("place")
    sums = [func.sum(site_hours.c[name]) for name in Checks._fields]
    return (
        select(site_hours.c.site_id, place, *sums)
        .where(is_listed(site_hours.c.site_id, "ids"), hour >= bindparam("begun_0"))
        .group_by(site_hours.c.site_id, place)
    )


def load_days(tx: Tx, site_ids: list[int], days: int) -> dict[int, dict[str, Checks]]:
    """Return the checks of sites on the last days in the account's time zone, the oldest first."""
    names = [day_after(tx.today, -ago) for ago in range(days - 1, -1, -1)]
    begun = {f"begun_{place}": day_start(day, tx.actor.timezone)[:13] for place, day in enumerate(names)}
    found = {site_id: dict.fromkeys(names, Checks()) for site_id in site_ids}
    for site_id, place, *sums in tx.all(checks_by_day(days), ids=json.dumps(site_ids), **begun):
        found[site_id][names[place]] = Checks(*sums)
    return found


def uptimes(values: Values, sites: Sequence[Site]) -> dict[int, Value]:
    """Return the uptime of sites, with a bar for each of the last days; nothing before the second check."""
    told = {site.id: site.uptime_percent_30d for site in sites if not is_untold(site)}
    found = load_days(values.tx, list(told), CHART_DAYS)
    return {
        site_id: Value(
            "bars",
            "" if percent is None else NUMBERS["uptime"](percent),
            bars=[bar(day, checks) for day, checks in found[site_id].items()] if percent is not None else (),
        )
        for site_id, percent in told.items()
    }


def bar(day: str, checks: Checks) -> tuple[str, Decimal | None, int]:
    """Return the label of a day, the percentage of checks that found the site up, and the height of its bar."""
    thousandths = share(checks.up, checks.total)
    if thousandths is None:
        return words.day_label(day), None, 1
    part = max(0, thousandths - LOWEST_SHARE) * (BAR_HEIGHT - 3) // (100_000 - LOWEST_SHARE)
    return words.day_label(day), Decimal(thousandths).scaleb(-3), 3 + part


def is_untold(site: Site) -> bool:
    """Return whether the state of a site is not known yet: only a first check has failed, and the next one decides."""
    return site.status == "unknown" and site.uptime_percent_30d == 0


def facts(page: RecordPage[Site]) -> list[Fact]:
    site = page.record
    found = page.facts("client_id")
    if site.down_since is not None:
        since = page.value("down_since")._replace(kind="since", tone="bad")
        found.append(Fact("Down since", since, note=site.last_error or ""))
    page.seen |= {"uptime_percent_24h", "uptime_percent_7d"} if is_untold(site) else set()
    found += page.facts("response_time_ms") if is_untold(site) else page.facts("uptime_percent_30d", "response_time_ms")
    if site.ssl_expires_at is not None:
        tone = "bad" if site.ssl_expires_at < instant_after(page.tx.now, SOON) else ""
        value = page.value("ssl_expires_at")._replace(kind="since", tone=tone)
        found.append(Fact("Certificate expires", value, note=value.moment.day if value.moment else ""))
    return [*found, *(Fact("Updates", value) for value in updates(page, [page.own]).values())]


def updates(_: Values, sites: Sequence[Site]) -> dict[int, Value]:
    """Return how many updates sites wait for, of plugins and of WordPress; none for a site that reports nothing."""
    told = [site for site in sites if site.plugins_count or site.core_update_available]
    counts = {site.id: site.plugin_updates_count + int(site.core_update_available) for site in told}
    return {key: Value("number", words.number(count), tone="warn" if count else "") for key, count in counts.items()}


def blocks(page: RecordPage[Site]) -> Iterator[AnyBlock]:
    site = page.record
    if obstacle := find_obstacle(page.own, page.context.request.settings.monitor_allow):
        yield Block("notice", text=obstacle)  # also right after it was saved, before a check has failed
    days = load_days(page.tx, [page.own.id], DAYS)[page.own.id]
    if any(checks.total for checks in days.values()) and not is_untold(site):
        yield uptime_block(days)
    yield incident_table(page)
    if any(checks.responses for checks in days.values()):
        yield response_chart(days)
    yield page.fields("Site", SOFTWARE)
    if site.plugins:
        yield plugin_table(page)


def uptime_block(days: dict[str, Checks]) -> Block:
    failing = [
        (words.short_day(day), uptime_text([each]), words.number(each.down), words.number(each.total))
        for day, each in reversed(days.items())
        if each.down
    ]
    count = words.count(len(failing), "day") + " with a failed check" if failing else "no failed check"
    summary = f"{uptime_text(days.values())} in 90 days, {count}"
    value = Value("bars", uptime_text(days.values()), bars=[bar(day, each) for day, each in days.items()])
    titles = ("Day", "Uptime", "Failed checks", "Checks")
    failing_days = table_of("Days with a failed check", titles, failing, numbers=3)
    return Block("uptime", summary=summary, days=value, failing=failing_days)


def uptime_text(days: Collection[Checks]) -> str:
    thousandths = share(sum(each.up for each in days), sum(each.total for each in days))
    return NUMBERS["uptime"](Decimal(thousandths or 0).scaleb(-3))


def incident_table(page: RecordPage[Site]) -> TableBlock:
    rows = []
    for incident in list_incidents(page.tx, page.own.id, INCIDENTS):
        text = words.span(incident.started_at, incident.ended_at or page.context.now)
        length = text if incident.ended_at else Value("badge", f"Down for {text}", tone="bad")
        started = Value("moment", moment=page.context.moment(incident.started_at))
        rows.append((started, length, incident.cause or NOTHING))
    note = "" if rows else "No incident in 90 days."
    return table_of("Incidents", ("Start", "Length", "Cause"), rows, note=note)


def response_chart(days: dict[str, Checks]) -> Block:
    shown = dict(list(days.items())[-CHART_DAYS:])
    averages = [Decimal(day.response_ms // day.responses) if day.responses else None for day in shown.values()]
    labels = [words.short_day(day).rsplit(" ", 1)[0] for day in shown]
    series = [Series("Average", "line", averages)]
    chart = draw("Response time, daily average in ms", "milliseconds", labels, series)
    rows = [
        (words.short_day(day), f"{words.number(average)} ms")
        for day, average in zip(shown, averages, strict=True)
        if average is not None
    ]
    values = table_of("Response times", ("Day", "Average"), rows[::-1], numbers=1)
    return Block("chart", chart=chart, values=values)


def plugin_table(page: RecordPage[Site]) -> TableBlock:
    plugins = sorted(page.own.plugins, key=lambda plugin: not plugin.update_available)[:PLUGINS]
    block = page.table("Plugins", plugins, None, ("name", "version", "update_version", "status", "auto_update"))
    rows = [
        [*row[:2], row[2]._replace(kind="badge", tone="warn") if plugin.update_available else NOTHING, *row[3:]]
        for plugin, row in zip(plugins, block.rows, strict=True)
    ]
    return block._replace(rows=rows, total=page.own.plugins_count)


DISPLAY = Display(
    columns=(
        *(Column("name", "url"), "client_id", "status", Column("uptime_percent_30d", load=uptimes)),
        *("response_time_ms", "ssl_expires_at", Column("plugin_updates_count", load=updates)),
    ),
    filters=("client_id", "status", "has_updates"),
    views=(
        ("All", "sort=status,uptime_percent_30d"),
        ("Down", "status=down"),
        ("Updates", "has_updates=true&sort=-plugin_updates_count"),
        ("By name", "sort=name"),
    ),
    facts=facts,
    blocks=blocks,
    rare=("check_interval_seconds", "expected_status", "keyword", "maintenance_until"),
    preset_only=("wp_version", "wp_update_version", "php_version"),
)
