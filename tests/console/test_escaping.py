"""Hostile text in every field of records, people, keys and requests: pages show it, and none takes it for its own."""

import re
from collections import Counter
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import quote, urlencode
from wsgiref.validate import WSGIWarning

import pytest

from retainer.errors import STATUS
from retainer.identity import accounts
from retainer.identity.keys import keys
from retainer.identity.keys.keys import KeyDetails
from retainer.identity.people import users
from retainer.identity.people.users import UserDetails
from retainer.values.exact import instant_after
from tests.console.test_hostile import fields_of
from tests.console.test_key_pages import recorded
from tests.console.test_pages import RECORDS
from tests.console.visitor import PASSWORD, Visitor, WebPage, admin_of
from tests.contract.cases import CREATES, bare, body_schema, is_free_text, kinds, schema_fields
from tests.databases import any_database
from tests.factories import ApiClient
from tests.length import IS_FULL, by_turns, only_full

pytestmark = [any_database, pytest.mark.usefixtures("unlimited")]
EVIL = """x'"><zz>&zz;"""
"""As part of a page it would end an attribute, be an element, or be read as a character."""
TRACES = ("x'", 'x&#39;"', "<zz", "&zz;", "&amp;amp;", "&amp;#3", "UNSET")
"""What no page may have of it: what is raw, and what was escaped twice; nor a value that is none."""
OTHER = f"{EVIL}?"
"""What is typed: no name, so that nothing is found or confirmed by it."""
PARAGRAPH = 1000
"""Characters from which on a field takes a text that pages show as a paragraph."""
NEEDED = {"lines": {"unit_price": "500"}, "plugins": {"status": "active", "slug": "shop", "version": "1.0"}}
"""What parts of records need beside text."""


def text_for(schema: dict[str, Any]) -> str | None:
    """Hostile text for a field; None for one whose text is not free."""
    if schema.get("format") == "uri":
        return f"https://shop.example/{EVIL}"
    if not is_free_text(schema) or schema.get("maxLength", 0) < len(EVIL):
        return None
    return f"{EVIL}\n{EVIL * 20}" if schema["maxLength"] >= PARAGRAPH else EVIL


def hostile(schema: dict[str, Any]) -> dict[str, Any]:
    """The fields of a body that take free text, with hostile text, those of its parts included."""
    found: dict[str, Any] = {}
    for name, field in schema_fields(schema).items():
        if "array" in kinds(field) and "properties" in bare(field["items"]):
            found[name] = [hostile(bare(field["items"])) | NEEDED.get(name, {})]
        elif kinds(field) <= {"string", "null"} and (text := text_for(field)):
            found[name] = text
    return found


def make_records(api: ApiClient) -> int:
    """Make a record of each kind, with hostile text in every field that takes it; return how many fields those are."""
    tags, count = [api.make("/tags", name=EVIL, color="#000000")["id"]], 0
    api.patch(f"/clients/{api.usual('/clients')}", hostile(body_schema(CREATES[0])) | {"tag_ids": tags})
    for operation in CREATES:
        if operation.path == "/tags":
            continue
        path, body = api.at(operation.path), hostile(body_schema(operation))
        body |= {name: value for name, value in api.recipe(path).items() if name not in body}
        answer = api.post(path, body)
        if answer.status == 422:  # of several fields a rule wants one
            body = {name: value for name, value in body.items() if name not in answer.errors}
            answer = api.post(path, api.recipe(path) | body)
        assert answer.status == 201, f"{operation}: {answer}"
        count += f"{body}".count("<zz>")
    return count


@pytest.fixture
def world(api: ApiClient) -> Visitor:
    """An admin of an agency in which everything has a hostile name."""
    visitor = admin_of(api)
    assert make_records(api) > 30
    with api.operating() as tx:
        accounts.set_account(tx, {"name": EVIL})
        keys.change_key(tx, api.key_id, {"name": EVIL})
        soon = instant_after(tx.now, timedelta(days=2))
        keys.create_key(tx, KeyDetails(EVIL, api.member_id, ["clients:read"], soon))
        users.change_user(tx, api.member_id, {"name": EVIL})
        users.change_user(tx, api.admin_id, {"name": EVIL, "email": "x'&zz@north.example"})
        users.create_user(tx, UserDetails(EVIL, "x'&zz@south.example", role="admin"))
    api.get(f"/clients/{EVIL}")
    odd: dict[str, Any] = {"HTTP_AUTHORIZATION": f"Bearer {api.key}", "HTTP_COOKIE": None}
    with pytest.warns(WSGIWarning):
        assert visitor.call("x'&ZZ", "/api/public/v1/clients", **odd).status == 405
    recorded(api)
    form = {"email": "x'&zz@north.example", "password": PASSWORD}
    assert Visitor(api.app).post("/console/sign-in", form, HTTP_USER_AGENT=EVIL).status == 303
    return visitor


def crawled(visitor: Visitor) -> dict[str, WebPage]:
    """All pages to which links lead from the first page and from the lists of all kinds of records; in the short tier,
    two of those whose paths differ in numbers or queries alone."""
    asked = ["/console", *(f"/console/records/{kind}" for kind in (*RECORDS, "external-contacts"))]
    asked += [f"/console/{path}?{urlencode({'q': EVIL})}" for path in ("records/credit-notes", "search", "keys")]
    asked += [f"/console/records/clients?{urlencode({'number': EVIL})}", f"/console/search?{urlencode({'q': OTHER})}"]
    found: dict[str, WebPage] = {}
    alike: Counter[str] = Counter()
    while asked:
        path = asked.pop()
        found[path] = visitor.get(path)
        links = {link for link in found[path].links if "sort=" not in link and "/week?" not in link}  # weeks never end
        links -= found.keys() | set(asked)
        logged = {link for link in links if link.startswith("/console/requests/")}
        for link in [*sorted(links - logged), *sorted(logged)[-2:]]:  # of the requests that made the records some
            alike[form := re.sub(r"\d+|\?.*", "", link)] += 1
            if IS_FULL or alike[form] <= 2:
                asked.append(link)
    assert [path for path, page in found.items() if page.status == STATUS["rate_limited"]] == []
    return found


def refused(visitor: Visitor, found: dict[str, WebPage]) -> dict[str, WebPage]:
    """All pages with a form, after it was sent with hostile text in every field, and asked for with it."""
    pages = {}
    for path, page in found.items():
        fields = dict.fromkeys(fields_of("", page), OTHER)
        pages[f"typed {path}"] = visitor.get(f"{path.partition('?')[0]}?{urlencode(fields)}")
        if 'method="post"' in page.html and path.partition("?")[0] != "/console/sessions":
            pages[f"sent {path}"] = visitor.post(path.partition("?")[0], fields)
    return pages


def traces(pages: dict[str, WebPage]) -> list[tuple[str, str]]:
    html = {path: page for path, page in pages.items() if page.headers.get("content-type", "").startswith("text/html")}
    return [(path, trace) for path, page in html.items() for trace in TRACES if trace in page.html]


def test_every_page_escapes_the_texts_of_records(world):
    pages = crawled(world)
    assert traces(pages) == []
    records = {path: page for path, page in pages.items() if path.startswith("/console/records/")}
    titled = {path.split("/")[3] for path, page in records.items() if path[-1].isdigit() and EVIL in page.title}
    assert titled == {*RECORDS, "external-contacts", "credit-notes"}
    assert sum(page.text.count(EVIL) for page in records.values()) > 500


@only_full
def test_every_page_escapes_its_input(world):
    pages = refused(world, dict(by_turns(crawled(world).items())))
    assert traces(pages) == []
    assert sum(EVIL in unescape(page.html) for page in pages.values()) > 100


def test_notices_and_public_pages_escape_names(api, world):
    pages = {"renamed": world.submit(f"/console/people/{api.member_id}/edit", role="member")}
    pages["deactivated"] = world.submit(f"/console/people/{api.member_id}/deactivate", confirmation=EVIL)
    pages["revoked"] = world.submit(f"/console/keys/{api.key_id}/revoke", confirmation=EVIL)
    stranger = Visitor(api.app)
    for visiting, path in ((world, "/console/keys"), (stranger, "/console/sign-in")):
        visiting.cookies["retainer-notice"] = quote(f"{EVIL} {EVIL}", safe="")
        pages[f"forged {path}"] = visiting.get(path)
    with api.operating() as tx:
        admins = [user["id"] for user in users.list_users(tx) if user["role"] == "admin"]
        links = [users.create_link(tx, user_id) for user_id in admins]
    pages |= {f"invited {link}": stranger.get(f"/console/password?token={link.token}") for link in links}
    pages["no text"] = world.get(f"/console/keys?{quote(EVIL)}%00=1")
    pages["asked"] = stranger.get(f"/console/sign-in?{urlencode({'next': EVIL, 'email': EVIL})}")
    pages["failed"] = stranger.post("/console/sign-in", {"email": EVIL, "password": EVIL, "next": EVIL})
    pages["nowhere"] = world.get(f"/console/{EVIL}")
    for kind in ("key", "link"):
        world.cookies["retainer-secret"] = quote(f"{kind} {EVIL}", safe="")
        pages[f"new {kind}"] = world.get(f"/console/keys/{api.key_id}")
    assert traces(pages) == []
    assert [name for name, page in pages.items() if name != "nowhere" and EVIL not in unescape(page.html)] == []


def test_the_choice_of_accounts_escapes_names(both):
    for api in both:
        admin_of(api)
        with api.operating() as tx:
            accounts.set_account(tx, {"name": EVIL})
            users.change_user(tx, api.admin_id, {"email": "ana@both.example"})
    choice = Visitor(both[0].app).sign_in("ana@both.example")
    assert choice.text.count(EVIL) == 2
    assert traces({"choice": choice}) == []
