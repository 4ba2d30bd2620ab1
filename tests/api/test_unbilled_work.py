from types import SimpleNamespace

import pytest

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
                ("Work on 1 March 2026", [1]), ("Took photos", [2]), ("Work on 3 March 2026", [3]),
                ("Wrote texts", [4]), ("Work on 5 March 2026", [5]), ("Work on 6 March 2026", [6]),
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
            [("Expenses on 1 March 2026", [1]), ("Train", [2]), ("Expenses on 3 March 2026", [3]), ("Server", [4])],
        ),
        ("expenses", "category", [("travel, Blog", [1]), ("travel", [2]), ("Other expenses", [3]), ("hosting", [4])]),
        ("expenses", "project", [
            ("Expenses on 1 March 2026", [1]), ("Train", [2]), ("Expenses from 3 to 4 March 2026", [3, 4]),
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


GERMAN = {
    ("time", "entry"): [
        *("Leistungen am 1. März 2026", "Took photos", "Leistungen am 3. März 2026", "Wrote texts"),
        *("Leistungen am 5. März 2026", "Leistungen am 6. März 2026"),
    ],
    ("time", "task"): ["Weitere Leistungen", "Photos", "Weitere Leistungen, Blog", "Texts", "Weitere Leistungen, Shop"],
    ("time", "user"): ["Ana Admin", "Ana Admin, Shop", "Max Member, Blog", "Max Member, Shop"],
    ("time", "project"): ["Leistungen ohne Projekt", "Shop", "Blog"],
    ("expenses", "entry"): ["Auslagen am 1. März 2026", "Train", "Auslagen am 3. März 2026", "Server"],
    ("expenses", "category"): ["travel, Blog", "travel", "Weitere Auslagen", "hosting"],
    ("expenses", "project"): ["Auslagen am 1. März 2026", "Train", "Auslagen vom 3. bis 4. März 2026"],
}


@pytest.mark.parametrize(("name", "group_by"), GERMAN)
def test_lines_are_described_in_the_language_of_the_clients_documents(world, name, group_by):
    world.api.patch(f"/clients/{world.a}", {"language": "de"})
    invoice = bill(world, **{name: {"group_by": group_by}}).data
    assert [text for text, _ in shown(invoice, name)] == GERMAN[name, group_by]


@pytest.mark.parametrize(
    ("language", "first", "words"),
    [
        ("de", "2026-03-28", "Leistungen vom 28. März bis 2. April 2026"),
        ("de", "2025-12-28", "Leistungen vom 28. Dezember 2025 bis 2. April 2026"),
        ("en", "2026-03-28", "Work from 28 March to 2 April 2026"),
        ("en", "2025-12-28", "Work from 28 December 2025 to 2 April 2026"),
    ],
)
def test_the_days_of_a_line_name_the_months_and_years_that_differ(world, language, first, words):
    client = world.api.make("/clients", hourly_rate="60", language=language)["id"]
    ids = [
        world.api.make("/time-entries", client_id=client, date=day, duration_minutes=60)["id"]
        for day in ("2026-04-02", first)
    ]
    (line,) = world.api.make("/invoices", client_id=client, lines=[{"time_entry_ids": ids}])["lines"]
    assert line["description"] == words


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
        "Expenses from 2 to 5 April 2026"
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
    assert [line["description"] for line in updated["lines"]] == [
        *texts,
        "travel, Blog",
        "travel",
        "Other expenses",
        "hosting",
    ]
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


def test_work_in_another_currency_is_named_and_the_refusal_says_how_to_bill_it(api):
    client = api.make("/clients", hourly_rate="100")["id"]
    project = api.make("/projects", client_id=client)["id"]
    everything = {"time": {}, "expenses": {}, "milestones": {}, "fees": {}}
    for amount in ("100", "20"):
        api.make("/expenses", client_id=client, project_id=project, amount=amount, currency="USD", billable=True)
    refused = api.create("/invoices", client_id=client, unbilled_work={"expenses": {}})
    assert (refused.code, refused.errors) == (
        "nothing_to_bill",
        {
            "unbilled_work": [
                (
                    f"Client {client} has no unbilled work in EUR that matches. Left out: 120.00 USD. "
                    'Bill that on another invoice, with "currency": "USD".'
                )
            ]
        },
    )
    api.make("/time-entries", client_id=client, duration_minutes=30)
    assert api.patch(f"/clients/{client}", {"currency": "USD"}).status == 200
    api.make("/time-entries", client_id=client, duration_minutes=60)
    draft = api.create("/invoices", client_id=client, currency="EUR", unbilled_work=everything)
    assert draft.data["total"] == "50.00"
    other = {"reason": "other_currency", "currency": "USD"}
    assert draft.json["meta"]["left_out"] == [other | {"count": 3, "minutes": 60, "amount": "220.00"}]
    limited = api.create("/invoices", client_id=client, currency="USD", unbilled_work={"time": {}})
    assert (limited.data["total"], limited.json["meta"]["left_out"]) == ("100.00", [])


def test_milestones_and_fees_in_another_currency_are_named(api):
    client = api.make("/clients", currency="CHF")["id"]
    fixed = api.make("/projects", client_id=client, billing_type="fixed_fee", fixed_fee="900")["id"]
    api.make(f"/projects/{fixed}/milestones", amount="300", status="completed")
    api.make("/projects", client_id=client, billing_type="retainer", retainer_amount="450")
    asked = {"milestones": {}, "fees": {}}
    refused = api.create("/invoices", client_id=client, currency="EUR", unbilled_work=asked)
    assert "Left out: 750.00 CHF." in refused.errors["unbilled_work"][0]
    assert api.create("/invoices", client_id=client, unbilled_work=asked).data["total"] == "750.00"
