"""A person at the console, with a browser that runs its script, or with one that runs none."""

import re
from typing import Protocol
from urllib.parse import urlsplit

from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select

from retainer.app import App
from tests.browser import Browser
from tests.console.visitor import Fields, Visitor, WebPage


class Desk(Protocol):
    """What a person does with a page, and reads on it."""

    def open(self, path: str) -> None: ...

    def send(self, form: str, press: str = "", **fields: str) -> None:
        """Fill in the form with this action on the open page, and press its button, or the one with this value."""

    @property
    def path(self) -> str:
        """The path of the open page."""

    @property
    def html(self) -> str: ...

    @property
    def text(self) -> str:
        """What its main part says."""

    def leave(self) -> None:
        """Forget the session: somebody else sits down."""


class DeskWithoutScript:
    """A browser that only follows links and sends forms."""

    def __init__(self, app: App) -> None:
        self.visitor = Visitor(app)
        self.page: WebPage
        self.path = ""

    def open(self, path: str) -> None:
        self.page, self.path = self.visitor.get(path), path
        if self.page.status == 303:
            self.open(self.page.location)

    def send(self, form: str, press: str = "", **fields: str) -> None:
        filled = [pair for pair in Fields(self.page.html).forms[form] if pair[0] not in fields]
        pressed = [(button["name"], press) for button in self.page.all("button", value=press)] if press else []
        self.page, self.path = self.visitor.post(form, [*filled, *fields.items(), *pressed]), form
        if self.page.status == 303:
            self.open(self.page.location)

    @property
    def html(self) -> str:
        return self.page.html

    @property
    def text(self) -> str:
        return self.page.text

    def leave(self) -> None:
        self.visitor.cookies.clear()


class DeskWithScript:
    """Chromium."""

    def __init__(self, browser: Browser, site: str) -> None:
        self.browser, self.site = browser, site

    def open(self, path: str) -> None:
        self.browser.get(self.site + path)

    def send(self, form: str, press: str = "", **fields: str) -> None:
        found = self.browser.find_element(By.CSS_SELECTOR, f"main form[action='{form}']")
        for name, text in fields.items():
            self.fill(found, name, text)
        button = f"button[value='{press}']" if press else "button:not(.hidden):not([name])"
        before = self.browser.find_element(By.TAG_NAME, "html")
        self.browser.execute_script("arguments[0].click()", found.find_element(By.CSS_SELECTOR, button))
        self.browser.until(lambda browser: browser.find_element(By.TAG_NAME, "html") != before)
        self.browser.until(lambda browser: browser.execute_script("return document.readyState") == "complete")

    def fill(self, form: WebElement, name: str, text: str) -> None:
        for field in form.find_elements(By.NAME, name):
            kind = field.get_attribute("type")
            if kind in {"checkbox", "radio"}:
                if field.get_attribute("value") == text and not field.is_selected():
                    field.click()
                continue
            self.browser.execute_script(
                "for (let e = arguments[0]; e; e = e.closest('details:not([open])')) e.open = true", field
            )
            if field.tag_name == "select":
                Select(field).select_by_value(text)
            elif kind in {"date", "datetime-local"}:  # what is typed depends on the language of the browser
                self.browser.execute_script("arguments[0].value = arguments[1]", field, text)
            else:
                field.clear()
                field.send_keys(text)

    @property
    def path(self) -> str:
        return urlsplit(self.browser.current_url).path

    @property
    def html(self) -> str:
        return self.browser.page_source

    @property
    def text(self) -> str:
        main = self.browser.find_element(By.TAG_NAME, "main")
        return " ".join(re.sub(r"\s+", " ", main.get_attribute("textContent") or "").split())

    def leave(self) -> None:
        self.browser.delete_all_cookies()
