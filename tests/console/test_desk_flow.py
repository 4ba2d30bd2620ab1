"""A day at the desk in a real browser, with and without script: client, project, time, draft, lines, issue."""

from collections.abc import Iterator

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from tests.browser import Browser
from tests.console.serving import serving
from tests.console.test_in_a_browser import Screen
from tests.console.visitor import PASSWORD, admin_of
from tests.databases import only_sqlite
from tests.factories import ApiClient
from tests.length import first

pytestmark = only_sqlite


@pytest.fixture(params=first(["with script", "without script"]))
def desk(api: ApiClient, browser: Browser, request: pytest.FixtureRequest) -> Iterator[Screen]:
    """A browser in which the admin is signed in."""
    admin_of(api)
    browser.show()
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": request.param == "without script"})
    with serving(api.app) as site:
        browser.get(site)
        browser.delete_all_cookies()
        screen = Screen(browser, site)
        screen.open("/console/sign-in")
        screen.type(email="ana@north.example", password=PASSWORD)
        screen.find("main form button.primary").click()
        assert screen.says("Today")
        yield screen
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def send(screen: Screen) -> None:
    screen.find("main form .actions button.primary").click()


def add(screen: Screen, what: str) -> None:
    """Open the form of a new record from the menu of the record that is shown."""
    screen.find("main details.additions summary").click()
    screen.find("main details.additions[open]").find_element(By.LINK_TEXT, what).click()


def test_work_is_recorded_and_billed_at_the_desk(api, desk):
    desk.open("/console/records/clients")
    desk.press("New client")
    desk.type(name="Nordlicht", city="Kiel", tax_rate="19")
    send(desk)
    assert desk.says("Nordlicht created.")

    add(desk, "Project")
    desk.type(name="Webshop")
    desk.type(hourly_rate="110,50")
    send(desk)
    assert desk.says("Webshop created.")

    add(desk, "Time entry")
    desk.type(duration_minutes="90m", description="Workshop")
    send(desk)
    assert desk.says("1:30 h")
    desk.press("Webshop")

    desk.press("Bill…")
    assert desk.says("165.75 EUR")
    assert api.get("/invoices").data == []
    desk.press("Create draft")
    assert desk.says("Draft created.")

    desk.press("Edit")
    desk.press("Add a line")
    desk.browser.until(lambda browser: len(browser.find_elements(By.CSS_SELECTOR, ".line")) == 2)
    for name, text in (("description", "Hosting"), ("quantity", "12"), ("unit_price", "1.020,50")):
        field = desk.find(f"[name='lines.1.{name}']")
        field.clear()
        field.send_keys(text)
    project = Select(desk.find("[name='lines.1.project_id']"))
    project.select_by_visible_text("Webshop (Nordlicht)")
    send(desk)
    assert desk.says("12,411.75 EUR")

    desk.press("Issue…")
    send(desk)
    assert desk.says("issued. Download its PDF to send it.")
    (invoice,) = api.get("/invoices").data
    assert (invoice["status"], invoice["subtotal"]) == ("sent", "12411.75")
