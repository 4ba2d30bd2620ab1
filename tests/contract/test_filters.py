"""Every filter alone and with every other, every order and every page, held against a reference in plain Python.

One account is filled through the API with drawn records, beside another one as noise; then it is only read.
"""

import itertools
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest
import time_machine
from sqlalchemy import func

from retainer.domain import work
from retainer.domain.filters import Where
from retainer.domain.limits import Window
from retainer.kernel import paging
from retainer.kernel.query import parameters
from retainer.kernel.resource import Operation
from retainer.settings import BASE_PATH
from retainer.store.records import View
from retainer.store.tx import Tx
from tests.cast import PARENTS, SENT, Answer, Office, open_app
from tests.contract.cases import CREATES, LISTS, OPERATIONS, bare, body_schema, kinds, members_of, references, target_of
from tests.contract.reference import USUAL, Reference, Row, filters_of, sorts_of, takes_me
from tests.witness import Witness, unlimited

NOW = datetime(2026, 3, 31, 22, 30, tzinfo=UTC)
TODAY, YESTERDAY = "2026-04-01", "2026-03-31"  # in Berlin, where the account is
DAYS = ("2026-01-15", "2026-03-30", YESTERDAY, TODAY, "2026-06-30")
FORMATS = {
    "date": DAYS,
    "date-time": ("2026-03-30T08:00:00Z", "2026-03-30T09:30:00Z", "2026-03-31T22:15:00Z"),
    "decimal": ("0", "20", "75.50", "1000"),
    "email": ("Ana@x.example", "BOB@y.example", "eva@z.example", "Jo.Ott@x.example"),
    "uri": ("https://x.example",),
}
PATTERNS = {
    "^[A-Z]{2}$": ("DE", "AT", "CH"),
    "^[A-Z]{3}$": ("EUR", "USD", "JPY"),
    "^#[0-9a-fA-F]{6}$": ("#0a84ff", "#ffffff"),
}
WORDS = ("Ahorn", "BIRKE", "100%", "straße", "Öl_werk", "c/d", "zebra", "äpfel")
MINUTES = (0, 1, 30, 90, 480)
STEPS = {
    "/invoices": {
        "sent": {},
        "partially_paid": {"record_payment": {"amount": "1"}},
        "paid": {"status": "paid"},
        "void": {"status": "void"},
        "written_off": {"status": "written_off"},
    }
}
"""For each status that is not there from the start the change by which what was sent comes to it."""
MARKS = {"number", "code", "external_id"}
LEFT_OUT = object()


class Filler:
    """Fills an account with records whose members are drawn; those that are refused are drawn anew."""

    def __init__(self, office: Office, clock: time_machine.Traveller) -> None:
        self.office = office
        self.clock = clock
        self.random = Random()
        self.ids: dict[str, list[int]] = {"users": [office.admin_id, office.member_id]}
        self.made: dict[str, list[str]] = {}

    def fill(self, count: int, seed: str) -> None:
        """Make so many records of each kind, and change half of them; some are deleted again."""
        for operation in sorted(CREATES, key=lambda it: "{" in it.path or bool(references(it))):
            self.random.seed(f"{seed} {operation}")  # so that one more resource leaves the others as they are
            for _ in range(count):
                answer = self.write(operation)
                if self.random.random() > 0.1 or self.call("DELETE", where(answer)).status != 204:
                    self.keep(operation, answer)
        for operation in (it for it in OPERATIONS if it.method == "PATCH"):
            self.random.seed(f"{seed} {operation}")
            for path in self.random.sample(self.made[operation.path.rpartition("/{")[0]], count // 2):
                self.write(operation, path)

    def keep(self, operation: Operation, answer: Answer) -> None:
        """Remember what was made."""
        self.made.setdefault(operation.path, []).append(where(answer))
        self.ids.setdefault(operation.resource.table.name, []).append(answer.data["id"])

    def add_edges(self) -> None:
        """Make what is drawn too rarely.

        Every status at both edges of being late; budgets spent exactly; what becomes of quotes; work that is billed,
        and work that was.
        """
        for operation in CREATES:
            members = members_of(body_schema(operation))
            for word in members["status"]["enum"] if {"status", "due_date"} <= members.keys() else ():
                for day in (YESTERDAY, TODAY):
                    self.reach(operation, word, {"start_date": None, "due_date": day, "is_template": False})
        for minutes in (89, 90, 91, 480):
            project = self.make("/projects", name="Budget", budget_minutes=90)
            self.make("/time-entries", project_id=project, duration_minutes=minutes)
        client = self.make("/clients", name="Agreed")
        for day in (YESTERDAY, TODAY):
            self.make("/quotes", client_id=client, issue_date=DAYS[0], valid_until=day, **SENT)
        for became in ((), ("/projects",), ("/projects",), ("/invoices",), ("/invoices",), ("/projects", "/invoices")):
            quote = self.make("/quotes", client_id=client, status="accepted")
            for path in became:
                self.make(path, quote_id=quote)
        for steps in ([], [{"status": "sent"}], [{"status": "sent"}, {"status": "void"}]):
            time = self.make("/time-entries", client_id=client, duration_minutes=90)
            expense = self.make("/expenses", client_id=client, amount="75")
            lines = [{"time_entry_ids": [time]}, {"expense_ids": [expense]}]
            invoice = self.make("/invoices", client_id=client, lines=lines)
            for step in steps:
                assert self.call("PATCH", f"/invoices/{invoice}", step).status == 200

    def make(self, path: str, **members: Any) -> int:
        """Make a record of these members alone; answers its id."""
        answer = self.call("POST", path, members)
        self.keep(next(it for it in CREATES if it.path == path), answer)
        return answer.data["id"]

    def reach(self, operation: Operation, word: str, wished: Row) -> None:
        """Make a record that has a status, by the step that leads there if it has one; each for another client."""
        steps = STEPS.get(operation.path)
        wished["status"] = word
        if steps:
            wished |= {"client_id": self.make("/clients", name="Debtor"), "issue_date": DAYS[0]}
            wished |= SENT if word in steps else {}
        members = members_of(body_schema(operation))
        answer = self.write(operation, wished={name: value for name, value in wished.items() if name in members})
        self.keep(operation, answer)
        if steps and steps.get(word):
            assert self.call("PATCH", where(answer), steps[word]).data["status"] == word

    def write(self, operation: Operation, path: str = "", wished: Row | None = None) -> Answer:
        """Create a record, with the members that are wished for if they are taken; or change the one at a path."""
        members = {name: its for name, its in members_of(body_schema(operation)).items() if is_drawn(name, its)}
        place = path or self.place(operation)
        body = wished or {}
        anew = members.keys() - body.keys()
        for _ in range(100):
            if path:
                body, anew = {}, set(self.random.sample(sorted(members), min(3, len(members))))
            drawn = {name: self.draw(operation, (name,), members[name]) for name in sorted(anew)}
            body = {name: value for name, value in (body | drawn).items() if value is not LEFT_OUT}
            answer = self.call(operation.method, place, body)
            if answer.status in {200, 201}:
                return answer
            faulty = {field.partition(".")[0] for field in answer.errors} & set(members)
            anew = faulty - set(wished or ()) or faulty
            if not path and (not anew or self.random.random() < 0.1):
                place = self.place(operation)
        assert path, f"{operation} takes nothing that is drawn for it: {body}: {answer}"
        return answer

    def call(self, method: str, path: str, body: Any = None) -> Answer:
        """Send a request; often at the same instant as the one before, or a microsecond later."""
        self.clock.shift(self.random.choice((0, 0, 0.000001, 1, 3600)))
        self.office.app.window = Window()
        return self.office.call(method, path, body)

    def place(self, operation: Operation) -> str:
        """Where a record is made; most have the same parent, unless it must be like what PARENTS says."""
        head, _, tail = operation.path.partition("/{")
        if not tail:
            return head
        if operation.path in PARENTS:
            parent = next(it for it in CREATES if it.path == head)
            self.keep(parent, self.write(parent, wished=PARENTS[operation.path]))
            return f"{self.made[head][-1]}{tail.partition('}')[2]}"
        if operation.path in self.made and self.random.random() < 0.8:
            return self.made[operation.path][0].rpartition("/")[0]
        return f"{self.random.choice(self.made[head])}{tail.partition('}')[2]}"

    def draw(self, operation: Operation, path: tuple[str, ...], schema: Row) -> Any:
        """A value of a member, or none."""
        random, name = self.random, path[-1]
        reference = next((its for its in references(operation) if its in {path, (*path, "0")}), None)
        required = path[1:] == () and name in body_schema(operation).get("required", [])
        if not required and random.random() < (0.8 if path[1:] and reference else 0.5 if reference else 0.3):
            return None if "null" in kinds(schema) else LEFT_OUT
        if reference:
            ids = self.ids.get(target_of(operation, reference).name, [])
            several = random.sample(ids[:5], min(len(ids), random.randrange(1, 3)))
            one = random.choice((*ids[:5], random.choice(ids))) if ids else LEFT_OUT
            return several if reference[-1] == "0" else one
        if "array" in kinds(schema):
            its = members_of(bare(schema["items"]))
            parts = [
                {member: self.draw(operation, (*path, "0", member), its[member]) for member in sorted(its)}
                for _ in range(random.randrange(3))
            ]
            return [{member: value for member, value in part.items() if value is not LEFT_OUT} for part in parts]
        if "enum" in schema:
            return random.choice([word for word in schema["enum"] if word is not None])
        if "boolean" in kinds(schema):
            return random.random() < 0.4
        if "integer" in kinds(schema):
            return random.choice([it for it in MINUTES if it >= schema.get("minimum", 0)])
        if name in MARKS:
            return f"X-{random.randrange(100)}"
        words = " ".join(random.sample(WORDS, random.randrange(1, 4)))
        return random.choice(PATTERNS.get(schema.get("pattern"), FORMATS.get(schema.get("format"), (words,))))


def is_drawn(name: str, schema: Row) -> bool:
    """Whether a member is drawn: not what makes other records by the way."""
    return not (schema.get("writeOnly") and ("properties" in schema or name.endswith("_id")))


def where(answer: Answer) -> str:
    """The path of a record that was made."""
    return answer.headers["location"].partition(BASE_PATH)[2]


def is_in(path: str, operation: Operation) -> bool:
    """Whether a record is one of those that an operation lists, for one parent or another."""
    return re.fullmatch(re.sub(r"\{\w+\}", r"\\d+", operation.path) + r"/\d+", path) is not None


class Silent(Witness):
    """Says nothing: other tests hold answers against the document, and here are thousands of them."""

    def check(self, method: str, path: str, answer: Answer) -> None:
        """Every answer passes."""


class Agency(NamedTuple):
    """A client of the account that was filled, where its lists are, and what they should answer."""

    office: Office
    paths: dict[Operation, str]
    lists: dict[Operation, Reference]

    def ask(self, operation: Operation, query: dict[str, Any]) -> tuple[list[Row], int]:
        """A page of records, and the total."""
        self.office.app.window = Window()
        answer = self.office.get(self.paths[operation], query)
        return answer.data, answer.json["meta"]["total"]


@pytest.fixture(scope="module")
def agency(prototype: tuple[Path, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agency]:
    template, agencies = prototype
    database = tmp_path_factory.mktemp("filters") / "retainer.db"
    shutil.copy(template, database)
    app = open_app(database)
    office, stranger = (Office(app, Silent(), agencies[name]) for name in ("north", "south"))
    filled = Agency(office, {}, {})
    with time_machine.travel(NOW - timedelta(days=60), tick=False) as clock:
        ours, theirs = Filler(office, clock), Filler(stranger, clock)
        for filler, seed in ((ours, "one"), (theirs, "one"), (ours, "two")):
            filler.fill(22, seed)
        ours.add_edges()
        clock.move_to(NOW)
        rows: dict[str, list[Row]] = {}
        for operation in LISTS:
            made = [path for paths in ours.made.values() for path in paths if is_in(path, operation)]
            collections = [path.rpartition("/")[0] for path in made]
            here = filled.paths[operation] = max(collections, key=collections.count)
            its = rows[operation.path] = list(everything(filled, operation))
            assert {f"{here}/{row['id']}" for row in its} == {path for path in made if path.startswith(f"{here}/")}
        link(rows)
        for operation in LISTS:
            filled.lists[operation] = Reference(operation, rows[operation.path], office.admin_id, TODAY)
    yield filled
    for statement, _ in app.store._scoped.values():  # noqa: SLF001
        assert unlimited(statement) == [], statement


def everything(agency: Agency, operation: Operation) -> Iterator[Row]:
    """Every record of a list, also those that are left out unless they are asked for."""
    usual = USUAL.keys() & filters_of(operation).keys()
    for values in itertools.product(("true", "false"), repeat=len(usual)):
        query = dict(zip(usual, values, strict=True)) | {"per_page": 100}
        first, total = agency.ask(operation, query)
        pages = [first, *(agency.ask(operation, query | {"page": page})[0] for page in range(2, -(-total // 100) + 1))]
        assert sum(map(len, pages)) == total
        yield from itertools.chain(*pages)


def link(rows: dict[str, list[Row]]) -> None:
    """Let records say what lists know of others: the name of their client, and a client which invoices it has."""
    clients = {row["id"]: row for row in rows["/clients"]}
    for client in clients.values():
        client["invoices"] = []
    for row in itertools.chain(*rows.values()):
        row["client"] = clients.get(row.get("client_id"), {}).get("name")
    for invoice in rows["/invoices"]:
        clients[invoice["client_id"]]["invoices"].append(invoice)


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with time_machine.travel(NOW, tick=False):
        yield


def finds(agency: Agency, operation: Operation, query: dict[str, str]) -> None:
    """A list answers what passes its filters, in its default order, and how many they are."""
    reference = agency.lists[operation]
    expected = reference.ordered(reference.found(query), reference.default_sort)
    rows, total = agency.ask(operation, query | {"per_page": "100"})
    assert ids(rows) == ids(expected[:100]), f"{operation} {query}"
    assert total == len(expected), f"{operation} {query}"


def turns(agency: Agency, operation: Operation, query: dict[str, str], sort: str) -> None:
    """The pages of a list, in this order, are those of the records that pass its filters."""
    reference = agency.lists[operation]
    expected = reference.ordered(reference.found(query), sort)
    for start in range(0, len(expected), 3):
        page = query | {"sort": sort, "per_page": "3", "page": str(start // 3 + 1)}
        rows, total = agency.ask(operation, page)
        assert ids(rows) == ids(expected[start : start + 3]), f"{operation} {page}"
        assert total == len(expected), f"{operation} {page}"


def ids(rows: list[Row]) -> list[int]:
    return [row["id"] for row in rows]


def filter_holds(agency: Agency, operation: Operation, name: str) -> None:
    """A filter finds what it says: alone on every page, and together with those that come after it."""
    reference, random = agency.lists[operation], Random(f"{operation} {name}")
    texts = {other: reference.tried(other, random) for other in reference.filters}
    for text in texts[name]:
        finds(agency, operation, {name: text})
    counts = {text: len(reference.found({name: text})) for text in texts[name]}
    telling = {text: count for text, count in counts.items() if 0 < count < len(reference.rows)}
    assert telling, f"{name} of {operation} tells no records apart, only {counts}: let Filler draw others"
    turns(agency, operation, {name: max(telling, key=telling.get)}, random.choice(sorts_of(operation)))
    names = list(texts)
    for other in names[names.index(name) + 1 :]:
        pairs = list(itertools.product(texts[name], texts[other]))
        passed = [pair for pair in pairs if reference.found({name: pair[0], other: pair[1]})]
        drawn = random.sample(passed, min(2, len(passed))) + random.sample(pairs, 2)
        for one, two in dict.fromkeys(drawn):
            finds(agency, operation, {name: one, other: two})


def order_holds(agency: Agency, operation: Operation, sort: str) -> None:
    """A list is in the order that is asked for, both ways, alone and before another key; on every page."""
    second = Random(f"{operation} {sort}").choice([name for name in sorts_of(operation) if name != sort])
    for keys in (sort, f"-{sort}", f"{sort},-{second}", f"-{sort},{second}"):
        turns(agency, operation, {}, keys)


@pytest.mark.parametrize(("operation", "name"), [(it, name) for it in LISTS for name in filters_of(it)], ids=str)
def test_a_filter_finds_what_it_says_alone_and_with_every_other(agency, operation, name):
    filter_holds(agency, operation, name)


@pytest.mark.parametrize(("operation", "sort"), [(it, sort) for it in LISTS for sort in sorts_of(it)], ids=str)
def test_an_order_holds_on_every_page_from_the_front_and_from_the_end(agency, operation, sort):
    order_holds(agency, operation, sort)


@pytest.mark.parametrize(
    ("operation", "name"),
    [(it, name) for it in LISTS for name, its in filters_of(it).items() if takes_me(its)],
    ids=str,
)
def test_me_is_the_user_of_the_key(agency, operation, name):
    office, rows = agency.office, agency.lists[operation].found({})
    for user_id in (office.admin_id, office.member_id):
        answer = office.get(agency.paths[operation], {name: "me", "per_page": 100}, key=office.new_key(user_id=user_id))
        assert sorted(ids(answer.data)) == sorted(ids([row for row in rows if row[name] == user_id])) != []


# Controls: what is broken in the product is seen

BY_NAME = {str(it): it for it in LISTS}
MILESTONES = "GET /projects/{project}/milestones"
Plant = Callable[[pytest.MonkeyPatch], None]


def at(target: Any, name: str, value: Any) -> Plant:
    """Put something else in a place."""
    return lambda monkeypatch: monkeypatch.setattr(target, name, value)


def meaning(operation: str, name: str, condition: Callable[[Any, Any], Any]) -> Plant:
    """Let a filter of a list mean something else."""
    filters = parameters(BY_NAME[operation].filter)
    other = msgspec.structs.replace(filters[name], where=Where(condition))
    return lambda monkeypatch: monkeypatch.setitem(filters, name, other)


def forgetting_none(table: Any, only: Any, shape: Any) -> Any:
    forms = [(name, (form[0], False) if isinstance(form, tuple) and form[0] else form) for name, form in shape]
    return conditions(table, only, tuple(forms))


def ascending_ties(table: Any, shape: Any, limits: Any, sort: Any, *more: Any) -> Any:
    return rows_of(table, shape, limits, (*sort, "id"), *more)


def never_backward(*given: Any) -> Any:
    return rows_of(*given[:-1], given[-1].replace("backward", "forward"))


conditions, rows_of, total_of = paging.conditions, *(vars(paging)[name].__wrapped__ for name in ("_rows", "_total"))
is_late = work.overdue("open")
FAULTS = {
    "a word that is not kept is not known": (
        meaning("GET /invoices", "status", lambda table, words: table.c.status.in_(words)),
        (filter_holds, "GET /invoices", "status"),
    ),
    "the last day is left out": (
        meaning("GET /projects", "due_date_to", lambda table, day: table.c.due_date < day),
        (filter_holds, "GET /projects", "due_date_to"),
    ),
    "without a date neither late nor not": (
        meaning(MILESTONES, "overdue", lambda table, yes: is_late(table).is_(yes)),
        (filter_holds, MILESTONES, "overdue"),
    ),
    "the day is that of another zone": (
        at(Tx, "today", property(lambda tx: tx.now[:10])),
        (filter_holds, "GET /tasks", "overdue"),
    ),
    "none is dropped from a comma list": (
        at(paging, "conditions", forgetting_none),
        (filter_holds, "GET /tasks", "assignee_id"),
    ),
    "filters are forgotten when others are sent": (
        at(paging, "conditions", lambda *given: conditions(*given)[:1]),
        (filter_holds, "GET /external-contacts", "role"),
    ),
    "words stand in the order of their letters": (
        at(View, "order", lambda view, name: view.table.c[name]),
        (order_holds, "GET /tasks", "priority"),
    ),
    "nulls come first": (
        at(View, "order", lambda view, name: func.coalesce(view.table.c[name], "")),
        (order_holds, "GET /projects", "code"),
    ),
    "ties always ascend": (at(paging, "_rows", ascending_ties), (order_holds, "GET /time-entries", "date")),
    "pages near the end are read forward": (at(paging, "_rows", never_backward), (order_holds, "GET /tags", "name")),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_broken_is_seen(agency, monkeypatch, fault):
    plant, (check, operation, name) = FAULTS[fault]
    monkeypatch.setattr(paging, "_rows", rows_of)  # without their memory, which would outlast the fault
    monkeypatch.setattr(paging, "_total", total_of)
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=operation):
        check(agency, BY_NAME[operation], name)
