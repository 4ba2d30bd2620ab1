"""A person at the console, with a browser that runs its script, or with one that runs none.

Both count clicks: links, buttons, boxes and choices from lists, and each menu or fold that is opened for them. What is
typed costs none.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select

from retainer.app import App
from tests.browser import Browser
from tests.console.visitor import Element, Fields, Visitor, WebPage

FOLDS = """
let folds = [];
for (let e = arguments[0]; (e = e.closest("details:not([open])")); e.open = true) folds.push(e);
for (const fold of folds) fold.open = arguments[1];
return folds.length;
"""
LINKS = "return [...document.querySelectorAll('a[href]')].map((each) => [each.getAttribute('href'), each])"
"""The links of a page and where they lead, in one message of the browser instead of one for each."""


class Desk(Protocol):
    """What a person does with a page, and reads on it."""

    clicks: int

    def open(self, path: str) -> None:
        """Type an address."""

    def read(self, path: str) -> WebPage:
        """Ask for a page whose figures are compared, and stay on the open one."""

    def follow(self, link: str) -> None:
        """Click on the link with an address of this pattern that is the easiest to reach."""

    def download(self, link: str) -> None:
        """Click on the link to a file with an address of this pattern."""

    def send(self, form: str, press: str = "", **fields: str) -> None:
        """Fill in the form with this action on the open page, and press its button, or the one with this value."""

    def downloaded(self) -> str:
        """Return the name of the file that the open page downloads by itself."""

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
        self.visitor, self.clicks = Visitor(app), 0
        self.page: WebPage
        self.path = ""

    def open(self, path: str) -> None:
        self.page, self.path = self.visitor.get(path), path
        if self.page.status == 303:
            self.open(self.page.location)

    def read(self, path: str) -> WebPage:
        return self.visitor.get(path)

    def find(self, link: str) -> str:
        found = [each for each in self.page.all("a") if re.fullmatch(link, each["href"])]
        assert found, f"no link {link} on {self.path}: {self.text}"
        folds, href = min((len(self.folds(each)), each["href"]) for each in found)
        self.clicks += folds + 1
        return href

    def follow(self, link: str) -> None:
        self.open(self.find(link).partition("#")[0])

    def download(self, link: str) -> None:
        assert self.visitor.get(self.find(link)).status == 200

    def send(self, form: str, press: str = "", **fields: str) -> None:
        """Send the fields, whose choices count. A person could fill in no field that the form does not have."""
        presses = {"value": press} if press else {}
        found = next(
            each for each in self.page.all("form", action=form, method="post") if each.all("button", **presses)
        )
        folds = set[int]()
        for name, text in fields.items():
            inputs = found.all("input select textarea", name=name)
            assert inputs, f"no field {name} on {self.path}"
            self.clicks += is_choice(inputs[-1], text, inputs)
            folds |= {id(each) for each in self.folds(inputs[-1])}
        self.clicks += len(folds) + 1
        filled = [pair for pair in Fields(self.page.html).forms[form] if pair[0] not in fields]
        pressed = [(button["name"], press) for button in self.page.all("button", value=press)] if press else []
        self.page, self.path = self.visitor.post(form, [*filled, *fields.items(), *pressed]), form
        if self.page.status == 303:
            self.open(self.page.location)

    def downloaded(self) -> str:
        (refresh,) = self.page.all("meta", **{"http-equiv": "refresh"})
        file = self.visitor.get(refresh["content"].removeprefix("0; url="))
        assert file.status == 200
        return file.headers["content-disposition"].partition('filename="')[2].removesuffix('"')

    def folds(self, element: Element) -> list[Element]:
        """Return what has to be opened before somebody sees an element."""
        closed = [each for each in self.page.all("details") if "open" not in each]
        return [each for each in closed if any(part is element for part in each.all(element.tag))]

    @property
    def html(self) -> str:
        return self.page.html

    @property
    def text(self) -> str:
        return self.page.text

    def leave(self) -> None:
        self.visitor.cookies.clear()


def is_choice(field: Element, text: str, inputs: list[Element]) -> bool:
    """Whether a click is needed for a field to have a text."""
    if field.tag == "select":
        return all("selected" not in option for option in field.all("option", value=text))
    if field["type"] in {"checkbox", "radio"}:
        boxes = [each for each in inputs if each["type"] == field["type"]]
        return any(
            (each["value"] == text) != ("checked" in each) for each in boxes if len(boxes) == 1 or each["value"] == text
        )
    return False


class DeskWithScript:
    """Chromium."""

    def __init__(self, browser: Browser, site: str, folder: Path) -> None:
        """Sit down at a browser, which keeps what it downloads in a folder."""
        self.browser, self.site, self.folder, self.clicks = browser, site, folder, 0
        browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})

    def open(self, path: str) -> None:
        self.browser.get(self.site + path)

    def read(self, path: str) -> WebPage:
        ask = (
            "const [path, tell] = arguments; fetch(path).then(async (got) => tell([got.status, {}, await got.text()]))"
        )
        return WebPage(*self.browser.execute_async_script(ask, path))

    def find(self, link: str) -> WebElement:
        found: list[tuple[str, WebElement]] = self.browser.execute_script(LINKS)
        fitting = [each for href, each in found if re.fullmatch(link, href)]
        assert fitting, f"no link {link} on {self.path}: {self.text}"
        folds, place = min((self.folds(each, opens=False), place) for place, each in enumerate(fitting))
        self.clicks += folds + 1
        return fitting[place]

    def folds(self, element: WebElement, *, opens: bool) -> int:
        """Return how many folds hide an element, which are then open, or are not."""
        number: int = self.browser.execute_script(FOLDS, element, opens)
        return number

    def follow(self, link: str) -> None:
        found = self.find(link)
        with self.leaving():
            self.browser.execute_script("arguments[0].click()", found)

    def download(self, link: str) -> None:
        ask = "const [href, tell] = arguments; fetch(href).then((answer) => tell(answer.status))"
        assert self.browser.execute_async_script(ask, self.find(link).get_dom_attribute("href")) == 200

    def send(self, form: str, press: str = "", **fields: str) -> None:
        button = f"button[value='{press}']" if press else "button:not(.hidden):not([name])"
        found = self.fill(form, button, fields)
        self.clicks += 1
        with self.leaving():
            self.browser.execute_script("arguments[0].click()", found.find_element(By.CSS_SELECTOR, button))

    def downloaded(self) -> str:
        return self.browser.until(lambda _: next((each.name for each in self.folder.glob("*.zip")), ""))

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """Wait for the page after this one."""
        before = self.browser.find_element(By.TAG_NAME, "html")
        yield
        self.browser.until(lambda browser: browser.find_element(By.TAG_NAME, "html") != before)
        self.browser.until(lambda browser: browser.execute_script("return document.readyState") == "complete")

    def fill(self, form: str, button: str, fields: dict[str, str]) -> WebElement:
        """Fill in fields of the form that has a button, of those with this action; return it."""
        found = self.browser.find_element(By.CSS_SELECTOR, f"form[method=post][action='{form}']:has({button})")
        for name, text in fields.items():
            self.type(found, name, text)
        return found

    def type(self, form: WebElement, name: str, text: str) -> None:
        inputs = form.find_elements(By.NAME, name)
        assert inputs, f"no field {name} on {self.path}"
        boxes = [each for each in inputs if each.get_attribute("type") in {"checkbox", "radio"}]
        self.clicks += self.folds(inputs[-1], opens=True)
        for box in boxes:
            is_meant = box.get_attribute("value") == text
            if is_meant != box.is_selected() and (is_meant or len(boxes) == 1):
                self.clicks += 1
                box.click()
        if boxes:
            return
        field = inputs[-1]
        if field.tag_name == "select":
            self.clicks += field.get_property("value") != text
            Select(field).select_by_value(text)
        elif field.get_attribute("type") in {"date", "datetime-local"}:  # typed as the browser's language has it
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
