from types import SimpleNamespace

import pytest
from tests.databases import each_database

from retainer.billing.expenses import Expense
from retainer.values.reading import writable_fields
from retainer.work.time_rules import TimeEntry

DESIGN = {"description": "Design", "unit_price": "500"}
COLLECTIONS = {
    "time_entry_ids": "/time-entries", "expense_ids": "/expenses", "milestone_id": "/projects/{project_id}/milestones",
}  # fmt: skip
WAYS = {
    "void": [("PATCH", "", {"status": "void"})],
    "one credit note": [("POST", "/credit-notes", {})],
    "two credit notes": [("POST", "/credit-notes", {"amount": "0.01"}), ("POST", "/credit-notes", {})],
}
"""The ways to free the work on an issued invoice."""


@pytest.fixture
def world(api):
    """Two clients with projects at 1.00 EUR a minute, and a fixed fee in three milestones."""
    made = {name: api.make("/clients", hourly_rate="60", tax_rate="19")["id"] for name in ("a", "b")}
    made |= {name: api.make("/projects", client_id=made[name[0]])["id"] for name in ("a1", "a2", "b1")}
    for name in ("a", "b"):
        fixed = api.make("/projects", client_id=made[name], billing_type="fixed_fee", fixed_fee="900")["id"]
        made[f"fee of {name}"], made[f"milestones of {name}"] = fixed, f"/projects/{fixed}/milestones"
    return SimpleNamespace(api=api, ids=made, **{name: made[name] for name in ("a", "b", "a1", "a2", "b1")})


def hours(world, *minutes, **members):
    """Create time entries with these minutes, by default on the first project; return their ids."""
    members = {"client_id": None, "project_id": world.a1} | members
    return [world.api.make("/time-entries", **members, duration_minutes=each)["id"] for each in minutes]


def expense(world, amount, **members):
    return world.api.make("/expenses", **{"client_id": world.a} | members, amount=amount)["id"]


def milestone(world, amount="300", client="a"):
    return world.api.make(world.ids[f"milestones of {client}"], amount=amount)["id"]


def invoice_of(world, *lines, **members):
    return world.api.make("/invoices", **{"client_id": world.a, "lines": list(lines)} | members)


def path_of(invoice):
    return f"/invoices/{invoice['id']}"


def billing_statuses(world, ids, collection="/time-entries"):
    """Return the invoice and the line of each record."""
    rows = world.api.get(collection, {"ids": ",".join(map(str, ids)), "sort": "created_at"}).data
    return [row["billing_status"] for row in rows]


def sums(world, project="a1"):
    project = world.api.get(f"/projects/{world.ids[project]}").data
    return [project[name] for name in ("unbilled_minutes", "unbilled_amount", "invoiced_amount")]


def release_work(world, invoice, way):
    for method, path, body in WAYS[way]:
        assert world.api.call(method, path_of(invoice) + path, body).status in {200, 201}


@pytest.mark.parametrize(
    ("currency", "worked", "quantity", "unit_price", "amount"),
    [
        ("EUR", [(90, "60"), (30, "60")], "2", "60.00", "120.00"),
        ("EUR", [(1, "60")], "0.0167", "60.00", "1.00"),
        ("EUR", [(2, "60")], "0.0333", "60.00", "2.00"),
        ("EUR", [(1440, "60")] * 3, "72", "60.00", "4320.00"),
        ("EUR", [(10, "99.99")] * 2, "0.3333", "99.99", "33.34"),  # 16.665 each
        ("EUR", [(60, "60"), (30, "90")], "1.5", "70.00", "105.00"),
        ("EUR", [(60, "60"), (60, "90"), (60, "50")], "3", "66.6667", "200.00"),
        ("EUR", [(60, "0"), (120, "100")], "3", "66.6667", "200.00"),
        ("EUR", [(45, "0")], "0.75", "0.00", "0.00"),
        ("EUR", [(60, "0"), (60, "61")], "2", "30.50", "61.00"),
        ("JPY", [(50, "1000")], "0.8333", "1000", "833"),
        ("JPY", [(50, "1000"), (50, "1001")], "1.6667", "1000.18", "1667"),  # 833 + 834; 1667 / 1.6667
        ("KWD", [(1, "0.1")] * 2, "0.0333", "0.100", "0.004"),  # 0.00166... each
    ],
)
def test_time_is_billed_by_the_hour_for_the_sum_of_its_entries(api, currency, worked, quantity, unit_price, amount):
    client = api.make("/clients", currency=currency)["id"]
    ids = [
        api.make(
            "/time-entries", client_id=client, duration_minutes=minutes, hourly_rate=rate, date=f"2026-03-0{place}"
        )["id"]
        for place, (minutes, rate) in enumerate(worked, start=1)
    ]
    (line,) = api.make("/invoices", client_id=client, lines=[{"time_entry_ids": ids[::-1]}])["lines"]
    assert [line[name] for name in ("kind", "quantity", "unit", "unit_price", "amount", "currency")] == [
        "time", quantity, "hours", unit_price, amount, currency,
    ]  # fmt: skip
    assert (line["time_entry_ids"], line["expense_ids"], line["milestone_id"]) == (ids, [], None)


@pytest.mark.parametrize(
    ("descriptions", "days", "words"),
    [
        (["Texts", "Texts"], ["2026-03-02", "2026-03-05"], "Texts"),
        ([None, None], ["2026-03-02", "2026-03-02"], "Work on 2 March 2026"),
        (["Texts", None], ["2026-03-05", "2026-03-02"], "Work from 2 to 5 March 2026"),
        (["Texts", "Photos"], ["2026-03-02", "2026-03-02"], "Work on 2 March 2026"),
    ],
)
def test_a_line_takes_the_description_that_its_work_shares_or_else_its_days(world, descriptions, days, words):
    ids = [hours(world, 60, description=text, date=day)[0] for text, day in zip(descriptions, days, strict=True)]
    invoice = invoice_of(world, {"time_entry_ids": ids})
    assert [line["description"] for line in invoice["lines"]] == [words]
    sent = {"time_entry_ids": ids, "description": "March", "unit": "h"}
    (line,) = world.api.patch(path_of(invoice), {"lines": [sent]}).data["lines"]
    assert (line["description"], line["unit"]) == ("March", "h")
    (line,) = world.api.patch(path_of(invoice), {"lines": [sent | {"description": None}]}).data["lines"]
    assert line["description"] == words


def test_a_line_counts_for_its_own_project_or_that_of_all_its_work_or_the_invoices(world):
    one, two, three = hours(world, 60, 60, 30)
    (other,), (none,) = hours(world, 15, project_id=world.a2), hours(world, 10, client_id=world.a, project_id=None)
    named = {"expense_ids": [expense(world, "5", project_id=world.a2)], "project_id": world.a1}
    lines = [{"time_entry_ids": ids} for ids in ([one, two], [three, other], [none])]
    invoice = invoice_of(world, *lines, named, project_id=world.a2, status="sent")
    assert [line["project_id"] for line in invoice["lines"]] == [world.a1, None, None, world.a1]
    assert (sums(world), sums(world, "a2")) == ([0, "0.00", "125.00"], [0, "0.00", "55.00"])  # 120 + 5, 45 + 10
    release_work(world, invoice, "void")
    assert (sums(world), sums(world, "a2")) == ([150, "150.00", "0.00"], [15, "15.00", "0.00"])


def test_quantity_and_price_follow_from_the_work_and_other_values_are_refused(world):
    ids, milestones = hours(world, 90), milestone(world)
    wrong = {"quantity": "7", "unit_price": "1", "discount_percent": "0"}
    work = [{"time_entry_ids": ids}, {"expense_ids": [expense(world, "40")]}, {"milestone_id": milestones}]
    refused = world.api.create("/invoices", client_id=world.a, lines=[line | wrong for line in work])
    assert refused.errors.keys() == {
        "lines.0.unit_price",
        *(f"lines.{place}.{name}" for place in (1, 2) for name in ("quantity", "unit_price")),
    }
    assert refused.errors["lines.1.quantity"] == ["Is that of the work: 1. Leave it out."]
    invoice = invoice_of(world, *work)
    figures = [("1.5", "60.00", "90.00"), ("1", "40.00", "40.00"), ("1", "300.00", "300.00")]
    assert [(line["quantity"], line["unit_price"], line["amount"]) for line in invoice["lines"]] == figures
    assert [invoice[name] for name in ("subtotal", "tax_total", "total")] == ["430.00", "81.70", "511.70"]
    entries = world.api.get("/time-entries").data
    assert world.api.put(path_of(invoice), invoice).data["lines"] == invoice["lines"]
    assert world.api.get("/time-entries").data == entries, "work that stays where it is was not changed"


@pytest.mark.parametrize(
    ("spent", "quantity", "unit_price", "amount"),
    [
        ([{"amount": "119", "tax_rate": "19"}], "1", "100.00", "100.00"),
        ([{"amount": "119", "tax_rate": "19", "amount_includes_tax": False}], "1", "119.00", "119.00"),
        ([{"amount": "119", "tax_rate": "19", "markup_percent": "12.5"}], "1", "112.50", "112.50"),
        ([{"amount": "-119", "tax_rate": "19", "markup_percent": "10"}], "-1", "110.00", "-110.00"),
        ([{"amount": "10"}, {"amount": "0.05", "markup_percent": "10"}], "1", "10.06", "10.06"),  # 0.055
        ([{"amount": "10"}, {"amount": "-12.5"}], "-1", "2.50", "-2.50"),
        ([{"amount": "10"}, {"amount": "-10"}], "1", "0.00", "0.00"),
    ],
)
def test_expenses_are_billed_for_their_net_with_the_markup(world, spent, quantity, unit_price, amount):
    ids = [expense(world, date="2026-03-02", project_id=world.a1, **members) for members in spent]
    invoice = invoice_of(world, {"expense_ids": ids})
    (line,) = invoice["lines"]
    names = ("kind", "quantity", "unit", "unit_price", "amount", "tax_rate", "project_id", "expense_ids")
    assert [line[name] for name in names] == ["expense", quantity, None, unit_price, amount, "19", world.a1, ids]
    assert "2 March 2026" in line["description"]
    assert invoice["subtotal"] == amount


def test_a_milestone_is_billed_for_its_amount(world):
    milestone_id = milestone(world, "250.50")
    (line,) = invoice_of(world, {"milestone_id": milestone_id})["lines"]
    names = ("kind", "description", "quantity", "unit", "unit_price", "amount", "project_id", "milestone_id")
    fee = world.ids["fee of a"]
    assert [line[name] for name in names] == ["milestone", "Launch", "1", None, "250.50", "250.50", fee, milestone_id]
    other = {"milestone_id": milestone(world), "project_id": world.a1}
    answer = world.api.create("/invoices", client_id=world.a, lines=[other])
    assert answer.errors == {"lines.0.project_id": ["Is not that of the milestone. Leave it out."]}


FAULTS = {
    "missing": "There is no such",
    "another account's": "There is no such",
    "another client's": "is not for client",
    "not billable": "is not billable",
    "without an amount": "has no amount",
    "on a draft": "{id} is already on invoice 1.",
    "on an issued invoice": "{id} is already on invoice 1.",
}


def faulty(world, other_tenant, member, fault):
    """Return the id of an item that cannot be billed."""
    if fault in {"missing", "another account's"}:
        return 999 if fault == "missing" else other_tenant.make(COLLECTIONS[member])["id"]
    client = "b" if fault == "another client's" else "a"
    if member == "milestone_id":
        record_id = milestone(world, client=client, amount=None if fault == "without an amount" else "1")
    else:
        made = world.api.make(COLLECTIONS[member], client_id=world.ids[client], billable=fault != "not billable")
        record_id = made["id"]
    if fault.startswith("on "):
        named = record_id if member == "milestone_id" else [record_id]
        invoice_of(world, {member: named}, DESIGN, status="draft" if fault == "on a draft" else "sent")
    return record_id


@pytest.mark.parametrize(
    ("member", "fault"),
    [
        (member, fault)
        for member in ("time_entry_ids", "expense_ids")
        for fault in FAULTS
        if fault != "without an amount"
    ]
    + [("milestone_id", fault) for fault in FAULTS if fault != "not billable"],
)
def test_work_that_cannot_be_billed_is_reported_at_its_path(world, other_tenant, member, fault):
    api, bad = world.api, faulty(world, other_tenant, member, fault)
    good = hours(world, 60, 60) if member == "time_entry_ids" else [expense(world, "5"), expense(world, "6")]
    draft = invoice_of(world, DESIGN)
    listed = api.get("/invoices").data
    place, named = ("", bad) if member == "milestone_id" else (".2", [*good, bad])
    lines = [DESIGN, {member: named}]
    answers = [
        ("lines.1.", api.create("/invoices", client_id=world.a, lines=lines)),
        ("lines.1.", api.patch(path_of(draft), {"lines": lines, "subject": "New"})),
        ("", api.post(f"{path_of(draft)}/lines", {member: named})),
    ]
    for within, answer in answers:
        assert answer.code == ("already_billed" if fault.startswith("on ") else "validation_failed")
        ((field, (message,)),) = answer.errors.items()
        assert field == f"{within}{member}{place}"
        assert FAULTS[fault].format(id=bad) in message
    assert (api.get("/invoices").data, api.get(path_of(draft)).data) == (listed, draft)
    assert (
        billing_statuses(world, good, "/time-entries" if member == "time_entry_ids" else "/expenses")
        == ["unbilled"] * 2
    )


def test_work_in_another_currency_than_the_invoice_is_refused(world):
    spent, slice_ = expense(world, "5"), milestone(world)
    work = [{"time_entry_ids": hours(world, 60)}, {"expense_ids": [spent]}, {"milestone_id": slice_}]
    answer = world.api.create("/invoices", client_id=world.a, currency="USD", lines=work)
    assert set(answer.errors) == {"lines.0.time_entry_ids.0", "lines.1.expense_ids.0", "lines.2.milestone_id"}
    assert all("is in EUR, the invoice in USD" in message for (message,) in answer.errors.values())
    dollars = expense(world, "5", currency="USD")
    invoice = invoice_of(world, {"expense_ids": [dollars]}, currency="USD")
    assert (invoice["currency"], invoice["subtotal"]) == ("USD", "5.00")


def test_work_that_a_request_names_twice_is_refused_the_second_time(world):
    (one, two), spent, slice_ = hours(world, 60, 60), expense(world, "5"), milestone(world)
    lines = [
        {"time_entry_ids": [two, one, two]},
        {"time_entry_ids": [one]},
        {"expense_ids": [spent, spent]},
        {"milestone_id": slice_},
        {"milestone_id": slice_},
    ]
    answer = world.api.create("/invoices", client_id=world.a, lines=lines)
    places = ("lines.0.time_entry_ids.2", "lines.1.time_entry_ids.0", "lines.2.expense_ids.1", "lines.4.milestone_id")
    assert tuple(answer.errors) == places
    assert all("Is listed twice in this request" in message for (message,) in answer.errors.values())
    assert answer.code == "validation_failed"
    assert world.api.get("/invoices").data == []
    assert one == spent == slice_ == 1, "one id of each kind is no repetition"
    assert len(invoice_of(world, *({"time_entry_ids": [one]}, {"expense_ids": [spent]}, lines[3]))["lines"]) == 3


@pytest.mark.parametrize(
    ("line", "errors"),
    [
        ({"time_entry_ids": [1], "expense_ids": [1]}, {"expense_ids": "one kind of work"}),
        ({"expense_ids": [1], "milestone_id": 1}, {"milestone_id": "one kind of work"}),
        ({"time_entry_ids": [1], "discount_percent": "5"}, {"discount_percent": "Work has no discount"}),
        ({"milestone_id": 1, "discount_percent": "100"}, {"discount_percent": "Work has no discount"}),
        ({"time_entry_ids": []}, {"description": "unless the line bills work", "unit_price": "unless the line bills"}),
        ({"time_entry_ids": list(range(1, 1002))}, {"time_entry_ids": "0 to 1000 entries; this has 1001"}),
        ({"time_entry_ids": [1, "1"]}, {"time_entry_ids.1": "a whole number from 1"}),
        ({"expense_ids": 1}, {"expense_ids": "a list"}),
        ({"milestone_id": 0}, {"milestone_id": "a whole number from 1"}),
    ],
)
def test_a_line_bills_one_kind_of_work_without_discount(world, line, errors):
    assert [*hours(world, 60), expense(world, "5"), milestone(world)] == [1, 1, 1]
    draft = invoice_of(world)
    answers = {
        "lines.0.": world.api.create("/invoices", client_id=world.a, lines=[line]),
        "": world.api.post(f"{path_of(draft)}/lines", line),
    }
    for within, answer in answers.items():
        assert set(answer.errors) == {within + field for field in errors}
        assert all(message in answer.errors[within + field][0] for field, message in errors.items())
    assert billing_statuses(world, [1]) == ["unbilled"]
    assert world.api.get(path_of(draft)).data == draft


def test_work_moves_between_the_lines_of_a_draft_and_omitted_work_is_unbilled(world):
    one, two, three = hours(world, 60, 30, 15)
    spent = expense(world, "5")
    draft = invoice_of(world, {"time_entry_ids": [one, two]}, {"time_entry_ids": [three]}, {"expense_ids": [spent]})
    steps = [
        [([three], []), ([one, two], []), ([], [spent])],
        [([], [spent]), ([one], []), ([two], []), ([three], [])],
        [([one, two, three], []), ([], []), ([], [spent])],
        [([], []), ([two], [])],
        [([three, one], [])],
    ]
    for step in steps:
        lines = [
            {"time_entry_ids": worked[::-1], "expense_ids": spent} | ({} if worked or spent else DESIGN)
            for worked, spent in step
        ]
        lines[0]["id"] = draft["lines"][0]["id"]
        made = world.api.patch(path_of(draft), {"lines": lines}).data["lines"]
        shown = [(sorted(worked), spent) for worked, spent in step]
        assert [(line["time_entry_ids"], line["expense_ids"]) for line in made] == shown
        on = {entry_id: line["id"] for line in made for entry_id in line["time_entry_ids"]}
        rows = world.api.get("/time-entries").data
        assert {row["id"]: row["invoice_line_id"] for row in rows} == dict.fromkeys((one, two, three)) | on
        assert {row["invoice_id"] for row in rows if row["id"] in on} == {draft["id"]}
        free = sum(minutes for entry_id, minutes in ((one, 60), (two, 30), (three, 15)) if entry_id not in on)
        assert sums(world) == [free, f"{free}.00", "0.00"]
    assert made[0]["id"] == draft["lines"][0]["id"]
    assert billing_statuses(world, [spent], "/expenses") == ["unbilled"]
    assert world.api.post(f"{path_of(draft)}/lines", {"time_entry_ids": [one]}).code == "already_billed"


@each_database
def test_deleting_a_line_or_a_draft_frees_exactly_its_work(world):
    one, two, three, other = hours(world, 60, 30, 15, 10)
    spent, slice_ = expense(world, "5"), milestone(world)
    draft = invoice_of(world, {"time_entry_ids": [one]}, {"time_entry_ids": [two, three]}, {"expense_ids": [spent]})
    line = world.api.post(f"{path_of(draft)}/lines", {"milestone_id": slice_})
    assert line.json["meta"]["invoice"]["subtotal"] == "410.00"  # 60 + 45 + 5 + 300
    kept = invoice_of(world, {"time_entry_ids": [other]})
    assert sums(world) == [0, "0.00", "0.00"]
    assert world.api.delete(f"{path_of(draft)}/lines/{draft['lines'][1]['id']}").status == 204
    assert billing_statuses(world, [one, two, three, other]) == ["billed", "unbilled", "unbilled", "billed"]
    assert sums(world) == [45, "45.00", "0.00"]
    assert world.api.get(path_of(draft)).data["subtotal"] == "365.00"
    refused = world.api.create("/invoices", client_id=world.a, lines=[{"milestone_id": slice_}])
    assert refused.code == "already_billed"
    assert world.api.delete(path_of(draft)).status == 204
    assert billing_statuses(world, [one, two, three, other]) == ["unbilled", "unbilled", "unbilled", "billed"]
    assert billing_statuses(world, [spent], "/expenses") == ["unbilled"]
    assert sums(world) == [105, "105.00", "0.00"]
    assert world.api.get(path_of(kept)).data == kept
    assert invoice_of(world, {"milestone_id": slice_})["subtotal"] == "300.00"


def test_the_client_of_a_draft_is_fixed_while_work_is_attached(world):
    draft = invoice_of(world, {"expense_ids": [expense(world, "5")]}, DESIGN)
    answer = world.api.patch(path_of(draft), {"client_id": world.b})
    assert "while work is attached" in answer.errors["client_id"][0]
    assert world.api.get(path_of(draft)).data == draft
    world.api.delete(f"{path_of(draft)}/lines/{draft['lines'][0]['id']}")
    assert world.api.patch(path_of(draft), {"client_id": world.b}).data["client_id"] == world.b


@each_database
@pytest.mark.parametrize("way", WAYS)
def test_work_can_be_billed_again_when_its_invoice_is_void_or_credited_in_full(world, way):
    ids, spent, slice_ = hours(world, 60, 30), expense(world, "5"), milestone(world)
    lines = [{"time_entry_ids": ids}, {"expense_ids": [spent]}, {"milestone_id": slice_}]
    work, made = {"client_id": world.a, "lines": lines}, []
    for _ in range(3):
        made.append(world.api.post("/invoices", work | {"status": "sent"}).data)
        assert billing_statuses(world, ids) == ["billed", "billed"]
        assert sums(world) == [0, "0.00", "90.00"]
        refused = world.api.post("/invoices", work)
        assert (refused.code, len(refused.errors)) == ("already_billed", 4)
        release_work(world, made[-1], way)
        assert billing_statuses(world, ids) + billing_statuses(world, [spent], "/expenses") == ["unbilled"] * 3
        assert sums(world) == [90, "90.00", "0.00"]
    for invoice in made:
        assert world.api.get(path_of(invoice)).data["lines"] == invoice["lines"], "it still says what it billed"
    row = world.api.patch(f"/time-entries/{ids[0]}", {"duration_minutes": 61}).data
    assert [row[name] for name in ("invoice_id", "invoice_line_id", "is_locked")] == [None, None, False]
    assert world.api.delete(f"/expenses/{spent}").status == 204


def test_a_partial_credit_of_a_line_frees_no_work(world):
    ids = hours(world, 60)
    invoice = invoice_of(world, {"time_entry_ids": ids}, DESIGN, status="sent")
    half = {"lines": [{"invoice_line_id": invoice["lines"][0]["id"], "quantity": "0.5"}]}
    design = {"lines": [{"invoice_line_id": invoice["lines"][1]["id"]}]}
    for part in ({"amount": "1"}, half, design):
        assert world.api.post(f"{path_of(invoice)}/credit-notes", part).status == 201
        assert billing_statuses(world, ids) == ["billed"]
    world.api.patch(path_of(invoice), {"status": "paid"})
    assert billing_statuses(world, ids) == ["billed"]
    assert world.api.post(f"{path_of(invoice)}/credit-notes", {}).status == 201
    assert billing_statuses(world, ids) == ["unbilled"]


def test_a_credit_of_the_whole_quantity_of_a_line_frees_its_work_only(world):
    mine, others, spent, slice_ = hours(world, 60), hours(world, 30), expense(world, "5"), milestone(world)
    lines = [{"time_entry_ids": mine}, {"time_entry_ids": others}, {"expense_ids": [spent]}, {"milestone_id": slice_}]
    invoice = invoice_of(world, *lines, DESIGN, status="sent")
    first, _, third, fourth, _ = (line["id"] for line in invoice["lines"])

    def credit(*parts):
        return world.api.post(f"{path_of(invoice)}/credit-notes", {"lines": [*parts]} if parts else {})

    def state():
        milestones = world.api.get(world.ids["milestones of a"]).data
        billed = [row["invoice_id"] for row in milestones if row["id"] == slice_]
        return billing_statuses(world, mine + others) + billing_statuses(world, [spent], "/expenses") + billed

    assert state() == ["billed", "billed", "billed", invoice["id"]]
    assert credit({"invoice_line_id": first, "quantity": "0.5"}).status == 201
    assert state() == ["billed", "billed", "billed", invoice["id"]]
    assert sums(world)[0] == 0
    assert credit({"invoice_line_id": first}, {"invoice_line_id": fourth}).status == 201
    assert state() == ["unbilled", "billed", "billed", None]
    assert sums(world)[0] == 60
    again = invoice_of(world, {"time_entry_ids": mine}, {"milestone_id": slice_}, status="sent")
    before = world.api.get(world.ids["milestones of a"]).data
    assert credit({"invoice_line_id": third}).status == 201
    assert credit().status == 201, "the rest of all"
    assert state() == ["billed", "unbilled", "unbilled", again["id"]], "what another invoice bills by now stays there"
    assert world.api.get(world.ids["milestones of a"]).data == before
    assert world.api.get(path_of(invoice)).data["lines"] == invoice["lines"], "it still says what it billed"


CHANGES = {
    "/time-entries": {
        "client_id": "b", "project_id": "a1", "task_id": "task", "ticket_id": "ticket", "user_id": "member",
        "date": "2026-01-01", "duration_minutes": 61, "billable": False, "started_at": "2026-03-02T09:00:00Z",
        "ended_at": "2026-03-02T09:00:00Z", "hourly_rate": "61", "is_settled": True,
    },
    "/expenses": {
        "amount": "6", "client_id": "b", "project_id": "a1", "user_id": "member", "date": "2026-01-01",
        "category": "travel", "vendor": "Bahn", "description": "Train", "currency": "USD", "tax_rate": "7",
        "amount_includes_tax": False, "billable": False, "markup_percent": "1", "reimbursable": True,
        "receipt_url": "https://agency.example/1", "external_id": "e-1", "is_settled": True,
    },
}  # fmt: skip
"""For each kind of work, another value for each field that is locked once it is billed."""


@pytest.mark.parametrize("status", ["draft", "sent"])
@pytest.mark.parametrize(
    ("collection", "model", "free"),
    [("/time-entries", TimeEntry, {"description": "New", "external_id": "t-1"}), ("/expenses", Expense, {})],
)
def test_billed_work_is_fixed(world, collection, model, free, status):
    api, changes = world.api, CHANGES[collection]
    assert changes.keys() | free == writable_fields(model).keys()
    names = world.ids | {"member": api.member_id}
    names |= {name: api.make(f"/{name}s", client_id=world.a)["id"] for name in ("task", "ticket")}
    billed, unbilled = (f"{collection}/{api.make(collection, client_id=world.a)['id']}" for _ in range(2))
    member = "time_entry_ids" if model is TimeEntry else "expense_ids"
    invoice = invoice_of(world, {member: [int(billed.split("/")[2])]}, status=status)
    before = api.get(billed).data
    assert before["billing_status"] == "billed"
    assert before.get("is_locked", True) is True
    for name, value in changes.items():
        change = {name: names.get(value, value)}
        answer = api.patch(billed, change | free)
        assert (answer.code, set(answer.errors)) == ("locked", {name}), name
        assert api.patch(unbilled, change).status == 200
        api.patch(unbilled, {name: before[name]})
    assert api.delete(billed).code == "locked"
    assert api.get(billed).data == before
    again = api.put(billed, before | free).data
    assert again == before | free | {"updated_at": again["updated_at"]}
    assert api.get(path_of(invoice)).data["lines"] == invoice["lines"]
    assert api.delete(unbilled).status == 204


def test_a_billed_milestone_keeps_its_amount_and_is_not_deleted(world):
    api, milestone_id = world.api, milestone(world)
    path = f"{world.ids['milestones of a']}/{milestone_id}"
    draft = invoice_of(world, {"milestone_id": milestone_id})
    for status in ("draft", "sent"):
        api.patch(path_of(draft), {"status": status})
        assert (api.patch(path, {"amount": "299"}).code, api.delete(path).code) == ("locked", "in_use")
        assert api.patch(path, {"amount": "300.00", "name": f"Is {status}", "status": "completed"}).status == 200
    assert api.get(path_of(draft)).data["lines"][0]["description"] == "Launch"
    release_work(world, draft, "void")
    assert api.patch(path, {"amount": "299"}).data["amount"] == "299.00"
    assert invoice_of(world, {"milestone_id": milestone_id})["subtotal"] == "299.00"
    assert api.delete(path).code == "in_use"


@each_database
def test_sums_of_a_project_have_only_amounts_in_its_currency_and_all_minutes(world):
    api = world.api
    euros = hours(world, 60)
    api.patch(f"/clients/{world.a}", {"currency": "USD"})
    dollars = hours(world, 30)
    assert sums(world) == [90, "30.00", "0.00"]
    first = invoice_of(world, {"time_entry_ids": euros}, currency="EUR")
    for currency, unbilled in (("EUR", "0.00"), ("USD", "30.00")):
        api.patch(f"/clients/{world.a}", {"currency": currency})
        assert sums(world) == [30, unbilled, "0.00"]
    second = invoice_of(world, {"time_entry_ids": dollars})
    assert sums(world) == [0, "0.00", "0.00"]
    for invoice, invoiced in ((first, "0.00"), (second, "30.00")):
        api.patch(path_of(invoice), {"status": "sent"})
        assert sums(world) == [0, "0.00", invoiced]
    release_work(world, first, "void")
    assert sums(world) == [60, "0.00", "30.00"]
    release_work(world, second, "void")
    assert sums(world) == [90, "30.00", "0.00"]


@each_database
@pytest.mark.parametrize("column", ["time_entry_id", "expense_id", "milestone_id"])
def test_the_database_itself_refuses_a_second_live_line_for_the_same_work(world, column):
    work = (
        {"time_entry_ids": hours(world, 60)},
        {"expense_ids": [expense(world, "5")]},
        {"milestone_id": milestone(world)},
    )
    lines = invoice_of(world, *work, DESIGN)["lines"]
    columns = f"account_id, created_at, updated_at, {column}"
    copied = (
        f"INSERT INTO allocations ({columns}, invoice_line_id, is_live) "
        f"SELECT {columns}, {lines[3]['id']}, %s FROM allocations WHERE {column} IS NOT NULL AND is_live = 1"
    )
    with pytest.raises(world.api.store.engine.conflict, match=column):
        world.api.sql(copied % 1)
    for _ in range(2):
        world.api.sql(copied % "NULL")


def test_billed_work_that_loses_its_client_is_refused_as_locked_only(world):
    (entry,), spent = hours(world, 30), expense(world, "5")
    invoice_of(world, {"time_entry_ids": [entry]}, {"expense_ids": [spent]})
    internal = world.api.make("/projects", client_id=None)["id"]
    for path in (f"/time-entries/{entry}", f"/expenses/{spent}"):
        refused = world.api.patch(path, {"project_id": internal})
        assert (refused.code, set(refused.errors)) == ("locked", {"project_id"})


def test_a_milestone_shows_its_invoice(world):
    milestone_id, api = milestone(world), world.api
    path = world.ids["milestones of a"]

    def shown():
        (row,) = (row for row in api.get(path).data if row["id"] == milestone_id)
        return row["invoice_id"]

    assert shown() is None
    draft = invoice_of(world, {"milestone_id": milestone_id})
    assert shown() == draft["id"]
    assert api.patch(f"{path}/{milestone_id}", {"name": "New", "invoice_id": None}).data["invoice_id"] == draft["id"]
    message = f"Cannot be changed any more: this milestone is on invoice {draft['id']}."
    assert api.patch(f"{path}/{milestone_id}", {"amount": "1"}).errors == {"amount": [message]}
    message = f"This milestone is on invoice {draft['id']} and cannot be deleted. "
    message += "Remove its line first, while the invoice is a draft."
    assert api.delete(f"{path}/{milestone_id}").errors == {"invoices": [message]}
    api.patch(path_of(draft), {"lines": [DESIGN]})
    assert shown() is None
    first = invoice_of(world, {"milestone_id": milestone_id})
    api.patch(path_of(first), {"status": "sent"})
    release_work(world, first, "void")
    assert shown() is None
    second = invoice_of(world, {"milestone_id": milestone_id})
    assert shown() == second["id"]
    api.patch(path_of(second), {"status": "sent"})
    release_work(world, second, "one credit note")
    assert shown() is None


def test_a_milestone_of_a_template_cannot_be_billed(world):
    template = world.api.make(
        "/projects", client_id=world.a, billing_type="fixed_fee", fixed_fee="900", is_template=True
    )["id"]
    milestone_id = world.api.make(f"/projects/{template}/milestones", amount="300")["id"]
    refused = world.api.post("/invoices", {"client_id": world.a, "lines": [{"milestone_id": milestone_id}]})
    assert list(refused.errors) == ["lines.0.milestone_id"]
    assert "not billable" in refused.errors["lines.0.milestone_id"][0]


def test_a_clients_currency_is_fixed_while_one_of_its_milestones_is_on_a_draft(world):
    milestone_id = milestone(world)
    draft = invoice_of(world, {"milestone_id": milestone_id})
    refused = world.api.patch(f"/clients/{world.a}", {"currency": "USD"})
    assert f"milestone {milestone_id}" in refused.errors["currency"][0]
    assert world.api.delete(path_of(draft)).status == 204
    assert world.api.patch(f"/clients/{world.a}", {"currency": "USD"}).data["currency"] == "USD"


def test_a_missing_milestone_and_another_client_cause_one_error_each(world):
    missing = world.api.post(
        "/invoices", {"client_id": world.a, "lines": [{"milestone_id": 999, "project_id": world.a1}]}
    )
    assert list(missing.errors) == ["lines.0.milestone_id"]
    (entry,) = hours(world, 30)
    draft = invoice_of(world, {"time_entry_ids": [entry]}, DESIGN | {"project_id": world.a1})
    assert list(world.api.patch(path_of(draft), {"client_id": world.b}).errors) == ["client_id"]


def test_lines_of_a_quote_and_of_the_request_are_at_most_two_hundred(world):
    quote = world.api.make("/quotes", client_id=world.a, lines=[DESIGN] * 150, status="accepted")["id"]
    refused = world.api.post("/invoices", {"quote_id": quote, "lines": [DESIGN] * 51})
    assert "at most 200" in refused.errors["lines"][0]
    placed = world.api.post("/invoices", {"quote_id": quote, "lines": [{"time_entry_ids": [999]}]})
    assert list(placed.errors) == ["lines.0.time_entry_ids.0"]
    assert len(world.api.post("/invoices", {"quote_id": quote, "lines": [DESIGN] * 50}).data["lines"]) == 200
