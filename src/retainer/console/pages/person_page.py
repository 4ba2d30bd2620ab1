"""The page of a person: hours, utilisation and open work, and for admins also rates, keys and sessions.

A member sees only their own page.
"""

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import urlencode

from sqlalchemy import bindparam, select

from retainer.console import words
from retainer.console.catalogue import Kind
from retainer.console.displays import display_for
from retainer.console.editing.calls import change_record, errors_at
from retainer.console.kinds.display import Display
from retainer.console.page_context import PageContext, Reply
from retainer.console.pages.message_blocks import table_of_messages
from retainer.console.tracked import load_works
from retainer.console.values import Fact, TableBlock, Value, Values, as_columns
from retainer.errors import not_found
from retainer.identity.keys import key_list
from retainer.identity.keys.key_list import KeyFilter
from retainer.identity.people import second_factors, sessions, users
from retainer.kernel.resource import read_id
from retainer.mail.messages import list_of_record
from retainer.reports import utilisation
from retainer.reports.common import begin
from retainer.schema import identity as schema
from retainer.schema.work import timers
from retainer.store.constraints import singular
from retainer.store.tx import Tx
from retainer.values.exact import day_after, minutes_between

DAYS, SHOWN = 30, 5
MAX_REASSIGNED = 200
"""Tasks and tickets that can be reassigned at once."""
TIMER = select(timers.c.started_at, timers.c.work).where(timers.c.user_id == bindparam("user"))


class OpenWork(NamedTuple):
    """What can be assigned to a person: the kind of records, its words, and the filters of what is not done."""

    kind: str
    title: str
    filters: dict[str, str]
    sort: str


OPEN_WORK = (
    OpenWork("tasks", "Open tasks", {"open": "true"}, "due_date"),
    OpenWork("tickets", "Unresolved tickets", {"status": "unresolved"}, "created_at"),
)


def show(tx: Tx, context: PageContext) -> Reply:
    """Show a person. Raises `not_found`, for members also on the page of another person."""
    user_id = read_id(context.path_parameters["user"], schema.users)
    if user_id != context.person.user_id and not context.may("records"):
        raise not_found(singular(schema.users))
    user, values = SimpleNamespace(**users.get_user(tx, user_id)), Values(tx, context)
    blocks = [block for block in blocks_of(tx, values, user_id) if block.rows]
    if context.may("people") and (sent := list_of_record(tx, "user", user_id, SHOWN)):
        blocks.append(table_of_messages(values, sent))
    facts = [*facts_of_time(tx, context, user_id), *facts_of_timer(tx, context, user_id)]
    values.names.load()
    shown: dict[str, Any] = {"user": user, "is_self": user_id == context.person.user_id}
    if context.may("people"):
        shown |= {
            "cost": users.current_costs(tx).get(user_id),
            "keys": key_list.list_keys(tx, KeyFilter(user_id=user_id)),
            "sessions": [each for each in sessions.list_sessions(tx) if each.user_id == user_id],
            "has_second_factor": second_factors.find(tx, user_id) is not None,
        }
    return context.render("person", facts=facts, blocks=blocks, **shown)


def facts_of_time(tx: Tx, context: PageContext, user_id: int) -> Iterator[Fact]:
    query = utilisation.UtilisationQuery(from_=day_after(tx.today, 1 - DAYS), to=tx.today, user_id=user_id)
    report = utilisation.read_report(tx, query, begin(tx, query, None), since_arrival=True)
    days = {"from": query.from_, "to": query.to, "user_id": user_id}
    path = f"/reports/utilisation?{urlencode(days)}" if context.may("reports") else ""
    for row in report.rows:
        time = list_path(context.catalogue.find("time-entries"), user_id, date_from=query.from_, date_to=query.to)
        available = f"of {words.hours(row.available_minutes)} h available"
        yield Fact(f"Time, {DAYS} days", Value("number", f"{words.hours(row.tracked_minutes)} h"), time, available)
        if row.utilisation_percent is not None:
            yield Fact("Utilisation", Value("number", words.percent(row.utilisation_percent, 1)), path)
        if row.billable_utilisation_percent is not None:
            target = f"target {words.percent(row.target_percent)}" if row.target_percent is not None else ""
            yield Fact("Billable", Value("number", words.percent(row.billable_utilisation_percent, 1)), path, target)


def facts_of_timer(tx: Tx, context: PageContext, user_id: int) -> Iterator[Fact]:
    for started_at, work in tx.all(TIMER, user=user_id):
        name = next((link.text for _, link, _ in load_works(tx, context.catalogue, {work})), "")
        yield Fact("Timer", Value("number", f"{words.hours(minutes_between(started_at, tx.now))} h"), note=name)


def blocks_of(tx: Tx, values: Values, user_id: int) -> Iterator[TableBlock]:
    """Yield the open work of a person and their latest time, as their lists show it, without the person."""
    catalogue = values.context.catalogue
    for kind_name, title, filters, sort in OPEN_WORK:
        kind = catalogue.find(kind_name)
        listed = kind.page(tx, {**filters, "assignee_id": f"{user_id}"}, size=SHOWN, sort=sort)
        block = values.table(title, listed.data, kind.table, columns_without(display_for(kind), "assignee_id"))
        path = list_path(kind, user_id, **filters, sort=sort)
        yield block.without_empty()._replace(total=listed.meta.total, path=path)
    kind = catalogue.find("time-entries")
    latest = kind.first(tx, {"user_id": f"{user_id}"}, size=SHOWN)
    block = values.table("Time", latest, kind.table, columns_without(display_for(kind), "user_id"))
    yield block.without_empty()._replace(path=list_path(kind, user_id))


def columns_without(display: Display, field: str) -> list[Any]:
    return [column for column in as_columns(display.columns) if column.field != field]


def list_path(kind: Kind, user_id: int, **filters: object) -> str:
    """Return the path of the records of a person; of a role that sees no others, the list has no such filter."""
    owner = "user_id" if kind.name == "time-entries" else "assignee_id"
    return f"/records/{kind.name}?{urlencode(filters | ({} if kind.owner else {owner: user_id}))}"


def count_open(tx: Tx, context: PageContext, user_id: int) -> list[tuple[OpenWork, int]]:
    """Return how much open work is assigned to a person, without kinds of which there is none."""
    found = []
    for work in OPEN_WORK:
        asked = {**work.filters, "assignee_id": f"{user_id}"}
        found.append((work, context.catalogue.find(work.kind).page(tx, asked, size=1).meta.total))
    return [each for each in found if each[1]]


def reassign(tx: Tx, context: PageContext, user_id: int, new_id: int) -> Sequence[str]:
    """Assign the open work of a person to another one; return what that was. Raises `validation_failed`."""
    moved = []
    with errors_at("assignee_id"):
        for work in OPEN_WORK:
            kind = context.catalogue.find(work.kind)
            records = kind.first(tx, {**work.filters, "assignee_id": f"{user_id}"}, size=MAX_REASSIGNED)
            for record in records:
                change_record(tx, kind, record, {"assignee_id": new_id})
            moved += [words.count(len(records), kind.noun)] if records else []
    return moved
