import time_machine

from retainer.kernel.idempotency import Attempt
from retainer.server.housekeeping import forget_answers


def test_a_key_is_kept_for_a_day_and_then_free_again(api):
    first = api.post("/tags", {"name": "A"}, headers={"Idempotency-Key": "k"})
    with time_machine.travel("2027-01-01T00:00:00Z", tick=False):
        again = api.post("/tags", {"name": "B"}, headers={"Idempotency-Key": "k"})
    assert first.data["id"] != again.data["id"]
    assert "idempotency-replayed" not in again.headers


def test_old_keys_are_forgotten_and_young_ones_stay(api):
    api.post("/tags", {"name": "A"}, headers={"Idempotency-Key": "k"})
    assert forget_answers(api.store) == 0
    with time_machine.travel("2027-01-01T00:00:00Z", tick=False):
        assert forget_answers(api.store) == 1


def test_a_second_request_while_the_first_runs_is_told_to_wait(api):
    attempt = Attempt(api.key_id, "k", "fingerprint")
    with attempt:
        answer = api.post("/tags", {"name": "A"}, headers={"Idempotency-Key": "k"})
        assert (answer.status, answer.code, answer.headers["retry-after"]) == (409, "idempotency_in_progress", "1")
    assert api.post("/tags", {"name": "A"}, headers={"Idempotency-Key": "k"}).status == 201
