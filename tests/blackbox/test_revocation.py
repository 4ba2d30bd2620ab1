import pytest

from tests.blackbox.process import Client, Server
from tests.length import length

PAST, FUTURE = "2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z"
TIMES = length(2)


class Desk:
    """An account with a key under test and one of another user, beside a key of another account."""

    def __init__(self, server: Server, agency, other_tenant) -> None:
        self.server = server
        self.account = agency["account_id"]
        self.user = agency["admin_id"]
        self.key_id = agency["key_id"]
        self.key = agency["key"]
        self.other, self.other_tenant = server.new_key(agency | {"admin_id": agency["member_id"]}), other_tenant["key"]

    def answers(self, key: str) -> tuple[int, str | None]:
        """What the very next request of a key is answered, on a new connection."""
        with Client(self.server.port, key) as client:
            answer = client.get("/clients")
        return answer.status, None if answer.status == 200 else answer.code


@pytest.fixture
def desk(server, open_agency):
    return Desk(server, open_agency("scale"), open_agency("agency"))


@pytest.fixture
def kept(server, desk):
    """A connection that is open all the while: what was decided when it was opened may not last."""
    with server.client(desk.key) as client:
        assert client.get("/clients").status == 200
        yield client


def test_a_revoked_key_is_refused_from_the_very_next_request(server, desk, kept):
    for _ in range(TIMES):
        made = server.tell("key", "create", desk.account, "--user", desk.user, "--name", "Short", "--scopes", "all")
        assert desk.answers(made["key"]) == (200, None)
        server.tell("key", "revoke", made["key_id"])
        assert desk.answers(made["key"]) == (401, "revoked_key")
        assert kept.get("/clients").status == 200, "another key of the same user is not affected"
    server.tell("key", "revoke", desk.key_id)
    answer = kept.get("/clients")
    assert (answer.status, answer.code) == (401, "revoked_key"), "on the connection that was open as well"
    assert desk.answers(desk.other)[0] == desk.answers(desk.other_tenant)[0] == 200


def test_switching_the_api_off_and_on_counts_from_the_very_next_request(server, desk, kept):
    for _ in range(TIMES):
        server.tell("api", "off", desk.account)
        answer = kept.get("/clients")
        assert (answer.status, answer.code) == (403, "api_disabled")
        assert desk.answers(desk.other) == (403, "api_disabled")
        assert desk.answers(desk.other_tenant)[0] == 200
        server.tell("api", "on", desk.account)
        assert kept.get("/clients").status == desk.answers(desk.other)[0] == 200


def test_deactivating_a_user_stops_the_user_s_keys_and_no_others(server, desk, kept):
    for _ in range(TIMES):
        server.tell("user", "deactivate", desk.user)
        answer = kept.get("/clients")
        assert (answer.status, answer.code) == (401, "user_deactivated")
        assert desk.answers(desk.other)[0] == desk.answers(desk.other_tenant)[0] == 200
        server.tell("user", "activate", desk.user)
        assert kept.get("/clients").status == 200


def test_a_plan_without_the_api_and_without_a_trial_stops_at_once(server, desk, kept):
    for _ in range(TIMES):
        server.tell("account", "set", desk.account, "--plan", "solo", "--trial-ends-at", PAST)
        answer = kept.get("/clients")
        assert (answer.status, answer.code) == (402, "trial_ended")
        assert desk.answers(desk.other_tenant)[0] == 200
        server.tell("account", "set", desk.account, "--plan", "scale")
        assert kept.get("/clients").status == 200


def test_a_trial_that_is_set_anew_gives_the_api_back_at_once(server, desk, kept):
    server.tell("account", "set", desk.account, "--plan", "studio", "--trial-ends-at", FUTURE)
    answer = kept.get("/clients")
    assert (answer.status, answer.headers["x-ratelimit-limit"]) == (200, "600"), "with the ceiling of agency"
    server.tell("account", "set", desk.account, "--trial-ends-at", PAST)
    assert kept.get("/clients").status == 402
    server.tell("account", "set", desk.account, "--trial-ends-at", FUTURE)
    assert kept.get("/clients").status == 200
