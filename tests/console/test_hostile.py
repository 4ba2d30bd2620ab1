"""Whatever is written into a field, a query or a path of the console: a page says what is wrong with it."""

import re
from urllib.parse import urlencode

import pytest

from retainer.console.routes import CONSOLE_ROUTES
from tests.blackbox.corpus import BAD_QUERIES, TYPED
from tests.console.test_pages import fill
from tests.console.visitor import Fields, Visitor, WebPage
from tests.length import IS_FULL, TURN, by_turns, sampled

READ = {
    "/audit": ("cursor", "since", "until", "target", "target_id"),
    "/keys": ("q", "sort"),
    "/keys/new": ("preset", "scopes"),
    "/password": ("token",),
    "/records/{kind}": ("page", "ids", "client_id", "number", "total_min", "created_since", "issue_date_from"),
    "/requests": ("after", "operation", "since", "until"),
    "/sign-in": ("next", "account"),
}
"""Fields that pages read and no form of theirs has."""
LETHAL = ("%00", "9" * 30, "%D9%A3" * 5000)
"""What is sent in each field alone, the others filled; other hostile texts are sent in all fields at once."""
LONG = {"cursor": f"2026-01-01T00:00:00.000000Z,{'9' * 30}", "after": f"2026-01-01T00:00:00.000000Z.{'9' * 18}"}


def fields_of(path: str, page: WebPage) -> dict[str, str]:
    """The fields of a page, filled as they are, or with something."""
    names = [field["name"] for field in page.all("input select textarea") if field["name"]]
    filled = {name: text for form in Fields(page.html).forms.values() for name, text in form if text}
    return dict.fromkeys(["unknown", *READ.get(path, ()), *names], "x") | filled


def hostile(fields: dict[str, str]) -> list[str]:
    """Queries, which are encoded forms too, with hostile texts in these fields: each day another fifth of them."""
    others = {name: urlencode({key: text for key, text in fields.items() if key != name}) for name in fields}
    alone = [f"{name}={text}&{others[name]}" for name in fields for text in (*LETHAL, LONG.get(name, "x"))]
    more = ["&".join(f"{name}={text}" for name in fields) for text in TYPED if len(text) < 500]
    more += [*BAD_QUERIES, *(f"q={text}" for text in TYPED)]
    return sampled([*alone, *more][TURN % 5 :: 5], 5)


def survives(page: WebPage) -> bool:
    """Whether an answer is a page, a redirect within the console, or a refusal."""
    return page.status < 500 and (page.status != 303 or page.location.startswith("/console"))


@pytest.mark.parametrize("path", by_turns(CONSOLE_ROUTES) if IS_FULL else sampled(CONSOLE_ROUTES, 4, TURN))
def test_no_query_and_no_form_is_a_server_error(api, visitor, path):
    texts = fill(api)
    texts |= {"kind": "invoices", "record": texts["records/invoices"], "suffix": "pdf"}
    texts["file"] = str(api.create("/files", record="invoice", record_id=int(texts["record"])).data["id"])
    filled = "/console" + re.sub(r"\{(\w+)\}", lambda name: texts[name[1]], path)
    route, wrong = CONSOLE_ROUTES[path], []
    visiting = Visitor(api.app) if route.is_public else visitor
    kept = dict(visiting.cookies)
    for encoded in hostile(fields_of(path, visiting.get(filled))):
        asked = [visiting.call("GET", f"{filled}?{encoded}", may_fail=True)]
        if route.act:
            asked.append(visiting.call("POST", filled, encoded.encode(), may_fail=True))
        wrong += [(page.status, encoded[:200]) for page in asked if not survives(page)]
        visiting.cookies = dict(kept)
    assert wrong == []


@pytest.mark.parametrize(
    ("more", "status", "words"),
    [
        ({f"field{number}": "" for number in range(1999)}, 303, ""),
        ({f"field{number}": "" for number in range(2000)}, 400, "Send at most 2000 fields"),
        ({"notes": "x" * (256 * 1024 - 100)}, 422, ""),
        ({"notes": "x" * 256 * 1024}, 413, "The form is larger than 256 KiB."),
    ],
    ids=["2000 fields", "2001 fields", "256 KiB", "more than 256 KiB"],
)
def test_a_form_has_a_number_of_fields_and_a_size(api, visitor, more, status, words):
    page = visitor.post("/console/records/clients/new", {"name": "Bergmann", **more})
    assert (page.status, words in page.text) == (status, True)
    assert len(api.get("/clients").data) == (status == 303)
