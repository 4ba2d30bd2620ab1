"""The overview of a period: money, time and counts, beside the same days a year before, and the state of now."""

from operator import attrgetter

from retainer.console.charts import Series, Subject, row_chart
from retainer.console.labels import field_label
from retainer.console.reports.controls import Controls
from retainer.console.reports.tables import Column, Kind, Label, Report, ReportTable, Value, fact, in_currency, shown
from retainer.reports import overview
from retainer.reports.common import ReportQuery
from retainer.reports.overview import Overview
from retainer.store.tx import Tx

MONEY = ("invoiced", "credited", "revenue", "tax", "collected", "outstanding", "overdue", "refund_due", "expenses")
CHARTED = ("revenue", "collected", "outstanding", "overdue", "expenses")
UNBILLED = ("unbilled_time", "unbilled_expenses")
FIGURES: dict[str, tuple[str, Kind]] = {
    "Tracked time": ("time.tracked_minutes", "minutes"),
    "Billable time": ("time.billable_minutes", "minutes"),
    "Available time": ("time.available_minutes", "minutes"),
    "Utilisation": ("time.utilisation_percent", "percent"),
    "Billable utilisation": ("time.billable_utilisation_percent", "percent"),
    "Billable time without a rate": ("time.unpriced_minutes", "minutes"),
    "New clients": ("clients.new", "count"),
    "Tasks completed": ("tasks.completed", "count"),
    "Quotes sent": ("quotes.sent", "count"),
    "Quotes accepted": ("quotes.accepted", "count"),
    "Quotes declined": ("quotes.declined", "count"),
    "Win rate of quotes": ("quotes.win_rate_percent", "percent"),
    "Tickets opened": ("tickets.opened", "count"),
    "Tickets resolved": ("tickets.resolved", "count"),
    "Median time to the first response": ("tickets.median_first_response_minutes", "minutes"),
}
STATES = {
    "Active clients": ("clients.active", "clients?status=active"),
    "Active projects": ("projects.active", "projects?status=active"),
    "Projects over budget": ("projects.over_budget", "projects?status=planned,active,on_hold&over_budget=true"),
    "Projects overdue": ("projects.overdue", "projects?overdue=true"),
    "Open tasks": ("tasks.open", "tasks?open=true"),
    "Tasks overdue": ("tasks.overdue", "tasks?overdue=true"),
    "Unresolved tickets": ("tickets.open_now", "tickets?status=unresolved"),
    "Tickets without an answer": ("tickets.unanswered_now", "tickets?unanswered=true"),
    "Sites": ("sites.total", "sites"),
    "Sites down": ("sites.down", "sites?status=down"),
    "Sites with updates": ("sites.with_updates", "sites?has_updates=true"),
}
"""The figures of now, with the lists of their records."""
TITLES: dict[Kind, str] = {"minutes": "Time", "percent": "Ratios", "count": "Work and sales"}


def build(tx: Tx, controls: Controls) -> Report:
    """Return the report."""
    now, before = (
        overview.get_report_overview(tx, controls.ask(ReportQuery, period)).data
        for period in (controls.period, controls.before)
    )
    money, earlier = (next(iter(in_currency(each.money, controls.currency)), None) for each in (now, before))
    pairs = {name: (getattr(money, name, None), getattr(earlier, name, None)) for name in (*MONEY, *UNBILLED)}
    names = {name: field_label(name) for name in pairs}
    subjects = [
        Subject(names[name], shown(value, "money") if (value := pairs[name][0]) is not None else "") for name in CHARTED
    ]
    series = [
        Series("This period", "solid", [pairs[name][0] for name in CHARTED]),
        Series("A year before", "outlined", [pairs[name][1] for name in CHARTED]),
    ]
    columns = [Column("Money"), Column("This period", "money"), Column("Year before", "money")]
    return Report(
        [
            fact("Revenue", *pairs["revenue"], "money"),
            fact("Collected", *pairs["collected"], "money"),
            fact("Outstanding", *pairs["outstanding"], "money"),
            fact("Billable utilisation", *pair(now, before, "time.billable_utilisation_percent"), "percent"),
        ],
        [row_chart("Money in this period", "money", subjects, series)],
        [
            ReportTable("overview-money", "Money", columns, [[names[name], *both] for name, both in pairs.items()]),
            *(figures_table(kind, now, before) for kind in TITLES),
            state_table(now, controls),
        ],
        [each.currency for each in now.money if each.currency != controls.currency],
        "Invoiced, credited, revenue, expenses and unbilled amounts are before tax; the others include tax.",
    )


def pair(now: Overview, before: Overview, path: str) -> tuple[Value, Value]:
    """Return a figure, by its path in the report, and that of a year before."""
    read = attrgetter(path)
    return read(now), read(before)


def figures_table(kind: Kind, now: Overview, before: Overview) -> ReportTable:
    """Return a table of the figures of a kind, with a column for the year before."""
    columns = [Column(TITLES[kind]), Column("This period", kind), Column("Year before", kind)]
    rows = [[name, *pair(now, before, path)] for name, (path, of_kind) in FIGURES.items() if of_kind == kind]
    return ReportTable(f"overview-{kind}", TITLES[kind], columns, rows)


def state_table(now: Overview, controls: Controls) -> ReportTable:
    """Return the figures of now, with links to their lists."""
    rows: list[list[Value]] = []
    for name, (path, listing) in STATES.items():
        kind, _, query = listing.partition("?")
        if controls.client_id is not None:
            query += f"&{'ids' if kind == 'clients' else 'client_id'}={controls.client_id}"
        rows.append([Label(name, f"/records/{kind}{'?' if query else ''}{query.lstrip('&')}"), attrgetter(path)(now)])
    return ReportTable("overview-now", "As of now", [Column("As of now"), Column("Count", "count")], rows)
