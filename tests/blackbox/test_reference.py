"""The reference over real sockets: every sample runs as it is printed, and every page in a browser."""

import shutil

import pytest
from testing.agencies import MAIL_FROM, SMTP_URL
from testing.ports import free_port
from testing.process import opened, running, start, with_database

from retainer import demo
from retainer.api import ROUTES
from retainer.reference.examples import Example
from retainer.reference.markdown import MARKDOWN
from retainer.reference.pages import pages_of
from retainer.reference.samples import LANGUAGES
from tests.browser import looks
from tests.examples.day import open_studio
from tests.examples.interpreters import has, run_all
from tests.length import IS_FULL, TURN, by_turns, only_full, sampled

LANGUAGE = {"bash": {"bash", "sh"}, "python": {"python"}, "javascript": {"javascript"}, "php": {"php"}}
"""How Markdown names the code in each language."""
OF_ROUTES = list(pages_of(ROUTES))[TURN % 5 :: 5]
PAGES = [*OF_ROUTES, "/docs/search?q=invoice", *["/docs/try"] * IS_FULL, "/docs/nothing"]


@pytest.fixture
def studio(tmp_path):
    """A server with the agency of the examples, and a key of it."""
    folder = with_database(tmp_path / "studio")
    with opened(folder / "data" / "retainer.db") as store:
        made = open_studio(store)
    server = start(folder, "--no-monitor")
    yield server, made["key"]
    server.stop()


def code_of(language):
    """All code of the reference in a language, from the top of the first page to the bottom of the last."""
    for page in pages_of(ROUTES).values():
        for block in MARKDOWN.parse(page.text):
            is_code = block.type == "fence" and block.info in LANGUAGE[language] and "export" not in block.content
            if is_code and "while True" not in block.content:  # the mirror never ends: it has a test of its own
                yield page.path, block.content


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """The database of a demo, and its key."""
    database = with_database(tmp_path_factory.mktemp("demo") / "filled") / "data" / "retainer.db"
    with opened(database) as store:
        return database, demo.fill(store).key


@only_full
@pytest.mark.parametrize("language", by_turns(LANGUAGE))
def test_all_code_of_the_reference_runs_from_top_to_bottom_on_a_demo(filled, tmp_path, language):
    code = list(code_of(language))
    assert len(code) > len(ROUTES.operations)
    failed, (database, key) = [], filled
    folder = with_database(tmp_path / "served")
    shutil.copy(database, folder / "data" / "retainer.db")
    port = free_port()
    mail = {"RETAINER_SMTP_URL": SMTP_URL, "RETAINER_MAIL_FROM": MAIL_FROM}
    named = {"RETAINER_BASE_URL": f"http://127.0.0.1:{port}"}
    with running(folder, "--no-monitor", port=port, **mail, **named) as server:
        url = f"http://127.0.0.1:{server.port}/api/public/v1"
        for (path, sample), ran in zip(code, run_all(language, [each for _, each in code], url, key), strict=True):
            if ran.error or bool(ran.printed.strip()) == ("DELETE" in sample or ".delete(" in sample):
                failed.append(f"{path}: {sample}: {ran.printed}{ran.error}")
        assert server.stop() == 0
    assert failed == [], f"{len(failed)} of {len(code)} failed:\n" + "\n".join(failed)


@only_full
def test_a_sample_of_a_refused_request_fails(studio):
    server, key = studio
    missing = Example(status=404, headers={}, method="GET", path="/clients/4711", response={})
    url = f"http://127.0.0.1:{server.port}/api/public/v1"
    for language in filter(has, LANGUAGE):
        (ran,) = run_all(language, [LANGUAGES[language](missing)], url, key)
        assert any(sign in ran.error for sign in ("4711", "404", "There is no such client")), language


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The address of a server."""
    server = start(with_database(tmp_path_factory.mktemp("reference") / "served"), "--no-monitor")
    yield f"http://127.0.0.1:{server.port}"
    server.stop()


@pytest.mark.parametrize(("place", "path"), [*enumerate(sampled(PAGES, 6, TURN))])
def test_everybody_can_use_a_page_light_or_dark_wide_or_narrow(browser, reference, place, path):
    """One look suffices, as all pages have one template and one renderer of Markdown."""
    ((width, dark),) = looks(place, 1)
    browser.show(width=width, dark=dark)
    browser.get(f"{reference}{path}")
    expected = ["404 (Not Found)"] if path == "/docs/nothing" else []
    found = [finding for finding in browser.findings() if not any(each in finding for each in expected)]
    assert found == []
    assert not browser.overflows()


def test_on_a_phone_no_button_covers_the_code_that_it_copies(browser, reference):
    browser.show(width=390)
    browser.get(f"{reference}/docs/api/clients")
    script = """return [...document.querySelectorAll(".copy")].filter(each => each.offsetParent)
        .map(each => each.getBoundingClientRect().bottom - each.nextElementSibling.getBoundingClientRect().top)"""
    overlaps = browser.execute_script(script)
    assert overlaps
    assert max(overlaps) <= 0


def test_a_sample_is_read_in_the_language_that_was_chosen_in_another(browser, reference):
    browser.show()
    browser.get(f"{reference}/docs/api/clients")
    browser.find_element("css selector", ".tabs > label:nth-of-type(2)").click()
    shown = browser.execute_script("return [...document.querySelectorAll('.tabs > input:checked')].map(i => i.value)")
    assert set(shown) == {"python"}


@only_full
def test_a_request_is_tried_with_a_key_that_only_the_page_remembers(browser, studio):
    server, key = studio
    browser.show()
    browser.get(f"http://127.0.0.1:{server.port}/docs/try#/Me/getMe")
    browser.implicitly_wait(20)
    click = lambda selector: browser.find_element("css selector", selector).click()  # noqa: E731
    browser.find_element("css selector", "#key").send_keys(key)
    below = """return document.querySelector(arguments[0]).getBoundingClientRect().top
        > document.querySelector("form.key").getBoundingClientRect().bottom"""
    browser.until(lambda _: browser.execute_script(below, "#operations-Me-getMe"))
    click("#operations-Me-getMe .execute")
    answer = browser.find_element("css selector", ".live-responses-table .highlight-code").text
    assert "Northlight Studio" in answer
    assert browser.execute_script("return localStorage.length + sessionStorage.length + document.cookie.length") == 0
    browser.implicitly_wait(0)
    assert [finding for finding in browser.findings() if "Content Security Policy" in finding] == []
