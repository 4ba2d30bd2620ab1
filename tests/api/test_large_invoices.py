"""Large invoices: statements over sets of work, limits, and no item billed twice."""

import itertools
from types import SimpleNamespace

import pytest
from tests.api.test_unbilled_work import copies

from retainer.billing.invoices.types import MAX_WORK


@pytest.fixture
def world(api):
    """A client with two projects, an hour on one and an expense for the other."""
    client = api.make("/clients", hourly_rate="60")["id"]
    shop, blog = (api.make("/projects", client_id=client, name=name)["id"] for name in ("Shop", "Blog"))
    hour = {"client_id": client, "duration_minutes": 60}
    entry = api.make("/time-entries", **hour, project_id=shop, date="2026-03-02")["id"]
    later = api.make("/time-entries", **hour, project_id=blog, date="2026-03-03")["id"]
    spent = api.make("/expenses", client_id=client, project_id=blog, amount="7", date="2026-03-02")["id"]
    return SimpleNamespace(api=api, client=client, blog=blog, entry=entry, later=later, spent=spent)


def bill(world, work, **members):
    return world.api.create("/invoices", client_id=world.client, unbilled_work=work, **members)


def test_too_much_work_for_one_invoice_is_refused_with_its_count_and_how_to_split_it(world):
    copies(world, "time_entries", world.entry, MAX_WORK - 2)
    refused = bill(world, {"time": {}, "expenses": {}})
    assert refused.code == "validation_failed"
    (message,) = refused.errors["unbilled_work"]
    for part in (f"Matches {MAX_WORK + 1} ", f"takes {MAX_WORK}.", "from and to", "project_ids"):
        assert part in message
    assert world.api.get("/invoices").data == []
    assert len(bill(world, {"time": {"from": "2026-03-03"}, "expenses": {}}).data["lines"]) == 2
    assert bill(world, {"time": {"project_ids": [world.blog]}}).code == "nothing_to_bill"


def test_work_of_lines_and_work_already_on_the_invoice_count(world):
    copies(world, "time_entries", world.entry, MAX_WORK - 1)
    draft = bill(world, {"time": {"from": "2026-03-03"}}).data
    path = f"/invoices/{draft['id']}"
    refused = world.api.patch(path, {"unbilled_work": {"time": {}}})
    assert "besides 1 that lines name" in refused.errors["unbilled_work"][0]
    assert world.api.get(path).data == draft


def test_lines_with_too_much_work_are_refused_before_it_is_read(world):
    ids = [list(range(start, start + 1000)) for start in range(1, MAX_WORK + 1, 1000)]
    lines = [{"time_entry_ids": some} for some in ids]
    refused = world.api.create("/invoices", client_id=world.client, lines=[*lines, {"expense_ids": [world.spent]}])
    assert f"Would bill {MAX_WORK + 1} items" in refused.errors["lines"][0]


def test_the_operations_of_an_atomic_batch_bill_together_what_one_invoice_takes(world):
    copies(world, "time_entries", world.entry, MAX_WORK // 2)
    copies(world, "time_entries", world.later, MAX_WORK // 2)
    shop, blog = (
        {"client_id": world.client, "unbilled_work": {"time": {"from": day, "to": day}}}
        for day in ("2026-03-02", "2026-03-03")
    )
    operations = [{"method": "POST", "path": "/invoices", "body": body} for body in (shop, blog)]
    refused = world.api.post("/batch", {"operations": operations, "atomic": True})
    assert (refused.code, refused.json["operation"]) == ("validation_failed", 1)
    half = MAX_WORK // 2
    (message,) = refused.errors["unbilled_work"]
    assert message.startswith(
        f"Matches {half + 1} pieces of work; the batch may bill {half - 1} more. Bill them in parts"
    )
    assert world.api.get("/invoices").data == []
    apart = world.api.post("/batch", {"operations": operations})
    assert [result["status"] for result in apart.data["results"]] == [201, 201], "each has a transaction of its own"
    drafts = [f"/invoices/{result['body']['data']['id']}" for result in apart.data["results"]]
    changes = [{"method": "PATCH", "path": path, "body": {"notes": "Thank you"}} for path in drafts]
    refused = world.api.post("/batch", {"operations": changes, "atomic": True})
    assert refused.errors["lines"][0].startswith(f"Would bill {half + 1} items; the batch may bill {half - 1} more.")
    assert statuses_of(world, changes[:1]) == [200]


def statuses_of(world, operations):
    """The statuses of the operations of an atomic batch that is performed."""
    performed = world.api.post("/batch", {"operations": operations, "atomic": True})
    return [result["status"] for result in performed.data["results"]]


@pytest.fixture
def statements(api, monkeypatch):
    """Return a function that counts the statements since its last call."""
    engine, ran = api.store.engine, []
    run = engine.run
    monkeypatch.setattr(engine, "run", lambda *args: (ran.append(args[1]), run(*args))[1])

    def count():
        found = len(ran)
        ran.clear()
        return found

    return count


def test_each_step_of_an_invoice_runs_as_many_statements_for_much_work_as_for_little(world, statements):
    counts = []
    for size in (1, 1, 700):  # the first brings what is there only once, like the series of numbers
        copies(world, "time_entries", world.entry, size)
        copies(world, "expenses", world.spent, size)
        counts.append([])
        for ends in ("deleted", "void", "credited"):
            statements()
            invoice = bill(world, {"time": {}, "expenses": {}}).data
            counts[-1].append(statements())
            path = f"/invoices/{invoice['id']}"
            if ends == "deleted":
                steps = [("DELETE", path, None)]
            else:
                change = ("PATCH", path, {"status": "void"}) if ends == "void" else ("POST", f"{path}/credit-notes", {})
                steps = [("PATCH", path, {"status": "sent"}), change]
            for step in steps:
                assert world.api.call(*step).status < 300
                counts[-1].append(statements())
    assert counts[1] == counts[2]
    assert max(itertools.chain(*counts)) < 60


@pytest.mark.parametrize("path", ["/quotes", "/invoices"])
def test_the_projects_of_all_lines_are_read_in_one_statement(world, statements, path):
    line, counts = {"description": "Design", "unit_price": "100"}, []
    projects = [world.api.make("/projects", client_id=world.client)["id"] for _ in range(3)]
    for named in ([None] * 3, [None] * 3, projects):  # the first creates the series of numbers
        lines = [line | {"project_id": project} for project in named]
        statements()
        world.api.make(path, client_id=world.client, lines=lines)
        counts.append(statements())
    assert counts[2] == counts[1] + 1


@pytest.mark.parametrize("as_draft", [True, False])
def test_the_database_refuses_work_on_a_line_to_which_its_row_does_not_refer(world, as_draft):
    other = world.api.make("/invoices", client_id=world.client, lines=[{"time_entry_ids": [world.entry]}])
    world.api.sql("UPDATE time_entries SET invoice_line_id = NULL, invoice_id = NULL")
    if as_draft:
        refused = bill(world, {"time": {}})
    else:
        refused = world.api.create("/invoices", client_id=world.client, lines=[{"time_entry_ids": [world.entry]}])
    assert refused.code == "already_billed"
    named = f"some of this work meanwhile: time entry {world.entry}"
    assert named in refused.errors["lines"][0]
    assert [invoice["id"] for invoice in world.api.get("/invoices").data] == [other["id"]]
