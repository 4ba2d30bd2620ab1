import re
import time

from testing.process import at_once, statuses

from retainer.kernel.limits import WINDOW_SECONDS


def test_of_a_thousand_concurrent_requests_exactly_six_hundred_are_admitted(server, open_agency):
    first, other = open_agency("agency"), open_agency("agency")
    sibling = server.new_key(first)

    def some(number):
        with server.client(first["key"]) as client:
            return [client.get("/clients?per_page=1") for _ in range(32 if number < 8 else 31)]

    began = time.monotonic()
    answers = [answer for part in at_once(32, some) for answer in part]
    assert len(answers) == 1000
    assert {answer.headers["x-ratelimit-limit"] for answer in answers} == {"600"}
    admitted = sorted(answer.remaining for answer in answers if answer.status == 200)
    if time.monotonic() - began < WINDOW_SECONDS:
        assert statuses(answers) == {200: 600, 429: 400}
        assert admitted == list(range(600)), "each remaining value is handed out once"
    for answer in answers:
        if answer.status == 429:
            assert re.fullmatch(r"[1-9]\d?", answer.headers["retry-after"]), answer
            assert int(answer.headers["retry-after"]) <= 60
            assert answer.code == "rate_limited"
            assert answer.remaining == 0
    for key in (sibling, other["key"]):
        with server.client(key) as client:
            answer = client.get("/me")
        assert (answer.status, answer.remaining) == (200, 599)


def test_every_plan_has_its_own_ceiling(server, open_agency):
    for plan, ceiling in {"solo": 600, "studio": 600, "agency": 600, "scale": 1200, "enterprise": 3000}.items():
        with server.client(open_agency(plan)["key"]) as client:
            answer = client.get("/me")
        assert (answer.status, answer.headers["x-ratelimit-limit"]) == (200, str(ceiling)), plan
        assert answer.remaining == ceiling - 1


def test_refused_requests_count_against_the_key(server, open_agency):
    with server.client(open_agency("agency")["key"]) as client:
        answers = [client.get("/clients/999"), client.get("/nothing"), client.post("/tags", b"{"), client.get("/me")]
    assert [answer.status for answer in answers] == [404, 404, 400, 200]
    assert [answer.remaining for answer in answers] == [599, 598, 597, 596]


def test_wrong_keys_empty_the_bucket_of_their_address_but_never_block_a_good_key(server, agency, address):
    wrong = "rtn_" + "0" * 38

    def some(_):
        with server.client(wrong, address) as bad, server.client(agency["key"], address) as good:
            return [bad.get("/clients") for _ in range(45)], [good.get("/me") for _ in range(5)]

    began = time.monotonic()
    parts = at_once(16, some)
    is_in_a_window = time.monotonic() - began < WINDOW_SECONDS
    bad = [answer for part in parts for answer in part[0]]
    good = [answer for part in parts for answer in part[1]]
    assert statuses(bad) == {401: 600, 429: 120} or not is_in_a_window
    assert statuses(good) == {200: 80}
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in bad if answer.status == 429)
    with server.client(agency["key"], address) as client:
        assert client.get("/me").status == 200
    with server.client(wrong, "127.0.0.77") as elsewhere:
        assert elsewhere.get("/me").status == 401, "another address has a bucket of its own"


def test_a_forged_forwarding_header_changes_no_bucket(server, address):
    with server.client(None, address) as client:
        first = client.get("/me").remaining
        assert client.get("/me", X_Forwarded_For="203.0.113.9").remaining == first - 1


def test_a_refused_address_sees_its_own_figures_and_never_the_account_s(server, agency, address):
    with server.client(agency["key"] + "x", address) as client:
        answer = client.get("/me")
    assert (answer.status, answer.headers["x-ratelimit-limit"], answer.remaining) == (401, "600", 599)
