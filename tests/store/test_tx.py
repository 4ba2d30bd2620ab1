import threading

import pytest
from sqlalchemy import Select, bindparam, func, literal, select

from retainer.crm.clients import Client
from retainer.errors import Refusal
from retainer.schema.crm import clients, external_contacts
from retainer.schema.identity import users
from retainer.store.announcements import deleting, updating
from retainer.store.engines.base import Unavailable
from retainer.store.statements import CACHE_SIZE, DeferredStatement
from retainer.store.tables import ACCOUNT, NOW, totals
from retainer.store.tx import Actor
from tests.databases import each_database, only_sqlite

pytestmark = each_database


def actor(api):
    return Actor(api.account_id, api.admin_id, "admin", "EUR", "UTC", 30, "C-{0000}")


def record(number, _=None, **members):
    return Client(0, "", "", "A", number, currency="EUR", payment_terms_days=30, **members)


@pytest.fixture
def statements(api, other_tenant):
    """Both agencies have two clients with a contact each."""
    for one in (api, other_tenant):
        for _ in range(2):
            one.make("/external-contacts")
    return api


def test_every_select_is_limited_to_the_account_however_deep(statements, api):
    counted = (
        select(func.count())
        .select_from(external_contacts)
        .where(external_contacts.c.client_id == clients.c.id)
        .scalar_subquery()
    )
    joined = clients.outerjoin(external_contacts, external_contacts.c.client_id != clients.c.id)
    with api.store.begin(actor(api), write=True) as tx:
        assert len(tx.all(select(clients.c.id))) == 2
        assert (
            tx.all(select(clients.c.id, counted).where(clients.c.id.in_(select(external_contacts.c.client_id)))) != []
        )
        pairs = tx.all(select(clients.c.account_id, external_contacts.c.account_id).select_from(joined))
        assert set(pairs) == {(api.account_id, api.account_id)}
        exists = select(clients.c.id).where(
            select(external_contacts.c.id).where(external_contacts.c.account_id != 0).exists()
        )
        assert len(tx.all(exists)) == 2
        other = clients.alias()
        assert len(tx.all(select(other.c.id).where(other.c.id.in_(select(clients.c.id))))) == 2
        with pytest.raises(TypeError, match="joins"):
            tx.all(select(clients.c.id).join(external_contacts, external_contacts.c.client_id != clients.c.id))


@pytest.mark.parametrize("text", ["it's", "100 % of ''", ":id", "?1", "$1", "back\\slash", "-- no comment", "ä\n"])
def test_a_constant_keeps_its_meaning_next_to_bound_values(api, text):
    made = api.sql("UPDATE clients SET name = $1 WHERE id = $2 RETURNING id", text, api.make("/clients")["id"])
    wanted = select(literal(text), literal(-7), clients.c.name).where(
        clients.c.name == text, clients.c.id > -1, clients.c.id == bindparam("id")
    )
    with api.store.begin(actor(api), write=False) as tx:
        assert tx.all(wanted, id=made[0][0]) == [(text, -7, text)]
    names = api.store.statements.of_account(wanted).names
    assert len(names) == (4 if "$" in text else 2), "the account and the id; a text that looks like a place is bound"


def test_a_statement_that_ran_over_all_accounts_is_still_limited_in_one(statements, api):
    statement = select(clients.c.id)
    with api.store.unscoped() as tx:
        assert len(tx.all(statement)) == 4
    with api.store.begin(actor(api), write=False) as tx:
        assert len(tx.all(statement)) == 2


def test_changes_reach_the_account_only(statements, api, other_tenant):
    with api.store.begin(actor(api), write=True) as tx:
        assert tx.change(updating(clients, values={"city": "Kiel"})) == 2
        assert tx.change(deleting(external_contacts)) == 2
    assert [row["city"] for row in other_tenant.get("/clients").data] == [None, None]
    assert other_tenant.get("/external-contacts").json["meta"]["total"] == 2


def test_a_missing_value_is_an_error_and_not_null(statements, api):
    with api.store.begin(actor(api), write=True) as tx, pytest.raises(KeyError, match="town"):
        tx.change(updating(clients, values={"city": bindparam("town")}))


@pytest.mark.parametrize("name", ["account_id", "now", "today"])
def test_a_bind_with_the_name_of_a_value_of_the_transaction_is_refused(api, name):
    own = select(clients.c.id).where(clients.c.name == bindparam(name), clients.c.created_at <= NOW)
    with api.store.begin(actor(api), write=False) as tx, pytest.raises(TypeError, match=f"The bind {name} .*Rename it"):
        tx.all(own, **{name: "mine"})


def test_a_statement_over_all_accounts_cannot_name_the_account(api):
    with api.store.unscoped() as tx, pytest.raises(TypeError, match="no account is known"):
        tx.all(select(clients.c.id).where(clients.c.account_id == ACCOUNT))


def test_an_exception_rolls_back_everything_including_counters(api):
    with pytest.raises(ZeroDivisionError), api.store.begin(actor(api), write=True) as tx:
        tx.insert(clients, record("N-1")) // 0
    assert api.get("/clients").json["meta"]["total"] == 0
    assert api.make("/clients")["number"] == "C-0001"


def test_a_second_reading_statement_needs_a_snapshot(api):
    statement = select(clients.c.id)
    with api.store.begin(actor(api), write=False) as tx:
        tx.all(statement)
        with pytest.raises(RuntimeError, match="snapshot"):
            tx.all(statement)
    with api.store.begin(actor(api), write=False) as tx:
        tx.snapshot()
        assert tx.all(statement) == tx.all(statement)


def test_no_statement_runs_after_the_end_when_its_connection_serves_others(api):
    for write in (False, True):
        with api.store.begin(actor(api), write=write) as tx:
            tx.snapshot()
        with pytest.raises(RuntimeError, match="has ended"):
            tx.all(select(clients.c.id))


def test_a_snapshot_does_not_see_later_writes(api):
    statement = select(func.count()).select_from(clients)
    with api.store.begin(actor(api), write=False) as tx:
        tx.snapshot()
        before = tx.value(statement)
        other = threading.Thread(target=api.make, args=("/clients",))
        other.start()
        other.join(timeout=10)
        assert tx.value(statement) == before == 0
    assert api.get("/clients").json["meta"]["total"] == 1


def test_a_connection_returns_to_the_pool_if_its_snapshot_fails(api):
    engine = api.store.engine
    connection = engine.connection()
    engine.give_back(connection)
    if engine.name == "SQLite":
        connection.execute("BEGIN")  # within which no other can begin
    else:
        connection.close()
    with pytest.raises((Unavailable, engine.driver.OperationalError if engine.name == "SQLite" else Unavailable)):
        api.store.unscoped().__enter__()
    opened, idle = engine.connections
    assert opened == idle, "nobody has one"


def test_a_counter_equals_the_number_of_rows(api):
    made = [api.make("/external-contacts", client_id=api.make("/clients")["id"]) for _ in range(3)]
    api.delete(f"/clients/{made[0]['client_id']}")
    api.delete(f"/external-contacts/{made[1]['id']}")
    with api.store.begin(actor(api), write=True) as tx:
        for table in (clients, external_contacts):
            counter = tx.value(select(totals.c.count).where(totals.c.name == bindparam("name")), name=table.name)
            assert counter == tx.value(select(func.count()).select_from(table)) > 0


@only_sqlite
def test_a_file_that_is_not_a_database_is_an_outage(api):
    api.store.engine.close()
    api.path.write_bytes(b"nonsense" * 2000)
    answer = api.get("/me")
    assert (answer.status, answer.code) == (503, "unavailable")
    with pytest.raises(Unavailable):
        api.store.engine.connection()


def test_a_refused_record_reports_every_error_and_writes_nothing(api):
    with pytest.raises(Refusal) as refused, api.store.begin(actor(api), write=True) as tx:
        tx.insert(clients, record("N-1", tx.error("name", "Is odd."), tag_ids=[7]))
    assert set(refused.value.members["errors"]) == {"name", "tag_ids.0"}
    assert api.get("/clients").data == []


def test_a_referenced_row_is_not_deleted_and_the_relation_is_named(api):
    with pytest.raises(Refusal) as refused, api.store.begin(actor(api), write=True) as tx:
        tx.delete(users, api.admin_id)
    assert refused.value.code == "in_use"
    assert refused.value.members["errors"] == {"api_keys": ["Move or delete 1 api key first."]}
    assert api.get("/me").status == 200


def test_the_least_recently_used_statements_are_dropped(api):
    statements, built = api.store.statements, []

    def build(number: int) -> Select[int]:
        built.append(number)
        return select(clients.c.id).where(clients.c.id > number)

    first = statements.of_all(DeferredStatement(build, (0,)))
    assert statements.of_all(DeferredStatement(build, (0,))) is first
    for number in range(1, CACHE_SIZE):
        statements.of_all(DeferredStatement(build, (number,)))
    statements.of_all(DeferredStatement(build, (0,)))
    assert built == [*range(CACHE_SIZE)], "each was built once"
    statements.of_all(DeferredStatement(build, (CACHE_SIZE,)))
    statements.of_all(DeferredStatement(build, (0,)))
    assert len(built) == CACHE_SIZE + 1, "the one that was used last has stayed"
    statements.of_all(DeferredStatement(build, (1,)))
    assert built[-1] == 1, "the one that was not used for longest has gone"
