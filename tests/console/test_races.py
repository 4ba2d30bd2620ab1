"""What is asked of the console and of the API at the same moment as the right to ask for it ends."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from testing.process import until

from retainer.console.pages.sign_in_pages import NOT_CARRIED
from retainer.console.routes import CONSOLE_ROUTES
from retainer.errors import Refusal
from retainer.identity import accounts
from retainer.identity.keys import keys
from retainer.identity.people import sessions, users
from retainer.identity.people.users import UserDetails
from retainer.schema.crm import clients
from retainer.schema.work import tasks
from retainer.store.engines import Sqlite
from tests.console.visitor import HASH, PASSWORD, Fields, Visitor, admin_of
from tests.databases import each_database
from tests.documents.test_logo_files import png
from tests.factories import ApiClient
from tests.jobs import tagging
from tests.length import TURN, sampled

pytestmark = each_database

SENT_AWAY = "Your session has ended, and nothing was changed."


def waiting(api: ApiClient) -> int:
    """How many writes wait for their turn."""
    engine = api.store.engine
    return (engine.turns.writer if isinstance(engine, Sqlite) else engine.writers.queues).waiting


@contextmanager
def behind(api: ApiClient, ask):
    """A transaction in which an operator changes the agency while a request waits for its turn; yields both."""
    with ThreadPoolExecutor(1) as pool, api.operating() as tx:
        answer = pool.submit(ask)
        until(lambda: waiting(api) == 1 or answer.done(), "the request waits, or is refused before it would write")
        yield tx, answer


@pytest.fixture
def other_admin(api: ApiClient) -> int:
    """Another admin of the agency."""
    with api.operating() as tx:
        return users.create_user(tx, UserDetails(name="Bea Boss", email="bea@north.example", role="admin"), HASH)


def end_sessions(tx, api):
    sessions.end_all_of(tx, api.admin_id)


def deactivate(tx, api):
    users.change_user(tx, api.admin_id, {"is_active": False})


def take_the_role(tx, api):
    users.change_user(tx, api.admin_id, {"role": "member"})


FORMS = {
    "/keys/new": {"name": "Zapier", "user_id": "1", "scopes": "clients:read"},
    "/keys/{key}/edit": {"name": "Zapier"},
    "/keys/{key}/revoke": {"confirmation": "All"},
    "/people/new": {"name": "Mia Member", "email": "mia@north.example"},
    "/people/{user}/edit": {"name": "Max Renamed"},
    "/settings": {"name": "North Studio"},
    "/settings/reminders": {"is_on": "yes", "days_after_due_1": "8"},
    "/switch": {"confirmation": "switch off"},
    "/billing-run/invoices": {"invoice": "1", "step": "issue"},
    "/records/{kind}/new": {"name": "Nordwind"},
    "/records/{kind}/{record}/edit": {"name": "Nordwind"},
    "/profile": {"current": PASSWORD, "password": "eleven red doors", "again": "eleven red doors"},
}
"""What an action needs to do something; others need nothing, or are refused, which is not to be told either."""
ACTIONS = [path for path, route in CONSOLE_ROUTES.items() if route.act and not route.is_public]


def draft_to_issue(api, path):
    """Make a draft for the page that issues drafts; return its query, of any other page none."""
    if path != "/billing-run/invoices":
        return ""
    return f"?ids={api.make('/invoices', lines=[{'description': 'Work', 'unit_price': '50'}])['id']}"


def assert_nothing_is_done(api, visitor, path, end):
    """A form is sent while an operator changes the agency so that its admin may not send it.

    One that is not filled in is refused before it waits.
    """
    api.make("/clients")
    kind = "invoices" if "{link}" in path else "clients"
    if kind == "invoices":
        line = {"description": "Work", "quantity": "1", "unit_price": "50"}
        api.make(f"/invoices/{api.make('/invoices', lines=[line], status='sent')['id']}/links")
    if "{job}" in path:
        tagging.start(api, last=9)
    if "{upload}" in path:
        visitor.upload("/console/import", b"name\nNordwind\n", file_name="list.csv", what="clients csv")
    records = dict.fromkeys(re.findall(r"\{(invoice|quote|ticket|webhook|record|file|job|link|upload)\}", path), 1)
    filled = path.format(kind=kind, key=api.key_id, user=api.member_id, session=1, **records)
    filled += draft_to_issue(api, path)

    forms = Fields(visitor.get(f"/console{filled}").html).forms if path in FORMS else {}
    form = dict(forms.get(f"/console{filled}", ())) | FORMS.get(path, {})

    def ask():
        if getattr(CONSOLE_ROUTES[path], "read_file", None) and path != "/records/{kind}/new":
            return visitor.upload(f"/console{filled}", png())
        return visitor.post(f"/console{filled}", form)

    with behind(api, ask) as (tx, answer):
        end(tx, api)
    noted = api.sql("SELECT max(id) FROM audit_entries")
    if answer.result(60).status in {404, 412, 422}:
        assert path not in FORMS
        return
    asked, is_carried = answer.result(60), bool(FORMS.get(path, {}).keys() - NOT_CARRIED) and path != "/profile"
    page = asked if is_carried else visitor.follow(asked)
    assert (page.title, SENT_AWAY in page.text) == ("Sign in · Retainer", True)
    assert {*visitor.cookies} == {"retainer-session"}
    assert api.sql("SELECT max(id) FROM audit_entries") == noted


@pytest.mark.parametrize("path", sampled(ACTIONS, 10, TURN))
def test_an_action_does_nothing_if_its_session_ended_while_it_waited(api, visitor, path):
    assert_nothing_is_done(api, visitor, path, end_sessions)


@pytest.mark.usefixtures("other_admin")
def test_an_action_does_nothing_if_its_admin_was_deactivated_while_it_waited(api, visitor):
    assert_nothing_is_done(api, visitor, "/people/{user}/deactivate", deactivate)


@pytest.mark.usefixtures("other_admin")
def test_an_action_does_nothing_if_its_admin_lost_the_role_while_it_waited(api, visitor):
    path = f"/console/people/{api.member_id}/edit"
    form = dict(Fields(visitor.get(path).html).forms[path]) | {"name": "Max Renamed"}
    with behind(api, lambda: visitor.post(path, form)) as (tx, answer):
        take_the_role(tx, api)
    refused = answer.result(60)
    assert (refused.status, "Your role, member, does not include this page." in refused.text) == (403, True)
    assert api.get(f"/users/{api.member_id}", key=api.new_key(user_id=api.member_id)).data["name"] == "Max Member"


@pytest.mark.usefixtures("other_admin")
def test_a_rehearsal_is_not_shown_to_a_user_who_lost_the_role_while_it_waited(api, visitor):
    invoice = api.make("/invoices", lines=[{"description": "Work", "quantity": "1", "unit_price": "50"}])["id"]
    path = f"/console/records/invoices/{invoice}/issue"
    form = [*Fields(visitor.get(path).html).forms[path], ("step", "preview")]
    with behind(api, lambda: visitor.post(path, form)) as (tx, answer):
        take_the_role(tx, api)
    refused = answer.result(60)
    assert (refused.status, "50.00" in refused.text) == (403, False)


def test_a_page_does_not_wait_for_a_write_of_its_account(api, visitor):
    invoice = api.make("/invoices", lines=[{"description": "Work", "quantity": "1", "unit_price": "50"}])["id"]
    with api.operating() as tx:
        accounts.get_account(tx)  # only now is the lock held: PostgreSQL receives it with the first query
        page = visitor.get(f"/console/records/invoices/{invoice}/issue")
    assert (page.status, "does not show yet what the action leads to" in page.text) == (200, True)


def test_a_form_is_refused_if_its_record_changed_while_it_waited(api, visitor):
    client = api.make("/clients", name="Nordwind")["id"]
    path = f"/console/records/clients/{client}/edit"
    form = dict(Fields(visitor.get(path).html).forms[path]) | {"name": "Talblick"}
    with behind(api, lambda: visitor.post(path, form)) as (tx, answer):
        tx.update_columns(clients, client, {"name": "Seeblick"})
    assert (answer.result(60).status, "has changed since you opened" in answer.result().text) == (412, True)
    assert api.get(f"/clients/{client}").data["name"] == "Seeblick"


def test_a_form_is_refused_if_a_task_that_it_names_became_anothers_while_it_waited(api, person):
    member = person("member")
    task = api.make("/tasks", assignee_id=member.user_id)["id"]
    form = {"task_id": task, "date": "2026-03-10", "duration_minutes": "1:00"}
    with behind(api, lambda: member.post("/console/records/time-entries/new", form)) as (tx, answer):
        tx.update_columns(tasks, task, {"assignee_id": api.admin_id})
    assert (answer.result(60).status, "is no longer yours" in answer.result().text) == (412, True)
    assert api.get("/time-entries").data == []


SENT_TWICE = {
    **{path: FORMS[path] for path in FORMS if path != "/records/{kind}/{record}/edit"},
    "/settings/reminders": {"is_on": "yes", "days_after_due_1": "8"},
    "/switch": {"confirmation": "switch off"},
    "/people/{user}/link": {},
    "/people/{user}/deactivate": {},
    "/webhooks/new": {"url": "https://receiver.example/hooks", "description": "Books"},
    "/records/{kind}/{record}/edit": {"name": "Nordwind"},
    "/records/{kind}/{record}/delete": {},
    "/records/{kind}/{record}/bill": {"time": "yes"},
    "/keys/{key}/rotate": {"hours": "24"},
    "/week/timer": {"timer": "start"},
}


@pytest.mark.parametrize("path", sampled(SENT_TWICE, 10, TURN))
def test_a_form_that_is_sent_twice_at_once_acts_once_and_leads_twice_to_the_same(api, visitor, path):
    client, project = api.make("/clients")["id"], api.make("/projects")["id"]
    api.make("/time-entries", client_id=api.usual("/clients"), hourly_rate="100")
    record = client if path.endswith("delete") else api.usual("/clients")
    filled = "/console" + path.format(kind="clients", key=api.key_id, user=api.member_id, record=record)
    filled += draft_to_issue(api, path)
    work = {"work": f"project_id-{project}"} if path == "/week/timer" else {}
    sent = [pair for pair in Fields(visitor.get(filled).html).forms[filled] if pair[0] not in SENT_TWICE[path]]
    sent += [*(SENT_TWICE[path] | work).items()]
    twin, noted = Visitor(api.app), api.sql("SELECT max(id) FROM audit_entries")[0][0]
    twin.cookies |= visitor.cookies
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda each: each.post(filled, sent), (visitor, twin))
    leads = [(page.status, page.headers.get("location")) for page in (first, second)]
    assert leads[0] == leads[1]
    assert first.status == 303, first.text
    told = [page.headers.get("set-cookie") or "" for page in (first, second)]
    with_secret = [text for text in told if "retainer-secret=" in text]
    assert len({*told}) == 1 or len(with_secret) == 1, "a secret is in the first answer alone"
    done = api.sql("SELECT action FROM audit_entries WHERE id > $1", noted)
    assert len(done) == len({*done}), "each once"
    assert done or path == "/week/timer"


def test_if_two_admins_deactivate_each_other_one_remains(api, visitor, other_admin):
    bea = Visitor(api.app)
    bea.sign_in("bea@north.example")
    at_once = threading.Barrier(2)

    def deactivate_other(pair):
        visitor, other = pair
        at_once.wait(60)
        visitor.post(f"/console/people/{other}/deactivate", {"confirmation": "Ana Admin"})

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(deactivate_other, [(visitor, other_admin), (bea, api.admin_id)]))
    with api.operating() as tx:
        active = [user["name"] for user in users.list_users(tx) if user["is_active"] and user["role"] == "admin"]
    assert len(active) == 1


def test_a_link_that_became_void_while_it_waited_sets_no_password(api, other_admin):
    with api.operating() as tx:
        link = users.create_link(tx, api.admin_id)
    stranger = Visitor(api.app)
    form = {"token": link.token, "password": PASSWORD, "again": PASSWORD}
    with behind(api, lambda: stranger.post("/console/password", form)) as (tx, answer):
        deactivate(tx, api)
    assert answer.result(60).status == 404
    assert api.sql("SELECT password_hash FROM users WHERE id = $1", api.admin_id) == [(None,)]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda tx, api: keys.revoke_key(tx, api.key_id), "revoked_key"),
        (deactivate, "user_deactivated"),
        (lambda tx, _: accounts.switch_api(tx, on=False), "api_disabled"),
        (lambda tx, api: keys.change_key(tx, api.key_id, {"scopes": ["clients:read"]}), "missing_scope"),
    ],
)
@pytest.mark.parametrize("body", [{"name": "Late"}, {"name": ""}], ids=["good", "refused"])
def test_a_write_is_refused_if_its_key_lost_the_right_while_it_waited(api, other_admin, change, code, body):
    with behind(api, lambda: api.post("/clients", body)) as (tx, answer):
        change(tx, api)
    assert answer.result(60).code == code
    assert api.sql("SELECT count(*) FROM clients") == [(0,)]


def test_a_write_has_the_role_that_its_user_has_after_waiting(api, other_admin):
    entry = api.make("/time-entries", user_id=api.member_id)
    with behind(api, lambda: api.patch(f"/time-entries/{entry['id']}", {"description": "Mine"})) as (tx, answer):
        take_the_role(tx, api)
    assert answer.result(60).code == "not_owner"
    client = api.make("/clients")
    with behind(api, lambda: api.patch(f"/clients/{client['id']}", {"city": "Bonn"})) as (tx, answer):
        keys.change_key(tx, api.key_id, {"name": "Renamed"})
    assert answer.result(60).data["city"] == "Bonn"


def test_an_operator_cannot_remove_the_last_admin(api, other_admin):
    for change in ({"is_active": False}, {"role": "member"}):
        with api.operating() as tx:
            users.change_user(tx, other_admin, change)
        with (
            pytest.raises(Refusal, match="Ana Admin is the last active admin of account") as refused,
            api.operating() as tx,
        ):
            users.change_user(tx, api.admin_id, change)
        assert refused.value.code == "locked"
        with api.operating() as tx:
            users.change_user(tx, api.admin_id, {"name": "Ana Admin", "role": "admin", "is_active": True})
            users.change_user(tx, other_admin, {"role": "admin", "is_active": True})


def test_a_preview_of_the_settings_is_refused_if_its_right_ends_while_it_waits(api, other_admin):
    visitor = admin_of(api)
    form = [*Fields(visitor.get("/console/settings").html).forms["/console/settings"], ("step", "sample")]
    with behind(api, lambda: visitor.post("/console/settings", form)) as (tx, answer):
        take_the_role(tx, api)
    assert answer.result().status == 403
