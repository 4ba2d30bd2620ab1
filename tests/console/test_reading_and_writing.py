"""Pages only read, and forms are read before they write: what one account sends does not hold up the writes of all."""

import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

import pytest
import time_machine

from retainer.console.editing import references
from retainer.console.pages import week_page
from retainer.console.routes import CONSOLE_ROUTES
from retainer.errors import MAX_OF_A_KIND
from retainer.kernel import batch, limits
from retainer.kernel.uploads import MAX_FIELDS
from retainer.store.engines import Sqlite
from tests.console.test_hostile import fields_of
from tests.console.test_pages import fill, paths
from tests.console.visitor import Fields, Visitor
from tests.contract.cases import statements_of
from tests.databases import each_database, only_sqlite
from tests.factories import ApiClient

PATHS = "/sign-in", "/sign-in/code", "/password"
LINES = 200


@contextmanager
def written_by_another(api: ApiClient) -> Iterator[None]:
    """Another connection, which the server does not know, holds the only writer, and no request waits for it."""
    engine, patient = api.store.engine, list[int | None]()
    assert isinstance(engine, Sqlite)
    begin = engine.begin_write

    def begin_write(account_id, *, is_patient=True):
        patient.extend([account_id] * is_patient)
        return begin(account_id, is_patient=is_patient)

    engine.begin_write = begin_write  # type: ignore[method-assign]
    other = engine.driver.connect(str(engine.path), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
        assert patient == []
    finally:
        del engine.begin_write
        other.execute("ROLLBACK")
        other.close()


@contextmanager
def statements_while_writing(api: ApiClient) -> Iterator[list[str]]:
    """The statements of the block that ran while their transaction held the writer, or the lock of its account."""
    engine, held, seen = api.store.engine, set[int](), list[str]()
    run, begin, end = engine.run, engine.begin_write, engine.end_write

    def begin_write(*arguments, **options):
        connection = begin(*arguments, **options)
        held.add(id(connection))
        return connection

    def end_write(connection, *, commit):
        held.discard(id(connection))
        return end(connection, commit=commit)

    def note(connection, text, values):
        if id(connection) in held:
            seen.append(text)
        return run(connection, text, values)

    engine.run, engine.begin_write, engine.end_write = note, begin_write, end_write  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        for name in ("run", "begin_write", "end_write"):
            engine.__dict__.pop(name, None)


@only_sqlite
def test_every_page_answers_while_another_process_writes(api, visitor):
    pages = [path for path in paths(fill(api)) if path not in {f"/console{each}" for each in PATHS}]
    wrong = {}
    assert len(pages) > 80
    with written_by_another(api):
        for path in pages:
            for method in ("GET", "HEAD"):
                page = visitor.call(method, path, may_fail=True)
                if page.status not in {200, 303, 422}:
                    wrong[path] = (page.status, page.text[:200])
    assert wrong == {}


@only_sqlite
def test_a_page_that_cannot_rehearse_says_so_and_its_preview_does(api, visitor):
    draft = api.make("/invoices", lines=[{"description": "Design", "unit_price": "100"}])
    path = f"/console/records/invoices/{draft['id']}/issue"
    with written_by_another(api):
        page = visitor.get(path)
    assert ("does not show yet what the action leads to" in page.text, "Afterwards" in page.text) == (True, False)
    form = Fields(page.html).forms[path]
    preview = visitor.post(path, [*form, ("step", "preview")])
    assert ("does not show yet" in preview.text, "Afterwards" in preview.text) == (False, True)
    assert api.get(f"/invoices/{draft['id']}").data["status"] == "draft"
    assert " issued." in visitor.follow(visitor.post(path, form)).text


@only_sqlite
def test_a_credit_that_was_shown_without_its_effects_is_previewed_first(api, visitor):
    invoice = api.make("/invoices", lines=[{"description": "Design", "unit_price": "100"}], status="sent")
    path = f"/console/records/invoices/{invoice['id']}/credit"
    with written_by_another(api):
        form = Fields(visitor.get(path).html).forms[path]
    shown = visitor.post(path, form)
    assert "This is what the form leads to: check it, then confirm." in shown.text
    assert "Afterwards" in shown.text
    assert api.get("/credit-notes").data == []


def test_the_use_of_a_session_is_written_outside_of_requests(api, visitor):
    api.sql("UPDATE sessions SET last_used_at = $1, created_at = $2", *["2026-03-10T09:00:00.000000Z"] * 2)
    with time_machine.travel("2026-03-10T09:29:00+00:00", tick=False):
        with statements_while_writing(api) as seen:
            assert visitor.get("/console/sessions").status == 200
        assert seen == []
        api.app.housekeeping.sessions_used.write(api.store)
    with time_machine.travel("2026-03-10T09:58:00+00:00", tick=False):
        assert visitor.get("/console/sessions").status == 200
    with time_machine.travel("2026-03-10T10:00:00+00:00", tick=False):
        assert visitor.get("/console/sessions").status == 303


@pytest.fixture
def many(api, monkeypatch):
    """An account with more records than a form offers, as far as searching them tells."""
    monkeypatch.setattr("retainer.console.names.MAX_CHOICES", 2)
    for number in range(4):
        api.make("/projects", name=f"Project {number}", client_id=api.make("/clients", name=f"Client {number}")["id"])
        api.make("/tags")


def forms_of(api: ApiClient, visitor: Visitor) -> dict[str, list[str]]:
    """The names of the fields of each form of the console, by its path."""
    found = {}
    for path in paths(fill(api)):
        route = CONSOLE_ROUTES.get(path.removeprefix("/console"))
        page = visitor.call("GET", path, may_fail=True)
        if page.status == 200 and (route is None or not route.is_public):
            found |= {
                action: sorted({name for name, _ in form} | {*fields_of(path, page)})
                for action, form in Fields(page.html).forms.items()
                if action.startswith("/console") and action not in {"/console/search", "/console/sign-out"}
            }
    return found


def test_no_form_runs_a_statement_for_each_of_its_fields_while_it_writes(api, visitor, many):
    wrong = {}
    for path, names in forms_of(api, visitor).items():
        few = [(name, f"nomatch {name}") for name in names if name not in {"step", "once", "timer", "email"}]
        more = [(f"lines.{place}.project_id", f"nomatch {place}") for place in range(MAX_FIELDS - len(few) - 10)]
        most = [(f"lines.{place}.project_id", f"nomatch {place}") for place in range(LINES)]
        counts = []
        for form in (few, [*few, *most], [*few, *more]):
            with statements_while_writing(api) as seen:
                visitor.call("POST", path, urlencode(form).encode(), may_fail=True)
            counts.append(len(seen))
        if max(counts) > counts[0]:
            wrong[path] = counts
    assert wrong == {}


def test_names_in_lines_are_searched_by_one_statement_and_each_once(api, visitor, many):
    path, counts = "/console/records/invoices/new", []
    visitor.get(path)  # the first request also finds the account of its session
    named = [f"Nothing {place}" for place in range(LINES)]
    for texts in (["Nothing"], named[:MAX_OF_A_KIND], ["Nothing"] * MAX_OF_A_KIND, named, ["Nothing"] * LINES):
        cells = {f"lines.{place}.project_id": text for place, text in enumerate(texts)}
        with statements_of(api) as seen:
            page = visitor.post(path, cells)
        assert page.status == 422
        assert page.error_of("lines.0.project_id") == "There is no project like that."
        assert len([text for text in seen if "row_number" in text.lower()]) == 1
        counts.append(len(seen))
    assert counts[1:3] == [counts[0]] * 2
    assert counts[3:] == [counts[0] - 1] * 2, "of more wrong lines the others are not read, nor the client's terms"


def test_more_lines_than_a_document_has_are_refused_before_they_are_searched(api, visitor, many):
    cells = {f"lines.{place}.project_id": f"Nothing {place}" for place in range(LINES + 1)}
    with statements_of(api) as seen:
        page = visitor.post("/console/records/invoices/new", cells)
    assert page.error_of("lines") == f"Must be at most {LINES} lines; these are {LINES + 1}. Split the document."
    assert not [text for text in seen if "row_number" in text.lower()]


@pytest.mark.parametrize("field", ["client_id", "project_id"])
def test_a_name_that_no_record_can_have_is_refused_at_its_field(api, visitor, many, field):
    page = visitor.post("/console/records/expenses/new", {field: "x" * 60_000, "amount": "1", "date": "2026-03-10"})
    assert (page.status, page.error_of(field)) == (
        422,
        f"Must be a name or a number of at most {references.MAX_LENGTH} characters.",
    )


def test_no_reference_of_a_form_takes_a_long_text(api, visitor, many):
    failed = {}
    for path, names in forms_of(api, visitor).items():
        for name in names:
            page = visitor.call("POST", path, urlencode({name: "x" * 60_000}).encode(), may_fail=True)
            if page.status >= 500:
                failed[path, name] = page.status
    assert failed == {}


@pytest.mark.parametrize("separator", [b"a&", b"a=1&"])
def test_a_form_of_very_many_fields_is_refused_by_their_number(api, visitor, separator):
    with statements_while_writing(api) as seen:
        page = visitor.call("POST", "/console/records/clients/new", separator * (250_000 // len(separator)))
    assert (page.status, f"Send at most {MAX_FIELDS} fields" in page.text, seen) == (400, True, [])


def test_a_form_with_a_file_has_as_few_fields(api, visitor):
    part = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
    body = part * (MAX_FIELDS + 1) + b"--b--\r\n"
    page = visitor.call("POST", "/console/settings/logo", body, CONTENT_TYPE="multipart/form-data; boundary=b")
    assert (page.status, "more than 2,000 fields" in page.text) == (400, True)


def test_a_compressed_form_is_refused_with_a_sentence(api, visitor):
    sent = {"HTTP_CONTENT_ENCODING": "gzip"}
    path = f"/console/records/clients/{api.usual('/clients')}/files"
    for kind in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=b"):
        page = visitor.call("POST", path, gzip.compress(b"a=1"), CONTENT_TYPE=kind, **sent)
        assert (page.status, "Send the form without Content-Encoding." in page.text) == (415, True)


def test_a_week_changes_a_number_of_cells_at_once(api, visitor):
    rows = [f"project_id-{api.make('/projects')['id']}" for _ in range(21)]
    page = visitor.follow(visitor.post("/console/week", {"row": rows, "step": "copy", "from": "2026-03-02"}))
    form = [pair for pair in Fields(page.html).forms["/console/week"] if not re.search(r"\.2026-", pair[0])]
    cells = [(f"{row}.2026-03-{day:02}", "0:10") for row in rows for day in range(2, 9)]
    with statements_while_writing(api) as seen:
        refused = visitor.post("/console/week", [*form, *cells])
    assert (refused.status, seen) == (422, [])
    assert f"Save at most {week_page.MAX_CHANGED} changed cells at once; these are 147." in refused.text
    assert visitor.post("/console/week", [*form, *cells[:10]]).status == 303


@each_database
def test_a_form_of_the_console_has_the_time_of_an_atomic_batch(api, visitor, monkeypatch):
    deadlines, begin = [], api.store.begin

    def note(person, **options):
        if options["write"]:
            deadlines.append(options.get("seconds"))
        return begin(person, **options)

    monkeypatch.setattr(api.store, "begin", note)
    assert visitor.submit("/console/records/clients/new", name="Nordwind").status == 200
    assert deadlines == [batch.ATOMIC_SECONDS if api.store.engine.has_one_writer else None]


def test_requests_of_a_user_and_of_an_account_are_limited(api, visitor, person, monkeypatch):
    monkeypatch.setattr(limits, "PERSON_RATE_LIMIT", 3)
    answers = [visitor.get("/console/profile") for _ in range(4)]
    assert [page.status for page in answers] == [200, 200, 200, 429]
    assert 0 < int(answers[3].headers["retry-after"]) <= 60
    assert "Too many requests: the limit is 3 a minute. Try again in" in answers[3].text
    assert visitor.post("/console/records/clients/new", {"name": "Nordwind"}).status == 429
    assert api.get("/clients").data == []
    other = person("manager")
    assert other.get("/console/profile").status == 200, "another user has a limit of their own"
    monkeypatch.setattr(limits, "PEOPLE_RATE_LIMIT", 4)
    assert other.get("/console/profile").status == 429, "all users of an account have one, too"
