"""What is answered when the database is out of reach or broken: every operation says so, and nothing is half done."""

from tests.contract.cases import (
    OPERATIONS,
    READS,
    UPDATES,
    WRITES,
    commits,
    db_copy,
    each,
    held_writes,
    sample,
    send,
    succeeds,
)
from tests.contract.checks import some_change
from tests.factories import Answer, ApiClient

ONCE = {"Idempotency-Key": "once"}
IDENTITY = {"accounts", "users", "api_keys"}
"""The tables by which a key is recognised; `/me` shows more of them than that takes."""
BROKEN = "CREATE TRIGGER broken BEFORE INSERT ON idempotency_keys BEGIN INSERT INTO no_such_table VALUES (1); END"


@each(OPERATIONS)
def test_a_database_that_is_out_of_reach_is_503_until_it_is_back(api, operation):
    it, path = sample(api, operation), api.path
    before = commits(api)
    api.store.engine.close()  # what is open goes on reading the file, wherever that is
    aside = path.rename(path.with_name("aside.db"))
    says_that_the_database_is_out_of_reach(send(api, it, headers=ONCE))
    aside.rename(path)
    assert commits(api) == before
    assert "idempotency-replayed" not in succeeds(send(api, it, headers=ONCE)).headers


def test_a_write_that_waits_too_long_for_another_is_503_while_reads_go_on(api):
    it = sample(api, next(iter(WRITES)))
    with held_writes(api, patience=0):
        before = commits(api)
        says_that_the_database_is_out_of_reach(send(api, it, headers=ONCE))
        assert commits(api) == before
        succeeds(api.get("/me"))
    assert "idempotency-replayed" not in succeeds(send(api, it, headers=ONCE)).headers


@each(WRITES)
def test_a_write_that_fails_at_its_very_end_is_500_and_undone_as_a_whole(api, operation):
    it = sample(api, operation)
    if operation in UPDATES:  # a record that is sent back as it is leaves nothing to undo
        it = it._replace(body=some_change(it.record, "other"))
    change_schema(api, BROKEN)  # the answer is kept under the Idempotency-Key after all else was written
    before = commits(api)
    says_that_it_is_our_fault(send(api, it, headers=ONCE))
    assert commits(api) == before
    change_schema(api, "DROP TRIGGER broken")
    assert "idempotency-replayed" not in succeeds(send(api, it, headers=ONCE)).headers


@each(READS)
def test_a_read_of_tables_that_are_gone_is_500(api, operation):
    it = sample(api, operation)
    broken = db_copy(api)
    names = broken.store.engine.one(TABLES, [])[0].split(",")
    drops = [f"DROP TABLE {name}" for name in names if name not in IDENTITY]
    change_schema(broken, "PRAGMA foreign_keys=OFF", "BEGIN", *drops, "ALTER TABLE api_keys DROP COLUMN name", "COMMIT")
    says_that_it_is_our_fault(send(broken, it))
    succeeds(send(api, it))


TABLES = "SELECT group_concat(name) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"


def change_schema(api: ApiClient, *statements: str) -> None:
    """Change the tables of a database, as no request does."""
    connection = api.engine.connect()
    for statement in statements:
        connection.execute(statement)
    connection.close()


def says_that_the_database_is_out_of_reach(answer: Answer) -> None:
    assert (answer.status, answer.code) == (503, "unavailable"), answer
    assert answer.json.keys() == {"message", "code", "request_id"}
    assert "The database is out of reach." in answer.json["message"]
    assert int(answer.headers["retry-after"]) >= 1


def says_that_it_is_our_fault(answer: Answer) -> None:
    """No word of what is wrong: that is in the log, where the request id leads."""
    assert (answer.status, answer.code) == (500, "server_error"), answer
    number = answer.headers["x-request-id"]
    message = f"Something went wrong here. Report the request id {number} to the operator."
    assert answer.json == {"message": message, "code": "server_error", "request_id": number}
