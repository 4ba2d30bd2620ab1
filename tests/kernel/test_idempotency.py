from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from retainer.kernel.idempotency import Attempt
from retainer.server.monitoring.housekeeping import delete_responses
from tests.contract.cases import another_process
from tests.databases import each_database

pytestmark = each_database


def test_a_key_is_kept_for_a_day_and_then_free_again(api):
    first = api.post("/tags", {"name": "A"}, headers={"Idempotency-Key": "k"})
    with time_machine.travel("2027-01-01T00:00:00Z", tick=False):
        again = api.post("/tags", {"name": "B"}, headers={"Idempotency-Key": "k"})
    assert first.data["id"] != again.data["id"]
    assert "idempotency-replayed" not in again.headers


def test_an_idempotency_key_belongs_to_one_api_key(both):
    api, other = both
    mine = api.post("/tags", {"name": "A"}, headers={"Idempotency-Key": "k"})
    for sender, key in ((api, api.new_key()), (other, other.key)):
        answer = sender.post("/tags", {"name": "B"}, key=key, headers={"Idempotency-Key": "k"})
        assert (answer.status, answer.data["name"]) == (201, "B")
        assert "idempotency-replayed" not in answer.headers
    assert api.post("/tags", {"name": "A"}, headers={"Idempotency-Key": "k"}).body == mine.body


@pytest.mark.parametrize(("path", "body"), [("/tags", {"name": "B"}), ("/clients", {"name": "A"})])
def test_another_request_under_the_same_value_is_refused(api, path, body):
    api.post("/tags", {"name": "A"}, headers={"Idempotency-Key": "k"})
    answer = api.post(path, body, headers={"Idempotency-Key": "k"})
    assert (answer.status, answer.code) == (422, "idempotency_key_reused")
    assert answer.errors == {"Idempotency-Key": [answer.json["message"]]}
    assert [len(api.get(listed).data) for listed in ("/tags", "/clients")] == [1, 0]


def test_the_same_body_to_the_same_path_by_another_method_is_another_request(api):
    path, headers = f"/tags/{api.make('/tags')['id']}", {"Idempotency-Key": "k"}
    assert api.patch(path, {"name": "B"}, headers=headers).status == 200
    assert api.put(path, {"name": "B"}, headers=headers).code == "idempotency_key_reused"


def test_the_value_is_free_for_a_second_request_when_the_first_has_failed(api):
    attempt = Attempt(api.app.pipeline.running, api.key_id, "k", "fingerprint")
    with pytest.raises(ValueError, match="broken"), attempt:
        raise ValueError("broken")
    assert api.post("/tags", {"name": "A"}, headers={"Idempotency-Key": "k"}).status == 201


def test_old_keys_are_forgotten_and_young_ones_stay(api):
    """Those of a minute at a time: all that a month has left would not fit into a transaction."""

    def forget():
        is_soon = delete_responses(api.store) is not None
        return is_soon, api.sql("SELECT value FROM idempotency_keys ORDER BY value")

    day = datetime(2027, 1, 1, tzinfo=UTC)
    with time_machine.travel(day, tick=False) as clock:
        for value, seconds in (("a", 0), ("b", 59), ("c", 3600), ("d", 3630), ("e", 86400)):
            clock.move_to(day + timedelta(seconds=seconds))
            api.post("/tags", {"name": value}, headers={"Idempotency-Key": value})
        clock.move_to(day + timedelta(hours=23))
        assert forget() == (False, [(each,) for each in "abcde"])
        clock.move_to(day + timedelta(hours=25, seconds=10))
        assert forget() == (True, [(each,) for each in "cde"])
        assert forget() == (False, [(each,) for each in "de"])
        clock.shift(timedelta(days=1))
        assert [forget() for _ in range(3)] == [(True, [("e",)]), (True, []), (False, [])]


def test_a_second_request_while_the_first_runs_is_told_to_wait(api):
    attempt = Attempt(api.app.pipeline.running, api.key_id, "k", "fingerprint")
    with attempt:
        answer = api.post("/tags", {"name": "A"}, headers={"Idempotency-Key": "k"})
        assert (answer.status, answer.code, answer.headers["retry-after"]) == (409, "idempotency_in_progress", "1")
        other = api.post("/tags", {"name": "B"}, key=api.new_key(), headers={"Idempotency-Key": "k"})
        assert other.status == 201, "the value is that of one key"
    assert api.post("/tags", {"name": "A"}, headers={"Idempotency-Key": "k"}).status == 201


def test_applications_of_a_process_do_not_refuse_each_others_keys(api):
    """Their databases may be different ones, with keys of the same ids."""
    other = another_process(api)
    with Attempt(other.app.pipeline.running, api.key_id, "k", "fingerprint"):
        assert api.post("/tags", {"name": "A"}, headers={"Idempotency-Key": "k"}).status == 201
