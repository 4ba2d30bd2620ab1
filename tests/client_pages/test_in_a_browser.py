"""The page of a client link in a real browser: readable for everybody, on desks and phones, and answered by hand."""

import pytest
from selenium.webdriver.common.by import By
from testing.agencies import SITE

from tests.console.serving import serving
from tests.databases import only_sqlite

pytestmark = only_sqlite
LINES = [
    {"description": "Design", "unit_price": "500"},
    {"description": "Photographs", "unit_price": "480", "is_optional": True},
]


@pytest.mark.parametrize("width", [1280, 320])
def test_a_client_reads_and_accepts_a_quote(api, browser, width):
    api.set_account({"legal_name": "N" * 150})
    quote = api.make("/quotes", status="sent", lines=LINES)
    api.make("/files", record="quote", record_id=quote["id"], name=f"{'f' * 150}.pdf")
    url = api.post(f"/quotes/{quote['id']}/links").data["url"]
    with serving(api.app) as site:
        browser.show(width=width, dark=True)
        browser.get(url.replace(SITE, site))
        assert browser.findings(only_colors=True) == []
        browser.show(width=width, media="print")
        assert not browser.find_element(By.ID, "answer").is_displayed(), "paper takes no answer"
        browser.show(width=width)
        assert browser.findings() == []
        assert not browser.overflows()
        browser.find_element(By.NAME, "line").click()
        browser.find_element(By.NAME, "name").send_keys("Sofie Lindner")
        browser.find_element(By.CSS_SELECTOR, "button.primary").click()
        asked = browser.until(lambda page: page.find_element(By.CSS_SELECTOR, "[role=alert]"))
        assert "the total is €980.00" in asked.text
        assert browser.findings() == []
        browser.find_element(By.CSS_SELECTOR, "button.primary").click()
        notice = browser.until(lambda page: page.find_element(By.CSS_SELECTOR, ".notice.good"))
        assert "Sofie Lindner accepted this quote on" in notice.text
        assert browser.findings() == []
    assert api.get(f"/quotes/{quote['id']}").data["total"] == "980.00"
