"""The pages of the console: what they show, to whom, and what they lead to."""

import re
from datetime import date, timedelta
from decimal import Decimal
from io import BytesIO

import pytest

from retainer.console.actions.offers import ACTIONS
from retainer.console.reports.declarations import REPORTS
from retainer.console.routes import CONSOLE_ROUTES
from retainer.exchange import uploads
from retainer.exchange.columns import ColumnMapping
from retainer.exchange.plans import FileImport
from retainer.exchange.uploads import Upload
from retainer.identity import audit, logos
from retainer.identity.actors import absent_user
from retainer.identity.keys import key_list
from retainer.identity.people import sessions, users
from retainer.identity.people.sessions import LINKS
from retainer.jobs import jobs
from retainer.jobs.kinds import Job
from retainer.schema.jobs import jobs as jobs_table
from retainer.traffic.request_log import LogFilter, list_requests
from tests.console.test_key_pages import made, recorded, value_of
from tests.console.visitor import PASSWORD, Visitor, admin_of
from tests.documents.test_logo_files import png
from tests.factories import ApiClient

RECORDS = ("clients", "projects", "invoices", "tickets", "tasks", "time-entries", "expenses", "quotes", "sites")


def fill(api: ApiClient) -> dict[str, str]:
    """Make a record of each kind, and requests of a key; return what stands in paths of pages."""
    ids = {kind: str(api.make(f"/{kind}")["id"]) for kind in (*RECORDS, "credit-notes")}
    webhook = api.make("/webhooks")["id"]
    api.post(f"/webhooks/{webhook}/test")
    api.patch("/external-contacts/external:none", {"notes": "an operation with a long name"})
    recorded(api)
    with api.operating() as tx:
        logos.set_logo(tx, png())
        position = list_requests(tx, LogFilter(), limit=1).requests[0].position
        session = sessions.list_sessions(tx)[0].id
        job = jobs.start(tx, "import_time", "Import time.csv", FileImport("csv", "time.csv", [], []), total=3)
        jobs.stop(tx, tx.get(jobs_table, job, Job))
    with api.store.begin(absent_user(api.store, api.admin_id), write=True) as tx:
        upload = uploads.store(
            tx, Upload("clients", "csv", "a.csv", "UTC", ColumnMapping()), jobs.pack(BytesIO(b"name"))
        )
    texts = {"key": api.key_id, "user": api.member_id, "session": session, "position": position, "job": job, "link": 1}
    texts["upload"] = upload
    texts |= {"kind": "clients", "record": ids["clients"]}
    texts["file"] = api.create("/files", record_id=int(ids["clients"])).data["id"]
    texts |= {"webhook": webhook, "report": "overview", "table": "overview-money"}
    return {name: str(text) for name, text in texts.items()} | {
        f"records/{kind}": number for kind, number in ids.items()
    }


PARTS = ("/search/results",)
"""The ends of paths that answer a part of a page."""
NO_PAGES = {"/sign-in", "/sign-in/code", "/password", "/jobs/{job}/file", "/billing-run/invoices"}
"""For those who are signed out, a file, and a page that needs the ids of its records."""
ACTION_PATHS = tuple(f"/{{record}}/{action.path}" for actions in ACTIONS.values() for action in actions)
PRINTED = ("records/invoices", "records/quotes")


def paths(texts: dict[str, str]) -> list[str]:
    """The paths of all pages for admins."""
    found = []
    for path, route in CONSOLE_ROUTES.items():
        if path == "/records/{kind}/{record}/{suffix}":
            found += [f"/{name}/{texts[name]}/pdf" for name in PRINTED]
        elif "/links" in path:
            found += [f"/{name}/{texts[name]}/links" for name in PRINTED if path.endswith("/links")]
        elif path.endswith(ACTION_PATHS):
            found.append(path.format(record=texts[path.rpartition("/{record}")[0].removeprefix("/")]))
        elif path.startswith("/records/{kind}") and "/files" not in path:
            ids = {f"records/{kind}": texts[f"records/{kind}"] for kind in RECORDS}
            found += [path.replace("/records/{kind}", f"/{name}").format(record=ids[name]) for name in ids]
        elif path == "/reports/{report}":
            found += [f"/reports/{name}" for name in REPORTS]
        elif route.show and path not in NO_PAGES:
            found.append(re.sub(r"\{(\w+)\}", lambda name: texts[name[1]], path))
    return [f"/console{path}" for path in found]


def test_every_page_exists_is_not_cached_and_has_no_broken_links(api, visitor):
    seen, asked = set(), paths(fill(api))
    assert len(asked) > 35
    while asked:
        path = asked.pop()
        seen.add(path)
        page = visitor.get(path)
        assert page.status == 200, path
        assert page.headers["cache-control"] == "no-store"
        if page.headers["content-type"].startswith("text/html"):
            assert "'unsafe-inline'" not in page.headers["content-security-policy"]
            assert not re.search(r"<script(?! src)|<style|\bstyle=|\bon\w+=", page.html), path
            if path.endswith(PARTS):
                continue
            assert page.title.endswith(" · Retainer")
            assert len(page.all("h1")) == 1, path
            assert not any(form.all("form") for form in page.all("form")), f"browsers drop a form in a form: {path}"
            asked += [link for link in set(page.links) - seen - set(asked) if "?" not in link]


def test_every_page_is_404_for_records_of_another_account(both):
    north, south = both
    admin_of(north)
    visitor, texts = admin_of(south), fill(north)
    checked = 0
    for path in paths(texts):
        if re.search(r"\d", path):
            page = visitor.get(path)
            assert (page.status, page.title) == (404, "Not found · Retainer"), path
            checked += 1
    for path, route in CONSOLE_ROUTES.items():
        if route.act is not None and "{" in path and not path.endswith(("/new", "/change")):  # they name no record
            filled = re.sub(r"\{(\w+)\}", lambda name: texts[name[1]], path)
            assert visitor.post(f"/console{filled}", {"confirmation": "Test", "name": "A"}).status == 404, path
            checked += 1
    assert checked > 20
    with north.operating() as tx:
        assert key_list.get_key(tx, north.key_id).status == "active"
        assert users.get_user(tx, north.member_id)["is_active"]


@pytest.mark.parametrize(
    "path", ["/nowhere", "/keys/0", "/keys/x", "/keys/9007199254740993", "/records/users/1", "/requests/x"]
)
def test_an_unknown_path_is_a_page_that_says_so(visitor, path):
    page = visitor.get(f"/console{path}")
    assert (page.status, page.title) == (404, "Not found · Retainer")


def test_a_server_error_is_a_page_with_the_request_id(visitor, monkeypatch):
    def fail(*_):
        raise RuntimeError("nobody should read this")

    monkeypatch.setattr(key_list, "list_keys", fail)
    page = visitor.call("GET", "/console/keys", may_fail=True)
    assert page.status == 500
    assert page.headers["x-request-id"] in page.text
    assert "nobody should read this" not in page.html


def test_an_outage_of_the_database_is_a_page_that_says_what_to_do(api, visitor):
    with api.databases.out_of_reach(api.app):
        page = visitor.call("GET", "/console/keys", may_fail=True)
    assert (page.status, page.headers["retry-after"]) == (503, "2")
    assert "Try again in a few seconds. If you sent a form, check first if it was processed." in page.text
    assert "Idempotency" not in page.text
    assert visitor.get("/console/keys").status == 200


def test_the_page_of_the_api_shows_keys_and_requests(api, visitor):
    for _ in range(3):
        api.get("/clients")
    api.get("/nowhere")
    recorded(api)
    text = visitor.get("/console/api").text
    assert "The API is on" in text
    assert "1 active key, 1 used in the last hour." in text
    assert "4 requests" in text
    assert "1 client error" in text
    assert "http://agency.example/api/public/v1" in text


def test_requests_are_filtered_and_shown_one_by_one(api, visitor):
    client = api.make("/clients")
    api.get("/clients/999999")
    recorded(api)
    log = visitor.get("/console/requests")
    assert "POST /clients" in log.text
    assert "/clients/999999" in log.text
    refused = visitor.get("/console/requests?status=4xx").text
    assert "/clients/999999" in refused
    assert "POST /clients" not in refused
    assert "No requests match." in visitor.get("/console/requests?method=DELETE").text
    assert "/clients/999999" not in visitor.get("/console/requests?method=POST").text
    assert "/clients/999999" in visitor.get("/console/requests?path=/clients/9").text
    assert visitor.get("/console/requests?key_id=x&status=odd&after=odd&span=odd").status == 422
    posted = next(link for link in visitor.get("/console/requests?method=POST").links if "/requests/" in link)
    request = visitor.get(posted)
    assert f"/clients/{client['id']}" in request.text
    assert "curl -X POST" in request.text
    assert api.key not in request.html


def test_the_log_has_more_than_one_page(api, visitor):
    for _ in range(51):
        api.get("/tags")
    recorded(api)
    first = visitor.get("/console/requests")
    (older,) = [link for link in first.links if "after=" in link]
    second = visitor.get(older)
    assert second.text.count("GET /tags") == 1
    assert "Older" not in second.text


def test_people_are_added_invited_changed_deactivated_and_activated(api, visitor):
    added = visitor.submit(
        "/console/people/new", name="Mia Member", email="mia@north.example", hourly_rate="90.00", by_mail="no"
    )
    assert added.text.startswith("Password link Send this link to this person only")
    taken = visitor.submit("/console/people/new", name="Mia", email="MIA@north.example")
    assert "Another user has this email." in taken.text
    invited = visitor.submit(
        "/console/people/new", name="Ada Admin", email="ada@north.example", role="admin", by_mail="no"
    )
    link = re.search(r"http://agency\.example(/console/password\?token=[\w-]+)", invited.html)[1]
    assert "token=" not in visitor.get("/console/people").html
    guest = Visitor(api.app)
    assert "Welcome, Ada Admin" in guest.get(link).text
    assert "Password set" in guest.submit(link, action="/console/password", password=PASSWORD, again=PASSWORD).text
    person = f"/console/people/{api.member_id}"
    changed = visitor.submit(f"{person}/edit", weekly_capacity_minutes="20", hourly_rate="", cost_rate="41.50")
    assert "saved." in changed.text
    with api.operating() as tx:
        user = users.get_user(tx, api.member_id)
    assert (user["weekly_capacity_minutes"], user["hourly_rate"]) == (1200, None)
    wrong = visitor.submit(f"{person}/edit", weekly_capacity_minutes="a lot")
    assert wrong.error_of("weekly_capacity_minutes")
    assert 'value="a lot"' in wrong.html
    key = value_of(made(visitor, user_id=str(api.member_id)))
    name = user["name"]
    assert f"Acting as {name}: 1 key." in visitor.get(f"{person}/deactivate").text
    assert visitor.submit(f"{person}/deactivate", confirmation="no").status == 422
    assert "deactivated. 1 key stopped working." in visitor.submit(f"{person}/deactivate", confirmation=name).text
    assert api.get("/me", key=key).code == "user_deactivated"
    assert "reactivated" in visitor.follow(visitor.post(f"{person}/activate")).text
    assert api.get("/me", key=key).status == 200


def test_errors_of_typing_and_of_rules_are_told_at_once_in_every_form(api, visitor):
    """Of each form, fields that cannot be read or are blank, and then one that only rules refuse."""
    api.set_user(api.member_id, {"cost_rate": Decimal("41.50")})
    lines = [{"description": "Design", "unit_price": "9"}]
    invoice = api.make("/invoices", status="sent", issue_date=api.today, lines=lines)
    person, document = f"/console/people/{api.member_id}", f"/console/records/invoices/{invoice['id']}"
    forms: dict[str, dict[str, str]] = {
        f"{person}/edit": {"weekly_capacity_minutes": "a lot", "cost_rate_from": "2026-03-01"},
        "/console/people/new": {"name": "", "target_percent": "all", "email": "ana@north.example"},
        "/console/keys/new": {"name": "", "expires_at": "2020-01-01"},
        "/console/webhooks/new": {"description": "", "url": "https://169.254.169.254/hooks"},
        f"{document}/payment": {"amount": "much", "paid_date": "2099-01-01"},
        f"{document}/credit": {"what": "", "issue_date": "2020-01-01"},
        "/console/settings": {"payment_terms_days": "soon", "early_payment_discount_days": "10"},
    }
    also = {"early_payment_discount_days": "early_payment_discount_percent"}
    for path, typed in forms.items():
        page = visitor.submit(path, **typed)
        told = [also.get(name, name) for name in typed]
        assert {name: bool(page.error_of(name)) for name in told} == dict.fromkeys(told, True), path


def test_the_list_of_people_shows_hours_cost_and_last_use(api, visitor):
    api.set_user(api.member_id, {"hourly_rate": Decimal(90), "cost_rate": Decimal("41.50")})
    client = api.make("/clients")["id"]
    day = date.fromisoformat(api.today) - timedelta(days=20)
    api.make("/time-entries", client_id=client, user_id=api.member_id, duration_minutes=480, date=f"{day}")
    row = next(row for row in visitor.get("/console/people").all("tr") if "Max Member" in row.text)
    cells = {cell["data-label"]: cell.text for cell in row.all("td")}
    assert cells["Hourly cost"] == "41.50"
    assert cells["Last active"] == "Never"
    assert re.fullmatch(r"[1-9][0-9.]*\.[0-9]%", cells["Utilisation, 30 days"])
    (since_then,) = visitor.get(f"/console/reports/utilisation?from={day}").all("table")[:1]
    assert cells["Utilisation, 30 days"] in since_then.text
    own = next(row for row in visitor.get("/console/people").all("tr") if "Ana Admin" in row.text)
    assert "just now" in own.text


def test_hours_a_week_are_typed_and_past_costs_change_only_if_that_is_chosen(api, visitor):
    person = f"/console/people/{api.member_id}/edit"
    for typed in ("38:30", "38.5"):
        assert "saved." in visitor.submit(person, weekly_capacity_minutes=typed).text
        with api.operating() as tx:
            assert users.get_user(tx, api.member_id)["weekly_capacity_minutes"] == 2310
        visitor.submit(person, weekly_capacity_minutes="40")
    visitor.submit(person, cost_rate="41.50")
    assert re.search("The beginning 41.50 .* New hourly cost ", visitor.get(person).text)
    refused = visitor.submit(person, cost_rate="45")
    assert "Enter the first day of the new cost, or choose it for past days, too." in refused.text
    for typed in ({"cost_rate_from": "2026-02-01"}, {"all_days": "yes"}):
        assert "Enter the new cost, too." in visitor.submit(person, **typed).text
    both = visitor.submit(person, cost_rate="45", cost_rate_from="2026-02-01", all_days="yes")
    assert "Leave this blank if the new cost is for past days, too." in both.text
    assert "The beginning 41.50" in visitor.get(person).text
    visitor.submit(person, cost_rate="45", cost_rate_from="2026-02-01")
    assert "The beginning 41.50 1 Feb 2026 45.00" in visitor.get(person).text
    visitor.submit(person, cost_rate="47", all_days="yes")
    assert "The beginning 47.00 1 Feb 2026 47.00" in visitor.get(person).text


def test_the_history_of_a_record_shows_what_was_done_in_the_console(api, visitor):
    client = api.make("/clients", name="Optik")
    page = f"/console/records/clients/{client['id']}"
    assert "Record changed by" not in visitor.get(page).text
    visitor.submit(f"{page}/edit", city="Leipzig")
    assert "Record changed by Ana Admin just now" in visitor.get(page).text


def test_the_audit_is_in_the_words_of_the_console(api, visitor):
    person = f"/console/people/{api.member_id}/edit"
    visitor.submit(person, weekly_capacity_minutes="38:30", target_percent="80", hourly_rate="1100", role="manager")
    made(visitor, name="Old", expires="2030-01-31")
    key_id = api.sql("SELECT max(id) FROM api_keys")[0][0]
    visitor.submit(f"/console/keys/{key_id}/rotate")
    visitor.submit("/console/settings", payment_terms_days="1", country="DE", is_small_business="yes")
    client = api.make("/clients", name="Optik")["id"]
    line = {"lines.0.description": "Logo", "lines.0.quantity": "2.5", "lines.0.unit_price": "98"}
    visitor.submit("/console/records/quotes/new", client_id=client, currency="CHF", **line)
    api.make("/expenses", client_id=client, billable=True)
    visitor.submit(f"/console/records/clients/{client}/bill")
    shown = visitor.get("/console/audit").text
    assert "Hours per week 40:00 h 38:30 h" in shown
    assert "Billable target 75% 80%" in shown
    assert "Hourly rate none 1,100.00 EUR" in shown
    assert "Role Member Manager" in shown
    assert "Person Ana Admin" in shown
    assert "Replaced by none Old" in shown
    assert "Payment terms 30 days 1 day" in shown
    assert "Country none Germany" in shown
    assert "Small business No Yes" in shown
    assert "Logo · Quantity 2.5 · Unit price 98" in shown
    assert "T00:00" not in shown


@pytest.mark.parametrize("name", ["2026-01-01Tasting", "2026-13-45T00:00:00Z", "9999-12-31T23:59:59Z", "2026-01-01T10"])
def test_the_audit_log_shows_a_name_that_begins_like_an_instant(visitor, name):
    visitor.post("/console/records/clients/new", {"name": name})
    assert name in visitor.get("/console/audit").text


def test_admins_cannot_end_their_own_access(api, visitor):
    person = f"/console/people/{api.admin_id}"
    assert "/deactivate" not in visitor.get(person).html
    refused = visitor.post(f"{person}/deactivate", {"confirmation": "Ana Admin"})
    assert (refused.status, "You can't deactivate yourself." in refused.text) == (422, True)
    visitor.submit(f"{person}/edit", role="member")
    assert visitor.get("/console/people").status == 200, "the form does not read the role"


def test_a_link_for_a_new_password_is_shown_once(api, visitor):
    path = f"/console/people/{api.admin_id}/link"
    made_link = visitor.submit(path, by_mail="no")
    token = re.search(r"token=([\w-]+)", made_link.html)[1]
    assert LINKS.find(api.store, token)[0].user_id == api.admin_id
    assert token not in visitor.get(path).html
    api.set_user(api.member_id, {"is_active": False})
    of_member = f"/console/people/{api.member_id}/link"
    assert "is deactivated. Activate the user first." in visitor.post(of_member).text


def test_the_audit_log_shows_the_admin_the_action_and_the_address(api, visitor):
    visitor.submit("/console/switch", confirmation="switch off")
    page = visitor.get("/console/audit?action=API+switched+off")
    assert "Ana Admin" in page.text
    assert "from 203.0.113.7" in page.text
    assert "signed in" not in page.text.replace("Action Any", "").split("Apply")[1]
    assert "No actions match." in visitor.get("/console/audit?until=2020-01-01").text
    assert visitor.get("/console/audit?cursor=odd&since=odd&user_id=odd").status == 422
    with api.operating() as tx:
        for _ in range(audit.PAGE + 1):
            audit.note(tx, "account changed", audit.Target("account", 1, "North"), before={"a": 1}, after={"a": 2})
    (older,) = [link for link in visitor.get("/console/audit").links if "cursor=" in link]
    assert "signed in" in visitor.get(older).text


def test_sessions_are_listed_and_ended(api, visitor):
    other = Visitor(api.app, "198.51.100.9")
    other.sign_in("ana@north.example")
    page = visitor.get("/console/sessions")
    assert "Firefox on Linux" in page.text
    assert "198.51.100.9" in page.text
    rows = [row for row in page.all("tr") if row.all("form")]
    assert len(rows) == 2
    own, other_end = (
        row.all("form")[0]["action"] for row in sorted(rows, key=lambda row: "this session" not in row.text)
    )
    visitor.post(other_end)
    assert other.get("/console").status == 303
    assert visitor.post(own).location == "/console/sign-in"


def test_search_finds_records_by_name_and_number_and_requests_by_id(api, visitor):
    client = api.make("/clients", name="Überall Optik")
    page = visitor.get("/console/search?q=%C3%BCberall")
    assert f"/console/records/clients/{client['id']}" in page.links
    assert "No results for" in visitor.get("/console/search?q=nowhere").text
    for text, path in {
        "ana admin": f"/people/{api.admin_id}",
        "%C3%81na": f"/people/{api.admin_id}",
        api.key[-4:]: f"/keys/{api.key_id}",
        "shop": f"/records/sites/{api.make('/sites', name='Shop', client_id=client['id'])['id']}",
        "relaunch": f"/records/quotes/{api.make('/quotes', title='Relaunch')['id']}",
        "lenz": f"/records/external-contacts/{api.make('/external-contacts')['id']}",
    }.items():
        for page in (visitor.get(f"/console/search?q={text}"), visitor.get(f"/console/search/results?q={text}")):
            assert f"/console{path}" in page.links, text
    assert "Shop Überall Optik · " in visitor.get("/console/search?q=shop").text, "a result names its client"
    lines = [{"description": "Design", "unit_price": "100", "tax_rate": "0"}]
    sent = {"client_id": client["id"], "status": "sent", "issue_date": "2026-03-01", "due_date": "2026-03-15"}
    api.make("/invoices", **sent, subject="Rebranding", lines=lines)
    assert "100.00 EUR · due 15 Mar 2026" in visitor.get("/console/search?q=rebranding").text
    part = visitor.get("/console/search/results?q=lenz").html
    assert "<html" not in part
    assert "View all 1 result for “lenz”" in part
    assert "No results for “nowhere”" in visitor.get("/console/search/results?q=nowhere").html
    assert visitor.get(f"/console/search?q={'x' * 300}").status == 200
    answer = api.get("/clients")
    recorded(api)
    found = visitor.get(f"/console/search?q={answer.headers['x-request-id']}")
    assert "/console/requests/" in found.location
    typed = visitor.get(f"/console/search/results?q={answer.headers['x-request-id']}")
    assert any(link.startswith("/console/requests/") for link in typed.links)


def test_a_record_shows_its_relations_and_the_request_that_wrote_it(api, visitor):
    tags = [api.make("/tags", name=name)["id"] for name in ("Retail", "Care plan")]
    client = api.make(
        "/clients", name="Bergmann Optik", notes="First line\nsecond line", tag_ids=tags, vat_number="DE1"
    )
    project = api.make("/projects", client_id=client["id"], name="Website")
    answer = api.patch(f"/clients/{client['id']}", {"city": "Leipzig"})
    recorded(api)
    page = visitor.get(f"/console/records/clients/{client['id']}")
    assert page.title.endswith("Bergmann Optik · Retainer")
    assert "PATCH" in page.text
    assert f"/console/records/projects/{project['id']}" in page.links
    assert "Leipzig" in page.text
    assert "VAT number DE1" in page.text
    assert [tag.text for tag in page.all("a") if "tag_id=" in tag["href"]] == ["Care plan", "Retail"]
    assert page.text.index("Leipzig") < page.text.index("PATCH"), "fields come first"
    (logged,) = [link for link in page.links if "/requests?record=" in link]
    assert "PATCH /clients" in visitor.get(logged).text
    assert "No requests match." in visitor.get("/console/requests?address=203.0.113.250").text
    request = visitor.get(next(link for link in page.links if "/requests/" in link))
    assert answer.headers["x-request-id"] in request.text
    assert f"/console/records/clients/{client['id']}" in visitor.get(f"/console/records/projects/{project['id']}").links
    listed = visitor.get(f"/console/records/projects?client_id={client['id']}")
    assert "1 project" in listed.text
    assert visitor.get("/console/records/projects?client_id=odd").status == 422


@pytest.mark.parametrize("path", ["//keys", "///audit", "//sign-in", "/keys//1", "/records//clients"])
def test_a_path_with_more_slashes_than_a_page_has_is_404(api, path):
    assert admin_of(api).get(f"/console{path}").status == 404


def test_a_path_with_a_slash_at_its_end_leads_to_the_page(visitor):
    assert [visitor.get(f"/console/{path}").location for path in ("", "people/")] == ["/console", "/console/people"]
