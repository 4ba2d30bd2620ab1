"""Write screenshots of the console of a demo into docs/screenshots: each page in light, dark and narrow.

Run by `make screenshots`; needs Chromium, which `make browser` installs.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium.webdriver.common.by import By
from testing.console_pages import PAGES
from testing.ports import free_port
from tests.browser import Browser, opened

FOLDER = Path(__file__).parent.parent / "docs" / "screenshots"
LOOKS = {"light": (1280, False), "dark": (1280, True), "narrow": (390, False)}
MAX_HEIGHT = 1600
ACTED_ON = {
    "client": "clients",
    "project": "projects?status=active",
    "draft": "invoices?status=draft",
    "invoice": "invoices?status=overdue",
    "refund": "invoices?has_refund_due=true",
    "draft-quote": "quotes?status=draft",
    "quote": "quotes?status=sent",
    "accepted-quote": "quotes?status=accepted",
    "ticket": "tickets?status=open",
    "site": "sites",
    "task": "tasks?status=in_progress",
}
"""Lists whose first record has its actions shown."""


@contextmanager
def demo() -> Iterator[dict[str, str]]:
    """Yield the address of the console of a running demo, and the email and password of its admin."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "retainer", "demo", "--json", "--no-monitor", "--port", str(free_port())]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("RETAINER_")}
        environment = inherited | {"RETAINER_DATA_DIR": folder, "RETAINER_CONTACT": "support@agency.example"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
            assert process.stdout is not None
            try:
                yield json.loads(process.stdout.readline())
            finally:
                process.terminate()


def sign_in(browser: Browser, access: dict[str, str]) -> None:
    """Sign in, with a screenshot of the form."""
    browser.get(access["console"])
    capture(browser, "sign-in")
    for name in ("email", "password"):
        browser.find_element(By.NAME, name).send_keys(access[name])
    browser.find_element(By.CSS_SELECTOR, "button.primary").click()


def capture(browser: Browser, name: str) -> None:
    """Write screenshots of the open page in every look."""
    for look, (width, dark) in LOOKS.items():
        browser.show(width=width, height=800, dark=dark)
        height = min(MAX_HEIGHT, browser.execute_script("return document.documentElement.scrollHeight"))
        browser.show(width=width, height=height, dark=dark)
        shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
        (FOLDER / f"{name}-{look}.png").write_bytes(base64.b64decode(shot))


def create_key(browser: Browser, console: str) -> None:
    """Create a key, for a screenshot of the page that shows it."""
    browser.get(f"{console}{PAGES['new-key']}")
    browser.find_element(By.CSS_SELECTOR, "main form button.primary").click()
    capture(browser, "new-key-created")


def show_actions(browser: Browser, console: str) -> None:
    """Open the pages of each action on a record of each kind, without doing any."""
    for name, path in ACTED_ON.items():
        browser.get(f"{console}/records/{path}")
        browser.find_element(By.CSS_SELECTOR, ".list tbody th a").click()
        capture(browser, name)
        links = browser.find_elements(By.CSS_SELECTOR, "main .buttons > a, main .buttons details a")
        for link in {str(link.get_attribute("href")): None for link in links}:
            action = link.rpartition("/")[2]
            if action not in {"pdf", "xml"} and not {"?", "#"} & {*action}:
                browser.get(link)
                capture(browser, f"{name}-{action}")


def main() -> None:
    """Write all screenshots."""
    FOLDER.mkdir(exist_ok=True)
    with demo() as access, tempfile.TemporaryDirectory() as profile, opened(Path(profile)) as browser:
        sign_in(browser, access)
        for name, path in PAGES.items():
            browser.get(access["console"] + path)
            capture(browser, name)
        show_actions(browser, access["console"])
        create_key(browser, access["console"])
    print(f"{len(list(FOLDER.glob('*.png')))} screenshots in {FOLDER}")


if __name__ == "__main__":
    main()
