import threading

import pytest
from sqlalchemy import bindparam, delete, func, select, update

from retainer.api.clients import Client, clients
from retainer.api.contacts import contacts
from retainer.domain.users import users
from retainer.errors import Refusal
from retainer.store.engines import Unavailable
from retainer.store.tables import totals
from retainer.store.tx import Actor


def actor(office):
    return Actor(office.account_id, office.admin_id, "admin", "EUR", "UTC", 30, "C-{0000}")


def record(number, _=None, **members):
    return Client(0, "", "", "A", number, currency="EUR", payment_terms_days=30, **members)


@pytest.fixture
def statements(office, stranger):
    """Both agencies have two clients with a contact each."""
    for one in (office, stranger):
        for _ in range(2):
            one.make("/external-contacts")
    return office


def test_every_select_is_limited_to_the_account_however_deep(statements, office):
    counted = select(func.count()).select_from(contacts).where(contacts.c.client_id == clients.c.id).scalar_subquery()
    joined = clients.outerjoin(contacts, contacts.c.client_id != clients.c.id)
    with office.store.begin(actor(office), write=True) as tx:
        assert len(tx.all(select(clients.c.id))) == 2
        assert tx.all(select(clients.c.id, counted).where(clients.c.id.in_(select(contacts.c.client_id)))) != []
        pairs = tx.all(select(clients.c.account_id, contacts.c.account_id).select_from(joined))
        assert set(pairs) == {(office.account_id, office.account_id)}
        exists = select(clients.c.id).where(select(contacts.c.id).where(contacts.c.account_id != 0).exists())
        assert len(tx.all(exists)) == 2
        other = clients.alias()
        assert len(tx.all(select(other.c.id).where(other.c.id.in_(select(clients.c.id))))) == 2
        with pytest.raises(TypeError, match="joins"):
            tx.all(select(clients.c.id).join(contacts, contacts.c.client_id != clients.c.id))


def test_a_statement_that_was_run_over_all_accounts_is_still_limited_within_one(statements, office):
    statement = select(clients.c.id)
    with office.store.everywhere("a test looks at both") as tx:
        assert len(tx.all(statement)) == 4
    with office.store.begin(actor(office), write=False) as tx:
        assert len(tx.all(statement)) == 2


def test_changes_reach_the_account_only(statements, office, stranger):
    with office.store.begin(actor(office), write=True) as tx:
        assert tx.run(update(clients).values(city="Kiel")) == 2
        assert tx.run(delete(contacts)) == 2
    assert [row["city"] for row in stranger.get("/clients").data] == [None, None]
    assert stranger.get("/external-contacts").json["meta"]["total"] == 2


def test_an_exception_undoes_everything_counters_too(office):
    with pytest.raises(ZeroDivisionError), office.store.begin(actor(office), write=True) as tx:
        tx.insert(clients, record("N-1")) // 0
    assert office.get("/clients").json["meta"]["total"] == 0
    assert office.make("/clients")["number"] == "C-0001"


def test_a_second_reading_statement_needs_a_snapshot(office):
    statement = select(clients.c.id)
    with office.store.begin(actor(office), write=False) as tx:
        tx.all(statement)
        with pytest.raises(RuntimeError, match="snapshot"):
            tx.all(statement)
    with office.store.begin(actor(office), write=False) as tx:
        tx.snapshot()
        assert tx.all(statement) == tx.all(statement)


def test_a_snapshot_does_not_see_what_is_written_meanwhile(office):
    statement = select(func.count()).select_from(clients)
    with office.store.begin(actor(office), write=False) as tx:
        tx.snapshot()
        before = tx.value(statement)
        other = threading.Thread(target=office.make, args=("/clients",))
        other.start()
        other.join(timeout=10)
        assert tx.value(statement) == before == 0
    assert office.get("/clients").json["meta"]["total"] == 1


def test_a_counter_is_what_counting_gives_after_everything(office):
    made = [office.make("/external-contacts", client_id=office.make("/clients")["id"]) for _ in range(3)]
    office.delete(f"/clients/{made[0]['client_id']}")
    office.delete(f"/external-contacts/{made[1]['id']}")
    with office.store.begin(actor(office), write=True) as tx:
        for table in (clients, contacts):
            counter = tx.value(select(totals.c.count).where(totals.c.name == bindparam("name")), name=table.name)
            assert counter == tx.value(select(func.count()).select_from(table)) > 0


def test_a_database_that_is_none_is_unavailable_not_a_fault_of_ours(office):
    office.store.engine.close()
    office.app.settings.database_path.write_bytes(b"nonsense" * 2000)
    answer = office.get("/me")
    assert (answer.status, answer.code) == (503, "unavailable")
    with pytest.raises(Unavailable):
        office.store.engine.connection()


def test_a_record_that_was_refused_names_every_fault_and_writes_nothing(office):
    with pytest.raises(Refusal) as refused, office.store.begin(actor(office), write=True) as tx:
        tx.insert(clients, record("N-1", tx.fault("name", "Is odd."), tag_ids=[7]))
    assert set(refused.value.members["errors"]) == {"name", "tag_ids.0"}
    assert office.get("/clients").data == []


def test_what_others_refer_to_is_not_deleted_and_the_relation_is_named(office):
    with pytest.raises(Refusal) as refused, office.store.begin(actor(office), write=True) as tx:
        tx.delete(users, office.admin_id)
    assert refused.value.code == "in_use"
    assert refused.value.members["errors"] == {"api_keys": ["Move or delete 1 api key first."]}
    assert office.get("/me").status == 200
