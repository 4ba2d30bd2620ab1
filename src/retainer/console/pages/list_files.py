"""The CSV files of lists: with the names and values of the API for programs, and for people in words.

What people open in a spreadsheet has the separators of their country, local times, names of records and hours.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import msgspec

from retainer.console.catalogue import Kind
from retainer.console.labels import field_label, word_of
from retainer.console.names import load_names
from retainer.console.page_context import NO_STORE, PageContext, Reply
from retainer.console.pages.list_pages import MAX_ROWS, find, read_asked
from retainer.console.shapes import shapes_of
from retainer.console.spreadsheets import dialect_of
from retainer.documents.wording import country_name
from retainer.errors import invalid
from retainer.kernel.paging import Page
from retainer.store.constraints import references
from retainer.store.tx import Tx
from retainer.values import money
from retainer.values.exact import decimal_text
from retainer.values.records import WRITE_ONLY, Record
from retainer.web.csv_files import PROGRAMS, Cell, Dialect
from retainer.web.direction import plain
from retainer.web.pages import csv_response

UNITS = {"minutes": " (h)", "percent": " (%)"}
AT = " at"
"""The end of the labels of moments: an invoice has an amount that is paid, and the moment when it was."""
Table = tuple[list[str], Iterator[tuple[Cell, ...]]]


def download(tx: Tx, context: PageContext) -> Reply:
    """Return the first MAX_ROWS records of a filtered list for programs. Raises `not_found`, `validation_failed`."""
    return _file(tx, context, "", PROGRAMS)


def download_spreadsheet(tx: Tx, context: PageContext) -> Reply:
    """Return the first MAX_ROWS records of a filtered list for people. Raises `not_found`, `validation_failed`."""
    return _file(tx, context, "-table", dialect_of(tx))


def _file(tx: Tx, context: PageContext, suffix: str, dialect: Dialect) -> Reply:
    kind, _ = find(context)
    asked = read_asked(context, kind)
    if asked is None:
        raise invalid(context.query.errors)
    listed = kind.load(tx, asked.filters, Page(1, MAX_ROWS, asked.page.sort, "", ""))
    header, rows = build_table(tx, kind, listed.data) if not suffix else build_words(tx, kind, listed.data)
    part = f"-first-{MAX_ROWS}" if listed.meta.total > MAX_ROWS else ""
    return csv_response(f"{kind.name}{suffix}-{tx.today}{part}", header, rows, NO_STORE, dialect=dialect)


def build_table(tx: Tx, kind: Kind, records: Sequence[Record]) -> Table:
    """Return the header and the rows of a file: a column for each field with a single value that the role sees.

    After an id of another record comes a column with its name: `client_id`, `client`.
    """
    columns = dict[str, list[Cell]]()
    for field, _, values, names in columns_of(tx, kind, records):
        columns[field] = [cell_of(value) for value in values]
        if names is not None:
            columns[field.removesuffix("_id")] = names
    return list(columns), zip(*columns.values(), strict=True)


def build_words(tx: Tx, kind: Kind, records: Sequence[Record]) -> Table:
    """Return the header and the rows of a file in words; a record of another kind is its name, and ids are left out.

    Documents have columns for the net and the tax at each rate that one of them has, and invoices for the VAT number
    and the country of the client.
    """
    columns = list[list[Cell]]()
    header = list[str]()
    for field, shape, values, names in columns_of(tx, kind, records):
        if field != "id":
            end = AT if field.endswith(AT.replace(" ", "_")) else UNITS.get(shape, "")
            header.append(f"{field_label(field, kind.table)}{end}")
            columns.append(names or [in_words(value, shape, tx.actor.timezone) for value in values])
    for label, cells in (*of_clients(records), *of_rates(records)):
        header.append(label)
        columns.append(cells)
    return header, zip(*columns, strict=True)


def of_clients(records: Sequence[Record]) -> Iterator[tuple[str, list[Cell]]]:
    """Yield the columns of clients as their invoices print them, for recapitulative statements in the EU."""
    clients = [getattr(record, "client_snapshot", None) for record in records]
    if any(clients):
        yield "VAT number", [client and client.vat_number for client in clients]
        yield "Country", [client and in_words(client.country, "country", "") for client in clients]


def of_rates(records: Sequence[Record]) -> Iterator[tuple[str, list[Cell]]]:
    """Yield the columns of the net and the tax at each rate of documents, the highest rate first."""
    taxes = [{share.tax_rate: share for share in getattr(record, "tax_breakdown", None) or ()} for record in records]
    for rate in sorted({rate for shares in taxes for rate in shares}, reverse=True):
        for label, part in (("Net", "taxable_amount"), ("Tax", "tax_amount")):
            yield f"{label} at {decimal_text(rate)}%", [getattr(shares.get(rate), part, None) for shares in taxes]


def columns_of(
    tx: Tx, kind: Kind, records: Sequence[Record]
) -> Iterator[tuple[str, str, list[object], list[Cell] | None]]:
    """Yield each field with a single value that the role sees, its shape and its values.

    Of a reference, also the names of the records that it refers to.
    """
    shapes, targets = shapes_of(kind.record), references(kind.table, kind.record)
    fields = [field for field in msgspec.structs.fields(kind.record) if field.name not in kind.left_out]
    answered = [field.name for field in fields if field.default is not WRITE_ONLY]
    for field in (name for name in answered if shapes[name] not in {"", "list"}):
        values = [getattr(record, field) for record in records]
        names: list[Cell] | None = None
        if field in targets:
            known = load_names(tx, targets[field], {value for value in values if value is not None})
            names = [plain(known[value]) if value in known else None for value in values]
        yield field, shapes[field], values, names


def cell_of(value: object) -> Cell:
    """Return a value as it is in JSON: `true`, `12.50`, `2026-11-24`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return Decimal(str(value))
    return value if isinstance(value, str | int | Decimal) else None


def in_words(value: object, shape: str, timezone: str) -> Cell:
    """Return a value as people read it: `Yes`, hours, a local time like `2026-11-24 14:30`, the name of a country."""
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, int) and shape == "minutes":
        return money.hours(value)
    if isinstance(value, str) and shape == "moment":
        return f"{datetime.fromisoformat(value).astimezone(ZoneInfo(timezone)):%Y-%m-%d %H:%M}"
    if isinstance(value, str) and shape == "choice":
        return word_of(value)
    if isinstance(value, str) and shape == "country":
        return country_name(value, "en")
    return cell_of(value)
