"""The pages of lists of records: the API's own lists, with the same filters and orders, and changes of a selection."""

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from msgspec.structs import replace
from sqlalchemy import Table

from retainer.batches import archives, bulk
from retainer.batches.bulk import ListChange
from retainer.console import words
from retainer.console.catalogue import Kind, no_such_page
from retainer.console.displays import display_for
from retainer.console.editing.filters import Filters, filter_control
from retainer.console.kinds.display import Display
from retainer.console.labels import field_label
from retainer.console.names import Link, load_names
from retainer.console.page_context import PageContext, Reply
from retainer.console.values import NOTHING, Heading, TableBlock, Value, Values, as_columns
from retainer.errors import FieldErrors, InvalidValue, Refusal, invalid
from retainer.exchange.importers import IMPORTED
from retainer.kernel.paging import Page, page_readers, take_page
from retainer.kernel.query import Filter, parameters, read_query
from retainer.rollups.list_sums import MAX_SUMMED, is_money, load_sums
from retainer.schema.crm import tags
from retainer.store.constraints import references
from retainer.store.engines.base import Row
from retainer.store.tx import Tx
from retainer.values.exact import amount_of
from retainer.values.kinds import MAX_INTEGER
from retainer.values.parameters import read_whole

MAX_ROWS = 10_000
"""Records in a file; the page says so, and the name of the file does."""
MAX_COUNTED = 99
"""Records of a view that its tab counts."""
PAGING = ("page", "per_page", "sort")
DATES = ("day", "since")
"""The kinds of values whose latest are of interest first."""
COMMON = {*Filter.__struct_fields__, "external_id"}
"""The filters of every list, which come after its own."""


class ListQuery(NamedTuple):
    filters: Filter
    page: Page
    texts: dict[str, list[str]]

    @property
    def is_filtered(self) -> bool:
        return bool(self.texts.keys() - {*PAGING})


class Tab(NamedTuple):
    """A view of a list: its title and query, and the number of its records if it is limited, at most `99+`."""

    title: str
    query: str
    is_shown: bool
    number: str


def find(context: PageContext) -> tuple[Kind, Display]:
    kind = context.catalogue.kinds.get(context.path_parameters["kind"])
    if kind is None or kind.parent is not None:
        raise no_such_page()
    return kind, display_for(kind)


def show_list(tx: Tx, context: PageContext) -> Reply:
    """Show the records of a kind, filtered and sorted; without a query, its first view. Raises `not_found`."""
    kind, display = find(context)
    if display.views and not context.query.texts:
        context.query.texts.update({name: [text] for name, text in parse_qsl(display.views[0][1])})
    elif display.sort and not context.query.texts:
        context.query.texts["sort"] = [display.sort]
    asked = read_asked(context, kind)
    targets = references(kind.table, kind.record) | {"tag_id": tags}
    filters = Filters(tx, context, kind.query, targets, kind.left_out)
    by_name = {field.name: field for field in filters.fields}
    first = [by_name[name] for name in display.filters]
    more = sorted((field for field in filters.fields if field not in first), key=lambda field: field.name in COMMON)
    shown: dict[str, Any] = {
        "kind": kind,
        "filters": filters,
        "first": first,
        "more": more,
        "is_more": any(filters.form.text(field.name) for field in more),
        "asked": asked,
        "sorts": sorts_of(kind),
        "tabs": tabs_of(tx, kind, display, asked),
        "links": [(label, f"{path}{one_client(asked)}") for label, path in display.links],
    }
    if asked is None:
        return context.render("records", **shown, chips=[], block=None, is_new=False)
    listed = kind.load(tx, asked.filters, asked.page)
    is_new = not listed.meta.total and (
        not asked.is_filtered or (any(tab.is_shown for tab in shown["tabs"]) and not kind.first(tx, {}, size=1))
    )
    values = Values(tx, context)
    block = values.table(kind.title, listed.data, kind.table, display.columns)
    sums = display.sums and listed.data and load_sums(tx, kind.table, display.sums, asked.filters, listed.meta.total)
    values.names.load()
    return context.render(
        "records",
        **shown,
        chips=list(chips_of(tx, context, filters, asked)),
        block=block._replace(
            columns=[*sortable(context, kind, display, block, asked.page.sort[0])],
            foot=foot_of(tx, kind.table, display, sums, listed.meta.total) if sums else (),
        ),
        meta=listed.meta,
        is_new=is_new,
        is_importable=kind.name in IMPORTED and context.may("settings"),
        changes=grouped(bulk.changes_of(tx, kind.name)) if listed.data and context.may("records") else {},
        ids=[record.id for record in listed.data],
        is_summed=sums is not None,
        max_summed=MAX_SUMMED,
        max_rows=MAX_ROWS,
    )


def change_selected(tx: Tx, context: PageContext) -> Reply:
    """Start the job that changes the selected records or makes their PDFs, and lead to its page.

    Raises `not_found`, and `validation_failed` without a change or a record, and for too many; `locked` while another
    job makes PDFs.
    """
    kind, _ = find(context)
    if not context.may("records"):
        raise no_such_page()
    change = next((each for each in bulk.changes_of(tx, kind.name) if each.value == context.form.text("change")), None)
    if change is None:
        raise invalid({"change": ["Choose what to do with the selected records."]})
    if change.value == bulk.ALL_PDFS:
        return context.follow_job(archives.start(tx, kind.name, listed_documents(tx, context, kind)))
    ids = {number for text in context.form.texts_of("record") if (number := read_whole(text)) and number <= MAX_INTEGER}
    records = load_names(tx, kind.table, ids) if len(ids) <= bulk.MAX_SELECTED else {}
    if not records:
        some = f"at least one record, and at most {bulk.MAX_SELECTED}"
        raise invalid({"change": [f"Select {some}."]})
    if change.value == bulk.PDFS:
        return context.follow_job(archives.start(tx, kind.name, records))
    job_id = bulk.start(tx, kind.name, change, records)
    return context.redirect(f"/jobs/{job_id}")


def listed_documents(tx: Tx, context: PageContext, kind: Kind) -> dict[int, str]:
    """Return all documents of a filtered list but drafts, with their names. Raises `validation_failed` for too many."""
    asked = read_asked(context, kind)
    if asked is None:
        raise invalid(context.query.errors)
    listed = kind.load(tx, asked.filters, Page(1, archives.MAX_DOCUMENTS, asked.page.sort, "", ""))
    if listed.meta.total > archives.MAX_DOCUMENTS:
        some = f"at most {archives.MAX_DOCUMENTS} {kind.plural}"
        raise invalid({"change": [f"Filter the list until it has {some}, by quarter for example."]})
    names = load_names(tx, kind.table, {each.id for each in listed.data if getattr(each, "status", "") != "draft"})
    if not names:
        raise invalid({"change": ["All of these are drafts. Issue them first."]})
    return names


def grouped(changes: list[ListChange]) -> dict[str, list[ListChange]]:
    found = dict[str, list[ListChange]]()
    for change in changes:
        found.setdefault(change.group, []).append(change)
    return found


def read_asked(context: PageContext, kind: Kind) -> ListQuery | None:
    """Return what a page asks for, by the rules of the API's list; None, with the errors in the form, if it is invalid.

    A blank field is left out. A day is the instant at which it begins for the account; numbers are as in forms.
    """
    known = {name: filter_control(each.hint) for name, each in parameters(kind.query).items()}
    sent = {name: [text.strip() for text in texts if text.strip()] for name, texts in context.query.texts.items()}
    texts = {name: texts for name, texts in sent.items() if texts}
    for name in texts.keys() & kind.left_out:
        context.query.errors.note_unknown(name, known.keys() - kind.left_out, is_parameter=True)
    if context.query.errors:
        return None
    place, pairs, errors = context.person, list[tuple[str, str]](), FieldErrors()
    if currency := context.query.text("currency"):  # amounts are in the chosen currency
        place = replace(place, currency=currency)
    for name, text in ((name, text) for name, each in texts.items() for text in each):
        try:
            pairs.append((name, known[name].query(text, place, name) if name in known else text))
        except InvalidValue as error:
            errors[name] = [str(error)]
    try:
        filters, found = read_query(pairs, kind.query, page_readers(kind.query, is_summed=False))
        page = take_page(context.request, filters, pairs, found)
    except Refusal as refusal:
        if "errors" not in refusal.members:
            raise
        errors |= refusal.members["errors"]
    if errors:
        context.query.errors = errors
        return None
    return ListQuery(kind.own(context.person.user_id, filters), page, texts)


def chips_of(tx: Tx, context: PageContext, filters: Filters[Filter], asked: ListQuery) -> Iterator[tuple[str, ...]]:
    """Yield the filters that a link set and no field shows: name, value, both in words, and the query without it."""
    known = {field.name for field in filters.fields} | {"q", *PAGING}
    for name, sent in asked.texts.items():
        if name not in known:
            value, target = ",".join(sent), filters.targets.get(name)
            ids = [int(text) for text in value.split(",") if text.strip().isdecimal()]
            owner = context.catalogue.owner_of(target, is_named=True) if target is not None else ""
            found = load_names(tx, target, ids, owner) if target is not None else {}
            text = ", ".join(found.values()) or value
            yield name, value, f"{field_label(name)}: {text}", context.link(**{name: None})


def one_client(asked: ListQuery | None) -> str:
    """Return the query that limits another page to the client of this list; empty unless it is one."""
    ids: tuple[int, ...] = (getattr(asked.filters, "client_id", None) if asked else None) or ()
    return f"?client_id={ids[0]}" if len(ids) == 1 else ""


def tabs_of(tx: Tx, kind: Kind, display: Display, asked: ListQuery | None) -> list[Tab]:
    """Return the views of a list; of those with the filters of the page, the first is shown."""
    filters = {name: texts for name, texts in asked.texts.items() if name not in PAGING} if asked else None
    found = list[Tab]()
    for title, query in display.views:
        own = {name: text for name, text in parse_qsl(query) if name not in PAGING}
        is_shown = {name: [text] for name, text in own.items()} == filters and not any(tab.is_shown for tab in found)
        count = len(kind.first(tx, own, size=MAX_COUNTED + 1)) if own else 0
        number = f"{MAX_COUNTED}+" if count > MAX_COUNTED else f"{count or ''}"
        found.append(Tab(title, query or "page=1", is_shown, number))
    return found


def sortable(context: PageContext, kind: Kind, display: Display, block: TableBlock, order: str) -> Iterator[Heading]:
    """Yield the headings of a list; those of fields that the API sorts by are links, the largest or latest first."""
    known = {name.lstrip("-") for name in kind.query.sorts}
    for place, (heading, column) in enumerate(zip(block.columns, as_columns(display.columns), strict=True)):
        field = column.sort or column.field
        is_latest = heading.is_number or field == "date" or any(row[place].kind in DATES for row in block.rows)
        yield heading.sorting(context, field, order, is_largest_first=is_latest) if field in known else heading


def sorts_of(kind: Kind) -> list[tuple[str, str]]:
    names = [name.lstrip("-") for name in kind.query.sorts]
    labels = {name: field_label(name, kind.table) for name in names}
    both = [[(name, f"{labels[name]}, ascending"), (f"-{name}", f"{labels[name]}, descending")] for name in names]
    return [("", "Default"), *(each for pair in both for each in pair)]


def foot_of(tx: Tx, table: Table, display: Display, rows: list[Row], total: int) -> list[Value]:
    rows = sorted(rows, key=lambda row: row[0] != tx.actor.currency)
    fields = [column.field for column in as_columns(display.columns)]
    found = [Value("text", f"All {words.number(total)}"), *(NOTHING for _ in fields[1:])]
    for position, each in enumerate(display.sums, start=1):
        sums = [(row[position], row[0]) for row in rows if row[position] is not None]
        if is_money(table, each.field):
            texts = [words.money(amount_of(units, currency), currency) for units, currency in sums]
        else:
            minutes = sum(each for each, _ in sums)
            texts = [f"{words.hours(minutes)} h"] if minutes else []
        if texts:
            label = Link(each.label, "") if each.label else None
            links = [Link(text, "") for text in texts]
            found[fields.index(each.field)] = Value("amounts", links=links, detail=label)
    return found
