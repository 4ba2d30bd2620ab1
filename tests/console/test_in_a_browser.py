"""The console in a real browser: the way of an admin from the first link on, and no page runs what people wrote."""

import os
import re
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from base64 import b64decode
from collections.abc import Iterator
from io import BytesIO
from itertools import product
from types import NoneType
from typing import TypeVar, get_args, get_type_hints

import pytest
from msgspec import Meta
from pypdf import PdfReader
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select

from retainer.console.own_records import OWN_RECORDS
from retainer.identity.people import users
from retainer.kernel.uploads import MAX_FILE_BYTES
from retainer.schema.webhooks import webhook_deliveries
from retainer.values.reading import unwrapped, writable_fields
from tests.browser import Browser, looks
from tests.console.serving import serving
from tests.console.test_key_pages import recorded
from tests.console.test_pages import fill, paths
from tests.console.test_roles import OF_USERS
from tests.console.visitor import PASSWORD, Visitor, WebPage, admin_of
from tests.contract.cases import OPERATIONS
from tests.databases import only_sqlite
from tests.factories import SENT, ApiClient
from tests.jobs.tagging import do, start
from tests.length import IS_FULL, TURN, by_turns, length, only_full, sampled

pytestmark = only_sqlite
NO_PAGES = (
    "/csv",
    "/file",
    "/spreadsheet",
    "/first-call",
    "/image",
    "/overview-money",
    "/pdf",
    "/preview",
    "/refused",
    "/search/results",
)
"""The ends of paths that answer JSON, an image, CSV, PDF or a part of a page."""
FILE = re.compile(r"/files/\d+")
A4 = 718
"""The width of a sheet between its margins, in pixels."""
PAIR = {"checkbox": "invoice", "text": "amount"}
"""The fields of an invoice on the page that records payments: their types and the beginnings of their names."""
T = TypeVar("T")


class Screen:
    """A browser on the console of an agency."""

    def __init__(self, browser: Browser, site: str) -> None:
        self.browser, self.site = browser, site

    def open(self, path: str) -> None:
        self.browser.get(self.site + path)

    def find(self, selector: str) -> WebElement:
        return self.browser.until(lambda browser: browser.find_element(By.CSS_SELECTOR, selector))

    def press(self, words: str) -> None:
        """Press the link or button with these words."""
        path = f"//*[self::a or self::button][normalize-space()='{words}']"
        self.browser.until(lambda browser: browser.find_element(By.XPATH, path)).click()

    def type(self, **fields: str) -> None:
        for name, text in fields.items():
            field = self.find(f"[name='{name}']")
            field.clear()
            field.send_keys(text)

    def says(self, words: str) -> bool:
        """Whether the page says something, or the one that is on its way."""
        return self.browser.until(lambda browser: words in browser.find_element(By.TAG_NAME, "main").text)


@pytest.fixture
def screen(api: ApiClient, browser: Browser) -> Iterator[Screen]:
    """A browser without a session."""
    browser.show()
    with serving(api.app) as site:
        browser.get(site)
        browser.delete_all_cookies()
        yield Screen(browser, site)


def call(site: str, key: str, path: str) -> int:
    """Call the API as an integration does."""
    asked = urllib.request.Request(f"{site}/api/public/v1{path}", headers={"Authorization": f"Bearer {key}"})
    try:
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return int(error.code)


def test_an_admin_goes_from_the_first_link_to_the_last_key(api, screen):
    with api.operating() as tx:
        link = users.create_link(tx, api.admin_id)
    screen.browser.get(link.url(screen.site))
    screen.type(password=PASSWORD, again=PASSWORD)
    screen.press("Set password and sign in")
    screen.press("The API is on")
    screen.press("Switch off…")
    screen.type(confirmation="switch off")
    screen.press("Switch the API off")
    assert screen.says("The API is off")
    screen.press("Switch on")
    assert screen.says("The API is on")

    screen.open("/console/keys")
    screen.press("Create key")
    screen.type(name="Zapier")
    screen.press("Time tracking")
    ticked = screen.browser.find_elements(By.CSS_SELECTOR, "input[name=scopes]:checked")
    assert [box.get_attribute("value") for box in ticked][-1] == "time:write"
    screen.find("main form button.primary").click()
    key = screen.find(".copied pre").text
    assert screen.says("Waiting for the first call")
    assert call(screen.site, key, "/clients") == 200
    line = screen.find(".first-call.arrived")
    assert line.text == "First call received. The key works."
    assert line.value_of_css_property("color") == "rgba(23, 112, 63, 1)"

    screen.browser.refresh()
    assert key not in screen.browser.page_source
    recorded(api)
    screen.open("/console/requests")
    screen.find("main th a[href*='/requests/']").click()
    assert screen.says("Zapier")
    assert screen.says("/clients")

    screen.press("Zapier")
    screen.press("Rotate…")
    screen.press("Rotate key")
    rotated = screen.find(".copied pre").text
    assert {call(screen.site, each, "/clients") for each in (key, rotated)} == {200}
    screen.press("Revoke…")
    screen.type(confirmation="Zapier")
    screen.press("Revoke key")
    assert screen.says("It no longer works.")
    assert (call(screen.site, key, "/clients"), call(screen.site, rotated, "/clients")) == (200, 401)

    screen.find("details.user summary").click()
    screen.press("Sign out")
    assert screen.says("You have signed out.")
    screen.open("/console/keys")
    assert screen.find("h1").text == "Sign in"
    assert screen.browser.current_url.endswith("/console/sign-in?next=/keys")


def enter(screen: Screen, api: ApiClient, visitor: Visitor | None = None) -> None:
    """Sign in as somebody, the admin if nobody is named."""
    token = (visitor or admin_of(api)).cookies["retainer-session"]
    screen.browser.add_cookie({"name": "retainer-session", "value": token, "path": "/", "httpOnly": True})


def chosen(pages: list[str]) -> list[str]:
    """All pages; in the short tier, of the records, which share their templates, those of three kinds."""
    kinds = r"/console/records/(invoices|projects|tickets)\b"
    return [page for page in pages if IS_FULL or not page.startswith("/console/records/") or re.match(kinds, page)]


def is_file(path):
    """Whether a path answers something else than a page."""
    return path.endswith(NO_PAGES) or (FILE.search(path) is not None and not path.endswith("/delete"))


def structure(page: WebPage) -> str:
    """The main part of a page without its texts, numbers and addresses."""
    main = page.html.partition("<main")[2].partition("</main>")[0]
    return re.sub(r'\d+|(?:value|href|action)="[^"]*"|(?<=>)[^<]+', "", main)


@pytest.fixture(scope="module")
def known() -> set[tuple[str, str]]:
    """The pages of all roles so far: their paths and structures."""
    return set()


@pytest.mark.parametrize("role", OF_USERS)
def test_every_page_of_a_role_is_accessible_light_and_dark_on_desks_and_phones(api, person, screen, role, known):
    """A page that only has other words than that of another role is not examined again.

    Targets are at least 24 px each way, but for links in sentences (WCAG 2.2, 2.5.8).
    """
    screen.open("/console/sign-in")
    for width in (1280, 390):
        screen.browser.show(width=width)
        assert [*screen.browser.findings(), *screen.browser.small_targets()] == [], width
    visitor, texts = person(role), fill(api)
    for kind, own in OWN_RECORDS.items():
        owner = "manager_id" if kind == "projects" else own.owner
        api.patch(f"/{kind}/{texts[f'records/{kind}']}", {owner: visitor.user_id})
    enter(screen, api, visitor)
    shown = {path: visitor.get(path) for path in paths(texts) if not is_file(path)}
    found = {path: (path, structure(page)) for path, page in shown.items() if page.status == 200}
    pages = [path for path, each in found.items() if each not in known]
    known |= set(found.values())
    assert pages
    for place, path in enumerate(by_turns(pages) if IS_FULL else sampled(chosen(pages), 12, TURN)):
        screen.open(path)
        for width, dark in looks(place, 2):
            screen.browser.show(width=width, dark=dark)
            assert [*screen.browser.findings(), *screen.browser.small_targets()] == [], (path, width, dark)
            assert not screen.browser.overflows(), (path, width)


def test_no_page_is_cut_on_a4(api, screen):
    enter(screen, api)
    screen.browser.show(width=A4, dark=True, media="print")
    pages = [path for path in paths(fill(api)) if not is_file(path)]
    for path in by_turns(pages) if IS_FULL else sampled(chosen(pages), 8, TURN):
        screen.open(path)
        assert screen.find("h1").value_of_css_property("color") == "rgba(35, 35, 43, 1)", "dark on paper"
        assert screen.browser.cut_parts() == [], path
        assert not screen.browser.overflows(), path


def printed(browser: Browser) -> list[str]:
    """The texts of the sheets of the open page on A4."""
    size = {"paperWidth": 8.27, "paperHeight": 11.69}
    return [
        sheet.extract_text()
        for sheet in PdfReader(BytesIO(b64decode(browser.execute_cdp_cmd("Page.printToPDF", size)["data"]))).pages
    ]


@only_full
def test_settings_are_printed_as_a_list_of_what_is_set(api, screen):
    enter(screen, api)
    screen.browser.show(width=A4, media="print")
    screen.open("/console/settings")
    name = screen.find("#name")
    assert (name.is_displayed(), name.value_of_css_property("border-top-width")) == (True, "0px")
    for nothing in ("#iban", "#legal_name", "#timezone-hint", "#texts-of-new-quotes", ".record-form .actions"):
        assert not screen.find(nothing).is_displayed(), nothing


def test_a_printed_list_says_what_it_is_limited_to_and_has_days_instead_of_distances(api, screen):
    client = api.make("/clients", name="Optik Weiß")
    enter(screen, api)
    screen.open("/console/records/clients?q=Optik&status=active")
    (text,) = printed(screen.browser)
    assert text.split()[:5] == ["Clients", "Search", "Optik", "Status", "Active"]
    assert client["created_at"][:4] in text
    for nothing in ("just now", "Apply", "Download CSV"):
        assert nothing not in text


def test_the_summary_of_errors_has_the_focus(api, screen):
    enter(screen, api)
    for path, button in (("/console/records/clients/new", ".actions .primary"), ("/console/switch", ".danger")):
        screen.open(path)
        screen.find(f"main form {button}").click()
        screen.browser.until(lambda browser: browser.switch_to.active_element.get_attribute("role") == "alert")


@only_full
def test_both_charts_of_the_utilisation_of_nine_people_are_on_the_first_sheet(api, screen):
    client = api.usual("/clients")
    for user_id in [api.add_user(f"Person {index}") for index in range(9)]:
        for day in ("2026-01-12", "2026-02-12"):
            api.post("/time-entries", {"client_id": client, "user_id": user_id, "date": day, "duration_minutes": 60})
    enter(screen, api)
    screen.open("/console/reports/utilisation?from=2026-01-01&to=2026-02-28")
    first = printed(screen.browser)[0]
    assert "Billable utilisation by month" in first
    assert "Billable utilisation by person" in first


@only_full
def test_the_domain_of_a_site_is_not_broken_on_a4(api, screen):
    api.make("/sites", url="https://staging.lindner-optik.example")
    enter(screen, api)
    screen.browser.show(width=A4, media="print")
    screen.open("/console/records/sites?q=staging.lindner")
    script = "const range = document.createRange(); range.selectNodeContents(arguments[0]);"
    link = screen.find(".list tbody a")
    assert link.text == "staging.lindner-optik.example"
    lines = screen.browser.execute_script(f"{script} return range.getClientRects().length", link)
    assert lines == 1


@only_full
def test_on_a_phone_a_delivery_has_no_label_without_a_value(api, screen):
    api.make("/webhooks")
    with api.operating() as tx:
        delivered = {"webhook_id": 1, "type": "webhook.test", "record_id": 1, "status": "delivered", "attempts": 1}
        tx.insert_counted(webhook_deliveries, {**delivered, "attempted_at": tx.now})
    enter(screen, api)
    screen.browser.show(width=390)
    screen.open("/console/webhooks/1")
    assert not screen.find("[data-label='Next attempt']").is_displayed()
    assert screen.find("[data-label='Last sent']").is_displayed()


@only_full
def test_days_in_tables_of_a_client_are_not_broken(api, screen):
    client = api.usual("/clients")
    dated = {"name": "Accessibility for a client with a long name", "due_date": "2026-08-13", "budget_minutes": 60}
    api.post("/projects", {"client_id": client, **dated, "hourly_rate": "1000000.00"})
    enter(screen, api)
    screen.browser.show(width=A4, media="print")
    screen.open(f"/console/records/clients/{client}")
    days = screen.browser.find_elements(By.CSS_SELECTOR, "[data-label=Due]")
    assert days
    assert {day.value_of_css_property("white-space") for day in days if "2026" in day.text} == {"nowrap"}


@only_full
def test_no_column_is_cut_on_a_small_laptop_on_paper_or_on_a_phone(api, screen):
    client = api.make("/clients", name="Musikschule Allegro")["id"]
    api.set_user(api.member_id, {"name": "Greta Nilsson"})
    fee = {"billing_type": "retainer", "retainer_amount": "21750", "budget_minutes": 60, "due_date": "2026-10-31"}
    named = {"name": "Online shop Musikschule Allegro", "client_id": client, "manager_id": api.member_id}
    project = api.make("/projects", **named, **fee)["id"]
    work = {"client_id": client, "project_id": project, "user_id": api.member_id}
    api.make("/time-entries", **work, duration_minutes=120, description="Second round", hourly_rate="1900")
    api.make("/expenses", **work, amount="12345.67", category="Software", vendor="Plugwerk", billable=True)
    line = {"description": "Design", "unit_price": "370132.12"}
    invoice = api.make("/invoices", client_id=client, status="sent", lines=[line])["id"]
    draft = api.make("/invoices", client_id=client, lines=[line])["id"]
    api.patch(f"/invoices/{invoice}", {"record_payment": {"amount": "1"}})
    paid = api.make("/projects", **named | {"name": "Landing pages Musikschule Allegro"}, **fee, code="LA005")["id"]
    api.patch(f"/projects/{paid}", {"status": "completed"})
    enter(screen, api)
    for width, medium in ((1280, ""), (A4, "print")):
        screen.browser.show(width=width, media=medium)
        for kind in ("projects", "time-entries", "expenses", "invoices"):
            screen.open(f"/console/records/{kind}")
            assert screen.browser.cut_parts() == [], (kind, medium)
    screen.browser.show(width=390)
    screen.open(f"/console/records/invoices/{draft}/issue")
    assert screen.browser.cut_parts() == []


def test_no_list_is_cut_on_a_tablet(api, screen):
    client = api.make("/clients", name="Musikschule Allegro")["id"]
    line = {"description": "Design", "unit_price": "370132.12"}
    invoice = api.make("/invoices", client_id=client, status="sent", lines=[line])["id"]
    api.patch(f"/invoices/{invoice}", {"record_payment": {"amount": "1000.50"}})
    recorded(api)
    enter(screen, api)
    for width in (700, 768, 1024, 1180):
        screen.browser.show(width=width)
        for path in ("records/invoices", "records/payments", "reports/revenue-by-client", "requests", "people", "week"):
            screen.open(f"/console/{path}")
            assert screen.browser.cut_parts() == [], (path, width)
    screen.browser.show(width=1280)
    screen.open("/console/records/invoices")
    assert screen.find("main thead th").is_displayed(), "a list is a table where it fits"


def test_no_line_divides_a_client_of_a_billing_run_from_its_note(api, screen):
    api.make("/time-entries", project_id=api.make("/projects")["id"], duration_minutes=60, hourly_rate="100")
    enter(screen, api)
    for width in (390, 1280):
        screen.browser.show(width=width)
        screen.open("/console/billing-run")
        for part in (screen.find("tbody tr"), screen.find("tbody th")):
            assert part.value_of_css_property("border-bottom-width") == "0px", (part.tag_name, width)
        last = screen.find("tbody tr:last-child"), screen.find("tbody tr:last-child td")
        assert {part.value_of_css_property("border-bottom-width") for part in last} == {"0px", "1px"}


def test_on_a_phone_a_list_shows_the_whole_name_of_a_project(api, screen):
    api.make("/time-entries", project_id=api.make("/projects", name="Online shop Musikschule Allegro")["id"])
    enter(screen, api)
    screen.browser.show(width=390)
    screen.open("/console/records/time-entries")
    name = screen.find("[data-label=Project] a")
    assert name.get_property("scrollWidth") <= name.get_property("clientWidth")


def test_on_a_phone_a_sentence_in_a_list_begins_at_the_left(api, screen):
    path = f"/console/jobs/{start(api, last=3, refused=[2])}"
    do(api)
    enter(screen, api)
    screen.browser.show(width=390)
    screen.open(path)
    reason = screen.find(".stacked td")
    assert (reason.text, reason.value_of_css_property("text-align")) == ("Name: Must be another.", "left")


def test_a_long_name_in_a_list_begins_beside_its_boxes(api, screen):
    name = "Identity, website and shop of the school for music. " * 3
    api.make("/tasks", title=name, project_id=api.make("/projects", name=name)["id"])
    enter(screen, api)
    for width, kind in product((390, 1280), ("projects", "tasks")):
        screen.browser.show(width=width)
        screen.open(f"/console/records/{kind}")
        box, link = screen.find("tbody .select").rect, screen.find("tbody th > a").rect
        assert link["height"] > 1.5 * box["height"], "several lines"
        assert link["x"] >= box["x"] + box["width"] - 4, (width, kind)
        assert abs(link["y"] - box["y"]) < box["height"] / 2, (width, kind)


def test_on_a_phone_a_record_is_created_from_any_page(api, screen):
    enter(screen, api)
    screen.browser.show(width=390)
    screen.open("/console/week")
    screen.find(".top .additions summary").click()
    screen.press("Ticket")
    assert screen.find("h1").text == "New ticket"


FIELDS = ":is(input, select):not([type=hidden])"


def test_the_button_of_filters_is_beside_them_or_right_below(api, screen):
    api.usual("/clients")
    api.make("/invoices")
    recorded(api)
    enter(screen, api)
    for width, path in product((390, 768, 1280), ("records/invoices", "records/clients", "requests")):
        screen.browser.show(width=width)
        screen.open(f"/console/{path}")
        screen.browser.execute_script("document.querySelector('.limits').open = true")
        found = screen.browser.find_elements(By.CSS_SELECTOR, f".limits > form > :not(.more) {FIELDS}")
        button, fields = screen.find(".limits > form > button").rect, [each.rect for each in found]
        is_beside = any(abs(button["y"] - each["y"]) <= 2 for each in fields)
        end = max(each["y"] + each["height"] for each in fields)
        assert is_beside or 0 < button["y"] - end <= 16, (path, width, button, fields)


@only_full
def test_on_a_phone_filters_wait_behind_a_button_and_no_field_is_zoomed_by_ios(api, screen):
    api.usual("/clients")
    recorded(api)
    enter(screen, api)
    screen.browser.show(width=390)
    for path in ("records/clients", "reports/overview", "keys", "requests", "audit"):
        screen.open(f"/console/{path}")
        field = screen.find(".filters :is(input, select):not([type=hidden])")
        assert not field.is_displayed(), path
        screen.find(".limits summary").click()
        assert field.is_displayed(), path
        assert field.value_of_css_property("font-size") == "16px", path


@only_full
@pytest.mark.parametrize("markup", ["<a href=/>x</a>", "<p><a href=/>x</a></p>"])
def test_a_small_target_is_found(screen, markup):
    screen.open("/docs")
    screen.browser.execute_script("document.body.innerHTML = arguments[0]", markup)
    assert len(screen.browser.small_targets()) == 1
    screen.browser.execute_script("document.body.innerHTML = arguments[0]", "<p>A sentence with <a href=/>x</a></p>")
    assert screen.browser.small_targets() == []


def test_the_search_shows_results_while_somebody_types(api, screen):
    client = api.make("/clients", name="Bergmann Optik")
    enter(screen, api)
    screen.open("/console")
    field = screen.find("[role=combobox]")
    field.send_keys("bergm")
    screen.find("#search-results [role=option]")
    assert field.get_attribute("aria-expanded") == "true"
    assert screen.browser.findings() == []
    screen.browser.show(width=390)
    results = screen.find("#search-results").rect
    assert 0 <= results["x"] <= 390 - results["width"] <= 40
    screen.browser.show()
    field.send_keys(Keys.ESCAPE)
    assert field.get_attribute("aria-expanded") == "false"
    field.send_keys("a")
    screen.browser.until(lambda _: field.get_attribute("aria-expanded") == "true")
    field.send_keys(Keys.ARROW_DOWN)
    assert field.get_attribute("aria-activedescendant") == "found-1-1"
    field.send_keys(Keys.ENTER)
    screen.browser.until(lambda browser: browser.current_url.endswith(f"/records/clients/{client['id']}"))


def test_the_menu_of_a_tablet_closes_when_it_is_turned(api, screen):
    enter(screen, api)
    screen.browser.show(width=768)
    screen.open("/console")
    screen.press("Menu")
    assert screen.find(".side:popover-open")
    screen.browser.show(width=1024)
    screen.browser.until(lambda browser: not browser.find_elements(By.CSS_SELECTOR, ".side:popover-open"))


def test_lines_of_a_document_are_added_and_removed_in_place(api, screen):
    draft = api.make("/invoices", lines=[{"description": "Design", "unit_price": "500"}])["id"]
    enter(screen, api)
    screen.open(f"/console/records/invoices/{draft}/edit")
    screen.type(subject="Typed before")
    screen.press("Add a line")
    screen.type(**{"lines.1.description": "Hosting", "lines.1.unit_price": "1.020,50"})
    screen.find(".line .remove").click()
    screen.find("main form .actions button.primary").click()
    assert screen.says("Typed before")
    (line,) = api.get(f"/invoices/{draft}").data["lines"]
    assert (line["description"], line["quantity"], line["unit_price"]) == ("Hosting", "1", "1020.50")


def test_an_added_line_of_a_quote_can_be_optional(api, screen):
    quote = api.make("/quotes", lines=[{"description": "Website", "unit_price": "1000", "is_optional": True}])["id"]
    enter(screen, api)
    screen.open(f"/console/records/quotes/{quote}/edit")
    for place, (text, is_optional) in enumerate((("Texts", True), ("Hosting", False)), 1):
        screen.press("Add a line")
        screen.type(**{f"lines.{place}.description": text, f"lines.{place}.unit_price": "200"})
        box = screen.find(f"[type=checkbox][name='lines.{place}.is_optional']")
        assert not box.is_selected()
        if is_optional:
            box.click()
    screen.find("main form .actions button.primary").click()
    assert screen.says("Hosting")
    lines = api.get(f"/quotes/{quote}").data["lines"]
    assert [line["is_optional"] for line in lines] == [True, True, False]


def test_what_belongs_together_stands_together_where_money_is_recorded(api, screen):
    client = api.make("/clients", currency="EUR")["id"]
    paid = [api.make("/invoices", client_id=client, status="sent", lines=SENT["lines"])["id"] for _ in range(3)]
    api.make("/time-entries", client_id=client, project_id=None, hourly_rate="100")
    enter(screen, api)
    screen.open("/console/records/payments/new")
    for invoice in paid:
        box, amount = (screen.find(f"[type={kind}][name={name}_{invoice}]").rect for kind, name in PAIR.items())
        assert (box["x"] < amount["x"], abs(box["y"] - amount["y"]) < amount["height"]) == (True, True)
    screen.open("/console/billing-run")
    screen.press("Create drafts")
    assert screen.find("main tbody th").text.split("\n")[:2] == ["Bergmann Optik", "Open the draft"]


def test_fields_that_do_not_apply_are_hidden_until_something_is_typed(api, screen):
    enter(screen, api)
    screen.open("/console/records/projects/new")

    def shown():
        return {
            name for name in ("hourly_rate", "fixed_fee", "retainer_amount") if screen.find(f"#{name}").is_displayed()
        }

    billing_type = Select(screen.find("#billing_type"))
    by_type = {}
    for value in ("", "fixed_fee", "retainer", "non_billable"):
        billing_type.select_by_value(value)
        by_type[value] = shown()
    assert by_type == {
        "": {"hourly_rate"},
        "fixed_fee": {"hourly_rate", "fixed_fee"},
        "retainer": {"hourly_rate", "retainer_amount"},
        "non_billable": set(),
    }
    billing_type.select_by_value("fixed_fee")
    screen.find("#fixed_fee").send_keys("2000")
    billing_type.select_by_value("retainer")
    assert shown() == {"hourly_rate", "fixed_fee", "retainer_amount"}, "what was typed stays in view"


@pytest.mark.parametrize(("kind", "first"), [("invoices", "client_id"), ("clients", "name"), ("tasks", "title")])
def test_a_new_form_begins_in_its_first_field(api, screen, kind, first):
    enter(screen, api)
    screen.open(f"/console/records/{kind}/new")
    screen.browser.until(lambda browser: browser.switch_to.active_element.get_attribute("name") == first)


def test_links_in_lists_and_figures_look_like_links(api, screen):
    api.make("/invoices", status="sent", lines=[{"description": "Design", "unit_price": "500"}])
    enter(screen, api)
    for path in ("/console/records/invoices", "/console/records/clients", "/console"):
        screen.open(path)
        links = screen.browser.find_elements(By.CSS_SELECTOR, ":is(.list tbody, .amounts, .figures) a")
        assert links
        assert {link.value_of_css_property("text-decoration-line") for link in links} == {"underline"}


def test_headings_of_a_long_list_stay_in_view_on_a_wide_screen(api, screen):
    for place in range(40):
        api.make("/clients", name=f"Client {place}")
    enter(screen, api)
    screen.browser.show(width=1440)
    screen.open("/console/records/clients")
    screen.browser.execute_script("window.scrollTo(0, 600)")
    top, bar = (
        screen.browser.execute_script("return document.querySelector(arguments[0]).getBoundingClientRect()", each)
        for each in (".list thead th", ".top")
    )
    assert top["top"] == pytest.approx(bar["bottom"], abs=1)
    assert screen.browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")


def test_what_a_form_led_to_is_dimmed_once_the_form_was_changed(api, screen):
    invoice = api.make("/invoices", status="sent", lines=[{"description": "Design", "unit_price": "500"}])["id"]
    enter(screen, api)
    screen.open(f"/console/records/invoices/{invoice}/payment")
    for amount, opacity in (("", "1"), ("5", "0.4")):
        if amount:
            screen.type(amount=amount)
        assert screen.find(".action > .changes").value_of_css_property("opacity") == opacity


def test_a_file_that_is_too_large_is_named_before_it_is_sent(api, screen, tmp_path):
    enter(screen, api)
    path = f"/console/records/clients/{api.make('/clients')['id']}"
    screen.open(path)
    for name, size in (("film.mp4", MAX_FILE_BYTES + 1), ("photo.jpg", 9)):
        (tmp_path / name).touch()
        os.truncate(tmp_path / name, size)
    field = screen.find("#file")
    field.send_keys(str(tmp_path / "film.mp4"))
    assert "too large" in field.get_property("validationMessage")
    screen.press("Add file")
    assert screen.browser.current_url.endswith(path)
    field.send_keys(str(tmp_path / "photo.jpg"))
    screen.press("Add file")
    assert screen.says("photo.jpg added.")


def test_a_double_click_creates_one_key(api, screen):
    enter(screen, api)
    count, is_held = "SELECT count(*) FROM api_keys", threading.Event()
    before = api.sql(count)[0][0]

    def hold():
        with api.store.unscoped(write=True):
            is_held.set()
            time.sleep(0.6)

    screen.open("/console/keys/new")
    screen.type(name="Zapier")
    screen.press("Time tracking")
    button, holding = screen.find("main form button.primary"), threading.Thread(target=hold)
    holding.start()
    assert is_held.wait(10)
    screen.browser.execute_script("arguments[0].click(); setTimeout(() => arguments[0].click(), 200)", button)
    assert screen.find(".copied pre").text.startswith("rtn_")
    holding.join(timeout=10)
    assert api.sql(count)[0][0] == before + 1


@only_full
def test_a_slash_focuses_the_search(api, screen):
    enter(screen, api)
    screen.open("/console")
    screen.find("body").send_keys("/")
    assert screen.browser.switch_to.active_element.get_attribute("name") == "q"


# What people wrote is shown, and never run

OPENINGS = ("", "'>", '">', "</title>", "</textarea>", "</script>", "-->", "]]>", "`>", "\u2028")
SCRIPTS = (
    "<script>ran()</script>",
    "<img src=x onerror=ran()>",
    "<svg onload=ran()>",
    "<svg><script href='data:,ran()'/></svg>",
    "<body onload=ran()>",
    "<iframe srcdoc='<script>parent.ran()</script>'></iframe>",
    "<a href='javascript:ran()'>x</a>",
    "<input autofocus onfocus=ran()>",
    "<details open ontoggle=ran()>",
    "<math href='javascript:ran()'>x</math>",
    "<style>@import 'javascript:ran()'</style>",
    "<meta http-equiv=refresh content='0;url=javascript:ran()'>",
    "{{ ran() }}",
    "{% raw %}{{ ran() }}{% endraw %}",
    "${ran()}",
    "' autofocus onfocus='ran()",
    '" autofocus onfocus="ran()',
    "javascript:ran()",
    "&lt;script&gt;ran()&lt;/script&gt;",
    "<scr<script>ipt>ran()</scr</script>ipt>",
)
STRINGS = [opening + script for opening in OPENINGS for script in SCRIPTS]
COLLECTIONS = (
    "/clients",
    "/external-contacts",
    "/projects",
    "/tasks",
    "/tickets",
    "/tags",
    "/expenses",
    "/time-entries",
)
DOCUMENTS = ("/invoices", "/quotes", "/sites")
UNIQUE = {"external_id", "number"}
WATCH = """
window.runs = 0;
window.ran = () => { window.runs++; };
window.violations = 0;
document.addEventListener("securitypolicyviolation", () => { window.violations++; });
"""


def limits_of(collection: str) -> dict[str, int]:
    """The text fields that a new record of a collection takes, and how many characters each."""
    (created,) = [each for each in OPERATIONS if (each.method, each.path) == ("POST", collection)]
    limits = {}
    for name, hint in get_type_hints(created.body, include_extras=True).items():
        bare, metas = unwrapped(hint)
        inner, more = unwrapped(next((part for part in get_args(bare) if part is not NoneType), bare))
        lengths = [meta.max_length for meta in (*metas, *more) if isinstance(meta, Meta) and meta.max_length]
        if inner is str and lengths and name in writable_fields(created.body):
            limits[name] = lengths[0]
    return limits


def store(api: ApiClient, strings: list[str]) -> list[str]:
    """Write each string into a text field, and something into each text field that there is; return their pages."""
    pages, place = [], 0
    for collection in (*COLLECTIONS, *DOCUMENTS):
        limits = limits_of(collection)
        for _ in range(len(strings) // 8 if collection == "/clients" else 2):
            fields = {}
            for name, limit in limits.items():
                text = strings[place % len(strings)] + (str(place) if name in UNIQUE else "")
                fields[name] = text if len(text) <= limit else f"<b onclick=ran()>{place}"
                place += 1
            answer = api.create(collection, **fields)
            assert answer.status == 201, answer
            pages.append(f"/console/records{collection}/{answer.data['id']}")
    assert place > len(strings)
    for text in strings[:20]:
        api.get(f"/clients/{urllib.parse.quote(text)}")
    return pages


@only_full
def test_no_page_runs_script_from_a_record(api, screen):
    assert len(STRINGS) == len(set(STRINGS)) == 200
    visitor = admin_of(api)
    for place, text in enumerate(STRINGS[:40]):
        visitor.submit("/console/keys/new", name=text[:100], scopes=["clients:read"])
        visitor.submit("/console/people/new", name=text, email=f"person{place}@people.example")
    pages = store(api, STRINGS)
    texts = fill(api)
    enter(screen, api)
    screen.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    searched = [f"/console/search?q={urllib.parse.quote(text)}" for text in STRINGS[::10]]
    keys = [f"/console/keys/{key}" for (key,) in api.sql("SELECT id FROM api_keys ORDER BY id DESC")[: length(20)]]
    sent = [f"/console/keys/new?name={urllib.parse.quote(text)}" for text in STRINGS[::20]]
    seen = ""
    for path in [*by_turns(paths(texts)), *pages, *searched, *keys, *sent, "/console/keys?status="]:
        if is_file(path):
            continue
        screen.open(path)
        runs, violations, shown = screen.browser.execute_script("return [runs, violations, document.body.innerText]")
        assert (runs, violations) == (0, 0), path
        seen += shown
    for text in STRINGS[:20]:
        assert text.strip() in seen, "it is shown as it was written"
