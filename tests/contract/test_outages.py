"""What is answered when the database is out of reach or broken: every operation says so, and nothing is half done."""

from retainer.schema import metadata
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
from tests.factories import Answer

ONCE = {"Idempotency-Key": "once"}
IDENTITY = {"accounts", "users", "api_keys"}
"""The tables by which a key is recognised; `/me` shows more of them than that takes."""


@each(OPERATIONS)
def test_a_database_that_is_out_of_reach_is_503_until_it_is_back(api, operation):
    request = sample(api, operation)
    before = commits(api)
    with api.databases.out_of_reach(api.app):
        says_that_it_cannot_be_done_now(send(api, request, headers=ONCE), "The database is out of reach.")
    assert api.app.log.outages.is_on
    assert commits(api) == before
    assert "idempotency-replayed" not in succeeds(send(api, request, headers=ONCE)).headers


def test_a_write_that_waits_too_long_for_another_is_503_while_reads_go_on(api):
    request = sample(api, next(iter(WRITES)))
    with held_writes(api, patience=0):
        before = commits(api)
        says_that_it_cannot_be_done_now(send(api, request, headers=ONCE), "Others are writing the same.")
        assert commits(api) == before
        succeeds(api.get("/me"))
    outages = api.app.log.outages
    assert (outages.is_on, outages.errors) == (False, 0), "the database is there"
    assert "idempotency-replayed" not in succeeds(send(api, request, headers=ONCE)).headers


@each(WRITES)
def test_a_write_that_fails_at_its_very_end_is_500_and_undone_as_a_whole(api, operation):
    request = sample(api, operation)
    if operation in UPDATES:  # a record that is sent back as it is leaves nothing to undo
        request = request._replace(body=some_change(request.record, "other"))
    with api.databases.broken_answers(api.app):
        before = commits(api)
        says_that_it_is_our_fault(send(api, request, headers=ONCE))
        assert commits(api) == before
    assert "idempotency-replayed" not in succeeds(send(api, request, headers=ONCE)).headers


@each(READS)
def test_a_read_of_tables_that_are_gone_is_500(api, operation):
    request = sample(api, operation)
    broken = db_copy(api)
    for name in metadata.tables.keys() - IDENTITY:
        broken.sql(f"ALTER TABLE {name} RENAME TO {name}_gone")
    broken.sql("ALTER TABLE api_keys RENAME COLUMN name TO gone")
    says_that_it_is_our_fault(send(broken, request))
    succeeds(send(api, request))


def says_that_it_cannot_be_done_now(answer: Answer, reason: str) -> None:
    assert (answer.status, answer.code) == (503, "unavailable"), answer
    assert answer.json.keys() == {"message", "code", "request_id", "docs_url"}
    assert answer.json["message"].startswith(f"{reason} Try again in a few seconds"), answer
    assert int(answer.headers["retry-after"]) >= 1


def says_that_it_is_our_fault(answer: Answer) -> None:
    """No word of what is wrong: that is in the log, where the request id leads."""
    assert (answer.status, answer.code) == (500, "server_error"), answer
    number = answer.headers["x-request-id"]
    message = f"Something went wrong here. Report the request id {number} to the operator."
    docs_url = "http://agency.example/docs/errors#server_error"
    assert answer.json == {"message": message, "code": "server_error", "request_id": number, "docs_url": docs_url}
