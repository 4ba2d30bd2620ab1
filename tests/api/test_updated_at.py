"""`updated_at` changes if, and only if, a field of the record itself has changed."""

import pytest
import time_machine

LATER = "2030-01-01T00:00:00Z"
LINE = {"description": "Design", "unit_price": "100"}
TAGGED = ("/clients", "/external-contacts", "/projects", "/tasks", "/tickets", "/sites")


def moved(api, path, change):
    """Whether a later change moves the updated_at of what is at a path."""
    before = api.get(path).data["updated_at"]
    with time_machine.travel(LATER, tick=False):
        answer = change()
    assert answer.status in {200, 201, 204}, answer
    after = api.get(path).data["updated_at"]
    assert after in {before, "2030-01-01T00:00:00.000000Z"}
    return after != before


@pytest.mark.parametrize(
    "collection", ["/clients", "/external-contacts", "/projects", "/tasks", "/time-entries", "/expenses", "/quotes",
                   "/invoices", "/tickets", "/sites"]
)  # fmt: skip
def test_a_change_that_changes_nothing_does_not_move_it(api, collection):
    record = api.make(collection)
    path = f"{collection}/{record['id']}"
    whole = api.get(path)
    for sent in ({}, whole.data):
        assert not moved(api, path, lambda sent=sent: api.patch(path, sent))
        assert not moved(api, path, lambda sent=sent: api.put(path, sent))
    assert api.get(path).headers["etag"] == whole.headers["etag"]
    assert moved(api, path, lambda: api.patch(path, {"external_id": "new"}))


@pytest.mark.parametrize("collection", TAGGED)
def test_tags_are_members_of_a_record_and_deleting_one_changes_whatever_carried_it(api, collection):
    tag, other = api.make("/tags")["id"], api.make("/tags")["id"]
    path, bare = (f"{collection}/{api.make(collection)['id']}" for _ in range(2))
    assert moved(api, path, lambda: api.patch(path, {"tag_ids": [tag]}))
    assert api.get(path).data["tag_ids"] == [tag]
    tagged = f"{collection}/{api.make(collection, tag_ids=[tag, other])['id']}"
    before = api.get(bare).data["updated_at"]
    assert moved(api, tagged, lambda: api.delete(f"/tags/{tag}"))
    assert api.get(tagged).data["tag_ids"] == [other]
    assert api.get(path).data["tag_ids"] == []
    assert api.get(bare).data["updated_at"] == before
    since = api.get(collection, {"updated_since": LATER}).data
    assert path.rpartition("/")[2] in {str(row["id"]) for row in since} | {path.rpartition("/")[2]}
    assert int(tagged.rpartition("/")[2]) in {row["id"] for row in since}


def test_a_quote_changes_when_it_becomes_an_invoice_or_is_one_no_more(api):
    quote = api.make("/quotes", lines=[LINE], status="accepted")["id"]
    path = f"/quotes/{quote}"
    made = []
    for release in ("delete", "void"):
        assert moved(api, path, lambda: made.append(api.post("/invoices", {"quote_id": quote})) or made[-1])
        invoice = f"/invoices/{made[-1].data['id']}"
        assert api.get(path).data["invoice_id"] == made[-1].data["id"]
        if release == "void":
            api.patch(invoice, {"status": "sent"})
        free = {
            "delete": lambda at=invoice: api.delete(at),
            "void": lambda at=invoice: api.patch(at, {"status": "void"}),
        }
        with time_machine.travel("2031-01-01T00:00:00Z", tick=False):
            assert free[release]().status in {200, 204}
        quoted = api.get(path).data
        assert (quoted["invoice_id"], quoted["updated_at"]) == (None, "2031-01-01T00:00:00.000000Z")


@pytest.mark.parametrize("collection", ["/quotes", "/invoices"])
def test_a_document_changes_with_its_lines_even_when_its_total_does_not(api, collection):
    document = api.make(collection, lines=[LINE])
    path, line = f"{collection}/{document['id']}", document["lines"][0]
    assert moved(api, path, lambda: api.patch(path, {"lines": [line | {"description": "Build"}]}))
    free = {"description": "Thank you", "unit_price": "0"}
    other = f"{collection}/{api.make(collection, lines=[LINE])['id']}"
    assert moved(api, other, lambda: api.post(f"{other}/lines", free))


def test_a_site_changes_with_its_plugins(api):
    plugins = [{"slug": "woocommerce", "version": "9.1"}, {"slug": "akismet"}]
    path = f"/sites/{api.make('/sites', plugins=plugins)['id']}"
    assert moved(api, path, lambda: api.patch(path, {"plugins": []}))


def test_what_is_billed_changes_with_its_line_and_a_project_not_with_its_sums(api):
    client = api.make("/clients", hourly_rate="100")["id"]
    project = api.make("/projects", client_id=client, billing_type="fixed_fee", fixed_fee="500")["id"]
    entry = api.make("/time-entries", project_id=project, client_id=client)["id"]
    expense = api.make("/expenses", project_id=project, client_id=client)["id"]
    milestone = api.make(f"/projects/{project}/milestones", amount="500")["id"]
    before = api.get(f"/projects/{project}").data["updated_at"]
    lines = [{"time_entry_ids": [entry]}, {"expense_ids": [expense]}, {"milestone_id": milestone}]
    with time_machine.travel(LATER, tick=False):
        api.make("/invoices", client_id=client, lines=lines, status="sent")
    for path in (f"/time-entries/{entry}", f"/expenses/{expense}"):
        assert api.get(path).data["updated_at"] == "2030-01-01T00:00:00.000000Z"
    (row,) = api.get(f"/projects/{project}/milestones", {"updated_since": LATER}).data
    assert row["id"] == milestone
    after = api.get(f"/projects/{project}").data
    assert (after["updated_at"], after["invoiced_amount"]) == (before, "769.00")


def test_a_line_changes_with_the_work_that_it_bills(api):
    client = api.make("/clients", hourly_rate="100")["id"]
    one, other = (api.make("/time-entries", client_id=client)["id"] for _ in range(2))
    invoice = api.make(
        "/invoices", client_id=client, lines=[{"time_entry_ids": [one]}, {"time_entry_ids": [other]}, LINE]
    )
    lines = [line["id"] for line in invoice["lines"]]
    swapped = [{"id": lines[0], "time_entry_ids": [other]}, {"id": lines[1], "time_entry_ids": [one]}, {"id": lines[2]}]
    with time_machine.travel(LATER, tick=False):
        changed = api.patch(f"/invoices/{invoice['id']}", {"lines": swapped}).data
    assert [line["time_entry_ids"] for line in changed["lines"]] == [[other], [one], []]
    assert [line["updated_at"][:4] == "2030" for line in changed["lines"]] == [True, True, False]
