"""The pages of the business reports: facts, charts and tables of a period and of the same days a year before."""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, get_args, get_type_hints

from msgspec import Struct

from retainer.console import charts
from retainer.console.charts import Series, draw
from retainer.console.labels import in_words
from retainer.console.names import Link
from retainer.console.page_context import NO_STORE, PageContext, Reply
from retainer.console.reports.controls import Controls, read_controls
from retainer.console.reports.declarations import REPORTS, ReportChart, ReportDeclaration, ReportTable
from retainer.console.reports.figures import FIGURES, SECTIONS, Fields, ReportFigures, fact, unit_of, value_of
from retainer.console.spreadsheets import dialect_of
from retainer.console.values import Fact, Heading, TableBlock, Value
from retainer.errors import Refusal, invalid, part
from retainer.store.tx import Tx
from retainer.values.exact import amount_of
from retainer.web.csv_files import Cell
from retainer.web.pages import csv_response

BEFORE = "A year before"
NAMES = re.compile("`[a-z_]+`")
CAPACITY = {"available_minutes", "target_percent"}
"""Figures that people have before they have done any work."""
STOCKS = ("to_bill_amount",)
"""Facts that are not compared: nearly all that was unbilled a year before was billed since."""


class Pair(NamedTuple):
    now: Fields
    before: Fields

    def label(self, name: str = "label") -> str:
        return str((self.now or self.before).get(name) or "")


Column = tuple[str, str, bool]
"""A column of a table: its title, its figure, and whether that is of a year before."""


class Report(NamedTuple):
    declared: ReportDeclaration
    controls: Controls
    now: ReportFigures
    before: ReportFigures

    @property
    def tables(self) -> list[ReportTable]:
        first, *more = self.declared.tables
        return [first, *(each for each in more if len(self.now.rows[each.subjects]) >= each.fewest)]

    @property
    def is_empty(self) -> bool:
        return not any(map(self.is_filled, self.declared.tables))

    def is_filled(self, table: ReportTable) -> bool:
        """Return whether any figure of a table is something, in the period or a year before."""
        rows = [row for part in (self.now, self.before) for row in part.rows[table.subjects].items()]
        figures = ((fields, name) for key, fields in rows for name in table.figures if not CAPACITY & {key, name})
        return any(self.figure(*each) for each in figures)

    @property
    def drawings(self) -> list[charts.Chart]:
        return [
            self.chart(each) for each in self.declared.charts if each.limit or len(self.now.rows[each.subjects]) > 1
        ]

    @property
    def facts(self) -> Iterator[Fact]:
        for name in self.declared.facts:
            title, form, _ = FIGURES[name]
            now, before = (self.figure(each.total, name) for each in (self.now, self.before))
            yield Fact(title, value_of(now, form)) if name in STOCKS else fact(title, now, before, form)

    def figure(self, fields: Fields, name: str) -> Any:
        """Return a figure of a subject: a sum of nothing is 0, a ratio of nothing does not exist."""
        form = FIGURES[name].format
        if name in fields:
            return Decimal(str(fields[name])) if form == "percent" and fields[name] is not None else fields[name]
        return amount_of(0, self.controls.currency) if form == "money" else None if form == "percent" else 0

    def pairs(self, subjects: str, compared: Sequence[str] = ()) -> list[Pair]:
        """Return the subjects of the period in its order, and then those with figures only a year before."""
        now, before = self.now.rows[subjects], self.before.rows[subjects]
        gone = [fields for key, fields in before.items() if key not in now and any(map(fields.get, compared))]
        return [Pair(fields, before.get(key, {})) for key, fields in now.items()] + [Pair({}, each) for each in gone]

    def sorted_pairs(self, table: ReportTable) -> list[Pair]:
        """Return the subjects of a table in the order that was asked for; those without the figure come last."""
        found, name = self.pairs(table.subjects, table.compared), self.controls.sort.removeprefix("-")
        if not table.has_total or name not in table.figures:
            return found
        known, unknown = list[Pair](), list[Pair]()
        for pair in found:
            (unknown if self.figure(pair.now, name) is None else known).append(pair)
        known.sort(key=lambda pair: self.figure(pair.now, name), reverse=self.controls.sort.startswith("-"))
        return known + unknown

    def columns(self, table: ReportTable) -> Iterator[Column]:
        for name in table.figures:
            title, is_mixed = FIGURES[name].title, name == "figure"
            yield "Now" if is_mixed and not table.compared else title, name, False
            if name in table.compared:
                yield BEFORE if is_mixed else f"{title}, year before", name, True

    def block(self, table: ReportTable) -> TableBlock:
        rows = [self.row(table, pair) for pair in self.sorted_pairs(table)]
        foot = self.row(table, Pair(self.now.total, self.before.total)) if table.has_total and rows else []
        headings = [self.heading(table, column) for column in self.columns(table)]
        return TableBlock(table.title, [Heading(subject_of(table)), *headings], rows, foot=foot)

    def heading(self, table: ReportTable, column: Column) -> Heading:
        """Return the heading of a column; in a table with a total, it sorts the subjects, the largest first."""
        title, name, is_before = column
        heading = Heading(title, is_number=True)
        is_plain = is_before or not table.has_total
        return heading if is_plain else heading.sorting(self.controls.filters.context, name, self.controls.sort)

    def row(self, table: ReportTable, pair: Pair) -> list[Value]:
        link = Link(pair.label(), self.link(table.link, pair.now or pair.before))
        note = Link(pair.label("note"), "") if table.note and pair.label("note") else None
        return [
            Value("link", link=link, detail=note),
            *(
                value_of(self.figure(pair[is_before], name), pair.now.get("format", FIGURES[name].format))
                for _, name, is_before in self.columns(table)
            ),
        ]

    def csv(self) -> tuple[list[str], list[list[Cell]]]:
        """Return the header and the rows of one file with all tables: of several, the first column has the title.

        It has no totals, so that the sum of a column is right. A figure with a unit of its own has it in its label.
        """
        several, currency, first = len(self.tables) > 1, self.controls.currency, self.tables[0]
        columns: dict[tuple[str, bool], str] = {}
        for table in self.tables:
            for title, name, is_before in self.columns(table):
                columns.setdefault((name, is_before), f"{title}{unit_of(FIGURES[name].format, currency)}")
        header = ["Table"] * several + [subject_of(first)] + [first.note] * bool(first.note) + [*columns.values()]
        rows = []
        for table in self.tables:
            own = {column[1:] for column in self.columns(table)}
            for pair in self.sorted_pairs(table):
                unit = unit_of(pair.now.get("format", "text"), currency)
                cells: list[Cell] = [*[table.title] * several, f"{pair.label()}{unit}"]
                cells += [pair.label("note")] * bool(table.note)
                cells += [self.figure(pair[key[1]], key[0]) if key in own else None for key in columns]
                rows.append(cells)
        return header, rows

    def link(self, template: str, fields: Fields) -> str:
        """Return the path of a subject's page or list; empty without one, as for the total."""
        template = f"/records/{fields['link']}" if fields.get("link") else template
        days = {"first": self.controls.period.first, "to": self.controls.period.to}
        values = {**days, "currency": self.controls.currency, **fields}
        names = [part.partition("}")[0] for part in template.split("{")[1:]]
        if any(values.get(name) is None for name in names) or fields.get("label") == "Total":
            return ""
        path = template.format_map(values)
        if "?" in path and self.controls.asked.client_id:
            path += f"&{'ids' if path.startswith('/records/clients') else 'client_id'}={self.controls.asked.client_id}"
        return path.replace("?&", "?").rstrip("?")

    def chart(self, chart: ReportChart) -> charts.Chart:
        pairs, title, count = self.pairs(chart.subjects), chart.title, chart.limit
        if count:
            empty = (None, 0) if chart.unit == "money" else (None,)
            pairs = [pair for pair in pairs if any(pair.now[name] not in empty for name in chart.series)]
            title += f", the first {count} of {len(pairs)}" if count < len(pairs) else ""
            pairs = pairs[:count]
        series = [
            Series(FIGURES[name].title, pattern, [self.figure(pair.now, name) for pair in pairs])
            for name, pattern in chart.series.items()
        ]
        if chart.before:
            first = next(iter(chart.series))
            earlier = [self.figure(pair.before, first) for pair in pairs]
            series[:1] = [series[0]._replace(name="This period"), Series(BEFORE, chart.before, earlier)]
        rows = [self.aim(chart, pair) for pair in pairs] if count else []
        return draw(title, chart.unit, [pair.label() for pair in pairs], series, rows, "Target" if chart.target else "")

    def aim(self, chart: ReportChart, pair: Pair) -> tuple[str, Any]:
        title, form, _ = FIGURES[chart.note]
        note = value_of(self.figure(pair.now, chart.note), form).text
        target = self.figure(pair.now, chart.target) if chart.target else None
        return note if chart.note in chart.series else f"{title.lower()} {note}", target

    @property
    def meanings(self) -> Mapping[str, str]:
        names = [name for table in self.declared.tables for name in (*table.figures, *self.now.rows[table.subjects])]
        found = {FIGURES[name].title: meaning_of(name, self.declared.models) for name in names if name in FIGURES}
        return {title: text for title, text in found.items() if text}


def load(tx: Tx, context: PageContext) -> Report:
    """Return the report that the path names, with the controls of the query. Raises `not_found`."""
    declared = REPORTS.get(context.path_parameters["report"])
    if declared is None:
        raise Refusal("not_found", "This report does not exist.")
    controls = read_controls(tx, context, declared.default_start, declared.default_end)
    now, before = (declared.read(tx, controls, period) for period in (controls.period, controls.before))
    return Report(declared, controls, now, before)


def subject_of(table: ReportTable) -> str:
    return "Figure" if table.subjects in SECTIONS else table.subjects


def meaning_of(name: str, models: Sequence[type[Struct]]) -> str:
    """Return what the API says about a figure, with the labels of those that it names."""
    for model in models:
        for said in get_args(get_type_hints(model, include_extras=True).get(name))[1:]:
            if isinstance(said, str):
                with_parts = NAMES.sub(lambda found: part(found[0]), said.replace("null", "none"))
                return in_words(with_parts, model.__struct_encode_fields__)
    return ""


def show(tx: Tx, context: PageContext) -> Reply:
    name, report = context.path_parameters["report"], load(tx, context)
    return context.render("report", name=name, title=report.declared.title, asked=report.controls, report=report)


def download(tx: Tx, context: PageContext) -> Reply:
    """Return the tables of a report as a CSV file. Raises `not_found`, and `validation_failed` for invalid controls."""
    report, name = load(tx, context), context.path_parameters["report"]
    if context.query.errors:
        raise invalid(context.query.errors)
    file = f"{name}-{report.controls.period.first}-to-{report.controls.period.to}"
    return csv_response(file, *report.csv(), NO_STORE, dialect=dialect_of(tx))
