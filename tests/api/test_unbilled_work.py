from collections import Counter
from random import Random
from types import SimpleNamespace

import pytest
from tests.length import length

from retainer.schema import metadata

LINE = {"description": "Design", "unit_price": "500"}
COLLECTIONS = {"time": "/time-entries", "expenses": "/expenses"}
MEMBERS = {"time": "time_entry_ids", "expenses": "expense_ids"}


@pytest.fixture
def world(api):
    """A client with two projects, billable work with and without a project, and work that must not be billed."""
    made = {name: api.make("/clients", hourly_rate="60")["id"] for name in ("a", "b")}
    made |= {name: api.make("/projects", client_id=made["a"], name=name)["id"] for name in ("Shop", "Blog")}
    made["other"] = api.make("/projects", client_id=made["b"])["id"]
    texts, photos = (api.make("/tasks", project_id=made["Shop"], title=title)["id"] for title in ("Texts", "Photos"))

    def work(collection, **members):
        needed = {"client_id": None if {"project_id", "task_id"} & members.keys() else made["a"]}
        return api.make(collection, **needed | members)["id"]

    for day, members in {
        "2026-03-02": {"task_id": photos, "description": "Took photos"},
        "2026-03-03": {"project_id": made["Blog"], "user_id": api.member_id},
        "2026-03-04": {"task_id": texts, "user_id": api.member_id, "description": "Wrote texts"},
        "2026-03-05": {"project_id": made["Shop"]},
        "2026-03-01": {},
        "2026-03-06": {"task_id": photos},
    }.items():
        work("/time-entries", date=day, duration_minutes=int(day[-1]), **members)
    for day, members in {
        "2026-03-02": {"category": "travel", "description": "Train"},
        "2026-03-03": {"project_id": made["Shop"]},
        "2026-03-01": {"project_id": made["Blog"], "category": "travel"},
        "2026-03-04": {"project_id": made["Shop"], "category": "hosting", "description": "Server"},
    }.items():
        work("/expenses", date=day, amount=day[-1], **members)
    for collection in COLLECTIONS.values():
        work(collection, project_id=made["Shop"], billable=False)
        work(collection, project_id=made["other"])
    work("/expenses", project_id=made["Shop"], currency="USD")
    billed = work("/time-entries", project_id=made["Shop"])
    api.make("/invoices", client_id=made["a"], lines=[{"time_entry_ids": [billed]}])
    return SimpleNamespace(api=api, ids=made, a=made["a"])


def bill(world, **work):
    """Return the response to an invoice of this unbilled work."""
    return world.api.create("/invoices", client_id=world.a, unbilled_work=work)


def shown(invoice, name):
    return [(line["description"], line[MEMBERS[name]]) for line in invoice["lines"] if line[MEMBERS[name]]]


def unbilled(world, name):
    rows = world.api.get(
        COLLECTIONS[name], {"billing_status": "unbilled", "client_id": world.a, "sort": "created_at"}
    ).data
    return [row["id"] for row in rows]


def copies(world, table, record_id, times):
    """Record this many copies of an item."""
    names = ", ".join(name for name in metadata.tables[table].c.keys() if name != "id")  # noqa: SIM118
    world.api.sql(
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {times}) "
        f"INSERT INTO {table} ({names}) SELECT {names} FROM {table}, n WHERE id = {record_id}"
    )


@pytest.mark.parametrize(
    ("name", "group_by", "days_of_lines"),
    [
        (
            "time", "entry", [
                ("Work on 2026-03-01", [1]), ("Took photos", [2]), ("Work on 2026-03-03", [3]), ("Wrote texts", [4]),
                ("Work on 2026-03-05", [5]), ("Work on 2026-03-06", [6]),
            ],
        ),
        (
            "time", "task", [
                ("Other work", [1]), ("Photos", [2, 6]), ("Other work, Blog", [3]), ("Texts", [4]),
                ("Other work, Shop", [5]),
            ],
        ),
        (
            "time", "user", [
                ("Ana Admin", [1]), ("Ana Admin, Shop", [2, 5, 6]), ("Max Member, Blog", [3]),
                ("Max Member, Shop", [4]),
            ],
        ),
        ("time", "project", [("Work without a project", [1]), ("Shop", [2, 4, 5, 6]), ("Blog", [3])]),
        (
            "expenses",
            "entry",
            [("Expenses on 2026-03-01", [1]), ("Train", [2]), ("Expenses on 2026-03-03", [3]), ("Server", [4])],
        ),
        ("expenses", "category", [("travel, Blog", [1]), ("travel", [2]), ("other", [3]), ("hosting", [4])]),
        ("expenses", "project", [
            ("Expenses on 2026-03-01", [1]), ("Train", [2]), ("Expenses from 2026-03-03 to 2026-03-04", [3, 4]),
        ]),
    ],
)  # fmt: skip  # the days of March that each line bills
def test_all_that_can_be_billed_becomes_lines_in_the_order_of_days(world, name, group_by, days_of_lines):
    days = {row["id"]: int(row["date"][-1]) for row in world.api.get(COLLECTIONS[name], {"per_page": 100}).data}
    invoice = bill(world, **{name: {"group_by": group_by}}).data
    assert [(text, [days[each] for each in ids]) for text, ids in shown(invoice, name)] == days_of_lines
    assert len(unbilled(world, name)) == (name == "expenses"), "one is in USD"
    amounts = [f"{sum(billed)}.00" for _, billed in days_of_lines]  # what is of the 5th costs 5.00
    assert [line["amount"] for line in invoice["lines"]] == amounts
    kind = {"time": "time", "expenses": "expense"}[name]
    assert {(line["kind"], line["invoice_id"]) for line in invoice["lines"]} == {(kind, invoice["id"])}
    assert bill(world, **{name: {"group_by": group_by}}).code == "nothing_to_bill"


def test_expenses_of_a_project_are_called_by_their_descriptions(world):
    def spend(day, text):
        world.api.make("/expenses", client_id=world.a, project_id=world.ids["Blog"], date=day, description=text)

    for day, text in (("2026-04-03", "Hotel"), ("2026-04-02", "Train to Köln"), ("2026-04-04", "Hotel")):
        spend(day, text)
    april = {"from": "2026-04-01"}
    invoice = bill(world, expenses=april).data
    (line,) = invoice["lines"]
    assert (line["description"], line["project_id"]) == ("Train to Köln, Hotel", world.ids["Blog"])
    world.api.delete(f"/invoices/{invoice['id']}")
    spend("2026-04-05", "x" * 1990)
    assert [line["description"] for line in bill(world, expenses=april).data["lines"]] == [
        "Expenses from 2026-04-02 to 2026-04-05"
    ]


def test_work_is_grouped_by_project_by_default_and_time_comes_first(world):
    invoice = bill(world, expenses={}, time={}).data
    assert [len(line["time_entry_ids"]) for line in invoice["lines"]] == [1, 4, 1, 0, 0, 0]
    projects = [None, world.ids["Shop"], world.ids["Blog"]]
    assert [line["project_id"] for line in invoice["lines"]] == [*projects, projects[2], None, projects[1]]
    assert invoice["subtotal"] == "31.00"  # 1 + ... + 6, and 1 + ... + 4


@pytest.mark.parametrize("name", ["time", "expenses"])
@pytest.mark.parametrize(
    ("limits", "time", "expenses"),
    [
        ({"from": "2026-03-03"}, [2, 3, 4, 6], [2, 4]),
        ({"to": "2026-03-03"}, [1, 2, 5], [1, 2, 3]),
        ({"from": "2026-03-02", "to": "2026-03-02"}, [1], [1]),
        ({"project_ids": ["Blog"]}, [2], [3]),
        ({"project_ids": ["Blog", "Shop"]}, [1, 2, 3, 4, 6], [2, 3, 4]),
        ({"project_ids": ["Shop"], "from": "2026-03-04", "to": "2026-03-05"}, [3, 4], [4]),
        ({"from": "2026-03-07"}, [], []),
        ({"project_ids": ["Blog"], "from": "2026-03-04"}, [], []),
    ],
)
def test_only_the_requested_work_is_billed(world, name, limits, time, expenses):
    asked = limits | {"project_ids": [world.ids[project] for project in limits.get("project_ids", [])] or None}
    expected, before = time if name == "time" else expenses, unbilled(world, name)
    answer = bill(world, **{name: asked | {"group_by": "entry"}})
    if expected:
        assert sorted(record_id for _, ids in shown(answer.data, name) for record_id in ids) == expected
    else:
        assert (answer.code, set(answer.errors)) == ("nothing_to_bill", {"unbilled_work"})
        assert world.api.get("/invoices").json["meta"]["total"] == 1
    assert unbilled(world, name) == [record_id for record_id in before if record_id not in expected]


def test_work_in_another_currency_is_billed_by_an_invoice_in_that_currency(world):
    invoice = world.api.make("/invoices", client_id=world.a, currency="USD", unbilled_work={"expenses": {}})
    assert (invoice["currency"], invoice["subtotal"]) == ("USD", "119.00")
    refused = world.api.create("/invoices", client_id=world.a, currency="USD", unbilled_work={"time": {}})
    assert "no unbilled work in USD" in refused.errors["unbilled_work"][0]


@pytest.mark.parametrize(
    ("asked", "field", "message"),
    [
        ({}, "unbilled_work", "Say what to bill"),
        ({"time": None}, "unbilled_work", "Say what to bill"),
        ({"time": {"group_by": "category"}}, "unbilled_work.time.group_by", "entry, task, user, project"),
        ({"expenses": {"group_by": "task"}}, "unbilled_work.expenses.group_by", "entry, category, project"),
        ({"time": {"from": "2026-02-30"}}, "unbilled_work.time.from", "a date"),
        ({"time": {"from_": "2026-02-03"}}, "unbilled_work.time.from_", "Did you mean from?"),
        ({"expenses": {"from": "2026-03-04", "to": "2026-03-03"}}, "unbilled_work.expenses.to", "not be before from"),
        ({"tasks": {}}, "unbilled_work.tasks", "Valid are: time, expenses"),
        ([], "unbilled_work", "an object"),
    ],
)
def test_an_invalid_request_for_work_is_reported_at_its_path(world, asked, field, message):
    answer = world.api.create("/invoices", client_id=world.a, unbilled_work=asked)
    assert message in answer.errors[field][0]
    assert answer.code == "validation_failed"
    assert (len(unbilled(world, "time")), len(unbilled(world, "expenses"))) == (6, 5)


@pytest.mark.parametrize("name", ["time", "expenses"])
def test_only_projects_of_the_client_can_be_requested(world, other_tenant, name):
    foreign = [world.ids["Shop"], 999, other_tenant.make("/projects")["id"], world.ids["other"]]
    answer = bill(world, **{name: {"project_ids": foreign}})
    missing = ["There is no such project in this account."]
    assert answer.errors == {
        f"unbilled_work.{name}.project_ids.1": missing,
        f"unbilled_work.{name}.project_ids.2": missing,
        f"unbilled_work.{name}.project_ids.3": [f"Is not a project of client {world.a}."],
    }
    assert len(unbilled(world, name)) == {"time": 6, "expenses": 5}[name]


def test_unbilled_work_is_added_to_current_and_sent_lines(world):
    api = world.api
    invoice = api.make("/invoices", client_id=world.a, lines=[LINE])
    path = f"/invoices/{invoice['id']}"
    updated = api.patch(path, {"unbilled_work": {"time": {"to": "2026-03-02"}}}).data
    assert updated["lines"][0] == invoice["lines"][0]
    assert shown(updated, "time") == [("Work without a project", [5]), ("Shop", [1])]
    asked = {"time": {"group_by": "user"}, "expenses": {"group_by": "category"}}
    updated = api.patch(path, {"lines": [*updated["lines"][1:], LINE], "unbilled_work": asked}).data
    texts = ["Work without a project", "Shop", "Design", "Max Member, Blog", "Max Member, Shop", "Ana Admin"]
    assert [line["description"] for line in updated["lines"]] == [*texts, "travel, Blog", "travel", "other", "hosting"]
    assert [ids for _, ids in shown(updated, "time")] == [[5], [1], [2], [3], [4, 6]]
    assert updated["subtotal"] == "531.00"  # 500, 1 + ... + 6, and 1 + ... + 4


def test_unbilled_work_is_billed_and_issued_in_one_request(world):
    invoice = world.api.make("/invoices", client_id=world.a, status="sent", unbilled_work={"time": {}})
    assert (invoice["status"], invoice["total"], len(invoice["number"])) == ("sent", "21.00", 13)
    path = f"/invoices/{invoice['id']}"
    refused = world.api.patch(path, {"unbilled_work": {"expenses": {}}})
    assert (refused.code, set(refused.errors)) == ("locked", {"unbilled_work"})
    assert len(unbilled(world, "expenses")) == 5
    assert world.api.get(path).data == invoice


def test_at_most_two_hundred_lines_are_created(world):
    copies(world, "time_entries", 1, 194)
    draft = world.api.make("/invoices", client_id=world.a, lines=[LINE])
    path, asked = f"/invoices/{draft['id']}", {"unbilled_work": {"time": {"group_by": "entry"}}}
    refused = world.api.patch(path, asked)
    assert "at most 200" in refused.errors["lines"][0]
    assert world.api.get(path).data == draft
    open_entries = {"billing_status": "unbilled", "client_id": world.a}
    assert world.api.get("/time-entries", open_entries).json["meta"]["total"] == 200
    assert len(world.api.patch(path, asked | {"lines": []}).data["lines"]) == 200


def test_work_of_lines_is_not_billed_twice_and_a_draft_can_be_regrouped(world):
    found = world.api.get("/time-entries", {"client_id": world.a, "billing_status": "unbilled", "sort": "id"}).data
    entries = [entry["id"] for entry in found if entry["currency"] == "EUR"]
    asked = {"client_id": world.a, "unbilled_work": {"time": {}}, "lines": [{"time_entry_ids": entries[:2]}]}
    lines = world.api.post("/invoices", asked).data
    named = [line["time_entry_ids"] for line in lines["lines"]]
    assert named[0] == entries[:2]
    assert sorted(entry_id for ids in named for entry_id in ids) == entries
    path = f"/invoices/{lines['id']}"
    regrouped = world.api.patch(path, {"lines": [], "unbilled_work": {"time": {"group_by": "entry"}}}).data
    assert sorted(line["time_entry_ids"] for line in regrouped["lines"]) == [[entry_id] for entry_id in entries]
    refused = world.api.patch(path, {"unbilled_work": {"time": {}}})
    assert refused.code == "nothing_to_bill"
    assert bill(world, time={"project_ids": []}).code == "nothing_to_bill"


def test_a_description_too_long_for_a_line_is_cut(world):
    entry = world.api.make("/time-entries", client_id=world.a, description=f"{'x' * 1999} {'y' * 3000}")["id"]
    lines = bill(world, time={"group_by": "entry"}).data["lines"]
    (line,) = [line for line in lines if line["time_entry_ids"] == [entry]]
    assert line["description"] == "x" * 1999


def test_an_invalid_request_for_work_causes_no_further_errors(world):
    assert set(bill(world, time={"project_ids": [999]}).errors) == {"unbilled_work.time.project_ids.0"}
    for status in ("draft", "sent"):
        body = {"client_id": 999, "unbilled_work": {"time": {}}, "status": status}
        assert set(world.api.post("/invoices", body).errors) == {"client_id"}


@pytest.mark.parametrize("members", [{}, {"status": "sent"}, {"status": "sent", "record_payment": {"amount": "1"}}])
def test_work_that_is_not_there_is_reported_alone_also_when_the_invoice_is_issued(world, members):
    client = world.api.make("/clients")["id"]
    draft = f"/invoices/{world.api.make('/invoices', client_id=client)['id']}"
    refused = world.api.patch(draft, members | {"unbilled_work": {"time": {}}})
    assert (refused.code, set(refused.errors)) == ("nothing_to_bill", {"unbilled_work"})


def test_groups_of_more_than_a_thousand_are_split(world):
    copies(world, "time_entries", 1, 2000)
    lines = bill(world, time={}).data["lines"]
    assert [(line["description"], len(line["time_entry_ids"])) for line in lines] == [
        ("Work without a project", 1), ("Shop", 1000), ("Shop", 1000), ("Shop", 4), ("Blog", 1),
    ]  # fmt: skip
    assert [line["quantity"] for line in lines[1:3]] == ["33.3333"] * 2  # 1000 times 2 minutes
    assert len({entry_id for line in lines for entry_id in line["time_entry_ids"]}) == 2006


KINDS = ("time_entry_ids", "expense_ids", "milestone_id")
DAY_OF_EXPENSES = "Expenses on 2026-03-02"
"""How a line calls expenses of a project without a description."""
MOVES = {
    "sent": ("PATCH", "", {"status": "sent"}, {"draft", "sent"}),
    "void": ("PATCH", "", {"status": "void"}, {"sent", "void"}),
    "credited": ("POST", "/credit-notes", {}, {"sent"}),
}
"""For each status of an invoice: how to request it, and from which statuses that is allowed."""


class Walk:
    """Bills, frees and changes work at random, and knows the expected result: 1.00 for each minute.

    A piece of work has a key: the member of a line that names its kind, and its id.
    """

    def __init__(self, api, dice):
        self.api, self.dice, self.seen = api, dice, Counter()
        self.projects, self.pieces, self.invoices = {}, {}, {}
        self.live, self.past = {}, []  # the line that a piece is on; each line and piece of former times
        for client in [api.make("/clients", hourly_rate="60")["id"] for _ in range(3)]:
            for members in ({}, {"billing_type": "fixed_fee", "fixed_fee": "9999"}):
                name, is_covered = "Care" if members else "Shop", bool(members)
                project = api.make("/projects", client_id=client, name=name, **members)["id"]
                state = SimpleNamespace(client=client, currency="EUR", name=name, has_slices=is_covered)
                state.is_covered = is_covered
                self.projects[project] = state
                for kind in KINDS[: 3 if members else 2]:
                    self.record(kind, project)
        api.patch(f"/clients/{client}", {"currency": "USD"})
        self.pieces["milestone_id", 3].currency = "USD"
        for project_id, project in self.projects.items():
            project.currency = "USD" if project.client == client else "EUR"
            for kind in KINDS[:2]:
                self.record(kind, project_id)

    def record(self, kind, project):
        state, amount = self.projects[project], self.dice.randint(1, 90)
        members = {"client_id": None, "project_id": project, "date": "2026-03-02"}
        path, members = {
            "time_entry_ids": ("/time-entries", members | {"duration_minutes": amount}),
            "expense_ids": ("/expenses", members | {"amount": amount}),
            "milestone_id": (f"/projects/{project}/milestones", {"amount": amount}),
        }[kind]
        record_id = self.api.make(path, **members)["id"]
        self.pieces[kind, record_id] = SimpleNamespace(
            path=f"{path}/{record_id}",
            project=project,
            client=state.client,
            currency=state.currency,
            amount=amount,
            billable=True,
        )

    def fits(self, key, invoice, own_lines=()):
        piece = self.pieces.get(key)
        free = key not in self.live or self.live[key] in own_lines
        fits = piece and (piece.client, piece.currency) == (invoice.client, invoice.currency)
        return fits and free and piece.billable

    def some_lines(self, invoice, most, own_lines=()):
        """Return what lines bill, how to send them, and whether an invoice with its `own_lines` may have them."""
        careless = self.dice.random() < 0.3
        pool = [key for key in [*self.pieces, (KINDS[0], 10**6)] if careless or self.fits(key, invoice, own_lines)]
        lines = []
        while pool and len(lines) < most and self.dice.random() < 0.8:
            kind = self.dice.choice(pool)[0]
            same = [key for key in pool if key[0] == kind]
            most_pieces = 1 if kind == "milestone_id" else min(3, len(same))
            lines.append(sorted(self.dice.sample(same, self.dice.randint(1, most_pieces))))
            pool = [key for key in pool if key not in lines[-1] or self.dice.random() < 0.05]
        keys = [key for line in lines for key in line]
        sent = [
            {line[0][0]: line[0][1] if line[0][0] == "milestone_id" else [record_id for _, record_id in line]}
            for line in lines
        ]
        return lines, sent, len(keys) == len(set(keys)) and all(self.fits(key, invoice, own_lines) for key in keys)

    def put(self, invoice, made, lines, former=None):
        """Note the lines of an invoice; former lines keep their ids and projects."""
        for place, (line, keys) in enumerate(zip(made, lines, strict=True)):
            projects, before = {self.pieces[key].project for key in keys}, (former or {}).get(place)
            project = projects.pop() if len(projects) == 1 else None
            amount = sum(self.pieces[key].amount for key in keys)
            if before:
                assert (line["id"], line["created_at"]) == (before.id, before.created_at)
                project = before.project or project
            invoice.lines[line["id"]] = SimpleNamespace(
                keys=keys, project=project, amount=amount, id=line["id"], created_at=line["created_at"]
            )
            self.live |= dict.fromkeys(keys, line["id"])

    def free(self, invoice, lines):
        for line in lines:
            for key in invoice.lines[line].keys:
                del self.live[key]
            if invoice.status == "draft":
                del invoice.lines[line]
            else:
                self.past += [(line, key) for key in invoice.lines[line].keys]

    def check_answer(self, action, answer, legal):
        assert answer.status in ({200, 201, 204} if legal else {422}), (action, legal, answer)
        self.seen[action, bool(legal)] += 1
        return legal

    def create(self):
        client, currency = self.dice.choice(
            [(project.client, project.currency) for project in self.projects.values()] + [(3, "EUR")]
        )
        status = self.dice.choice(("draft", "draft", "sent"))
        invoice = SimpleNamespace(client=client, currency=currency, status=status, lines={})
        words = None
        if self.dice.random() < 0.4:
            lines, words, sent = self.gather(invoice)
            legal = bool(lines)
        else:
            lines, sent, legal = self.some_lines(invoice, 3)
            sent, legal = {"lines": sent}, legal and (lines or status == "draft")
        answer = self.api.post("/invoices", {"client_id": client, "currency": currency, "status": status} | sent)
        if self.check_answer("create", answer, legal):
            assert words in {None, tuple(line["description"] for line in answer.data["lines"])}
            self.invoices[answer.data["id"]] = invoice
            self.put(invoice, answer.data["lines"], lines)

    def gather(self, invoice):
        """Return the lines that unbilled work becomes, their descriptions, and the request for it."""
        asked, groups = {}, {}
        ids = [project_id for project_id, project in self.projects.items() if project.client == invoice.client]
        for kind, name, labels in (
            (KINDS[0], "time", {"project": "", "user": "Ana Admin", "task": "Other work"}),
            (KINDS[1], "expenses", {"project": DAY_OF_EXPENSES, "category": "other"}),
        ):
            by, named = self.dice.choice([*labels]), self.dice.sample(ids, self.dice.choice([0, 0, 0, 1, 2]))
            asked[name] = {"group_by": by} | ({"project_ids": named} if named else {})
            for key in sorted(key for key in self.pieces if key[0] == kind and self.fits(key, invoice)):
                project = self.pieces[key].project
                left_out = kind == KINDS[0] and self.projects[project].is_covered
                if project in named if named else not left_out:
                    groups.setdefault((kind, labels[by], project), []).append(key)
        kinds = Counter(kind for kind, *_ in groups)
        words = []
        for kind, label, project in groups:
            with_project = not label or (kinds[kind] > 1 and label != DAY_OF_EXPENSES)
            words.append(", ".join(filter(None, [label, with_project and self.projects[project].name])))
        return list(groups.values()), tuple(words), {"unbilled_work": asked}

    def replace(self, path, invoice):
        """Send other lines: some are current ones, with other work or unchanged."""
        lines, sent, legal = self.some_lines(invoice, 4, own_lines=invoice.lines)
        owners, former = list(invoice.lines.values()), {}
        self.dice.shuffle(owners)
        for place, line in enumerate(sent):
            if owners and self.dice.random() < 0.6:
                former[place] = item = owners.pop()
                others = {} if item.keys[0][0] in line else {kind: [] for kind in KINDS[:2]} | {"milestone_id": None}
                line.update(others | line | {"id": item.id})
                if self.dice.random() < 0.5 or line.get("milestone_id"):
                    line["project_id"] = None
        kept = {key for keys in lines for key in keys}
        for item in owners:
            if not kept & {*item.keys} and self.dice.random() < 0.5:
                former[len(sent)] = item
                lines, sent = [*lines, item.keys], [*sent, {"id": item.id}]
        if sent and self.dice.random() < 0.1:
            twice = self.dice.choice([line["id"] for line in sent if "id" in line] or [10**6])
            lines, sent, legal = [*lines, []], [*sent, {"id": twice}], False
        answer = self.api.patch(path, {"lines": sent})
        lines_before = list(invoice.lines.values())
        is_unchanged = len(lines_before) == len(sent) and all(
            line.get("id") == item.id and keys == item.keys and not (item.project and "project_id" in line)
            for line, keys, item in zip(sent, lines, lines_before, strict=True)
        )
        if invoice.status != "draft":
            self.check_answer("replace", answer, is_unchanged)
        elif self.check_answer("replace", answer, legal):
            former = {
                place: SimpleNamespace(**vars(item) | ({"project": None} if "project_id" in sent[place] else {}))
                for place, item in former.items()
            }
            self.free(invoice, list(invoice.lines))
            self.put(invoice, answer.data["lines"], lines, former)

    def add(self, path, invoice):
        lines, sent, legal = self.some_lines(invoice, 1)
        if lines:
            answer = self.api.post(f"{path}/lines", sent[0])
            if self.check_answer("add", answer, legal and invoice.status == "draft"):
                self.put(invoice, [answer.data], lines)

    def remove(self, path, invoice):
        whole = not invoice.lines or self.dice.random() < 0.3
        lines = list(invoice.lines) if whole else [self.dice.choice(list(invoice.lines))]
        answer = self.api.delete(path if whole else f"{path}/lines/{lines[0]}")
        if self.check_answer("remove", answer, invoice.status == "draft"):
            self.free(invoice, lines)
            if whole:
                del self.invoices[int(path.split("/")[2])]

    def move(self, path, invoice):
        after = self.dice.choice(list(MOVES))
        method, tail, members, legal = MOVES[after]
        answer = self.api.call(method, path + tail, members)
        if self.check_answer(after, answer, invoice.status in legal and invoice.lines) and invoice.status != after:
            invoice.status = after
            self.free(invoice, invoice.lines if after != "sent" else ())

    def edit(self):
        key, piece = self.dice.choice(list(self.pieces.items()))
        field = {"time_entry_ids": "duration_minutes"}.get(key[0], "amount")
        siblings = (other for other, project in self.projects.items() if project.client == piece.client)
        other = next(project_id for project_id in siblings if project_id != piece.project)
        change = self.dice.choice(({field: piece.amount + 1}, {"billable": not piece.billable}, {"project_id": other}))
        if key[0] == "milestone_id":
            change = {field: piece.amount + 1}
        if self.check_answer("edit", self.api.patch(piece.path, change), key not in self.live):
            piece.amount, piece.billable = change.get(field, piece.amount), change.get("billable", piece.billable)
            if "project_id" in change:
                piece.project = other
                piece.currency = self.projects[other].currency if key[0] == "time_entry_ids" else piece.currency

    def agree_on_a_fee(self):
        """Start or stop covering a project's hours by its fee."""
        project_id, project = self.dice.choice([pair for pair in self.projects.items() if not pair[1].has_slices])
        project.is_covered = not project.is_covered
        change = {"billing_type": "retainer" if project.is_covered else "time_and_materials"}
        self.check_answer("agree on a fee", self.api.patch(f"/projects/{project_id}", change), legal=True)

    def discard(self):
        former = {key for _, key in self.past}
        key = self.dice.choice([key for key in self.pieces if key in self.live or key not in former])
        if self.check_answer("discard", self.api.delete(self.pieces[key].path), key not in self.live):
            self.record(key[0], self.pieces.pop(key).project)

    def step(self):
        self.api.key = self.api.new_key()  # each key has its own limit of requests
        on_an_invoice = (self.replace, self.add, self.remove, self.move)
        others = (self.create, self.edit, self.discard, self.agree_on_a_fee)
        (action,) = self.dice.choices([*others, *on_an_invoice], (6, 4, 2, 1, 5, 3, 3, 9))
        if action not in on_an_invoice:
            action()
        elif self.invoices:
            invoice_id, invoice = self.dice.choice(list(self.invoices.items())[-6:])
            action(f"/invoices/{invoice_id}", invoice)

    def state_of(self, key, piece):
        """Return the billing status of an item on no line; a fee covers no expense."""
        is_covered = key[0] == KINDS[0] and self.projects[piece.project].is_covered
        return "non_billable" if not piece.billable else "covered" if is_covered else "unbilled"

    def check_pieces(self):
        """Return the billing status, line and invoice of each item."""
        lines = {line: invoice_id for invoice_id, invoice in self.invoices.items() for line in invoice.lines}
        expected = {}
        for key, piece in self.pieces.items():
            line = self.live.get(key)
            expected[key] = ("billed" if line else self.state_of(key, piece), line, lines.get(line))
        for kind, collection in zip(KINDS, COLLECTIONS.values(), strict=False):
            rows = self.api.get(collection, {"per_page": 100}).data
            found = {
                (kind, row["id"]): (row["billing_status"], row["invoice_line_id"], row["invoice_id"]) for row in rows
            }
            assert found == {key: state for key, state in expected.items() if key[0] == kind}

    def check_sums(self):
        """Return what each project has unbilled and uncovered, and what was invoiced and not credited."""
        unbilled = [
            piece
            for key, piece in self.pieces.items()
            if key[0] == KINDS[0] and piece.billable and key not in self.live
        ]
        issued = [
            ((line.project, invoice.currency), line.amount)
            for invoice in self.invoices.values()
            for line in invoice.lines.values()
            if invoice.status == "sent"
        ]
        for row in self.api.get("/projects").data:
            is_covered = self.projects[row["id"]].is_covered
            pieces = [piece for piece in unbilled if piece.project == row["id"] and not is_covered]
            amount = sum(piece.amount for piece in pieces if piece.currency == row["currency"])
            invoiced = sum(amount for where, amount in issued if where == (row["id"], row["currency"]))
            assert row["unbilled_minutes"] == sum(piece.amount for piece in pieces)
            assert (row["unbilled_amount"], row["invoiced_amount"]) == (f"{amount}.00", f"{invoiced}.00")

    def check_database(self):
        """Check that allocations have one row for each item on a line, and agree with the lines."""
        columns = "invoice_line_id, time_entry_id, expense_id, milestone_id"
        for is_live, expected in (("= 1", [(line, key) for key, line in self.live.items()]), ("IS NULL", self.past)):
            rows = self.api.sql(f"SELECT {columns} FROM allocations WHERE is_live {is_live}")
            found = [(line, key) for line, *ids in rows for key in zip(KINDS, ids, strict=True) if key[1]]
            assert sorted(found) == sorted(expected)
        for table, column in (("time_entries", "time_entry_id"), ("expenses", "expense_id")):
            differing = self.api.sql(
                f"SELECT work.id FROM {table} work LEFT JOIN allocations ON {column} = work.id AND is_live = 1 "
                "LEFT JOIN invoice_lines line ON line.id = allocations.invoice_line_id "
                "WHERE line.id IS DISTINCT FROM work.invoice_line_id "
                "OR line.invoice_id IS DISTINCT FROM work.invoice_id"
            )
            assert differing == []

    def check_lines(self):
        """Return what each invoice bills or has billed."""
        for invoice_id, invoice in self.invoices.items():
            found = {}
            for line in self.api.get(f"/invoices/{invoice_id}").data["lines"]:
                keys = [(kind, piece) for kind in KINDS[:2] for piece in line[kind]]
                keys += [("milestone_id", line["milestone_id"])] if line["milestone_id"] else []
                found[line["id"]] = (line["amount"], keys)
            assert found == {line: (f"{item.amount}.00", item.keys) for line, item in invoice.lines.items()}


@pytest.mark.parametrize("seed", [1, 3][: length(2)])
def test_no_work_is_ever_on_two_live_lines(api, seed):
    walk = Walk(api, Random(seed))
    for place in range(150):
        walk.step()
        walk.check_pieces()
        walk.check_sums()
        walk.check_database()
        if place % 30 == 29:
            walk.check_lines()
    actions = ("create", "replace", "add", "remove", *MOVES, "edit", "discard")
    both = {(action, legal) for action in actions for legal in (True, False)}
    assert both | {("agree on a fee", True)} == walk.seen.keys()
