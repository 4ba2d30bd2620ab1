"""The same requests to an application on SQLite and to one on PostgreSQL: every answer is the same, byte by byte.

Both databases are filled through the API with the same drawn records, odd letters, amounts of several currencies and
values at the edges of what is taken; then everything that can be read is read, in every order, with every filter.
"""

import itertools
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
import time_machine

from retainer.api import ROUTES
from retainer.kernel.answers import One
from retainer.kernel.limits import SlidingWindow
from retainer.kernel.resource import Operation
from retainer.settings import BASE_PATH
from tests.contract.cases import (
    BUSINESS,
    BY_EXTERNAL_ID,
    TRIED,
    UNKNOWN_ID,
    body_schema,
    query_parameters,
    schema_fields,
)
from tests.contract.filler import NOW, TODAY, Filler, is_in
from tests.contract_checker import SCOPED, NoChecks
from tests.databases import PostgresqlDatabases, SqliteDatabases
from tests.factories import Answer, ApiClient
from tests.length import IS_FULL, by_turns, length, sampled
from tests.reference.lists import ListModel, Row, filters_of, sorts_of

BODIES = [operation for operation in BUSINESS if operation in TRIED and operation.body]
CREATES = [operation for operation in BUSINESS if operation.created and operation.answer.is_record]
LISTS = [operation for operation in BUSINESS if operation.paged]
READS = [operation for operation in BUSINESS if not operation.writes]
SECRETS = ("hash", "prefix", "last_four")
STAMPS = ("created_at", "updated_at")
ODD_WORDS = """
Straße STRASSE strasse İstanbul ISTANBUL \u0131stanbul \ufb01n FIN Ångström A\u030angstro\u0308m á a\u0301 ÄPFEL äpfel
Apfel apfel Zebra zebra Ørsted Łódź 日本 Ωμέγα ωμέγας 🙂 👩\u200d💻 \u200b \ufeffa \uffff \U0010ffff
a-b a_b a%b a/b a\\b a'b a"b ?1 $1 :id %s null 10 9 -1 1e3
"""
ODD_TEXTS = (*ODD_WORDS.split(), "a b", "a\u00a0b", "a\nb", "a\tb")
"""Letters whose case, order or meaning to SQL differs from database to database, if nobody takes care."""
EDGE_WORDS = """
x 0 -1 1.5 10 0.0001 0.00001 0.5 999999999999.99 1000000000000 12345.6789 1E5 NaN Infinity
0001-01-01 9999-12-31 2024-02-29 2023-02-29 0000-01-01 10000-01-01 2026-04-01
0001-01-01T00:00:00Z 9999-12-31T23:59:59.999999Z 0001-01-01T00:00:00+01:00 9999-12-31T23:59:59-01:00
2026-03-29T02:30:00+01:00 2026-03-31T22:29:59.9999999Z 1969-12-31T23:59:59.000001Z 1900-01-01T00:00:00Z
me none EUR JPY KWD eur DE a@b.example A@B.example https://ä.example/ß #ABCDEF
"""
NUMBERS = (0, 1, -1, 1.5, 2**53 - 1, 2**53, 2**63, 10**30, UNKNOWN_ID)
TEXTS = ("", " ", "a\u0000b", "\ud800", "x" * 191, "ß" * 192, "🙂" * 200, str(UNKNOWN_ID))
EDGES = (None, True, False, [], {}, *NUMBERS, *TEXTS, *EDGE_WORDS.split())
"""Values at the edges of what fields and parameters take, and beyond."""
CURRENCIES = ("EUR", "USD", "JPY", "KWD", "CLF")
PRICES = ("0", "0.01", "0.005", "0.0050", "1.005", "33.33", "-33.33", "99999.99", "123456", "999999999999", "-0.0001")
QUANTITIES = ("0", "0.333", "1", "1.5", "2.675", "99999", "999999999", "0.0001")
PERCENTS = ("0", "7.7", "19", "20", "33.33", "99.99", "100")
DAYS = ("2025-12-31", "2026-01-01", "2026-01-15", "2026-03-30", "2026-03-31", TODAY, "2026-06-30", "2024-02-29")
REQUEST_ID = re.compile(rb"req_[0-9a-f]{24}")
TOKEN = re.compile(rb"(?<=token=)[A-Za-z0-9_-]{43}")


class Pair(ApiClient):
    """A client that sends each request to both applications, and fails when one answers otherwise than the other."""

    def __init__(self, sqlite: ApiClient, postgresql: ApiClient) -> None:
        vars(self).update(vars(sqlite))
        self.key = postgresql.key = sqlite.key
        self.sqlite, self.postgresql = sqlite, postgresql
        for table, columns in (("accounts", STAMPS), ("users", STAMPS), ("api_keys", (*STAMPS, *SECRETS))):
            values = ", ".join(f"{name} = ${place}" for place, name in enumerate(columns, 2))
            for row in sqlite.sql(f"SELECT id, {', '.join(columns)} FROM {table}"):
                postgresql.sql(f"UPDATE {table} SET {values} WHERE id = $1", *row)

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> Answer:
        """Send a request to both; return what both answer."""
        answers = []
        for client in (self.sqlite, self.postgresql):
            client.app.pipeline.limiter = SlidingWindow()
            answers.append(client.call(method, path, body, **options))
        one, other = (comparable(answer) for answer in answers)
        assert one == other, f"{method} {path} {options} {body}"
        if method != "GET" and answers[0].status >= 400:
            self.align_ids()
        return answers[0]

    def align_ids(self) -> None:
        """Let both give the same id next: of what was refused, PostgreSQL gives none again."""
        last = dict(self.sqlite.sql("SELECT name, seq + 1 FROM sqlite_sequence"))
        next_id = "SELECT setval(key || '_id_seq', value::BIGINT, false) FROM json_each_text($1::JSON)"
        self.postgresql.sql(next_id, json.dumps(last))

    def sql(self, statement: str, *values: Any) -> list[Any]:
        """Change rows of both databases."""
        self.postgresql.sql(statement, *values)
        return self.sqlite.sql(statement, *values)

    def read(self, path: str, query: dict[str, Any] | str = "") -> Answer:
        """Send a GET whose query may hold several values of a parameter."""
        return self.get(path, query if isinstance(query, str) else urlencode(query, doseq=True))

    def follow(self, page: Answer) -> Answer:
        """Read the page after a page."""
        address = urlsplit(page.json["links"]["next"])
        return self.read(address.path.removeprefix(BASE_PATH), address.query)

    def walk(self, page: Answer) -> Iterator[list[Row]]:
        """Yield the records of a page, and of each page that follows it by its link."""
        yield page.data
        while page.json["links"]["next"]:
            page = self.follow(page)
            yield page.data


def comparable(answer: Answer) -> tuple[int, dict[str, str], bytes]:
    """An answer without what is random: the ids of requests, its own and those in events, and the token of a link."""
    headers = dict(answer.headers)
    headers.pop("x-request-id")
    body, tokens = TOKEN.subn(b"", answer.body)
    if tokens:
        headers.pop("etag")
    return answer.status, headers, REQUEST_ID.sub(b"", body)


class Filled:
    """What both databases were filled with."""

    def __init__(self, pair: Pair, filler: Filler) -> None:
        self.pair = pair
        self.filler = filler
        self.paths: dict[Operation, str] = {}
        for operation in LISTS:
            made = [path for paths in filler.made.values() for path in paths if is_in(path, operation)]
            collections = [path.rpartition("/")[0] for path in made]
            self.paths[operation] = max(collections, key=collections.count)


@pytest.fixture(scope="module")
def filled(sqlite_databases: SqliteDatabases, postgresql_databases: PostgresqlDatabases) -> Iterator[Filled]:
    agencies = [
        ApiClient(
            databases.open(databases.copy(databases.prototype)), NoChecks(), databases.agencies["north"], databases
        )
        for databases in (sqlite_databases, postgresql_databases)
    ]
    with time_machine.travel(NOW - timedelta(days=60), tick=False) as clock:
        pair = Pair(*agencies)
        filler = Filler(pair, clock)
        filler.fill(24 if IS_FULL else 6, "same")
        filler.add_edges()
        filler.add_care()
        filler.add_payments()
        filler.observe()
        add_links(filler)
        add_odd_texts(pair, filler)
        clock.move_to(NOW)
        add_amounts(pair, filler)
        filler.find_unposted()
        yield Filled(pair, filler)
    for client in agencies:
        client.databases.close()
    SCOPED.check()


def add_links(filler: Filler) -> None:
    """Make records that refer to what is rarely drawn together with them."""
    client = filler.make("/clients", name="Linked")
    project = filler.make("/projects", name="Linked", client_id=client)
    milestone = filler.call("POST", f"/projects/{project}/milestones", {"name": "Linked"}).data["id"]
    ticket = filler.make("/tickets", subject="Linked", client_id=client)
    filler.make("/tasks", title="Linked", project_id=project, milestone_id=milestone)
    filler.make("/time-entries", client_id=client, ticket_id=ticket, duration_minutes=7)
    filler.make("/quotes", client_id=client, project_id=project)


def add_odd_texts(pair: Pair, filler: Filler) -> None:
    """Make records whose texts are odd; tags of the same letters but for their case are refused."""
    client = filler.make("/clients", name="Odd")
    for text in ODD_TEXTS:
        bodies: dict[str, dict[str, Any]] = {
            "/clients": {"name": text, "notes": f"say {text}.", "number": text},
            "/tags": {"name": text},
            "/external-contacts": {"client_id": client, "last_name": text, "first_name": text[::-1]},
            "/expenses": {"amount": "1", "vendor": text, "description": text},
        }
        for path, body in bodies.items():
            answer = pair.post(path, body)
            if answer.status == 201:
                filler.keep(next(create for create in CREATES if create.path == path), answer)


def add_amounts(pair: Pair, filler: Filler) -> None:
    """Make documents and expenses in several currencies, of prices that are rounded, taken back or too large."""
    random = Random("amounts")
    clients = {currency: filler.make("/clients", name=currency, currency=currency) for currency in CURRENCIES}
    for currency, _ in itertools.product(CURRENCIES, range(length(20))):
        figures = {"quantity": QUANTITIES, "unit_price": PRICES, "discount_percent": PERCENTS, "tax_rate": PERCENTS}
        lines = [
            {"description": "Work"} | {name: random.choice(drawn) for name, drawn in figures.items()}
            for _ in range(random.randrange(1, 4))
        ]
        document = {"client_id": clients[currency], "status": "sent", "lines": lines}
        pair.post("/quotes", document)
        answer = pair.post("/invoices", document | {"issue_date": random.choice(DAYS)})
        if answer.status == 201:
            invoice = f"/invoices/{answer.data['id']}"
            pair.patch(invoice, {"record_payment": {"amount": random.choice(PRICES)}})
            pair.patch(
                invoice, {"record_payment": {"paid_date": TODAY}} if random.random() < 0.5 else {"status": "paid"}
            )
            pair.post(f"{invoice}/credit-notes", {"issue_date": random.choice(DAYS)})
        expense = {"amount": random.choice(PRICES), "tax_rate": random.choice(PERCENTS), "client_id": clients[currency]}
        pair.post("/expenses", expense | {"markup_percent": random.choice(PERCENTS), "date": random.choice(DAYS)})


def test_every_list_is_the_same_in_every_order_on_every_page(filled):
    for operation, path in sampled(filled.paths.items(), 3):
        signs = itertools.cycle(("", "-", "-", ""))  # so that each turn has every sort, half of them from the end
        orders = [f"{next(signs)}{sort}" for sort in sorts_of(operation) for _ in range(2)]
        for sort in by_turns(orders) if IS_FULL else sampled(orders, len(orders), len(path)):
            query = {"sort": sort, "per_page": 24 if IS_FULL else 48}
            first = filled.pair.read(path, query)
            pages = range(2, first.json["meta"]["last_page"] + 2)
            by_number = [first.data, *(filled.pair.read(path, query | {"page": page}).data for page in pages)]
            assert by_number.pop() == [], "the page past the end"
            assert list(filled.pair.walk(first)) == by_number, "the same pages follow each other by cursor"


def test_every_text_of_postgresql_is_compared_by_code_points(filled):
    """As on SQLite, whatever the language of the server, which here may happen to compare so too."""
    others = filled.pair.postgresql.sql(
        "SELECT attrelid::regclass::text, attname, collname FROM pg_attribute "
        "JOIN pg_class ON pg_class.oid = attrelid JOIN pg_collation ON pg_collation.oid = attcollation "
        "WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND collname != 'C'"
    )
    assert [row for row in others if row[0] != "alembic_version"] == []


def test_every_order_of_two_keys_is_the_same(filled):
    random = Random("two keys")
    for operation, path in filled.paths.items():
        sorts = sorts_of(operation)
        for one, other in random.sample([*itertools.permutations(sorts, 2)], min(length(30), len(sorts))):
            keys = f"{random.choice('-+')}{one},{random.choice('-+')}{other}".replace("+", "")
            query = {"sort": keys, "per_page": 7}
            drawn = filled.pair.read(path, query | {"page": random.randrange(1, 8)})
            following = filled.pair.read(path, query | {"page": drawn.json["meta"]["current_page"] + 1})
            if drawn.json["links"]["next"]:
                assert filled.pair.follow(drawn).data == following.data


def test_every_filter_finds_the_same(filled):
    pair = filled.pair
    for operation, path in by_turns(filled.paths.items()) if IS_FULL else sampled(filled.paths.items(), 3, start=1):
        pages = range(1, pair.read(path, {"per_page": 100}).json["meta"]["last_page"] + 1)
        rows = [row for page in pages for row in pair.read(path, {"per_page": 100, "page": page}).data]
        texts = [row | {"client": "Odd", "invoices": [], "plugins": [], "paid_dates": []} for row in rows]
        model = ListModel(operation, texts, pair.admin_id, TODAY, NOW)
        random = Random(str(operation))
        tried = {name: model.tried(name, random) for name in filters_of(operation)}
        for name, texts in tried.items():
            for text in texts if IS_FULL else texts[:1]:
                pair.read(path, model.complete({name: text}) | {"per_page": 50})
        for _ in range(length(40)):
            names = random.sample(sorted(tried), random.randrange(2, 4))
            query = {name: random.choice(tried[name]) for name in names}
            pair.read(path, query | {"sort": random.choice(sorts_of(operation)), "page": random.randrange(1, 3)})


def test_every_selection_is_the_same_and_includes_what_its_own_get_returns(filled):
    alone = {
        str(each.resource.table.name): each.path
        for each in READS
        if isinstance(each.answer, One) and each.answer.reads and not each.by_id
    }
    compared = set()
    for operation, path in filled.paths.items():
        selectable = ROUTES.bound[operation].selectable
        random, names = Random(str(operation)), list(selectable.names)
        for turn in range(length(10) if names else 0):
            chosen = random.sample(names, random.randrange(1, len(names) + 1) if turn else len(names))
            fields = random.sample(selectable.fields, 3)
            page = filled.pair.read(path, {"include": ",".join(chosen), "per_page": 50, "sort": "-id"})
            filled.pair.read(path, {"include": ",".join(chosen), "fields": ",".join(fields)})
            for kind, records in page.json.get("included", {}).items():
                for record in random.sample(records, min(len(records), 3)) if kind in alone else ():
                    own = alone[kind].partition("/{")[0]
                    assert filled.pair.get(f"{own}/{record['id']}").data == record
                    compared.add(kind)
    assert compared >= {"clients", "external_contacts", "invoices", "projects", "quotes", "sites", "tickets", "users"}


def test_search_finds_the_same_for_odd_letters(filled):
    for operation in LISTS:
        for text in ODD_TEXTS if operation.path in {"/clients", "/expenses"} else ODD_TEXTS[::7]:
            filled.pair.read(filled.paths[operation], {"q": text})
            filled.pair.read(filled.paths[operation], {"q": text.swapcase(), "sort": sorts_of(operation)[0]})


def test_every_parameter_refuses_the_same_at_its_edges(filled):
    random = Random("edges of parameters")
    for operation in by_turns(READS) if IS_FULL else READS:
        parameters = sorted(query_parameters(operation))
        path = filled.paths.get(operation, operation.path)
        for name in parameters if "{" not in path else ():
            for value in random.sample(EDGES, length(20)):
                filled.pair.read(path, {name: text_of(value)})
        for _ in range(length(20) if parameters and "{" not in path else 0):
            filled.pair.read(path, {name: text_of(random.choice(EDGES)) for name in random.sample(parameters, 3)})


def test_every_report_is_the_same(filled):
    ids = filled.filler.ids
    for operation in by_turns(read for read in READS if read.path.startswith("/reports/")):
        random, parameters = Random(str(operation)), query_parameters(operation)
        for _ in range(length(200)):
            drawn = {name: draw(random, name, schema, ids) for name, schema in parameters.items()}
            query = {
                name: text for name, text in drawn.items() if random.random() < (0.6 if name in {"from", "to"} else 0.3)
            }
            filled.pair.read(operation.path, query)


def draw(random: Random, name: str, schema: Row, ids: dict[str, list[int]]) -> str:
    """A value of a report's parameter."""
    if name in {"from", "to"}:
        return random.choice(DAYS)
    if name.endswith("_id"):
        return str(random.choice([*ids[f"{name.removesuffix('_id')}s"][:8], UNKNOWN_ID]))
    if name == "currency":
        return random.choice(("EUR", "USD", "JPY", "ISK"))
    return str(random.choice(schema.get("enum", ["true", "false"])))


def text_of(value: Any) -> str:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else json.dumps(value)


def test_every_record_is_the_same_and_can_be_sent_back(filled):
    for paths in filled.filler.made.values():
        for path in Random(str(paths)).sample(paths, min(len(paths), length(100))):
            answer = filled.pair.get(path)
            if answer.status == 200:
                filled.pair.get(path, headers={"If-None-Match": answer.headers["etag"]})
                filled.pair.patch(path, answer.data)


def test_every_body_is_taken_or_refused_with_the_same_errors(filled):
    pair, filler = filled.pair, filled.filler
    for operation in by_turns(BODIES) if IS_FULL else BODIES:
        if operation.path.startswith("/credit-notes/{"):  # which are made below invoices
            continue
        random, fields = Random(f"edges of {operation}"), sorted(schema_fields(body_schema(operation)))
        made = filler.made.get(operation.path.rpartition("/{")[0], [])
        if operation in BY_EXTERNAL_ID:
            made = [f"{operation.resource.path}/external:{external_id}" for external_id in ("X-1", "%C3%96 7", "new")]
        for count in [*range(1, length(60)), len(fields)]:
            path = random.choice(made) if operation.method != "POST" else filler.place(operation)
            body = {name: random.choice(EDGES) for name in random.sample(fields, min(len(fields), 1 + count % 4))}
            if operation.method == "POST":
                needed = set(body_schema(operation).get("required", ())) - body.keys()
                body |= {
                    name: filler.draw(operation, (name,), schema_fields(body_schema(operation))[name])
                    for name in needed
                }
            pair.call(operation.method, path, body)


def test_records_with_edge_values_are_deleted_or_kept_for_the_same_reasons(filled):
    pair, random = filled.pair, Random("deletions")
    for path in filled.paths.values():
        pair.read(path, {"per_page": 100, "sort": "-id"})
    paths = sorted(itertools.chain(*filled.filler.made.values()))
    for path in random.sample(paths, length(len(paths))):
        pair.delete(path)
    for operation, path in filled.paths.items():
        for sort in sorts_of(operation):
            pair.read(path, {"per_page": 100, "sort": sort})
    for operation in (read for read in READS if read.path.startswith("/reports/")):
        pair.read(operation.path, {"from": "2025-01-01", "to": "2026-12-31"})


@pytest.mark.parametrize(
    "difference",
    ["name = name || ' '", "created_at = '2026-01-30T22:30:00.000001Z'", "name_sort = 'z' || name_sort", "search = ''"],
)
def test_a_difference_of_one_row_is_seen(filled, difference):
    pair, columns = filled.pair, ("name", "created_at", "name_sort", "search")
    query = {"q": f"Seen {difference}", "sort": "name"}
    client_id, _ = (pair.make("/clients", name=f"{query['q']} {place}")["id"] for place in (1, 2))
    assert len(pair.read("/clients", query).data) == 2
    (before,) = pair.sqlite.sql(f"SELECT {', '.join(columns)} FROM clients WHERE id = $1", client_id)
    pair.postgresql.sql(f"UPDATE clients SET {difference} WHERE id = $1", client_id)
    with pytest.raises(AssertionError, match="GET /clients"):
        pair.read("/clients", query)
    values = ", ".join(f"{name} = ${place}" for place, name in enumerate(columns, 2))
    pair.postgresql.sql(f"UPDATE clients SET {values} WHERE id = $1", client_id, *before)
    pair.read("/clients", query)
