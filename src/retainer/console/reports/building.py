"""The one builder of the business reports: facts, charts and tables of a period beside the same days a year before."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args, get_type_hints

from msgspec import Struct

from retainer.console import charts
from retainer.console.charts import Series, Subject, column_chart, row_chart
from retainer.console.labels import in_words
from retainer.console.reports.controls import Controls
from retainer.console.reports.declarations import Chart, Declaration, Table
from retainer.console.reports.figures import FIGURES, SECTIONS
from retainer.console.reports.readers import Fields, Figures
from retainer.console.reports.tables import Cell, Fact, Format, ShownTable, decimal, fact, shown, unit_of
from retainer.store.tx import Tx
from retainer.values.exact import amount_of
from retainer.web import csv_files

BEFORE = "A year before"
STOCKS = ("unbilled_amount",)
"""Facts that are not compared: nearly all that was unbilled a year before was billed since."""


class Report(NamedTuple):
    """What a page of a report shows, in this order."""

    facts: Sequence[Fact]
    charts: Sequence[charts.Chart]
    tables: Sequence[ShownTable]
    other_currencies: Sequence[str]
    """Currencies with figures of their own, which these do not include."""
    notes: Sequence[str]
    meanings: Mapping[str, str]
    """What the figures mean, by their titles."""

    def csv(self, currency: str) -> tuple[list[str], list[list[csv_files.Cell]]]:
        """Return the header and the rows of one file with all tables: of several, the first column has the title.

        It has no totals, so that the sum of a column is right. A figure with a unit of its own has it in its label.
        """
        several = len(self.tables) > 1
        header = ["Table"] * several + [f"{title}{unit_of(form, currency)}" for title, form in self.tables[0].columns]
        rows = []
        for table in self.tables:
            for row in table.rows:
                label, *values = (each.value for each in row)
                unit = unit_of(row[1].format, currency) if table.columns[1][1] == "text" else ""
                cells: list[csv_files.Cell] = [*[table.title] * several, f"{label}{unit}", *values]
                rows.append(cells + [None] * (len(header) - len(cells)))
        return header, rows


class Pair(NamedTuple):
    """The fields of a subject in the period and a year before, empty without figures."""

    now: Fields
    before: Fields

    def label(self, name: str = "label") -> str:
        return str((self.now or self.before).get(name) or "")


class Builder(NamedTuple):
    """Builds a report from its declaration and its figures."""

    declared: Declaration
    controls: Controls
    now: Figures
    before: Figures

    def report(self) -> Report:
        first, *more = self.declared.tables
        tables = [first, *(each for each in more if len(self.now.rows[each.subjects]) > 1)]
        drawn = [each for each in self.declared.charts if each.limit or len(self.now.rows[each.subjects]) > 1]
        others = [code for code in self.now.currencies if code != self.controls.currency]
        return Report(
            [self.fact(name) for name in self.declared.facts],
            [self.chart(each) for each in drawn],
            [self.table(each) for each in tables],
            others,
            self.now.notes,
            self.meanings(),
        )

    def value(self, fields: Fields, name: str) -> Any:
        """Return a figure of a subject: a sum of nothing is 0, a ratio of nothing does not exist."""
        form = FIGURES[name].format
        if name in fields:
            return decimal(fields[name]) if form == "percent" else fields[name]
        return amount_of(0, self.controls.currency) if form == "money" else None if form == "percent" else 0

    def fact(self, name: str) -> Fact:
        title, form, _ = FIGURES[name]
        now, before = (self.value(each.total, name) for each in (self.now, self.before))
        return Fact(title, shown(now, form)) if name in STOCKS else fact(title, now, before, form)

    def pairs(self, subjects: str, compared: Sequence[str] = ()) -> list[Pair]:
        """Return the subjects of the period in its order, and then those with figures only a year before."""
        now, before = self.now.rows[subjects], self.before.rows[subjects]
        gone = [fields for key, fields in before.items() if key not in now and any(map(fields.get, compared))]
        return [Pair(fields, before.get(key, {})) for key, fields in now.items()] + [Pair({}, each) for each in gone]

    def table(self, table: Table) -> ShownTable:
        columns: list[tuple[str, Format]] = [("Figure" if table.subjects in SECTIONS else table.subjects, "text")]
        columns += [(table.note, "note")] if table.note else []
        for name in table.figures:
            title, form, _ = FIGURES[name]
            columns.append((title if table.compared or name != "figure" else "Now", form))
            if name in table.compared:
                columns.append((BEFORE if name == "figure" else f"{title}, year before", form))
        rows = [self.row(table, pair) for pair in self.pairs(table.subjects, table.compared)]
        total = self.row(table, Pair(self.now.total, self.before.total)) if table.has_total and rows else []
        return ShownTable(table.title, columns, rows, total)

    def row(self, table: Table, pair: Pair) -> list[Cell]:
        cells = [Cell(pair.label(), "text", self.link(table.link, pair.now or pair.before))]
        cells += [Cell(pair.label("note"), "note")] if table.note else []
        for name in table.figures:
            form = pair.now.get("format", FIGURES[name].format)
            cells.append(Cell(self.value(pair.now, name), form))
            if name in table.compared:
                cells.append(Cell(self.value(pair.before, name), form))
        return cells

    def link(self, template: str, fields: Fields) -> str:
        """Return the path of a subject's page or list; empty without one, as for the total."""
        template = f"/records/{fields['link']}" if fields.get("link") else template
        days = {"first": self.controls.period.first, "to": self.controls.period.to}
        values = {**days, "currency": self.controls.currency, **fields}
        names = [part.partition("}")[0] for part in template.split("{")[1:]]
        if any(values.get(name) is None for name in names) or fields.get("label") == "Total":
            return ""
        path = template.format_map(values)
        if "?" in path and self.controls.client_id is not None:
            path += f"&{'ids' if path.startswith('/records/clients') else 'client_id'}={self.controls.client_id}"
        return path.replace("?&", "?").rstrip("?")

    def chart(self, chart: Chart) -> charts.Chart:
        pairs, title, count = self.pairs(chart.subjects), chart.title, chart.limit
        if count:
            empty = (None, 0) if chart.unit == "money" else (None,)
            pairs = [pair for pair in pairs if any(pair.now[name] not in empty for name in chart.series)]
            title += f", the first {count} of {len(pairs)}" if count < len(pairs) else ""
            pairs = pairs[:count]
        series = [
            Series(FIGURES[name].title, pattern, [self.value(pair.now, name) for pair in pairs])
            for name, pattern in chart.series.items()
        ]
        if chart.before:
            first = next(iter(chart.series))
            earlier = [self.value(pair.before, first) for pair in pairs]
            series[:1] = [series[0]._replace(name="This period"), Series(BEFORE, chart.before, earlier)]
        if not count:
            return column_chart(title, chart.unit, [pair.label() for pair in pairs], series)
        note = FIGURES[chart.note]
        named = "" if chart.note in chart.series else f"{note.title.lower()} "
        subjects = [
            Subject(
                pair.label(),
                f"{named}{shown(self.value(pair.now, chart.note), note.format)}",
                decimal(pair.now.get(chart.target)),
            )
            for pair in pairs
        ]
        return row_chart(title, chart.unit, subjects, series, "Target" if chart.target else "")

    def meanings(self) -> dict[str, str]:
        """Return what the reports of the API say about the figures, by title."""
        names = [name for table in self.declared.tables for name in (*table.figures, *self.now.rows[table.subjects])]
        found = {FIGURES[name].title: meaning_of(name, self.declared.models) for name in names if name in FIGURES}
        return {title: text for title, text in found.items() if text}


def build(tx: Tx, declared: Declaration, controls: Controls) -> Report:
    """Return a report from one snapshot."""
    tx.snapshot()
    now, before = (declared.read(tx, controls, period) for period in (controls.period, controls.before))
    return Builder(declared, controls, now, before).report()


def meaning_of(name: str, models: Sequence[type[Struct]]) -> str:
    for model in models:
        for said in get_args(get_type_hints(model, include_extras=True).get(name))[1:]:
            if isinstance(said, str):
                return in_words(said, model.__struct_encode_fields__)
    return ""
