"""Forms of records: what they offer follows from the types of the API, and saving calls the API's own functions."""

import re
from decimal import Decimal
from typing import Any

import pytest

from retainer.console.editing.hints import HINTS, HINTS_OF_NEW
from tests.console.test_ended_sessions import lose_session, sign_in_again
from tests.console.visitor import Fields, Visitor, WebPage
from tests.databases import slow_on_each
from tests.factories import RECIPES, ApiClient
from tests.length import TURN, sampled

KINDS = [
    *("clients", "external-contacts", "tags", "projects", "milestones", "tasks", "time-entries", "expenses"),
    *("quotes", "invoices", "tickets", "sites"),
]
LINE = {"lines.0.description": "Design", "lines.0.quantity": "2", "lines.0.unit_price": "500"}
CHANGES: dict[str, tuple[str, str]] = {
    "external-contacts": ("last_name", "Lenz-Roth"),
    "tasks": ("title", "Check the texts"),
    "time-entries": ("description", "Workshop"),
    "expenses": ("vendor", "Bahn"),
    "quotes": ("title", "Relaunch"),
    "invoices": ("subject", "November"),
    "tickets": ("subject", "The shop is down"),
}
"""The field of each kind that a test changes, and its new value; of others the name."""


def collection(kind: str) -> str:
    return "/projects/{project_id}/milestones" if kind == "milestones" else f"/{kind}"


def listed(api: ApiClient, kind: str) -> list[dict[str, Any]]:
    """The records of a kind, newest first."""
    path = f"/projects/{api.usual('/projects')}/milestones" if kind == "milestones" else f"/{kind}"
    found: list[dict[str, Any]] = api.get(path).data
    return sorted(found, key=lambda record: -record["id"])


def typed(api: ApiClient, kind: str) -> dict[str, Any]:
    """What a person types into the form of a new record: the recipe of the API, as texts."""
    body = RECIPES[collection(kind)](api)
    if "duration_minutes" in body:
        body["duration_minutes"] = "1:30"
    return body


def new_path(api: ApiClient, kind: str) -> str:
    query = f"?project_id={api.usual('/projects')}" if kind == "milestones" else ""
    return f"/console/records/{kind}/new{query}"


def create(api: ApiClient, visitor: Visitor, kind: str, **fields: Any) -> WebPage:
    return visitor.submit(new_path(api, kind), action=f"/console/records/{kind}/new", **typed(api, kind) | fields)


def made(api: ApiClient, kind: str) -> dict[str, Any]:
    if kind == "milestones":
        record: dict[str, Any] = api.post(f"/projects/{api.usual('/projects')}/milestones", {"name": "Launch"}).data
        return record
    return api.make(f"/{kind}")


def path_of(kind: str, record: dict[str, Any], action: str) -> str:
    return f"/console/records/{kind}/{record['id']}/{action}"


def audited(api: ApiClient) -> list[str]:
    rows = api.sql("SELECT action FROM audit_entries WHERE account_id = $1 ORDER BY id", api.account_id)
    return [action for (action,) in rows if action.startswith("record")]


@slow_on_each
@pytest.mark.parametrize("kind", KINDS)
def test_a_record_of_each_kind_is_created_changed_and_deleted_in_the_console(api, visitor, kind):
    page = create(api, visitor, kind)
    assert (page.status, " created." in page.text) == (200, True), page.text
    record = listed(api, kind)[0]
    expected = RECIPES[collection(kind)](api)
    assert {name: record[name] for name in expected} | {"url": 0, "amount": 0, "client_id": 0, "name": 0} == (
        expected | {"url": 0, "amount": 0, "client_id": 0, "name": 0}
    )

    name, value = CHANGES.get(kind, ("name", "Seeblick"))
    page = visitor.submit(path_of(kind, record, "edit"), **{name: value})
    assert (page.status, " saved." in page.text) == (200, True), page.text
    changed = next(each for each in listed(api, kind) if each["id"] == record["id"])
    assert changed[name] == value
    left = {"updated_at", name, "title", "name"}
    assert {each: changed[each] for each in changed if each not in left} == {
        each: record[each] for each in record if each not in left
    }

    page = visitor.submit(path_of(kind, record, "delete"))
    assert (page.status, " deleted." in page.text) == (200, True), page.text
    assert record["id"] not in [each["id"] for each in listed(api, kind)]
    assert audited(api) == ["record created", "record changed", "record deleted"]


@pytest.mark.parametrize("kind", sampled(KINDS, 4, TURN))
def test_a_form_that_was_not_changed_saves_nothing(api, visitor, kind):
    record = made(api, kind)
    assert 'notice warn" role="status">Nothing was changed.' in visitor.submit(path_of(kind, record, "edit")).html
    assert audited(api) == []


@pytest.mark.parametrize("action", ["edit", "delete"])
@pytest.mark.parametrize("kind", sampled(KINDS, 4, TURN))
def test_a_form_of_a_changed_record_is_refused_with_what_was_typed(api, visitor, kind, action):
    record = made(api, kind)
    if "tag_ids" in record:
        api.patch(f"/{kind}/{record['id']}", {"tag_ids": [api.make("/tags")["id"] for _ in range(2)]})
    path, (name, value) = path_of(kind, record, action), CHANGES.get(kind, ("name", "Seeblick"))
    form = [pair for pair in Fields(visitor.get(path).html).forms[path] if pair[0] != name]
    visitor.submit(path_of(kind, record, "edit"), **{name: "Talblick"})
    before = listed(api, kind)
    assert visitor.post(path, [*form, (name, value), ("step", "preview")]).status == 412, "a button of other forms"
    page = visitor.post(path, [*form, (name, value)])
    assert page.status == 412
    assert "has changed since you opened this page" in page.text
    if action == "edit":
        assert value in page.html
        assert page.text.count("Stored now: ") == page.text.count("Stored now: Talblick") == 1
    assert listed(api, kind) == before


def test_errors_of_the_api_stand_at_their_fields_and_the_summary_leads_to_them(api, visitor):
    page = create(api, visitor, "invoices", **{**LINE, "lines.0.quantity": "x", "due_date": "2020-01-01"})
    assert (page.status, page.title) == (422, "Error: New invoice · Retainer"), "what is read aloud first"
    assert '<a href="#lines.0.quantity">Line 1, quantity</a>: Must be a number' in page.html
    assert 'id="lines.0.quantity-error"' in page.html
    assert 'aria-describedby="lines.0.quantity-error"' in page.html
    assert listed(api, "invoices") == []
    page = create(api, visitor, "external-contacts", last_name="")
    assert "Give at least one of “First name”, “Last name” and email." in page.text
    assert '<a href="#first_name">First name</a>' in page.html
    api.make("/clients", number="C-7")
    assert "Is already taken by another client." in create(api, visitor, "clients", number="C-7").text
    page = create(api, visitor, "clients", early_payment_discount_percent="2")
    assert "Is needed with “Early-payment discount”: the days after an invoice" in page.text
    page = create(api, visitor, "projects", client_id="", billing_type="retainer")
    assert "Needs a client, unless it is not billable; this is retainer." in page.text
    page = create(api, visitor, "projects", fixed_fee="500")
    assert "Is only for the “Billing type” “Fixed fee”, not for time and materials. Leave it blank." in page.text


@pytest.mark.parametrize("kind", KINDS)
def test_errors_of_an_empty_form_name_no_field_as_programs_do(api, visitor, kind):
    page = visitor.submit(new_path(api, kind), action=f"/console/records/{kind}/new")
    assert page.status == 422
    found = [error.text for error in page.all("p", **{"class": "error"})]
    assert found
    assert [each for each in found if re.search(r"[a-z]_[a-z]", each)] == []


@pytest.mark.parametrize("day", ["2026-02-30", "2026-13-45", "0000-01-01"])
def test_a_form_says_which_typed_day_does_not_exist(visitor, day):
    refused = visitor.post("/console/records/tasks/new", {"title": "Check", "due_date": day})
    assert (refused.status, refused.error_of("due_date")) == (
        422,
        f"Must be a date like 2026-03-31; {day} does not exist.",
    )


def test_hints_say_what_a_blank_field_means_in_words_of_the_page(visitor):
    text = visitor.get("/console/records/sites/new").text
    assert "Blank for the agency's own sites." in text
    assert "If blank: the host of “URL”" in text
    for kind in KINDS:
        page = visitor.get(f"/console/records/{kind}/new") if kind != "milestones" else None
        assert page is None or not re.search(r"\bnull\b|\bomitted\b|[a-z]_[a-z]", page.text, re.IGNORECASE), page.text


def test_each_hint_stands_in_a_form(api, visitor):
    paths = [f"{kind}/new" for kind in KINDS if kind != "milestones"]
    paths += [f"milestones/new?project_id={api.usual('/projects')}", f"clients/{api.usual('/clients')}/edit"]
    shown = " ".join(visitor.get(f"/console/records/{path}").text for path in paths)
    hints = {hint for table in (*HINTS.values(), *HINTS_OF_NEW.values()) for hint in table.values()}
    assert [hint for hint in hints if hint not in shown] == []


def test_a_form_says_of_texts_from_the_settings_that_they_are_those_of_new_documents(api, visitor):
    assert "If blank: the introduction in the settings" in visitor.get("/console/records/invoices/new").text
    draft = api.make("/invoices", notes="Thank you.")
    path = f"/console/records/invoices/{draft['id']}/edit"
    assert "in the settings" not in visitor.get(path).text
    visitor.submit(path, notes="")
    assert api.get(f"/invoices/{draft['id']}").data["notes"] is None


def test_a_refused_form_keeps_what_was_typed_and_lines_come_and_go_without_script(api, visitor):
    client, action = api.make("/clients"), "/console/records/quotes/new"
    page = visitor.submit(f"{action}?client_id={client['id']}", action=action, step="add", title="Relaunch", **LINE)
    form = dict(Fields(page.html).forms[action])
    assert (form["title"], form["client_id"]) == ("Relaunch", str(client["id"]))
    assert (form["lines.0.description"], form["lines.1.description"]) == ("Design", "")
    form |= {"lines.1.description": "Hosting", "lines.1.unit_price": "20", "lines.1.quantity": "12"}
    page = visitor.post(action, form | {"step": "remove 0"})
    form = dict(Fields(page.html).forms[action])
    assert (form["lines.0.description"], "lines.1.description" in form) == ("Hosting", False)
    page = visitor.follow(visitor.post(action, form))
    quote = api.get(f"/quotes/{listed(api, 'quotes')[0]['id']}").data
    assert [(line["description"], line["quantity"], line["amount"]) for line in quote["lines"]] == [
        ("Hosting", "12", "240.00")
    ]


def test_changing_a_line_keeps_the_other_lines_and_the_work_that_they_bill(api, visitor):
    api.make("/time-entries", hourly_rate="100")
    work = {"unbilled_work": {"time": {}}, "lines": [{"description": "Design", "unit_price": "500"}]}
    invoice = api.make("/invoices", **work)
    ids = [line["id"] for line in invoice["lines"]]
    path = path_of("invoices", invoice, "edit")
    place = next(place for place, line in enumerate(invoice["lines"]) if not line["time_entry_ids"])
    visitor.submit(path, **{f"lines.{place}.unit_price": "750.50", "step": ""})
    after = api.get(f"/invoices/{invoice['id']}").data
    assert [line["id"] for line in after["lines"]] == ids
    assert after["lines"][place]["unit_price"] == "750.50"
    assert [line["time_entry_ids"] for line in after["lines"]] == [line["time_entry_ids"] for line in invoice["lines"]]
    page = visitor.submit(path, **{f"lines.{1 - place}.unit_price": "9"})
    assert page.status == 422
    assert f"#lines.{1 - place}.unit_price" in page.html


NUMBERS = [
    ("de", "1.000,00", "1000.00"),
    ("de", "110,50", "110.50"),
    ("de", "1.000", "1000"),
    ("de", "1,000.00", "1000.00"),
    ("en", "1,000.00", "1000.00"),
    ("en", "1,000", "1000"),
    ("en", "110,50", "110.50"),
    ("en", "1 000 000.5", "1000000.5"),
    ("en", "1'000.50", "1000.50"),
    ("en", "12.345,60", "12345.60"),
    ("de", ",5", "0.50"),
    ("en", ".75", "0.75"),
    *(("de", "0.500", "0.50"), ("en", "0,500", "0.50"), ("de", "0,250", "0.25"), ("en", "0.250", "0.25")),
]


@pytest.mark.parametrize(("language", "text", "amount"), NUMBERS)
def test_an_amount_is_read_as_people_of_the_account_write_it(api, visitor, language, text, amount):
    visitor.submit("/console/settings", document_language=language)
    assert create(api, visitor, "clients", hourly_rate=text).status == 200
    assert Decimal(listed(api, "clients")[0]["hourly_rate"]) == Decimal(amount)


THREE_DECIMALS = [
    *(("en", "12.345", "12.345"), ("de", "12,345", "12.345"), ("en", "1.000", "1.000"), ("de", "1,5", "1.500")),
    *(("en", "12,345", "12345.000"), ("de", "12.345", "12345.000"), ("en", "1,012.345", "1012.345")),
    ("de", "999,999", "999.999"),
]


@pytest.mark.parametrize("chosen", ["account", "form", "client", "project"])
@pytest.mark.parametrize(("language", "text", "amount"), THREE_DECIMALS)
def test_three_digits_after_the_mark_are_an_amount_of_a_currency_with_three(
    api, visitor, language, text, amount, chosen
):
    api.set_account({"document_language": language} | ({"currency": "KWD"} if chosen == "account" else {}))
    client = api.make("/clients", currency="KWD") if chosen in {"client", "project"} else api.make("/clients")
    own = {"client_id": client["id"]}
    if chosen == "project":
        own = {"project_id": api.make("/projects", client_id=client["id"])["id"]}
    currency = {"currency": "KWD"} if chosen == "form" else {}
    day = {"date": "2026-03-10", "amount": text}
    page = visitor.follow(visitor.post("/console/records/expenses/new", own | currency | day))
    assert page.status == 200, page.text
    assert listed(api, "expenses")[0]["amount"] == amount


@pytest.mark.parametrize(
    ("language", "text", "question"),
    [
        ("en", "1.000", "Write 1000 or 1.00."),
        ("de", "1,000", "Write 1000 or 1,00."),
        ("en", "1,00,0.5", "Has a separator in the wrong place. Write it like 1,000.50."),
        ("de", "1.0.00", "Has a separator in the wrong place. Write it like 1.000,50."),
        ("de", "50,00 USD", "Must be a number, like 1.000,50."),
        ("en", "1e3", "Must be a number, like 1,000.50."),
    ],
)
def test_an_amount_that_cannot_be_read_for_sure_is_asked_back(api, visitor, language, text, question):
    visitor.submit("/console/settings", document_language=language)
    page = create(api, visitor, "clients", hourly_rate=text)
    assert (page.status, question in page.text) == (422, True), page.text
    assert f'value="{text}"' in page.html
    assert listed(api, "clients") == []


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        *((text, 90) for text in ("1:30", "1.5", "1,5", "90m", "1h 30m", "1h30", "1:30 h", "1.5h", "1,5 H")),
        *(("2", 120), ("2h", 120), (":45", 45), (".5", 30)),
    ],
)
def test_time_is_typed_as_hours_or_minutes(api, visitor, text, minutes):
    assert create(api, visitor, "time-entries", duration_minutes=text).status == 200
    record = listed(api, "time-entries")[0]
    assert record["duration_minutes"] == minutes
    path = path_of("time-entries", record, "edit")
    assert dict(Fields(visitor.get(path).html).forms[path])["duration_minutes"] == f"{minutes // 60}:{minutes % 60:02}"


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("90", "Must be from 0:01 to 24:00 hours; this is 90:00. For minutes, write 90m."),
        ("1.33", "Is not a whole number of minutes. Write it like 1:20 or 80m."),
        ("soon", "Must be a time like 1:30, 1.5 or 90m."),
        ("h", "Must be a time like 1:30, 1.5 or 90m."),
    ],
)
def test_a_time_that_cannot_be_meant_is_asked_back(api, visitor, text, advice):
    page = create(api, visitor, "time-entries", duration_minutes=text)
    assert (page.status, advice in page.text) == (422, True), page.text


def test_an_instant_is_typed_in_the_time_zone_of_the_account(api, visitor):
    visitor.submit("/console/settings", timezone="Europe/Berlin")
    create(api, visitor, "tickets", due_at="2026-07-01T09:30")
    record = listed(api, "tickets")[0]
    assert record["due_at"] == "2026-07-01T07:30:00.000000Z"
    assert 'value="2026-07-01T09:30"' in visitor.get(path_of("tickets", record, "edit")).html


def test_what_follows_from_a_record_is_filled_in_on_the_forms_that_its_page_leads_to(api, visitor):
    project = api.make("/projects", name="Webshop")
    page = visitor.get(f"/console/records/projects/{project['id']}")
    links = [link for link in page.links if "/new?" in link]
    assert len(links) >= 7
    for link in links:
        action = link.partition("?")[0]
        form = dict(Fields(visitor.get(link.replace("&amp;", "&")).html).forms[action])
        assert form["project_id"] == str(project["id"]), link
    created = visitor.submit(links[1], action=links[1].partition("?")[0], title="Write the texts", name="Launch")
    assert " created." in created.text


def test_only_what_the_api_still_changes_is_offered_on_an_issued_invoice(api, visitor):
    invoice = api.make("/invoices", status="sent", lines=[{"description": "Design", "unit_price": "500"}])
    for client, name in ((invoice["client_id"], "Own"), (api.make("/clients")["id"], "Other")):
        api.make("/external-contacts", client_id=client, first_name=name, last_name="Contact")
    page = visitor.get(f"/console/records/invoices/{invoice['id']}")
    assert "/delete" not in page.html
    path = path_of("invoices", invoice, "edit")
    page = visitor.get(path)
    assert "its client, date, lines and terms are fixed. To correct it, credit it." in page.text
    assert ("Own Contact" in page.text, "Other Contact" in page.text) == (True, False), "the client is fixed"
    assert not {"lines.0.description", "client_id", "terms"} & dict(Fields(page.html).forms[path]).keys()
    assert ["open" in each for each in page.all("form", "record-form")[0].all("details")] == [False]
    assert " saved." in visitor.submit(path, purchase_order="PO 7").text
    assert api.get(f"/invoices/{invoice['id']}").data["purchase_order"] == "PO 7"
    assert "It cannot be deleted." in visitor.get(path_of("invoices", invoice, "delete")).text
    visitor.post(path_of("invoices", invoice, "delete"), {"state": '"x"'})
    assert api.patch(f"/invoices/{invoice['id']}", {"status": "void"}).status == 200
    assert "This invoice is void, so only a few fields can change." in visitor.get(path).text


def test_a_record_in_use_is_not_deleted_and_the_page_says_what_blocks(api, visitor):
    client = api.make("/clients")
    api.make("/projects", client_id=client["id"])
    api.make("/sites", client_id=client["id"])
    path = path_of("clients", client, "delete")
    shown = visitor.get(path)
    assert "Move or delete 1 project and 1 site first. Or archive the client." in shown.text
    assert path not in Fields(shown.html).forms
    edit = path_of("clients", client, "edit")
    sent = visitor.post(path, {"state": dict(Fields(visitor.get(edit).html).forms[edit])["state"]})
    assert (sent.status, "Move or delete 1 project first." in sent.text) == (422, True)


def test_an_accepted_quote_becomes_an_invoice_and_a_project(api, visitor):
    quote = api.make("/quotes", title="Relaunch", lines=[{"description": "Design", "unit_price": "500"}])
    path = f"/console/records/quotes/{quote['id']}"
    assert "/new?quote_id" not in visitor.get(path).html
    api.patch(f"/quotes/{quote['id']}", {"status": "accepted"})
    assert f'action="{path}/invoice"' in visitor.get(path).html
    preview = visitor.get(f"{path}/invoice").text
    assert ("Design" in preview, "500.00 EUR" in preview) == (True, True), "it shows what the invoice will say"
    assert "Draft created." in visitor.submit(f"{path}/invoice", with_project="no").text
    link = next(link for link in visitor.get(path).links if link.startswith("/console/records/projects/new?quote_id"))
    shown = visitor.get(link)
    form = dict(Fields(shown.html).forms[link.partition("?")[0]])
    assert (form["client_id"], form["name"]) == (str(quote["client_id"]), "Relaunch")
    assert form["billing_type"] == "fixed_fee", "a project from a quote has its subtotal as its fee"
    page = visitor.submit(link, action=link.partition("?")[0])
    assert (page.status, " created." in page.text) == (200, True), page.text
    after = api.get(f"/quotes/{quote['id']}").data
    assert api.get(f"/invoices/{after['invoice_id']}").data["subtotal"] == "500.00"
    made = api.get(f"/projects/{after['converted_project_id']}").data
    assert (made["name"], made["fixed_fee"]) == ("Relaunch", "500.00")
    ended = visitor.get(path)
    assert ("/new?quote_id" in ended.html, f"{path}/invoice" in ended.html) == (False, False)
    assert f"has already become invoice {after['invoice_id']}" in visitor.get(f"{path}/invoice").text


def test_a_quote_is_billed_with_its_project_unless_it_has_one(api, visitor):
    lines = [{"description": "Design", "unit_price": "500"}]
    accepted = [api.make("/quotes", title=title, lines=lines, status="accepted") for title in ("Relaunch", "Shop")]
    project = api.make("/projects", client_id=accepted[1]["client_id"])
    other = api.make("/quotes", project_id=project["id"], lines=lines, status="accepted")
    for quote in (accepted[0], other):
        path = f"/console/records/quotes/{quote['id']}"
        assert visitor.submit(path, action=f"{path}/invoice").status == 200
    quotes = [api.get(f"/quotes/{quote['id']}").data for quote in (accepted[0], other)]
    assert [quote["converted_project_id"] is None for quote in quotes] == [False, True]
    made = api.get(f"/projects/{quotes[0]['converted_project_id']}").data
    assert (made["name"], made["fixed_fee"], made["billing_type"]) == ("Relaunch", "500.00", "fixed_fee")
    assert [api.get(f"/invoices/{quote['invoice_id']}").data["subtotal"] for quote in quotes] == ["500.00", "500.00"]


def test_the_form_of_a_client_has_its_address_in_order_and_the_next_number(visitor):
    page = visitor.get("/console/records/clients/new")
    names = [field["name"] for field in page.all("input select textarea") if field["id"]]
    address = ["address_line1", "address_line2", "postal_code", "city", "country"]
    assert names[(at := names.index("address_line1")) : at + len(address)] == address
    assert "Blank: C-0001." in page.text


def test_without_script_a_form_offers_what_belongs_to_its_client(api, visitor):
    own, other = (api.make("/projects", client_id=api.make("/clients", name=name)["id"]) for name in ("Optik", "Shop"))
    path = "/console/records/invoices/new"
    shown = visitor.post(path, {"client_id": str(own["client_id"]), "step": "add"})
    for page, hidden in ((visitor.get(path), False), (shown, True)):
        options = {option["value"]: option for option in page.all("select", name="project_id")[0].all("option")}
        assert ["disabled" in options[str(project["id"])] for project in (own, other)] == [False, hidden]


def test_what_only_programs_can_change_has_no_form(api, visitor):
    quote = api.make("/quotes", lines=[{"description": "Design", "unit_price": "9"}], status="accepted")
    path = f"/console/records/quotes/{quote['id']}"
    assert f"{path}/edit" in visitor.get(path).links
    visitor.submit(path, action=f"{path}/invoice")
    assert f"{path}/edit" not in visitor.get(path).links


def test_work_on_a_draft_is_not_billed_yet(api, visitor):
    project = api.make("/projects", hourly_rate="100")
    entry = api.make("/time-entries", project_id=project["id"], client_id=project["client_id"])["id"]
    invoice = api.make("/invoices", client_id=project["client_id"], unbilled_work={"time": {}})["id"]
    pages = ("/console/records/time-entries", f"/console/records/time-entries/{entry}")
    assert ["On a draft" in visitor.get(path).text for path in pages] == [True, True]
    api.patch(f"/invoices/{invoice}", {"status": "sent"})
    assert [("On a draft" in text, "Billed" in text) for text in (visitor.get(path).text for path in pages)] == [
        (False, True),
        (False, True),
    ]


def test_a_quote_is_sent_as_it_is_created(api, visitor):
    client, path = api.make("/clients"), "/console/records/quotes/new"
    lines = {"lines.0.description": "Film", "lines.0.unit_price": "90"}
    page = visitor.submit(path, client_id=str(client["id"]), step="sent", **lines)
    (quote,) = listed(api, "quotes")
    assert (page.status, quote["status"], quote["subtotal"]) == (200, "sent", "90.00")
    refused = visitor.submit(path, client_id=str(client["id"]), step="sent")
    assert (refused.status, len(listed(api, "quotes"))) == (422, 1), "a quote without lines is not sent"


@pytest.mark.parametrize("kind", ["clients", "projects"])
def test_unbilled_work_is_previewed_and_becomes_a_draft(api, visitor, kind):
    project = api.make("/projects", hourly_rate="100")
    for minutes in (90, 30):
        api.make("/time-entries", project_id=project["id"], duration_minutes=minutes, client_id=project["client_id"])
    api.make("/expenses", client_id=project["client_id"], amount="50", project_id=project["id"])
    record = project["id"] if kind == "projects" else project["client_id"]
    path = f"/console/records/{kind}/{record}/bill"
    assert path in visitor.get(path.removesuffix("/bill")).links
    page = visitor.submit(path, step="preview")
    assert (page.status, "Total 250.00 EUR" in page.text) == (200, True), page.text
    assert listed(api, "invoices") == []
    assert visitor.submit(path, step="preview", work=["expenses"]).text.count("50.00 EUR") == 3
    page = visitor.submit(path, step="create", to="2020-01-01")
    assert (page.status, "This client has no unbilled work in EUR that matches." in page.text) == (422, True), page.text
    turned = visitor.submit(path, step="preview", **{"from": "2020-02-01", "to": "2020-01-01"})
    assert turned.error_of("to") == "Must not be before from, which is 1 Feb 2020."
    assert "Select what to bill." in visitor.post(path, {"step": "preview", "group_by": "task"}).text
    page = visitor.submit(path, step="create")
    assert "Draft created." in page.text
    assert [invoice["total"] for invoice in listed(api, "invoices")] == ["250.00"]


@pytest.mark.parametrize("kind", ["clients", "projects"])
def test_unbilled_work_in_another_currency_is_named_and_can_be_billed(api, visitor, kind):
    project = api.make("/projects")
    api.make("/expenses", project_id=project["id"], amount="100", currency="USD", billable=True)
    path = f"/console/records/{kind}/{project['id'] if kind == 'projects' else project['client_id']}/bill"
    page = visitor.get(path)  # in the only currency with work
    assert "Total 100.00 USD" in page.text
    api.make("/expenses", project_id=project["id"], amount="50", billable=True)
    page = visitor.get(path)
    assert "Total 50.00 EUR" in page.text
    assert "In other currencies: 100.00 USD. Choose the currency to bill that." in page.text
    page = visitor.submit(path, step="create", currency="USD")
    assert "Draft created." in page.text
    assert [(each["total"], each["currency"]) for each in listed(api, "invoices")] == [("100.00", "USD")]
    assert "Currency" not in visitor.get(path).text


def test_internal_projects_and_other_records_are_not_billed(api, visitor):
    page = f"/console/records/projects/{api.make('/projects', client_id=None)['id']}"
    assert f"{page}/bill" not in visitor.get(page).links
    for kind in ("projects", "tickets"):
        api.make(f"/{kind}", **({"client_id": None} if kind == "projects" else {}))
        assert visitor.get(f"/console/records/{kind}/1/bill").status == 404


@pytest.mark.parametrize("role", ["admin", "member"])
def test_a_record_is_found_by_its_name_where_a_list_would_be_too_long(api, person, monkeypatch, role):
    monkeypatch.setattr("retainer.console.names.MAX_CHOICES", 2)
    names = ("Café Zoë", "Zoë", "Zoë Closed", "Nordwind")
    client, other, closed, _ = (api.make("/clients", name=name, notes="oil")["id"] for name in names)
    api.patch(f"/clients/{closed}", {"status": "archived"})
    visitor = person(role)
    for text, found in (("cafe", client), ("zoë", other), (f"#{client}", client)):
        assert create(api, visitor, "tasks", client_id=text, title=text).status == 200
        assert api.get("/tasks", {"sort": "-id"}).data[0]["client_id"] == found, text
    refused = create(api, visitor, "tasks", client_id="zo", title="Texts").text
    assert f"Matches several. Write one of them: Café Zoë (#{client}), Zoë (#{other})." in refused
    assert "There is no client like that." in create(api, visitor, "tasks", client_id="Closed", title="Texts").text
    by_notes = create(api, visitor, "tasks", client_id="oil", title="Texts").text
    assert ("There is no client like that." in by_notes) == (role == "member"), "members do not read notes"


def test_a_form_comes_back_after_the_session_has_ended(api):
    visitor, asked = lose_session(api, "/console/records/quotes/new", title="Relaunch", **LINE)
    page = sign_in_again(visitor, asked)
    form = dict(Fields(page.html).forms["/console/records/quotes/new"])
    assert {name: form[name] for name in ("title", *LINE)} == {"title": "Relaunch"} | LINE
    assert api.get("/quotes").data == []


def test_the_audit_log_leads_to_the_records_that_were_created_and_changed(api, visitor):
    create(api, visitor, "tickets")
    path = f"/console/records/tickets/{listed(api, 'tickets')[0]['id']}"
    (link,) = [link for link in visitor.get(path).links if link.startswith("/console/audit?target=ticket")]
    page = visitor.get(link)
    assert "record created" in page.text
    assert path in page.links
    visitor.submit(f"{path}/delete")
    assert visitor.get(link).links.count(path) == 1


@pytest.mark.parametrize("path", ["credit-notes/new", "replies/new", "users/new", "clients/99/edit", "milestones/new"])
def test_what_the_api_does_not_create_or_change_has_no_form(visitor, path):
    assert visitor.get(f"/console/records/{path}").status == 404


@pytest.mark.parametrize(
    ("form", "kept", "own", "typed"),
    [
        ("settings", "city", "email", "new@north.example"),
        ("people/{user}/edit", "name", "email", "new@north.example"),
        ("keys/{key}/edit", "name", "scopes", "clients:read"),
        ("webhooks/{webhook}/edit", "description", "url", "https://new.example/"),
    ],
)
def test_no_form_undoes_what_another_admin_saved_since_it_was_opened(api, visitor, form, kept, own, typed):
    hook = api.make("/webhooks", description="Books")["id"]
    path = f"/console/{form}".format(user=api.member_id, key=api.key_id, webhook=hook)
    opened = [pair for pair in Fields(visitor.get(path).html).forms[path] if pair[0] != own]
    assert visitor.submit(path, **{kept: "Kiel"}).status == 200
    stale = visitor.post(path, [*opened, (own, typed)])
    assert (stale.status, "Nothing was done this time" in stale.text) == (412, True)
    assert dict(Fields(visitor.get(path).html).forms[path])[kept] == "Kiel"
    again = dict(Fields(stale.html).forms[path])
    assert (again[own], visitor.post(path, again).status) == (typed, 303)


def test_templates_are_offered_to_copy_and_nowhere_else(api, visitor):
    template = api.make("/projects", name="Plan", is_template=True)["id"]
    project = api.make("/projects", name="Shop")["id"]
    for path, field, offered in (
        *((f"/records/{kind}/new", "project_id", {project}) for kind in ("time-entries", "expenses", "quotes")),
        ("/records/projects/new", "template_id", {template}),
        (f"/records/tasks/new?project_id={template}", "project_id", {template, project}),
    ):
        (choice,) = visitor.get(f"/console{path}").all("select", name=field)
        assert {option["value"] for option in choice.all("option")} == {"", *map(str, offered)}, path
    (work,) = visitor.get("/console/week").all("select", name="work")
    assert [option["value"] for option in work.all("option")] == ["", f"project_id-{project}"]
    edited = visitor.get(f"/console/records/projects/{project}/edit")
    assert [edited.all("select input", name=each) for each in ("template_id", "is_template", "quote_id")] == [[]] * 3
    typed = visitor.post("/console/records/time-entries/new", {"project_id": "Plan", "duration_minutes": "1:00"})
    assert typed.error_of("project_id") == "There is no project like that."


def test_a_form_of_rare_fields_alone_shows_them(api, visitor):
    quote = api.make("/quotes", status="accepted", lines=[{"description": "Design", "unit_price": "500"}])
    api.make("/invoices", client_id=quote["client_id"], quote_id=quote["id"])
    (form,) = visitor.get(path_of("quotes", quote, "edit")).all("form", "record-form")
    assert ["open" in each for each in form.all("details")] == [True]


def local(start: str, end: str, **others: str) -> dict[str, str]:
    """Fields of a time entry in Berlin, where clocks go forward on 29 March and back on 25 October."""
    return {"started_at": start, "ended_at": end, "duration_minutes": "", **others}


@pytest.mark.parametrize(
    ("start", "end", "stored"),
    [
        ("2026-03-29T01:30", "2026-03-29T03:30", ("00:30", "01:30")),
        ("2026-10-25T02:30", "2026-10-25T02:10", ("00:30", "01:10")),
        ("2026-10-25T01:30", "2026-10-25T03:30", ("23:30", "02:30")),
    ],
)
def test_a_local_time_is_read_so_that_the_end_follows_the_start(api, visitor, start, end, stored):
    api.set_account({"timezone": "Europe/Berlin"})
    page = create(api, visitor, "time-entries", **local(start, end))
    assert page.status == 200, page.text
    record = listed(api, "time-entries")[0]
    assert (record["started_at"][11:16], record["ended_at"][11:16]) == stored


@pytest.mark.parametrize(
    ("fields", "field", "sentence"),
    [
        (
            local("2026-03-29T02:30", "2026-03-29T03:30"),
            "started_at",
            "does not exist on that day: clocks go from 02:00",
        ),
        (local("2026-03-29T01:30", "2026-03-29T02:15"), "ended_at", "clocks go from 02:00 to 03:00."),
        (
            local("2026-10-25T01:30", "2026-10-25T02:30"),
            "ended_at",
            "exists twice on that day: clocks go back from 03:00",
        ),
        (local("2026-10-25T02:30", "2026-10-25T04:00"), "started_at", "clocks go back from 03:00 to 02:00. Choose one"),
    ],
)
def test_a_local_time_that_does_not_exist_or_exists_twice_is_asked_back(api, visitor, fields, field, sentence):
    api.set_account({"timezone": "Europe/Berlin"})
    page = create(api, visitor, "time-entries", **fields)
    assert (page.status, sentence in page.error_of(field)) == (422, True), page.text
    assert listed(api, "time-entries") == []
    choices = page.all("select", name=f"{field}.occurrence")
    assert len(choices) == ("twice" in page.text)
    for occurrence, hour in (("first", "00"), ("second", "01")) if choices else ():
        assert create(api, visitor, "time-entries", **fields, **{f"{field}.occurrence": occurrence}).status == 200
        assert listed(api, "time-entries")[0][field][11:16] == f"{hour}:30"


@pytest.mark.parametrize("hour", ["00", "01"])
def test_a_second_occurrence_stays_and_can_change(api, visitor, hour):
    api.set_account({"timezone": "Europe/Berlin"})
    ticket = api.make("/tickets", due_at=f"2026-10-25T{hour}:30:15.123456Z")
    path = path_of("tickets", ticket, "edit")
    assert "Nothing was changed." in visitor.submit(path).text
    other = {"00": "second", "01": "first"}[hour]
    assert " saved." in visitor.submit(path, **{"due_at.occurrence": other}).text
    assert api.get(f"/tickets/{ticket['id']}").data["due_at"][11:16] == {"00": "01:30", "01": "00:30"}[hour]


def test_a_moment_of_a_site_that_exists_twice_is_asked_back(api, visitor):
    api.set_account({"timezone": "Europe/Berlin"})
    site = api.make("/sites", monitoring_enabled=True)
    path = path_of("sites", site, "maintenance")
    gone = visitor.submit(path, maintenance_until="2027-03-28T02:30")
    assert "clocks go from 02:00 to 03:00" in gone.error_of("maintenance_until")
    twice = visitor.submit(path, maintenance_until="2027-10-31T02:30")
    assert "exists twice on that day" in twice.error_of("maintenance_until")
    form = dict(Fields(twice.html).forms[path]) | {"maintenance_until.occurrence": "second"}
    assert "Maintenance saved." in visitor.follow(visitor.post(path, form)).text
    assert api.get(f"/sites/{site['id']}").data["maintenance_until"][:16] == "2027-10-31T01:30"


@pytest.mark.parametrize(
    ("typed", "stored"),
    [("98,00 €", "98.00"), ("€ 98", "98.00"), ("98 EUR", "98.00"), ("98,5eur", "98.50"), ("1.098 €", "1098.00")],
)
def test_an_amount_may_say_its_currency(api, visitor, typed, stored):
    visitor.submit("/console/settings", document_language="de")
    client = api.make("/clients", currency="EUR")
    line = {"lines.0.description": "Design", "lines.0.unit_price": typed, "lines.0.tax_rate": "19 %"}
    visitor.submit("/console/records/invoices/new", client_id=str(client["id"]), **line)
    (invoice,) = api.get("/invoices", {"include": "lines"}).data
    (line,) = api.get(f"/invoices/{invoice['id']}").data["lines"]
    assert (line["unit_price"], line["tax_rate"]) == (stored, "19")


def test_an_amount_in_another_currency_than_the_form_is_refused(api, visitor):
    client = api.make("/clients", currency="EUR")
    line = {"lines.0.description": "Design", "lines.0.unit_price": "98 $"}
    page = visitor.submit("/console/records/invoices/new", client_id=str(client["id"]), **line)
    assert page.error_of("lines.0.unit_price") == "Must be a number, like 1,000.50."


def test_errors_of_typing_and_of_rules_are_told_at_once(api, visitor):
    """A price that is no number, a discount beyond 100, a line without words, and a due date before the issue date."""
    client = api.make("/clients", currency="EUR")
    wrong = {
        "lines.0.unit_price": "much",
        "lines.1.unit_price": "10",
        "lines.1.description": "Hosting",
        "lines.1.discount_percent": "200",
        "issue_date": "2026-03-10",
        "due_date": "2026-03-01",
    }
    told = ("lines.0.unit_price", "lines.0.description", "lines.1.discount_percent", "due_date")
    page = visitor.submit("/console/records/invoices/new", client_id=str(client["id"]), **wrong)
    assert {name: bool(page.error_of(name)) for name in told} == dict.fromkeys(told, True)
    assert api.get("/invoices").data == []
    draft = api.make("/invoices", client_id=client["id"], lines=[{"description": "Design", "unit_price": "9"}])
    page = visitor.submit(f"/console/records/invoices/{draft['id']}/edit", **wrong)
    told = ("lines.0.unit_price", "lines.1.discount_percent", "due_date")
    assert {name: bool(page.error_of(name)) for name in told} == dict.fromkeys(told, True)


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("bergmann-optik.de", "https://bergmann-optik.de"),
        ("www.optik.de/team?x=1", "https://www.optik.de/team?x=1"),
        ("http://optik.de", "http://optik.de"),
    ],
)
def test_an_address_may_begin_with_its_host(api, visitor, typed, stored):
    visitor.submit("/console/records/clients/new", name="Optik", website=typed)
    assert [client["website"] for client in api.get("/clients").data] == [stored]


@pytest.mark.parametrize("typed", ["javascript:alert(1)", "ana@optik.de", "optik", "mailto:a@b.de"])
def test_what_is_no_address_gets_no_https(api, visitor, typed):
    page = visitor.submit("/console/records/clients/new", name="Optik", website=typed)
    assert page.error_of("website")


def test_a_blank_choice_says_what_it_stands_for(api, visitor):
    visitor.submit("/console/settings", document_language="de")
    said = {
        ("clients", "currency"): "EUR (account)",
        ("clients", "language"): "German (account)",
        ("projects", "billing_type"): "By time for a client",
        ("time-entries", "billable"): "As the task or project",
        ("invoices", "currency"): "As the client",
    }
    for (kind, name), text in said.items():
        (select,) = visitor.get(f"/console/records/{kind}/new").all("select", name=name)
        assert select.all("option")[0].text == text
    kinds = ("clients", "external-contacts", "projects", "tasks", "time-entries", "quotes", "invoices", "expenses")
    for kind in kinds:
        selects = visitor.get(f"/console/records/{kind}/new").all("select")
        assert all(each.text != "Default" for select in selects for each in select.all("option"))


def test_hints_of_projects_and_clients_say_what_to_type(visitor):
    page = visitor.get("/console/records/projects/new").text
    for hint in ("A code of your own, like RELAUNCH.", "Net. Today warns at 80%.", "Hours. Today warns at 80%."):
        assert hint in page
    assert "Blank: C-0001." in visitor.get("/console/records/clients/new").text


@pytest.mark.parametrize("kind", ["invoices", "quotes"])
def test_a_copy_has_lines_and_texts_but_no_number_date_order_or_work(api, visitor, kind):
    client = api.make("/clients", currency="EUR")["id"]
    line = {
        "description": "Design",
        "quantity": "2.5",
        "unit": "days",
        "unit_price": "33.3333",
        "discount_percent": "5",
    }
    of_invoice = {"purchase_order": "PO-7", "subject": "Relaunch", "issue_date": "2026-01-05"}
    own = of_invoice if kind == "invoices" else {"title": "Relaunch"}
    texts = {"notes": "Thanks", "terms": None, "external_id": "x-1", **own}
    lines = [line, line | {"description": "Texts", "is_optional": True}] if kind == "quotes" else [line]
    record = api.make(f"/{kind}", client_id=client, lines=lines, status="sent", **texts)
    if kind == "invoices":
        entry = api.make("/time-entries", client_id=client, duration_minutes=90, hourly_rate="100")
        draft = api.make("/invoices", client_id=client, lines=[line, {"time_entry_ids": [entry["id"]]}])
        record = api.patch(f"/invoices/{draft['id']}", {"status": "sent", **texts, "external_id": "x-2"}).data
    page = visitor.submit(path_of(kind, record, "copy"))
    assert "Draft created." in page.text
    copied = api.get(f"/{kind}/{max(each['id'] for each in api.get(f'/{kind}').data)}").data
    same = ("client_id", "currency", "notes", "terms", *({"subject", "title"} & own.keys()), "total")
    assert [copied[name] for name in same] == [record[name] for name in same]
    parts = ("description", "quantity", "unit", "unit_price", "discount_percent", "tax_rate", "amount", "is_optional")
    assert [[each.get(name) for name in parts] for each in copied["lines"]] == [
        [each.get(name) for name in parts] for each in record["lines"]
    ]
    assert (copied["status"], copied["external_id"], copied.get("purchase_order")) == ("draft", None, None)
    assert kind == "quotes" or copied["issue_date"] is None
    assert copied["number"] != record["number"]
    assert not any(each.get("time_entry_ids") for each in copied["lines"])


def test_a_document_is_previewed_with_its_sums_before_it_is_saved(api, visitor):
    client = api.make("/clients", name="Nordwind", tax_rate="19")["id"]
    lines = {"lines.0.description": "Design", "lines.0.quantity": "2.5", "lines.0.unit_price": "100"}
    path = "/console/records/quotes/new"
    shown = [each for each in ("quotes", "tasks") if "Preview" in visitor.get(f"/console/records/{each}/new").text]
    assert shown == ["quotes"]
    page = visitor.submit(path, client_id=str(client), **lines, step="preview")
    assert (page.status, "250.00 EUR" in page.text, "297.50 EUR" in page.text) == (200, True, True)
    assert 'value="2.5"' in page.html
    assert api.get("/quotes").data == []
    refused = visitor.submit(path, client_id=str(client), **lines | {"lines.0.quantity": "many"}, step="preview")
    assert (refused.status, "Must be a number" in refused.text) == (422, True)
    visitor.submit(path, client_id=str(client), **lines)
    (quote,) = api.get("/quotes").data
    edit = f"/console/records/quotes/{quote['id']}/edit"
    page = visitor.submit(edit, **{"lines.0.quantity": "3"}, step="preview")
    assert ("357.00 EUR" in page.text, api.get("/quotes").data[0]["total"]) == (True, "297.50")
    assert "297.50 EUR" in visitor.submit(edit, step="preview").text
    assert "Nothing was changed." in visitor.submit(edit).text


def test_a_blank_field_is_asked_for_in_words(api, visitor):
    path, line = "/console/records/invoices/new", {"lines.0.quantity": "2", "lines.0.description": "", "step": ""}
    page = visitor.post(path, {**line, "client_id": "", "lines.0.unit_price": ""})
    assert page.error_of("client_id") == "Choose a client."
    assert page.error_of("lines.0.unit_price") == "Enter a unit price, unless the line bills work."
    assert visitor.post("/console/records/clients/new", {"name": " "}).error_of("name") == "Enter a name."
    assert visitor.post("/console/records/expenses/new", {"amount": ""}).error_of("amount") == "Enter an amount."
    assert api.post("/clients").errors == {"name": ["Is required."]}
