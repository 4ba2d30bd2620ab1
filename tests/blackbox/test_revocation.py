import pytest
from testing.process import Servers

from tests.length import length

PAST, FUTURE = "2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z"
TIMES = length(2)


def outcome_of(client):
    with client:
        return outcome(client.get("/clients"))


def outcome(answer):
    return answer.status, None if answer.status == 200 else answer.code


class Kept:
    """Open connections to every server: decisions must not be cached with them."""

    def __init__(self, clients):
        self.clients = clients

    def answers(self):
        """What all of them are answered."""
        (answer,) = {outcome(client.get("/clients")) for client in self.clients}
        return answer


class Desk:
    """An account with a key under test and a key of another user, and a key of another account."""

    def __init__(self, servers: Servers, agency, other_tenant) -> None:
        self.servers = servers
        self.account = agency["account_id"]
        self.user = agency["admin_id"]
        self.key_id = agency["key_id"]
        self.key = agency["key"]
        self.other, self.other_tenant = servers.new_key(agency | {"admin_id": agency["member_id"]}), other_tenant["key"]

    def answers(self, key: str) -> tuple[int, str | None]:
        """What the very next request of a key is answered, by every server and on a new connection."""
        (answer,) = {outcome_of(client) for client in self.servers.clients(key)}
        return answer


@pytest.fixture
def desk(servers, open_agency):
    return Desk(servers, open_agency("scale"), open_agency("agency"))


@pytest.fixture
def kept(servers, desk):
    clients = servers.clients(desk.key)
    kept = Kept(clients)
    assert kept.answers() == (200, None)
    yield kept
    for client in clients:
        client.close()


def test_a_revoked_key_is_refused_from_the_very_next_request(servers, desk, kept):
    for _ in range(TIMES):
        made = servers.tell("key", "create", desk.account, "--user", desk.user, "--name", "Short", "--scopes", "all")
        assert desk.answers(made["key"]) == (200, None)
        servers.tell("key", "revoke", made["key_id"])
        assert desk.answers(made["key"]) == (401, "revoked_key")
        assert kept.answers() == (200, None), "another key of the same user is not affected"
    servers.tell("key", "revoke", desk.key_id)
    assert kept.answers() == (401, "revoked_key"), "on the connection that was open as well"
    assert desk.answers(desk.other)[0] == desk.answers(desk.other_tenant)[0] == 200


def test_switching_the_api_off_and_on_counts_from_the_very_next_request(servers, desk, kept):
    for _ in range(TIMES):
        servers.tell("api", "off", desk.account)
        assert kept.answers() == (403, "api_disabled")
        assert desk.answers(desk.other) == (403, "api_disabled")
        assert desk.answers(desk.other_tenant)[0] == 200
        servers.tell("api", "on", desk.account)
        assert kept.answers() == desk.answers(desk.other) == (200, None)


def test_deactivating_a_user_stops_only_the_user_s_keys(servers, desk, kept):
    servers.tell("user", "create", desk.account, "--role", "admin", "--name", "Bea", "--email", "bea@desk.example")
    for _ in range(TIMES):
        servers.tell("user", "deactivate", desk.user)
        assert kept.answers() == (401, "user_deactivated")
        assert desk.answers(desk.other)[0] == desk.answers(desk.other_tenant)[0] == 200
        servers.tell("user", "activate", desk.user)
        assert kept.answers() == (200, None)


def test_a_plan_without_the_api_stops_keys_immediately(servers, desk, kept):
    for _ in range(TIMES):
        servers.tell("account", "set", desk.account, "--plan", "solo", "--trial-ends-at", PAST)
        assert kept.answers() == (402, "trial_ended")
        assert desk.answers(desk.other_tenant)[0] == 200
        servers.tell("account", "set", desk.account, "--plan", "scale")
        assert kept.answers() == (200, None)


def test_an_extended_trial_gives_the_api_back_immediately(servers, desk, kept):
    servers.tell("account", "set", desk.account, "--plan", "studio", "--trial-ends-at", FUTURE)
    for client in kept.clients:
        answer = client.get("/clients")
        assert (answer.status, answer.headers["x-ratelimit-limit"]) == (200, "600"), "with the ceiling of agency"
    servers.tell("account", "set", desk.account, "--trial-ends-at", PAST)
    assert kept.answers() == (402, "trial_ended")
    servers.tell("account", "set", desk.account, "--trial-ends-at", FUTURE)
    assert kept.answers() == (200, None)
