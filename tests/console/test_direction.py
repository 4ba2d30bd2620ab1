"""Names that turn the direction of text: each is by itself, so that it turns nothing after it."""

import re
from pathlib import Path
from typing import Any

import pytest

from retainer.web import pages as web
from tests.console.test_pages import RECORDS
from tests.console.visitor import Element, WebPage
from tests.factories import ApiClient

STYLES = Path(web.__file__).parent / "assets" / "retainer.css"
TURNING = "Help\u202e!"
"""After it, text would run from right to left."""
HEBREW = "\u05e9\u05dc\u05d5\u05dd"
ISOLATED = re.compile("\u2068[^\u2066-\u2069]*\u2069")
ALONE = {"a", "td", "th", "dd", "h1", "h2", "h3", "p", "li", "strong", "label", "legend", "option", "optgroup"}
"""The elements that the style sheet isolates."""
WHOLE = {"textarea", "title", "div"}
"""Elements whose text is a paragraph of its own."""


def test_the_style_sheet_isolates_what_has_a_name():
    (found,) = re.findall(r":is\(([^)]*)\) \{ unicode-bidi: isolate; \}", STYLES.read_text())
    assert set(found.split(", ")) == ALONE


def texts(element: Element, inside: str = "") -> list[tuple[str, str]]:
    """The texts of an element that stand beside each other, each with the nearest element that is isolated."""
    own = element.tag if element.tag in ALONE | WHOLE else inside
    found = [(own, " ".join(part for part in element.parts if isinstance(part, str)))]
    return found + [each for part in element.parts if isinstance(part, Element) for each in texts(part, own)]


def turned(page: WebPage, name: str) -> list[tuple[str, str]]:
    """The texts of a page in which something follows a name that is not isolated."""
    found = [text for element in page.all("html") for text in texts(element)]
    left = [(tag, " ".join(ISOLATED.sub("", text).split())) for tag, text in found if name in text]
    return [(tag, text) for tag, text in left if name in text and not (tag in ALONE | WHOLE and text.endswith(name))]


def pages(api: ApiClient, name: str) -> list[str]:
    named: dict[str, dict[str, Any]] = {"/external-contacts": {"first_name": None, "last_name": name}}
    field = {"/tickets": "subject", "/tasks": "title", "/quotes": "title", "/invoices": "subject"}
    field |= {"/expenses": "description", "/time-entries": "description"}
    client = api.make("/clients", name=name)["id"]
    project = api.make("/projects", name=name, client_id=client)["id"]
    paths = ["", "/week", f"/search?q={name}", "/records/tickets/new", "/records/time-entries/new"]
    for kind in sorted(RECORDS):
        own = named.get(f"/{kind}", {field.get(f"/{kind}", "name"): name})
        own |= {"client_id": client} if kind in {"tickets", "invoices", "quotes"} else {}
        own |= {"project_id": project, "client_id": None} if kind in {"tasks", "time-entries"} else {}
        record = api.create(f"/{kind}", **own)
        if record.status == 201:
            paths += [
                f"/records/{kind}",
                f"/records/{kind}/{record.data['id']}",
                f"/records/{kind}/{record.data['id']}/edit",
            ]
    return paths


@pytest.mark.parametrize("name", [TURNING, HEBREW], ids=["override", "hebrew"])
def test_a_name_turns_nothing_that_follows_it(api, visitor, name):
    wrong = {path: found for path in pages(api, name) if (found := turned(visitor.get(f"/console{path}"), name))}
    assert wrong == {}, str(wrong)


def test_a_file_has_names_as_they_are(api, visitor):
    api.make("/projects", client_id=api.make("/clients", name=TURNING)["id"])
    assert f',"{TURNING}",' in visitor.get("/console/records/projects/csv").html
