"""Fills an account through the API with drawn records, and with what is drawn too rarely."""

import itertools
import re
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import time_machine

from retainer.kernel.limits import SlidingWindow
from retainer.kernel.resource import Operation
from retainer.settings import BASE_PATH
from tests.contract.cases import (
    BUSINESS,
    BY_EXTERNAL_ID,
    TRIED,
    bare,
    body_schema,
    kinds,
    references,
    schema_fields,
    target_of,
)
from tests.factories import PARENTS, SENT, UNPOSTED, Answer, ApiClient
from tests.reference.lists import PLUGINS, VERSIONS, Row

CREATES = [operation for operation in BUSINESS if operation.created and operation.answer.is_record]
UPDATES = [operation for operation in BUSINESS if operation in TRIED and operation.method in {"PUT", "PATCH"}]
NOW = datetime(2026, 3, 31, 22, 30, tzinfo=UTC)
TODAY, YESTERDAY = "2026-04-01", "2026-03-31"  # in Berlin, where the account is
DAYS = ("2026-01-15", "2026-03-30", YESTERDAY, TODAY, "2026-06-30")
AROUND_NOW = tuple((NOW + timedelta(microseconds=step)).isoformat() for step in (-1, 0, 1))
"""The moment before now, now, and the one after."""
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
MARKS = {"number": "X-{}", "code": "X-{}", "external_id": "X-{}", "url": "https://x{}.example/shop"}
"""Members of which each record has another, and how they are written."""
FIELD_VALUES = {
    **dict.fromkeys(("due_at", "maintenance_until"), AROUND_NOW),
    **dict.fromkeys(("version", "update_version", "wp_version", "wp_update_version"), VERSIONS),
    "slug": PLUGINS,
    "content": ("UmVjZWlwdA==", "JVBERi0xLjc="),
}
"""Values of fields whose schema does not tell what they are."""
LATE = {"due_date": (YESTERDAY, TODAY), "due_at": AROUND_NOW}
"""The edges of being late."""
OBSERVED = {
    "observed": ("up", "down", "unknown"),
    "uptime_30d": (None, 0, 99_990, 99_999, 100_000),
    "ssl_expires_at": (None, "2026-04-01T00:00:00.000000Z", "2026-06-30T12:00:00.000000Z"),
}
"""What only the monitor writes, in the columns of sites."""
THREADS: tuple[list[dict[str, Any]], ...] = (
    [],
    [{"author_type": "contact"}],
    [{"is_internal": True}],
    [{}, {"is_internal": True}],
    [{}, {"author_type": "contact"}],
    [{"author_type": "contact"}, {}],
    [{"status": "resolved"}, {"author_type": "contact"}],
)
"""The replies to a ticket; what a reply does not say it is not."""
OPEN = {
    "/clients": {"status": "active"},
    "/projects": {"status": "active"},
    "/quotes": {"status": "draft"},
    "/invoices": {"status": "draft"},
}
"""What the first of records is that others belong to: there must be one that takes new ones."""
LEFT_OUT = object()


class Filler:
    """Fills an account with records whose fields are drawn; refused records are drawn again."""

    def __init__(self, api: ApiClient, clock: time_machine.Traveller) -> None:
        self.api = api
        self.clock = clock
        self.random = Random()
        self.ids: dict[str, list[int]] = {"users": [api.admin_id, api.member_id]}
        self.made: dict[str, list[str]] = {}

    def fill(self, count: int, seed: str) -> None:
        """Create a number of records of each kind, change half of them, and delete some."""
        for operation in sorted(CREATES, key=lambda operation: "{" in operation.path or bool(references(operation))):
            self.random.seed(f"{seed} {operation}")  # so that one more resource leaves the others as they are
            for number in range(count):
                answer = self.write(operation, requested=None if number else OPEN.get(operation.path))
                if self.random.random() > 0.1 or self.call("DELETE", path_of(answer)).status != 204:
                    self.keep(operation, answer)
        for operation in (each for each in UPDATES if each.method == "PATCH" and each not in BY_EXTERNAL_ID):
            self.random.seed(f"{seed} {operation}")
            for path in self.random.sample(self.made[operation.path.rpartition("/{")[0]], count // 2):
                self.write(operation, path)

    def keep(self, operation: Operation, answer: Answer) -> None:
        """Remember what was made."""
        self.made.setdefault(operation.path, []).append(path_of(answer))
        self.ids.setdefault(operation.resource.table.name, []).append(answer.data["id"])

    def add_edges(self) -> None:
        """Make what is drawn too rarely.

        Every status at the edges of being late; budgets spent exactly; what becomes of quotes; work that is billed,
        and work that was.
        """
        for operation in CREATES:
            fields = schema_fields(body_schema(operation))
            edges = [(name, edge) for name in LATE if {"status", name} <= fields.keys() for edge in LATE[name]]
            for word, (name, edge) in itertools.product(fields["status"]["enum"], edges) if edges else ():
                self.reach(operation, word, {"start_date": None, name: edge, "is_template": False})
        for minutes in (89, 90, 91, 480):
            project = self.make("/projects", name="Budget", budget_minutes=90)
            self.make("/time-entries", project_id=project, duration_minutes=minutes)
        client = self.make("/clients", name="Agreed")
        for day in (YESTERDAY, TODAY):
            self.make("/quotes", client_id=client, issue_date=DAYS[0], valid_until=day, **SENT)
        for became in ((), ("/projects",), ("/projects",), ("/invoices",), ("/invoices",), ("/projects", "/invoices")):
            quote = self.make("/quotes", client_id=client, **SENT | {"status": "accepted"})
            for path in became:
                self.make(path, quote_id=quote)
        for steps in ([], [{"status": "sent"}], [{"status": "sent"}, {"status": "void"}]):
            time = self.make("/time-entries", client_id=client, duration_minutes=90, hourly_rate="60")
            expense = self.make("/expenses", client_id=client, amount="75")
            lines = [{"time_entry_ids": [time]}, {"expense_ids": [expense]}]
            invoice = self.make("/invoices", client_id=client, lines=lines)
            for step in steps:
                assert self.call("PATCH", f"/invoices/{invoice}", step).status == 200

    def add_care(self) -> None:
        """Make tickets of every status after every thread; and sites with every version, paused and in maintenance."""
        for thread, word in itertools.product(THREADS, ("open", "pending", "on_hold", "resolved", "closed")):
            ticket = self.make("/tickets", subject="Thread")
            for reply in thread:
                assert self.call("POST", f"/tickets/{ticket}/replies", {"body": "Said"} | reply).status == 201
            assert self.call("PATCH", f"/tickets/{ticket}", {"status": word}).data["status"] == word
        monitoring = itertools.cycle(itertools.product((True, False), (None, *AROUND_NOW)))
        for place, (version, (enabled, until)) in enumerate(zip((None, *VERSIONS), monitoring, strict=False)):
            plugin = {"slug": PLUGINS[0], "version": version, "update_version": self.random.choice(VERSIONS)}
            other = {"slug": PLUGINS[1], "version": VERSIONS[-place]}
            more = {"monitoring_enabled": enabled, "maintenance_until": until, "plugins": [plugin, other]}
            self.make("/sites", url=f"https://edge{place}.example", name="Care", **more)

    def add_payments(self) -> None:
        """Make payments by every method, on days and of amounts of their own, some with a reference; and refunds."""
        methods = itertools.cycle(("card", "cash", "cheque", "direct_debit", "other", "bank_transfer"))
        for currency, day in itertools.product(("EUR", "JPY"), ("2026-01-15", "2026-01-31", "2026-02-01")):
            client = self.make("/clients", name="Payer", currency=currency)
            invoice = self.make("/invoices", client_id=client, issue_date=DAYS[0], **SENT)
            for amount, words in itertools.product(("20", "75"), ({}, {"reference": "Öl 7"}, {"notes": "100%"})):
                payment = {"amount": amount, "paid_date": day, "method": next(methods), **words}
                payment |= {"reference": f"Öl {amount}"} if "reference" in words else {}
                changed = self.call("PATCH", f"/invoices/{invoice}", {"record_payment": payment})
                assert changed.status == 200, changed
            credited = self.call("POST", f"/invoices/{invoice}/credit-notes", {"reason": "cancellation"})
            self.keep(next(create for create in CREATES if create.path.endswith("/credit-notes")), credited)
            self.mail(f"/invoices/{invoice}", f"/credit-notes/{credited.data['id']}")
            for amount in ("20", "75"):
                refund = {"amount": amount, "paid_date": day, "method": next(methods)}
                changed = self.call("PATCH", f"/invoices/{invoice}", {"record_refund": refund})
                assert changed.status == 200, changed

    def mail(self, *documents: str) -> None:
        """Send documents to two addresses each, over some days; one message has arrived, and one has failed."""
        for path in documents:
            self.clock.shift(timedelta(hours=8))
            body = {"to": self.random.sample(FORMATS["email"], 2), "subject": " ".join(self.random.sample(WORDS, 2))}
            sent = self.call("POST", f"{path}/send", body)
            assert sent.status == 201, sent
            for message, status in zip(sent.data["messages"], ("sent", "failed"), strict=True):
                self.api.sql("UPDATE messages SET status = $1 WHERE id = $2", status, message["id"])

    def add_people(self) -> None:
        """Make users of every role, active or not, with names that differ only in accents and case."""
        for name, role, is_active in itertools.product(("Öl Werk", "ol werk", "Zebra"), ("admin", "member"), (1, 0)):
            self.clock.shift(self.random.choice((0, 1, 3600)))
            user_id = self.api.add_user(name, role=role)
            self.clock.shift(60)
            self.api.set_user(user_id, {"is_active": bool(is_active)})

    def find_unposted(self) -> None:
        """Remember the records of collections without a POST."""
        for collection in UNPOSTED:
            rows = self.api.sql(f"SELECT id FROM {collection[1:]} WHERE account_id = $1", self.api.account_id)
            self.made[collection] = [f"{collection}/{row[0]}" for row in rows]

    def observe(self) -> None:
        """Write what the monitor would have found out about the sites."""
        for site, known in itertools.product(self.ids["sites"], OBSERVED):
            self.api.sql(f"UPDATE sites SET {known} = $1 WHERE id = $2", self.random.choice(OBSERVED[known]), site)

    def make(self, path: str, **fields: Any) -> int:
        """Make a record of these fields alone; return its id."""
        answer = self.call("POST", path, fields)
        self.keep(next(create for create in CREATES if create.path == path), answer)
        return answer.data["id"]

    def reach(self, operation: Operation, word: str, requested: Row) -> None:
        """Make a record that has a status, by the step that leads there if it has one; each for another client."""
        steps = STEPS.get(operation.path)
        requested["status"] = word
        if steps:
            requested |= {"client_id": self.make("/clients", name="Debtor"), "issue_date": DAYS[0]}
            requested |= SENT if word in steps else {}
        fields = schema_fields(body_schema(operation))
        answer = self.write(operation, requested={name: value for name, value in requested.items() if name in fields})
        self.keep(operation, answer)
        if steps and steps.get(word):
            assert self.call("PATCH", path_of(answer), steps[word]).data["status"] == word

    def write(self, operation: Operation, path: str = "", requested: Row | None = None) -> Answer:
        """Create a record, with the requested fields if they are taken; or change the one at a path."""
        settable = schema_fields(body_schema(operation))
        fields = {name: schema for name, schema in settable.items() if is_drawn(name, schema)}
        place = path or self.place(operation)
        body = requested or {}
        to_draw = fields.keys() - body.keys()
        for _ in range(100):
            if path:
                body, to_draw = {}, set(self.random.sample(sorted(fields), min(3, len(fields))))
            drawn = {name: self.draw(operation, (name,), fields[name]) for name in sorted(to_draw)}
            body = {name: value for name, value in (body | drawn).items() if value is not LEFT_OUT}
            answer = self.call(operation.method, place, body)
            if answer.status in {200, 201}:
                return answer
            faulty = {field.partition(".")[0] for field in answer.errors} & set(fields)
            to_draw = faulty - set(requested or ()) or faulty
            if self.random.random() < 0.1:  # the refusal may follow from fields that it does not name
                to_draw = fields.keys() - (requested or {}).keys()
            if not path and (not to_draw or self.random.random() < 0.1):
                place = self.place(operation)
        assert path, f"{operation} takes nothing that is drawn for it: {body}: {answer}"
        return answer

    def call(self, method: str, path: str, body: Any = None) -> Answer:
        """Send a request; often at the same instant as the one before, or a microsecond later."""
        self.clock.shift(self.random.choice((0, 0, 0.000001, 1, 3600)))
        self.api.app.pipeline.limiter = SlidingWindow()
        return self.api.call(method, path, body)

    def place(self, operation: Operation) -> str:
        """Where a record is made; most have the same parent, unless each needs one like what PARENTS says."""
        head, _, tail = operation.path.partition("/{")
        if not tail:
            return head
        if operation.path.endswith("/links") and operation.path in self.made and self.random.random() < 0.8:
            return self.made[operation.path][0].rpartition("/")[0]
        if operation.path in PARENTS:
            parent = next(create for create in CREATES if create.path == head)
            self.keep(parent, self.write(parent, requested=PARENTS[operation.path]))
            return f"{self.made[head][-1]}{tail.partition('}')[2]}"
        if operation.path in self.made and self.random.random() < 0.8:
            return self.made[operation.path][0].rpartition("/")[0]
        return f"{self.random.choice(self.made[head])}{tail.partition('}')[2]}"

    def draw(self, operation: Operation, path: tuple[str, ...], schema: Row) -> Any:
        """A value of a field, or none."""
        random, name = self.random, path[-1]
        reference = next((candidate for candidate in references(operation) if candidate in {path, (*path, "0")}), None)
        required = path[1:] == () and name in body_schema(operation).get("required", [])
        if not required and random.random() < (0.8 if path[1:] and reference else 0.5 if reference else 0.3):
            return None if "null" in kinds(schema) else LEFT_OUT
        if reference:
            ids = self.ids.get(target_of(operation, reference).name, [])
            several = random.sample(ids[:5], min(len(ids), random.randrange(1, 3)))
            one = random.choice((*ids[:5], random.choice(ids))) if ids else LEFT_OUT
            return several if reference[-1] == "0" else one
        if "array" in kinds(schema):
            drawn = [self.draw_item(operation, (*path, "0"), bare(schema["items"])) for _ in range(random.randrange(3))]
            return [one for one in drawn if one is not LEFT_OUT]
        if "enum" in schema:
            return random.choice([word for word in schema["enum"] if word is not None])
        if "boolean" in kinds(schema):
            return random.random() < 0.4
        if "integer" in kinds(schema):
            return random.choice([number for number in MINUTES if number >= schema.get("minimum", 0)])
        if name in MARKS:
            return MARKS[name].format(random.randrange(100))
        words = " ".join(random.sample(WORDS, random.randrange(1, 4)))
        values = PATTERNS.get(schema.get("pattern"), FORMATS.get(schema.get("format"), (words,)))
        return random.choice(FIELD_VALUES.get(name, values))

    def draw_item(self, operation: Operation, path: tuple[str, ...], schema: Row) -> Any:
        """An entry of a list: a value or none, or a record of drawn fields."""
        if "properties" not in schema:
            return self.draw(operation, path, schema)
        fields = schema_fields(schema)
        part = {field: self.draw(operation, (*path, field), fields[field]) for field in sorted(fields)}
        return {field: value for field, value in part.items() if value is not LEFT_OUT}


def is_drawn(name: str, schema: Row) -> bool:
    """Whether a field is drawn: not what makes other records by the way."""
    return not (schema.get("writeOnly") and ("properties" in schema or name.endswith("_id")))


def path_of(answer: Answer) -> str:
    """The path of a record that was made."""
    return answer.headers["location"].partition(BASE_PATH)[2]


def is_in(path: str, operation: Operation) -> bool:
    """Whether a record is one of those that an operation lists, for one parent or another."""
    return re.fullmatch(re.sub(r"\{\w+\}", r"\\d+", operation.path) + r"/\d+", path) is not None
