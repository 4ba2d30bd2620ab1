"""Paths and headers that no browser sends, at the console of a real server."""

import re
from urllib.parse import urlencode

import pytest
from testing.process import opened

from retainer.console.routes import CONSOLE_ROUTES
from retainer.identity.actors import operator_of
from retainer.identity.people import sessions, users
from tests.blackbox.corpus import hostile_ids
from tests.console.visitor import HASH, PASSWORD
from tests.length import by_turns, only_full

NEAR = "2026-01-01T00:00:00.000000Z."
POSITIONS = [NEAR + "9" * 18, NEAR + "9" * 19, NEAR + "-1", NEAR + "%D9%A3", f"0000{NEAR[4:]}1", f"2026-99{NEAR[7:]}1"]
WRONG = ["%ff", "%ED%A0%80", "%00", "%0d%0aSet-Cookie:%20a=b", "a" * 300, "%F0%9F%92%A9", "{x}", "%7B%7B7*7%7D%7D"]


@pytest.fixture
def admin(servers, open_agency):
    """An admin's email, and the headers of a signed-in session."""
    agency = open_agency("agency")
    with opened(servers.database) as store, store.begin(operator_of(store, agency["account_id"]), write=True) as tx:
        users.set_password(tx, agency["admin_id"], "Ana Admin", HASH)
        token = sessions.start(tx, agency["admin_id"], None, None)[1]
        email = users.get_user(tx, agency["admin_id"])["email"]
    return email, {"Cookie": f"retainer-session={token}", "Sec_Fetch_Site": "same-origin"}


def answered(client, method, path, headers):
    """The status with which a request is answered."""
    answer = client.send(method, path, b"" if method == "POST" else None, **headers)
    assert not re.search(rb"Traceback|sqlite|psycopg", answer.body, re.IGNORECASE)
    return answer.status


@only_full
def test_no_path_of_the_console_is_a_server_error(servers, admin):
    below = [path.replace("{kind}", "clients").partition("{") for path in CONSOLE_ROUTES]
    named = [(head, rest.partition("}")[2]) for head, brace, rest in below if brace]
    paths = [f"{head}{wrong}{rest}" for head, rest in named for wrong in (*hostile_ids(1), *POSITIONS)]
    paths += [f"/{form}" for part in WRONG for form in (part, f"records/{part}", f"keys?{part}={part}")]
    asked = by_turns((method, f"/console{path}") for path in paths for method in ("GET", "POST"))
    with servers.each[0].client() as client:
        assert [one for one in asked if answered(client, *one, admin[1]) >= 500] == []


HEADERS = [
    {"Cookie": "retainer-session=%00"},
    {"Cookie": "retainer-session=\xff\xfe"},
    {"Cookie": "retainer-session=%ED%A0%80; retainer-notice=%ff%00; ;=;a"},
    {"Cookie": "=" * 5000},
    {"User_Agent": "\xff\xfe"},
    {"User_Agent": "x" * 10_000},
    {"Accept": "\xff"},
    {"Origin": "http://[", "Sec_Fetch_Site": ""},
    {"Origin": "//", "Referer": "\xff"},
    {"Content_Type": "\xff"},
]


def test_no_header_is_a_server_error(servers, admin):
    own = {"Content_Type": "application/x-www-form-urlencoded", "Sec_Fetch_Site": "same-origin"}
    form = urlencode({"email": admin[0], "password": PASSWORD}).encode()
    with servers.each[0].client() as client:
        for sent in HEADERS:
            for path in ("/console", "/console/sign-in", "/console/password?token=x", "/console/keys", "/nowhere"):
                assert client.send("GET", path, **sent).status < 500, sent
            signing_in = client.send("POST", "/console/sign-in", form, **(own | sent))
            assert signing_in.status == 303 or not sent.keys().isdisjoint(own), (sent, signing_in)
