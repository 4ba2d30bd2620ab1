"""Write screenshots of the console of a demo into docs/screenshots: each page in light, dark and narrow.

Run by `make screenshots`; needs Chromium, which `sh tools/browser.sh` installs.
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
from testing.ports import free_port
from tests.browser import Browser, opened

from retainer.console.catalogue import LISTS

FOLDER = Path(__file__).parent.parent / "docs" / "screenshots"
LOOKS = {"light": (1280, False), "dark": (1280, True), "narrow": (390, False)}
MAX_HEIGHT = 1600
PAGES = {
    "today": "",
    "api": "/api",
    "switch": "/switch",
    "keys": "/keys",
    "new-key": "/keys/new?name=Zapier&preset=time",
    "key": "/keys/1",
    "edit-key": "/keys/4/edit",
    "rotate-key": "/keys/4/rotate",
    "revoke-key": "/keys/4/revoke",
    "webhooks": "/webhooks",
    "new-webhook": "/webhooks/new",
    "webhook": "/webhooks/1",
    "requests": "/requests?span=30d",
    "report-overview": "/reports/overview",
    "report-revenue-by-month": "/reports/revenue-by-month",
    "report-revenue-by-client": "/reports/revenue-by-client",
    "report-utilisation": "/reports/utilisation",
    "report-profitability": "/reports/profitability",
    "people": "/people",
    "person": "/people/2",
    "deactivate": "/people/2/deactivate",
    "audit": "/audit",
    "sessions": "/sessions",
    "search": "/search?q=optik",
    **{f"list-{kind}": f"/records/{kind}" for kind in LISTS},
    **{f"record-{kind}": f"/records/{kind}/1" for kind in LISTS if kind != "tags"},
    "reply-to-ticket": "/records/tickets/1/reply",
    "profile": "/profile",
    "second-factor": "/profile/second-factor",
    "settings": "/settings",
    "logo": "/settings/logo",
    "nowhere": "/nowhere",
}


@contextmanager
def demo() -> Iterator[dict[str, str]]:
    """Yield the address of the console of a running demo, and the email and password of its admin."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "retainer", "demo", "--json", "--no-monitor", "--port", str(free_port())]
        environment = os.environ | {"RETAINER_DATA_DIR": folder}
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
        browser.execute_script("document.getAnimations().forEach(animation => animation.finish())")
        shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
        (FOLDER / f"{name}-{look}.png").write_bytes(base64.b64decode(shot))


def create_key(browser: Browser, console: str) -> None:
    """Create a key, for a screenshot of the page that shows it."""
    browser.get(f"{console}/keys/new?name=Zapier&preset=time")
    browser.find_element(By.CSS_SELECTOR, "main form button.primary").click()
    capture(browser, "new-key-created")


def show_actions(browser: Browser, console: str) -> None:
    """Open the actions on an overdue invoice, without doing any."""
    browser.get(f"{console}/records/invoices?status=overdue")
    record = browser.find_element(By.CSS_SELECTOR, ".list tbody th a").get_attribute("href")
    for action in ("payment", "credit", "write-off", "void"):
        browser.get(f"{record}/{action}")
        capture(browser, f"invoice-{action}")


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
