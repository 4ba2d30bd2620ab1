"""The reference over real sockets: every sample runs as it is printed, and every page in a browser."""

import os
import shutil
import subprocess
import sys

import pytest

from retainer.app import ROUTES
from retainer.reference.examples import Example, examples
from retainer.reference.markdown import MARKDOWN
from retainer.reference.pages import pages_of
from retainer.reference.samples import LANGUAGES
from tests.blackbox.process import Server, opened, prepared, start
from tests.examples.day import OPERATIONS, day, open_studio, path_of

RUN = {"bash": ["bash", "-c"], "python": [sys.executable, "-c"], "javascript": ["node", "--input-type=module", "-e"]}


@pytest.fixture
def studio(tmp_path):
    """A server with the agency of the examples, and a key of it."""
    folder = prepared(tmp_path / "studio")
    with opened(folder / "data" / "retainer.db") as store:
        made = open_studio(store)
    server = start(folder, "--no-monitor")
    yield server, made["key"]
    server.stop()


class Samples:
    """Lives through the day of the examples by running the samples of a language."""

    def __init__(self, language: str, server: Server, key: str) -> None:
        self.language, self.write = language, LANGUAGES[language]
        self.server, self.key = server, key
        url = f"http://127.0.0.1:{server.port}/api/public/v1"
        self.environment = os.environ | {"RETAINER_URL": url, "RETAINER_KEY": key}

    def show(self, operation_id, *ids, **_):
        example = examples().operations[operation_id]
        assert example.path.partition("?")[0] == path_of(OPERATIONS[operation_id], ids)
        done = subprocess.run(
            [*RUN[self.language], self.write(example)],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{operation_id}: {done.stderr}{done.stdout}"
        assert bool(done.stdout.strip()) == bool(example.response), operation_id
        return example.response["data"] if example.response else None

    def do(self, operation_id, *ids, query=None, **body):
        operation = OPERATIONS[operation_id]
        assert query is None
        with self.server.client(self.key) as client:
            return client.call(operation.method, path_of(operation, ids), body).data


@pytest.mark.parametrize("language", RUN)
def test_every_sample_runs_as_it_stands(studio, language):
    if shutil.which(RUN[language][0]) is None:
        assert not os.environ.get("CI"), f"{RUN[language][0]} is missing"
        pytest.skip(f"{RUN[language][0]} is missing: the samples in {language} were not run")
    samples = Samples(language, *studio)
    day(samples.show, samples.do)


GUIDE = [
    (page.path, block.info, block.content)
    for page in pages_of(ROUTES).values()
    if page.group == "Guide"
    for block in MARKDOWN.parse(page.text)
    if block.type == "fence" and block.info in {"sh", *RUN} and "export" not in block.content
]
"""All code of the guide: the page, the language, and the code."""


def test_all_code_of_the_guide_runs_as_it_stands(studio):
    server, key = studio
    samples = Samples("bash", server, key)
    for name in ("Bergmann Optik", "Nordlicht Verlag"):
        samples.do("createClient", name=name)
    assert {path for path, _, _ in GUIDE} >= {"/docs", "/docs/lists", "/docs/writing", "/docs/limits", "/docs/retries"}
    for path, language, code in GUIDE:
        command = RUN["bash" if language == "sh" else language]
        if shutil.which(command[0]):
            done = subprocess.run(
                [*command, code], env=samples.environment, capture_output=True, text=True, timeout=60, check=False
            )
            assert done.returncode == 0, f"{path}: {code}: {done.stderr}"
            assert done.stdout.strip(), f"{path}: {code}"


def test_a_sample_of_a_refused_request_fails(studio):
    server, key = studio
    missing = Example(status=404, headers={}, method="GET", path="/clients/4711", response={})
    for language, command in RUN.items():
        if shutil.which(command[0]):
            samples = Samples(language, server, key)
            sample = [*command, samples.write(missing)]
            done = subprocess.run(sample, env=samples.environment, capture_output=True, check=False)
            assert done.returncode != 0, language


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The address of a server."""
    server = start(prepared(tmp_path_factory.mktemp("reference") / "served"), "--no-monitor")
    yield f"http://127.0.0.1:{server.port}"
    server.stop()


@pytest.mark.parametrize("path", [*pages_of(ROUTES), "/docs/search?q=invoice", "/docs/try", "/docs/nothing"])
def test_everybody_can_use_a_page_light_and_dark_wide_and_narrow(browser, reference, path):
    for width, dark in ((1400, False), (390, True)):
        browser.show(width=width, dark=dark)
        browser.get(f"{reference}{path}")
        expected = ["404 (Not Found)"] if path == "/docs/nothing" else []
        found = [finding for finding in browser.findings() if not any(each in finding for each in expected)]
        assert found == []
        assert not browser.overflows()


def test_a_sample_is_read_in_the_language_that_was_chosen_in_another(browser, reference):
    browser.show()
    browser.get(f"{reference}/docs/api/clients")
    browser.find_element("css selector", ".tabs > label:nth-of-type(2)").click()
    shown = browser.execute_script("return [...document.querySelectorAll('.tabs > input:checked')].map(i => i.value)")
    assert set(shown) == {"python"}


def test_a_request_is_tried_with_a_key_that_only_the_page_remembers(browser, studio):
    server, key = studio
    browser.show()
    browser.get(f"http://127.0.0.1:{server.port}/docs/try")
    browser.implicitly_wait(20)
    click = lambda selector: browser.find_element("css selector", selector).click()  # noqa: E731
    click(".btn.authorize")
    browser.find_element("css selector", ".auth-container input").send_keys(key)
    click(".auth-btn-wrapper .authorize")
    click(".auth-btn-wrapper .btn-done")
    click("#operations-tag-Me")
    click("#operations-Me-getMe .opblock-summary-control")
    click("#operations-Me-getMe .execute")
    answer = browser.find_element("css selector", ".live-responses-table .highlight-code").text
    assert "Northlight Studio" in answer
    assert browser.execute_script("return localStorage.length + sessionStorage.length + document.cookie.length") == 0
    browser.implicitly_wait(0)
    assert [finding for finding in browser.findings() if "Content Security Policy" in finding] == []
