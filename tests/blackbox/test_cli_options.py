"""Options of commands: each is used by a test, since a command does not share its code with its twin in the console."""

import ast
import http.client
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from testing.process import command, running, tell, until, with_database

from retainer.cli import cli

TESTS = Path(__file__).parent.parent
CREATE = ("account", "create", "--name", "North", "--admin-name", "Ana", "--admin-email", "ana@north.example")
LOGGED = ("requests", "list")
STARTS = {"running": "serve", "running_together": "serve"}
"""Functions of the tests that run a command, which they do not name."""
OPTIONS_OF_SERVE = "demo"
"""A command with the options of `serve`, which both pass to the same function."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return with_database(tmp_path_factory.mktemp("cli"))


@pytest.fixture
def agency(folder):
    """An account with its admin and two members, whose API is on."""
    made = tell(folder, *CREATE)
    tell(folder, "api", "on", made["account_id"])
    for name in ("max", "mia"):
        user = ("--name", name.capitalize(), "--email", f"{name}@north.example")
        made[name] = tell(folder, "user", "create", made["account_id"], *user)["user_id"]
    return made


def key_of(folder, agency, user, *options):
    made = ("key", "create", agency["account_id"], "--user", user, "--name", "Shop", "--scopes", "all")
    return tell(folder, *made, *options)["key_id"]


def test_the_keys_of_a_deactivated_user_are_handed_over_and_no_others(folder, agency):
    holders = (agency["user_id"], agency["max"], agency["max"], agency["mia"])
    keys = [key_of(folder, agency, user) for user in holders]
    before = {key["id"]: key["user_id"] for key in tell(folder, "key", "list", agency["account_id"])["keys"]}
    assert [before[key] for key in keys] == [*holders]
    done = tell(folder, "user", "deactivate", agency["max"], "--keys-to", agency["mia"])
    assert (done["id"], done["is_active"]) == (agency["max"], False)
    after = {key["id"]: key for key in tell(folder, "key", "list", agency["account_id"])["keys"]}
    assert [after[key]["user_id"] for key in keys] == [agency["user_id"], *[agency["mia"]] * 3]
    assert {each["status"] for each in after.values()} == {"active"}


def test_without_another_user_the_keys_of_a_deactivated_one_stop(folder, agency):
    key = key_of(folder, agency, agency["max"])
    tell(folder, "user", "deactivate", agency["max"])
    listed = tell(folder, "key", "list", agency["account_id"], "--user", agency["max"])["keys"]
    assert [(each["id"], each["user_id"], each["user_is_active"]) for each in listed] == [(key, agency["max"], False)]


CHANGES = {
    "--name": "Nord",
    "--currency": "USD",
    "--working-weekdays": ["mon", "tue"],
    "--early-payment-discount-percent": "2",
    "--early-payment-discount-days": 10,
    "--time-rounding-minutes": 15,
    "--time-rounding-to": "nearest",
    "--time-rounding-each": "line",
    "--small-business": True,
    "--tax-outside-eu": "export",
    "--client-number-pattern": "K-{00}",
    "--quote-number-pattern": "A-{00}",
    "--invoice-number-pattern": "R-{00}",
    "--credit-note-number-pattern": "G-{00}",
    "--postal-code": "10115",
    "--country": "DE",
    "--registration-number": "HRB 12345",
    "--vat-number": "DE136695976",
    "--email": "office@nord.example",
    "--phone": "+49 30 1234567",
    "--website": "https://nord.example",
    "--iban": "DE89370400440532013000",
    "--bic": "COBADEFFXXX",
    "--sort-code": "20-00-00",
    "--account-number": "55779911",
    "--document-language": "de",
    "--document-color": "#0a84ff",
    "--require-second-factor": True,
    "--next-client-number": 12,
    "--next-quote-number": 13,
    "--next-invoice-number": 14,
    "--next-credit-note-number": 15,
    "--next-ticket-number": 2016,
    "--address-line1": "Text of address-line1",
    "--address-line2": "Text of address-line2",
    "--city": "Text of city",
    "--region": "Text of region",
    "--legal-name": "Text of legal-name",
    "--bank-name": "Text of bank-name",
    "--tax-exemption-reason-en": "Text of tax-exemption-reason-en",
    "--tax-exemption-reason-de": "Text of tax-exemption-reason-de",
    "--document-footer-en": "Text of document-footer-en",
    "--document-footer-de": "Text of document-footer-de",
    "--quote-introduction-en": "Text of quote-introduction-en",
    "--quote-introduction-de": "Text of quote-introduction-de",
    "--quote-terms-en": "Text of quote-terms-en",
    "--quote-terms-de": "Text of quote-terms-de",
    "--invoice-introduction-en": "Text of invoice-introduction-en",
    "--invoice-introduction-de": "Text of invoice-introduction-de",
    "--invoice-terms-en": "Text of invoice-terms-en",
    "--invoice-terms-de": "Text of invoice-terms-de",
    "--payment-url": "https://pay.example/{number}",
    "--mail-invoice-subject-en": "Text of mail-invoice-subject-en",
    "--mail-invoice-subject-de": "Text of mail-invoice-subject-de",
    "--mail-invoice-text-en": "Text of mail-invoice-text-en",
    "--mail-invoice-text-de": "Text of mail-invoice-text-de",
    "--mail-quote-subject-en": "Text of mail-quote-subject-en",
    "--mail-quote-subject-de": "Text of mail-quote-subject-de",
    "--mail-quote-text-en": "Text of mail-quote-text-en",
    "--mail-quote-text-de": "Text of mail-quote-text-de",
    "--mail-credit-note-subject-en": "Text of mail-credit-note-subject-en",
    "--mail-credit-note-subject-de": "Text of mail-credit-note-subject-de",
    "--mail-credit-note-text-en": "Text of mail-credit-note-text-en",
    "--mail-credit-note-text-de": "Text of mail-credit-note-text-de",
}
"""A value for each option; the names of fields are those of the options."""
NAMES = {"small_business": "is_small_business"}


def test_every_setting_of_an_account_is_set_by_its_option_and_by_no_other(folder, agency):
    def change(*words, **values):
        for option, value in values.items():
            words += (option,) if value is True else (option, ",".join(value) if isinstance(value, list) else value)
        return tell(folder, *words)

    changed = change("account", "set", agency["account_id"], **CHANGES)
    fields = {option[2:].replace("-", "_"): value for option, value in CHANGES.items()}
    assert {name: changed[NAMES.get(name, name)] for name in fields} == fields
    assert changed.keys() >= tell(folder, "account", "show", agency["account_id"]).keys()


def test_an_account_begins_with_its_tax_rate(folder):
    made = command(folder, *CREATE, "--tax-rate", "19")
    assert (made.status, made.err.count("no tax")) == (0, 0), "it says so without a rate"
    assert "no tax" in command(folder, *CREATE).err
    assert [one["tax_rate"] for one in tell(folder, "account", "list")["accounts"]][-2:] == ["19", None]


def test_people_have_the_hours_and_rates_that_were_given(folder, agency):
    made = tell(folder, "user", "create", agency["account_id"], "--name", "Eve", "--email", "eve@north.example",
                "--target-percent", "80", "--cost-rate", "45", "--cost-rate-from", "2026-02-01")  # fmt: skip
    changed = tell(folder, "user", "set", made["user_id"], "--weekly-capacity-minutes", "1200", "--hourly-rate", "95")
    assert (changed["target_percent"], changed["weekly_capacity_minutes"], changed["hourly_rate"]) == (
        *("80", 1200, "95.00"),
    )
    entries = tell(folder, "audit", "list", agency["account_id"], "--action", "user created")["entries"]
    assert entries[0]["after"]["cost_rate_from_2026-02-01"] == "45.00"
    tell(folder, "user", "set", made["user_id"], "--password", "seven quiet lanterns")
    (newest, *_) = tell(folder, "audit", "list", agency["account_id"])["entries"]
    assert (newest["action"], newest["target_id"]) == ("password set", made["user_id"])


def test_a_rotated_key_has_the_expiry_that_was_given(folder, agency):
    key = key_of(folder, agency, agency["max"], "--expires-at", "2030-01-01T00:00:00Z")
    rotated = tell(folder, "key", "rotate", key, "--expires-at", "2031-02-03T00:00:00Z")["key_id"]
    listed = {each["id"]: each for each in tell(folder, "key", "list", agency["account_id"])["keys"]}
    assert listed[rotated]["expires_at"].startswith("2031-02-03T00:00:00")


def test_the_audit_log_is_limited_to_a_user_and_a_time(folder, agency):
    account = agency["account_id"]
    first, *_ = reversed(tell(folder, "audit", "list", account, "--user", 0)["entries"])
    assert first["action"] == "account opened", "of an operator"
    assert tell(folder, "audit", "list", account, "--user", agency["user_id"])["entries"] == []
    since = tell(folder, "audit", "list", account, "--since", first["created_at"])["entries"]
    until_then = tell(folder, "audit", "list", account, "--until", first["created_at"])["entries"]
    assert (since[-1], until_then) == (first, [])


def test_a_webhook_has_its_description_and_sends_one_event_again(folder, agency):
    public = ("--url", "https://receiver.example/hooks")
    made = tell(folder, "webhook", "create", agency["account_id"], *public, "--description", "Books")["webhook_id"]
    changed = tell(folder, "webhook", "set", made, "--url", "https://other.example/hooks")
    assert (changed["description"], changed["url"]) == ("Books", "https://other.example/hooks")
    test = tell(folder, "webhook", "test", made)
    assert test["status"] == "pending"
    refused = command(folder, "webhook", "redeliver", made, "--event", "1", "--json")
    assert (refused.status, refused.out) == (1, "")
    assert "event" in refused.err


def test_requests_are_found_by_each_of_their_parts(tmp_path):
    folder = with_database(tmp_path)
    with running(folder, "--no-monitor") as server:
        agency = server.agency("Used", "agency")
        with server.client(agency["key"], address="127.0.0.9") as client:
            made = client.post("/tags", {"name": "VIP"}, X_Request_Id="till-7").data["id"]
            assert client.call("PATCH", f"/tags/{made}", {"name": ""}).status == 422
            assert client.get("/clients").status == 200
        with server.client(agency["key"]) as client:
            moment = client.get("/me").data["server"]["time"]

    def found(*words):
        listed = tell(folder, *LOGGED, agency["account_id"], *words[2:])["requests"]
        return [f"{each['method']} {each['path']}" for each in listed]

    created, changed, listed, me = "POST /tags", f"PATCH /tags/{made}", "GET /clients", "GET /me"
    assert found() == [me, listed, changed, created], "the server writes what waits when it ends"
    assert found(*LOGGED, "--method", "patch") == [changed]
    assert found(*LOGGED, "--path", "/tags") == [changed, created]
    assert found(*LOGGED, "--operation", "createTag") == [created]
    assert found(*LOGGED, "--request-id", "till-7") == [created]
    assert found(*LOGGED, "--address", "127.0.0.9") == [listed, changed, created]
    assert found(*LOGGED, "--record", f"/tags/{made}") == [created]
    assert found(*LOGGED, "--code", "validation_failed") == [changed]
    assert found(*LOGGED, "--writes") == [changed, created]
    assert found(*LOGGED, "--no-writes") == [me, listed]
    assert found(*LOGGED, "--until", moment) == [listed, changed, created]


def test_a_server_listens_on_its_address_also_with_one_thread(tmp_path):
    options = ("--host", "0.0.0.0", "--threads", "1", "--json")
    with running(with_database(tmp_path), *options, "--no-monitor", "--no-webhooks") as server:
        printed = json.loads(until((tmp_path / "out.txt").read_text, "the server says where it is"))
        assert printed["base_url"].startswith(f"http://127.0.0.1:{server.port}/")
        other = http.client.HTTPConnection("127.0.0.7", server.port, timeout=60)
        other.request("GET", "/livez")
        assert other.getresponse().status == 200
        other.close()
    assert command(tmp_path, "serve", "--threads", "0").status == 2


def test_a_plan_of_the_migrations_changes_nothing(tmp_path):
    planned = tell(tmp_path, "migrate", "--plan")
    assert (planned["before"], planned["migrations"]) == (None, []), "a new database is made at once"
    assert tell(tmp_path, "migrate") == {"before": None, "after": planned["after"]}


@cache
def options() -> dict[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the options of each command, each with all of its names."""

    def below(group: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
        for name, each in getattr(group, "commands", {}).items():
            yield from below(each, (*path, name))
        if not hasattr(group, "commands"):
            yield path, group

    found = dict(below(typer.main.get_command(cli), ()))
    return {
        path: [
            (*each.opts, *each.secondary_opts)
            for each in command.params
            if each.param_type_name == "option" and each.name != "json"
        ]
        for path, command in found.items()
    }


def words_of(nodes: list[ast.expr], known: dict[str, list[str]]) -> list[str]:
    """Return the words that expressions contain, in order, with those of the names that are assigned in their file."""
    words = []
    for node in nodes:
        if isinstance(node, ast.Constant):
            words.append(str(node.value))
        elif isinstance(node, ast.Name):
            words += known.get(node.id, [""])
        elif isinstance(node, ast.Starred | ast.Tuple | ast.List | ast.BinOp | ast.Dict):
            parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
            words += words_of(parts, known)
        else:
            words.append("")
    return words


def used_in(path: Path) -> set[tuple[tuple[str, ...], str]]:
    """Return the commands that the calls of a test file name, each with an option."""
    nodes, known, found = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))], dict[str, list[str]](), set()
    for node in nodes:
        if isinstance(node, ast.Assign | ast.For):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            value = node.value if isinstance(node, ast.Assign) else node.iter
            if isinstance(target, ast.Name):
                known.setdefault(target.id, []).extend(words_of([value], known))
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        words = words_of([*node.args, *(each.value for each in node.keywords if each.arg is None)], known)
        words.insert(0, STARTS.get(getattr(node.func, "id", ""), ""))
        for start in range(len(words)):
            for length in (1, 2):
                path_of_command = tuple(words[start : start + length])
                if path_of_command in options():
                    found |= {(path_of_command, word) for word in words[start:] if word.startswith("--")}
    return found


def test_every_option_of_every_command_is_used_by_a_test():
    """What a test does with an option is for its reader to judge; an option that none uses is found here."""
    used = set().union(*map(used_in, TESTS.rglob("test_*.py")))
    assert options()["demo",] == options()["serve",]
    unused = [
        f"{' '.join(path)} {names[0]}"
        for path, each in options().items()
        for names in each
        if path != (OPTIONS_OF_SERVE,) and not any((path, name) in used for name in names)
    ]
    assert unused == []
