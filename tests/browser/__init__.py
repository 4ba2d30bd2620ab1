"""A browser for tests: Chromium without a window, and axe-core, which finds what keeps people from using a page."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait
from testing.process import PATIENCE

from tests.length import TURN
from tests.skips import require

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars"),
)
TARGETS = Path(__file__).parent / "targets.js"
SERIOUS = {"serious", "critical"}
RUN_AXE = "axe.run({resultTypes: ['violations'], ...arguments[0]}).then(found => arguments[1](found.violations))"
COLORS = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
"""What a scheme can change: its styles set only colors."""

LOOKS = ((390, False), (1280, True), (390, True), (1280, False))
"""The widths of a phone and of a desk, in the light and the dark scheme."""
T = TypeVar("T")


class Browser(Chrome):
    """A browser in which pages are opened and examined."""

    def show(self, *, width: int = 1280, height: int = 900, dark: bool = False, media: str = "") -> None:
        """Set the size of the screen, the dark or light color scheme, and the medium, such as `print`.

        Colors change at once, without a transition.
        """
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        features = {"prefers-color-scheme": "dark" if dark else "light", "prefers-reduced-motion": "reduce"}
        listed = [{"name": name, "value": value} for name, value in features.items()]
        self.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": listed})

    def get(self, url: str) -> None:
        """Open a page, and forget the errors of pages opened earlier, by this test or by another."""
        self.get_log("browser")
        super().get(url)

    def until(self, look: Callable[["Browser"], T]) -> T:
        """Return what is there once a page has come that may still be on its way."""
        found: T = WebDriverWait(self, PATIENCE, 0.05, ignored_exceptions=[WebDriverException]).until(look)
        return found

    def findings(self, *, only_colors: bool = False) -> list[str]:
        """Return what axe finds serious on the open page, and the errors logged since a page was last opened."""
        if not self.execute_script("return 'axe' in window"):
            script = AXE.read_text(encoding="utf-8")
            self.execute_cdp_cmd("Runtime.evaluate", {"expression": script})  # no policy forbids it
        found: list[dict[str, Any]] = self.execute_async_script(RUN_AXE, COLORS if only_colors else {})
        axe = [
            f"{finding['id']}: {finding['help']}: {node['html'][:200]}"
            for finding in found
            if finding["impact"] in SERIOUS
            for node in finding["nodes"]
        ]
        return axe + [f"{entry['level']}: {entry['message']}" for entry in self.get_log("browser")]

    def small_targets(self) -> list[str]:
        """Return the links, buttons and fields of the open page that are too small to tap."""
        found: list[str] = self.execute_script(TARGETS.read_text(encoding="utf-8"))
        return found

    def cut_parts(self) -> list[str]:
        """Return the tables, samples, figures and, on paper, links of the open page that are wider than their place."""
        found: list[str] = self.execute_script(
            "const links = matchMedia('print').matches ? ', main a' : '';"
            "return [...document.querySelectorAll('main .table, main pre, main .figures' + links)]"
            ".filter(part => part.clientWidth && part.scrollWidth > part.clientWidth + 1)"
            ".map(part => part.ariaLabel || part.textContent)"
        )
        return found

    def overflows(self) -> bool:
        """Whether the open page is wider than the screen; the window itself grows with it on a phone."""
        root = "document.documentElement"
        width: int = self.execute_script(f"return {root}.scrollWidth - {root}.clientWidth")
        return width > 0


def looks(place: int, count: int) -> list[tuple[int, bool]]:
    """Return one or two looks for the page at a place of a list: others for the next page, and others in two days.

    Two are both widths and both schemes. No style sets another color on phones, so that this finds what all four find.
    """
    begin = count * (place + TURN // 2)
    return [LOOKS[(begin + each) % len(LOOKS)] for each in range(count)]


@contextmanager
def opened(profile: Path) -> Iterator[Browser]:
    """A running browser with an empty profile."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    is_complete = chromium and driver and AXE.exists()
    require("browser", is_complete, "Chromium, its driver or axe-core is missing: `make browser` installs them.")
    options = ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for option in (*OPTIONS, f"--user-data-dir={profile}"):
        options.add_argument(option)
    browser = Browser(options, Service(driver))  # with a driver that is named, Selenium downloads none
    try:
        browser.set_script_timeout(2 * PATIENCE)  # axe examines a long page
        yield browser
    finally:
        browser.quit()
