import contextlib
import ctypes
import json
import re
import select
import signal
import socket
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest
import typer
from sqlalchemy import text
from testing.ports import free_port
from testing.process import COMMAND, PATIENCE, Client, command, environment, opened, running, tell, until, with_database
from typer.testing import CliRunner

from retainer.cli import cli
from retainer.traffic.request_log import LogFilter
from tests.length import only_full

INSTANT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"
PAST = "2020-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the tests of this file open accounts of their own."""
    return with_database(tmp_path_factory.mktemp("cli"))


@pytest.fixture(scope="module")
def account(folder):
    """An account of plan agency whose API is on; ids of it, its admin, and a key."""
    made = tell(folder, *CREATE, "--admin-email", "ana@north.example")
    assert tell(folder, "api", "on", made["account_id"]) == {"account_id": made["account_id"], "api_enabled": True}
    of_admin = ("--user", made["user_id"], "--name", "First", "--scopes", "clients:read,time:write")
    return made | tell(folder, "key", "create", made["account_id"], *of_admin)


CREATE = ("account", "create", "--name", "North", "--admin-name", "Ana")


def refused(folder, *arguments, **settings):
    """Run a command that is refused: status 1, nothing on standard output, and sentences without a stack."""
    result = command(folder, *arguments, "--json", **settings)
    assert (result.status, result.out) == (1, ""), result
    assert result.err.strip(), result
    assert "Traceback" not in result.err, result
    return result.err


def misused(folder, *arguments):
    """Run a command that is wrong usage: status 2, nothing on standard output, no stack."""
    result = command(folder, *arguments)
    assert (result.status, result.out) == (2, ""), result
    assert "Traceback" not in result.err, result
    return re.sub(r"\s+", " ", result.err)


def test_an_account_is_created_with_its_first_admin(account):
    assert set(account) == {"account_id", "user_id", "link", "expires_at", "key_id", "key"}
    assert re.fullmatch(r"http://127\.0\.0\.1:8000/console/password\?token=[\w-]{43}", account["link"])
    assert isinstance(account["account_id"], int)
    assert isinstance(account["user_id"], int)
    assert re.fullmatch(r"rtn_[0-9A-Za-z]{38}", account["key"])


def test_accounts_are_listed_with_what_they_use(tmp_path):
    folder = with_database(tmp_path)

    def listed():
        return {one["id"]: one for one in tell(folder, "account", "list", "--usage")["accounts"]}

    with running(folder) as server:
        server.agency("Idle", "agency")
        agency = server.agency("Used", "agency")
        before = listed()
        with server.client(agency["key"]) as client:
            for number in range(3):
                assert client.post("/tags", {"name": f"Tag {number}"}).status == 201
    after = listed()
    used = after.pop(agency["account_id"])
    assert used["rows"] >= before.pop(agency["account_id"])["rows"] + 9, "tags, their events, and the requests"
    assert after == before, "the other account used nothing meanwhile"
    assert (used["name"], used["requests"], used["server_errors"], used["logo_bytes"]) == ("Used", 3, 0, 0)
    assert (used["file_bytes"], used["max_file_mb"]) == (0, 2000)
    assert (used["sites"], used["webhooks"]) == (0, 0)
    assert (used["max_sites"], used["max_webhooks"], used["max_logo_kb"]) == (1000, 20, 20000)
    assert re.fullmatch(INSTANT, used["last_used_at"])
    assert "last_used_at" in command(folder, "account", "list", "--usage").out


def test_accounts_are_listed_shown_and_changed(folder, account):
    account_id = account["account_id"]
    listed = {one["id"]: one for one in tell(folder, "account", "list")["accounts"]}
    shown = tell(folder, "account", "show", account_id)
    assert listed[account_id] == shown
    assert (shown["name"], shown["plan"], shown["currency"], shown["timezone"]) == ("North", "agency", "EUR", "UTC")
    assert shown["api_enabled"] is True
    assert re.fullmatch(INSTANT, shown["trial_ends_at"])
    changed = tell(folder, "account", "set", account_id, "--name", "Nord", "--timezone", "Europe/Berlin",
                   "--tax-rate", "19", "--hourly-rate", "95.5", "--payment-terms-days", "14", "--plan", "scale",
                   "--working-weekdays", "mon,tue", "--trial-ends-at", "2030-01-01T00:00:00+01:00")  # fmt: skip
    assert changed == shown | {
        "name": "Nord",
        "timezone": "Europe/Berlin",
        "tax_rate": changed["tax_rate"],
        "hourly_rate": "95.50",
        "payment_terms_days": 14,
        "plan": "scale",
        "working_weekdays": ["mon", "tue"],
        "trial_ends_at": "2029-12-31T23:00:00.000000Z",
        "updated_at": changed["updated_at"],
    }
    assert float(changed["tax_rate"]) == 19


def test_numbers_go_on_where_another_program_stopped(folder, account):
    account_id = account["account_id"]
    changed = tell(folder, "account", "set", account_id, "--next-invoice-number", "124", "--next-ticket-number", "2000")
    assert (changed["next_invoice_number"], changed["next_ticket_number"], changed["next_quote_number"]) == (
        124,
        2000,
        1,
    )
    message = refused(folder, "account", "set", account_id, "--next-invoice-number", "123")
    assert "--next-invoice-number: Must be at least 124, the next number now: numbers only go up." in message
    message = refused(folder, "account", "set", account_id, "--quote-number-pattern", "inv-{YYYY}-{0000}")
    assert "--quote-number-pattern: Gives the numbers of invoices" in message


def test_what_documents_print_is_set_and_cleared_with_a_logo(folder, account, tmp_path):
    account_id, logo, broken = account["account_id"], tmp_path / "logo.svg", tmp_path / "broken.png"
    logo.write_text('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M0 0h9v9z"/></svg>')
    broken.write_bytes(b"\x89PNG\r\n\x1a\n")
    changed = tell(folder, "account", "set", account_id, "--iban", "de89 3704 0044 0532 0130 00", "--country", "DE",
                   "--legal-name", "North GmbH", "--document-language", "de", "--require-second-factor",
                   "--logo", str(logo))  # fmt: skip
    assert (changed["iban"], changed["country"]) == ("DE89370400440532013000", "DE")
    assert changed["require_second_factor"] is True
    assert changed["logo_id"] is not None
    message = refused(folder, "account", "set", account_id, "--iban", "DE1", "--bic", "X", "--document-color", "blue")
    for option in ("iban", "bic", "document-color"):
        assert f"--{option}: " in message, message
    assert "--logo: The PNG file is damaged." in refused(folder, "account", "set", account_id, "--logo", str(broken))
    cleared = tell(folder, "account", "set", account_id, "--iban", "", "--legal-name", "", "--no-require-second-factor")
    assert cleared == changed | {
        "iban": None,
        "legal_name": None,
        "require_second_factor": False,
        "updated_at": cleared["updated_at"],
    }
    assert tell(folder, "account", "set", account_id, "--remove-logo")["logo_id"] is None
    assert "no second factor" in refused(folder, "user", "remove-second-factor", account["user_id"])


def test_a_bank_account_of_a_currency_is_set_and_removed(folder, account):
    account_id = account["account_id"]
    of_pounds = ("account", "bank-account", account_id, "--currency", "GBP")
    of_francs = ("account", "bank-account", account_id, "--currency", "CHF")
    details = ("--sort-code", "200000", "--account-number", "5577 9911")
    (stored,) = tell(folder, *of_pounds, *details)["bank_accounts"]
    assert (stored["currency"], stored["sort_code"], stored["account_number"]) == ("GBP", "20-00-00", "55779911")
    swiss = ("--iban", "CH93 0076 2011 6238 5295 7", "--bic", "POFICHBEXXX", "--bank-name", "PostFinance")
    stored = tell(folder, *of_francs, *swiss)["bank_accounts"]
    assert [each["iban"] for each in stored] == ["CH9300762011623852957", None]
    tell(folder, *of_francs, "--remove")
    assert "--iban: Enter an IBAN, or an account number." in refused(folder, *of_pounds)
    assert tell(folder, *of_pounds, "--remove")["bank_accounts"] == []
    assert "There is no bank account for GBP." in refused(folder, *of_pounds, "--remove")


def test_users_are_created_listed_changed_deactivated_and_activated(folder, account):
    account_id = account["account_id"]
    made = tell(folder, "user", "create", account_id, "--name", "Max", "--email", "max@north.example", "--role",
                "member", "--weekly-capacity-minutes", "1200", "--hourly-rate", "80", "--cost-rate", "45")  # fmt: skip
    assert set(made) == {"user_id", "link", "expires_at"}
    (shown,) = [one for one in tell(folder, "user", "list", account_id)["users"] if one["id"] == made["user_id"]]
    assert (shown["name"], shown["role"], shown["is_active"], shown["weekly_capacity_minutes"]) == (
        "Max",
        "member",
        True,
        1200,
    )
    assert not [name for name in shown if "password" in name], "no hash leaves"
    changed = tell(folder, "user", "set", made["user_id"], "--name", "Maxi", "--role", "admin")
    assert (changed["name"], changed["role"]) == ("Maxi", "admin")
    assert "--cost-rate-from: " in refused(folder, "user", "set", made["user_id"], "--cost-rate", "50")
    assert "--all-days: " in refused(folder, "user", "set", made["user_id"], "--name", "Max", "--all-days")
    for since in (["--cost-rate-from", "2026-02-01"], ["--all-days"]):
        assert tell(folder, "user", "set", made["user_id"], "--cost-rate", "50", *since)["name"] == "Maxi"
    assert tell(folder, "user", "deactivate", made["user_id"])["is_active"] is False
    last = refused(folder, "user", "deactivate", account["user_id"])
    assert f"is the last active admin of account {account_id}" in last
    assert f"retainer user create {account_id} --role admin" in last
    assert tell(folder, "user", "activate", made["user_id"])["is_active"] is True


def test_a_new_admin_gets_a_link_unless_a_password_is_given(folder, account):
    ann = ("user", "create", account["account_id"], "--role", "admin", "--name", "Ann", "--email")
    invited = tell(folder, *ann, "ann@north.example", "--base-url", "https://agency.example")
    assert set(invited) == {"user_id", "link", "expires_at"}
    assert invited["link"].startswith("https://agency.example/console/password?token=")
    assert set(tell(folder, *ann, "anna@north.example", "--password", "seven quiet lanterns")) == {"user_id"}


def test_keys_are_created_listed_without_their_values_and_revoked(folder, account):
    account_id = account["account_id"]
    made = tell(folder, "key", "create", account_id, "--user", account["user_id"], "--name", "All", "--scopes", "all",
                "--expires-at", "2030-01-01T00:00:00Z")  # fmt: skip
    assert set(made) == {"key_id", "key"}
    listed = {one["id"]: one for one in tell(folder, "key", "list", account_id)["keys"]}
    every, some = listed[made["key_id"]], listed[account["key_id"]]
    assert len(every["scopes"]) == 19
    assert some["scopes"] == ["clients:read", "time:write"]
    assert every["expires_at"].startswith("2030-01-01T00:00:00")
    assert (every["prefix"], every["last_four"]) == (made["key"][:8], made["key"][-4:])
    assert made["key"] not in json.dumps(listed)
    revoked = tell(folder, "key", "revoke", made["key_id"], "--pause-webhooks")
    assert (revoked["revoked_at"] is not None, revoked["webhooks"]) == (True, [])


def test_keys_are_changed_rotated_and_searched(folder, account):
    account_id = account["account_id"]
    made = tell(folder, "key", "create", account_id, "--user", account["user_id"], "--name", "Shop", "--scopes", "all")
    changed = tell(folder, "key", "set", made["key_id"], "--name", "Till", "--scopes", "clients:read")
    assert (changed["name"], changed["scopes"]) == ("Till", ["clients:read"])
    rotated = tell(folder, "key", "rotate", made["key_id"], "--hours", "2")
    assert rotated["former_key_id"] == made["key_id"]
    assert re.fullmatch(INSTANT, rotated["former_expires_at"])
    found = tell(folder, "key", "list", account_id, "--q", "till", "--sort", "-id")["keys"]
    assert [key["id"] for key in found] == [rotated["key_id"], made["key_id"]]
    assert "already replaced" in refused(folder, "key", "rotate", made["key_id"])
    assert "--hours: " in refused(folder, "key", "rotate", rotated["key_id"], "--hours", "10000")
    assert "--status: " in refused(folder, "key", "list", account_id, "--status", "lost")


def test_people_are_invited_by_links_and_the_audit_log_says_so(folder, account):
    account_id = account["account_id"]
    invited = tell(folder, "user", "create", account_id, "--name", "Eve", "--email", "eve@north.example")
    assert set(invited) == {"user_id", "link", "expires_at"}
    again = tell(folder, "user", "link", invited["user_id"])
    assert again["link"] != invited["link"]
    assert tell(folder, "session", "list", account_id) == {"sessions": []}
    assert "There is no session 9999." in refused(folder, "session", "revoke", "9999")
    page = tell(folder, "audit", "list", account_id, "--action", "link created", "--limit", "2")
    assert [entry["target_name"] for entry in page["entries"]] == ["Eve", "Eve"]
    *_, first = tell(folder, "audit", "list", account_id, "--action", "link created", "--cursor", page["next_cursor"])[
        "entries"
    ]
    assert first["target_id"] == account["user_id"]
    assert again["link"].partition("=")[2] not in json.dumps(page)


def test_links_begin_with_the_public_address(folder, account):
    user, public = account["user_id"], "https://agency.example"
    here = command(folder, "user", "link", str(user))
    assert "The link leads to port 8000 of this machine." in here.err
    given = command(folder, "user", "link", str(user), "--base-url", f"{public}/")
    assert f"link: {public}/console/password?token=" in given.out
    assert given.err == ""
    said = command(folder, "user", "link", str(user), RETAINER_BASE_URL=public)
    assert f"link: {public}/console/password?token=" in said.out
    wrong = refused(folder, *CREATE, "--admin-email", "ana@other.example", "--base-url", "agency")
    assert "--base-url: Must be an address like https://agency.example." in wrong
    assert len(tell(folder, "account", "list")["accounts"]) == 1


def test_an_admin_whose_password_is_given_gets_no_link_and_nothing_prints_it(folder, account):
    made = command(folder, *CREATE, "--admin-email", "ana@given.example", "--password", "seven quiet lanterns")
    assert [line.partition(":")[0] for line in made.out.splitlines()] == ["account_id", "user_id"]


def test_api_on_is_refused_without_a_plan_and_a_trial(folder):
    made = tell(folder, *CREATE, "--plan", "solo", "--admin-email", "bo@solo.example", "--currency", "USD")
    account_id = made["account_id"]
    assert tell(folder, "api", "on", account_id)["api_enabled"] is True, "the trial runs"
    tell(folder, "account", "set", account_id, "--trial-ends-at", PAST)
    assert tell(folder, "api", "off", account_id)["api_enabled"] is False
    message = refused(folder, "api", "on", account_id)
    assert "trial" in message
    assert "agency" in message, "it names the plans that include the API"
    message = refused(folder, "key", "create", account_id, "--user", made["user_id"], "--name", "K", "--scopes", "all")
    assert f"retainer api on {account_id}" in message, "it says what to do first"


def test_all_bad_values_are_named_by_their_options_at_once(folder):
    message = refused(folder, "account", "create", "--name", " ", "--plan", "gold", "--currency", "EURO", "--timezone",
                      "Mars", "--admin-name", "x" * 200, "--admin-email", "nobody", "--password", "short")  # fmt: skip
    for option in ("name", "plan", "currency", "timezone", "admin-name", "admin-email", "password"):
        assert f"--{option}: " in message, message


def test_bad_values_of_other_commands_are_named_by_their_options(folder, account):
    account_id, user = account["account_id"], account["user_id"]
    message = refused(folder, "account", "set", account_id, "--plan", "gold", "--trial-ends-at", "soon",
                      "--tax-rate", "101", "--hourly-rate", "1.234", "--working-weekdays", "mon,fun")  # fmt: skip
    for option in ("plan", "trial-ends-at", "tax-rate", "working-weekdays"):
        assert f"--{option}: " in message, message
    message = refused(folder, "account", "set", account_id, "--hourly-rate", "1.234")
    assert "--hourly-rate: " in message, "EUR has two places"
    message = refused(folder, "user", "set", user, "--email", "nobody", "--role", "owner", "--target-percent", "x")
    for option in ("email", "role", "target-percent"):
        assert f"--{option}: " in message, message
    assert "--cost-rate-from: " in refused(folder, "user", "set", user, "--cost-rate-from", "2026-01-01")
    message = refused(folder, "key", "create", account_id, "--user", user, "--name", "K",
                      "--scopes", "clients:read,beer:drink", "--expires-at", "2030-01-01")  # fmt: skip
    assert "--scopes: beer:drink is not a scope. Valid are: clients:read, clients:write, " in message
    for words in (("key", "create", account_id, "--user", 1, "--name", "K", "--scopes"),
                  ("webhook", "create", account_id, "--url", "https://x.example", "--types")):  # fmt: skip
        assert refused(folder, *words, "") == f"{words[-1]}: Must have 1 or more entries; this has 0.\n"
    assert "--expires-at: " in message
    message = refused(folder, "key", "create", account_id, "--user", 999, "--name", "K", "--scopes", "all")
    assert "--user: " in message


def test_a_list_of_words_names_each_that_is_wrong_and_suggests_the_nearest(folder, account):
    account_id, user = account["account_id"], account["user_id"]
    message = refused(folder, "key", "create", account_id, "--user", user, "--name", "K",
                      "--scopes", "client:read,clients:write,beer,time:wirte,wine")  # fmt: skip
    first, second, third, fourth = message.splitlines()
    assert first == "--scopes: client:read is not a scope. Did you mean clients:read?"
    assert second.startswith("--scopes: beer is not a scope. Valid are: clients:read, ")
    assert third == "--scopes: time:wirte is not a scope. Did you mean time:write?"
    assert fourth == "--scopes: wine is not a scope.", "valid words are listed once"
    message = refused(
        folder, "webhook", "create", account_id, "--url", "https://shop.example", "--types", "invoice.pay"
    )
    assert message == "--types: invoice.pay is not a type. Did you mean invoice.paid?\n"
    message = refused(
        folder, "webhook", "create", account_id, "--url", "https://shop.example", "--types", "site.*,invoice.paid"
    )
    each = "site.created, site.updated, site.deleted, site.up, site.down"
    assert message == f"--types: site.* is not a type: patterns are not taken. Name each: {each}.\n"
    message = refused(folder, "account", "set", account_id, "--working-weekdays", "mon,tues,fun")
    assert "--working-weekdays: tues is not a working weekday. Did you mean tue?" in message
    message = refused(folder, "export", account_id, folder / "files", "--format", "csv,jsn,xml")
    assert message.endswith("jsn is none of them: did you mean json? xml is none of them.\n")


def test_what_a_record_as_a_whole_refuses_is_named_after_no_option(folder, account):
    hook = tell(folder, "webhook", "create", account["account_id"], "--url", "https://shop.example")["webhook_id"]
    tell(folder, "webhook", "set", hook, "--status", "paused")
    assert refused(folder, "webhook", "test", hook) == "The webhook is paused. Set its status to active first.\n"


def test_an_unknown_id_is_refused_in_a_sentence(folder):
    for arguments in (("account", "show", 999), ("user", "deactivate", 999), ("key", "revoke", 999)):
        assert "There is no " in refused(folder, *arguments)
    message = refused(folder, "api", "on", 2**53 - 1)
    assert "There is no account" in message
    assert message.endswith("/retainer.db. See: retainer account list\n")
    assert refused(folder, "key", "revoke", 99).endswith("/retainer.db. See: retainer key list ACCOUNT\n")
    misused(folder, "api", "on", 2**63)


def parameters(command, name=""):
    """Return the options and arguments of a command and its commands."""
    for child, below in getattr(command, "commands", {}).items():
        yield from parameters(below, f"{name} {child}")
    for parameter in command.params:
        yield f"{name} {parameter.opts[0]}", parameter.help


def flags_of(command):
    yield from (each for each in command.get_params(typer.Context(command)) if getattr(each, "is_flag", False))
    for child in getattr(command, "commands", {}).values():
        yield from flags_of(child)


def test_every_option_has_a_help_text():
    found = dict(parameters(typer.main.get_command(cli)))
    assert len(found) > 100
    assert [name for name, text in found.items() if not (text or "").endswith(".")] == []
    assert "agency, scale, enterprise include the API" in found[" account create --plan"]
    options = typer.main.get_command(cli).commands["account"].commands["create"].params
    assert [each.name for each in options if each.required] == [each.name for each in options[:3]], "these come first"
    assert "scale 1200, enterprise 3000." in found[" account create --plan"]
    assert found[" account set --country"] == "Country: a two-letter ISO 3166-1 country code, like DE."


def test_every_filter_of_the_request_log_has_an_option():
    filters = {f" requests list --{name.replace('_', '-')}" for name in LogFilter.__struct_fields__}
    assert filters - dict(parameters(typer.main.get_command(cli))).keys() == set()


def test_a_number_that_cannot_be_one_is_refused_in_our_words(folder):
    ids = f"Must be a whole number from 1 to {2**53 - 1}."
    for typed in ("one", "0", "1.5", 2**53):
        assert f"ACCOUNT': {ids}" in misused(folder, "account", "show", typed)
    assert f"--account': {ids}" in misused(folder, "jobs", "--account", "x")
    assert "--port': Must be a whole number from 1 to 65535." in misused(folder, "serve", "--port", "0")
    assert "Must be a whole number from 0 to 365." in misused(folder, "account", "set", 1, "--payment-terms-days", "x")


def test_the_help_of_a_flag_shows_no_type():
    root = typer.main.get_command(cli)
    assert "bool" not in CliRunner().invoke(cli, ["key", "list", "--help"]).stdout
    flags = [each.metavar for each in flags_of(root)]
    assert (len(flags) > 100, {*flags}) == (True, {""})


def test_the_help_names_options_and_describes_commands_in_full_on_a_narrow_terminal():
    by_command = groupby((path.split() for path, _ in parameters(typer.main.get_command(cli))), lambda path: path[:-1])
    for names, paths in by_command:
        shown = CliRunner().invoke(cli, [*names, "--help"], env={"COLUMNS": "60"}).stdout
        assert [path for path in paths if path[-1].startswith("--") and path[-1] not in shown] == []
    assert "..." not in CliRunner().invoke(cli, ["--help"], env={"COLUMNS": "60"}).stdout.partition("Commands:")[2]


def test_wrong_usage_exits_with_2(folder):
    assert "No such command" in misused(folder, "sing")
    assert "--admin-name" in misused(folder, "account", "create", "--name", "North")
    misused(folder, "account", "show", "one")
    misused(folder, "account", "set", 1)
    misused(folder, "serve", "--port", "0")


def test_migrate_prints_the_schema_before_and_after(tmp_path):
    first, second = tell(tmp_path, "migrate"), tell(tmp_path, "migrate")
    assert first["before"] is None
    assert second == {"before": first["after"], "after": first["after"]}


@only_full
def test_the_openapi_document_is_one_json_object(tmp_path):
    document = tell(tmp_path, "openapi")
    assert document["openapi"].startswith("3.1")
    assert "/clients" in document["paths"]
    assert command(tmp_path, "openapi", "--out", "api.json").status == 0
    assert json.loads((tmp_path / "api.json").read_text(encoding="utf-8")) == document


def test_doctor_shows_settings_with_their_source_and_changes_nothing(tmp_path):
    result = command(tmp_path, "doctor", "--json")
    assert (result.status, result.err) == (3, "")
    found = result.json
    assert "environment" in found["RETAINER_DATA_DIR"]
    assert "default" in found["RETAINER_BASE_URL"]
    assert {"version", "python", "sqlite", "database", "schema", "newest_schema", "clock"} <= set(found)
    assert found["schema"] is None
    assert list(tmp_path.iterdir()) == [], "looking creates no database"


def test_config_shows_settings_with_their_source_and_no_password(tmp_path):
    (tmp_path / ".env").write_text("RETAINER_BASE_URL=https://me:secret@agency.example\nRETAINER_CONTACT=Ops\n")
    rows = {row["name"]: row for row in tell(tmp_path, "config")["settings"]}
    assert {"value", "source", "description", "form"} <= set(rows["RETAINER_THREADS"])
    assert (rows["RETAINER_THREADS"]["value"], rows["RETAINER_THREADS"]["source"]) == ("16", "default")
    assert (rows["RETAINER_DATA_DIR"]["value"], rows["RETAINER_DATA_DIR"]["source"]) == (
        str(tmp_path / "data"),
        "environment",
    )
    assert (rows["RETAINER_BASE_URL"]["value"], rows["RETAINER_BASE_URL"]["source"]) == (
        "https://me:***@agency.example",
        ".env",
    )
    told = command(tmp_path, "doctor", "--json").json
    assert {name: f"{row['value']} (from {row['source']})" for name, row in rows.items()}.items() <= told.items()
    assert "secret" not in command(tmp_path, "config").out + command(tmp_path, "doctor").out


@only_full
def test_doctor_reports_mismatched_totals_and_repairs_them(tmp_path):
    made = tell(with_database(tmp_path), *CREATE, "--admin-email", "ana@north.example")
    mismatched = f"user_sums of account {made['account_id']}"
    columns = "account_id, bucket, user_id, currency, tracked_minutes"
    values = f"{made['account_id']}, '2026-03', {made['user_id']}, 'EUR', 60"
    with opened(tmp_path / "data" / "retainer.db") as store, store.unscoped(write=True) as tx:
        tx.execute(text(f"INSERT INTO user_sums ({columns}) VALUES ({values})"), {})
    wrong = command(tmp_path, "doctor", "--json")
    assert wrong.status == 1
    (sums,) = (each for each in wrong.json["checks"] if each["result"] != "ok")
    found = {"what": "user_sums does not match its rows.", "record": None, "account_id": made["account_id"]}
    assert (sums["check"], sums["found"]) == ("sums", [found])
    (repaired,) = (each for each in tell(tmp_path, "doctor", "--repair")["checks"] if each["repaired"])
    assert repaired["repaired"] == [mismatched]
    assert tell(tmp_path, "doctor")["result"] == "ok"


def test_a_setting_that_is_unknown_or_unreadable_stops_the_start(tmp_path):
    port = ("serve", "--port", free_port())
    message = refused(tmp_path, *port, RETAINER_DATABSE_URL="sqlite:///x.db")
    assert "RETAINER_DATABSE_URL" in message
    assert "RETAINER_DATABASE_URL" in message, "the nearest name is suggested"
    message = refused(tmp_path, *port, RETAINER_TRUSTED_PROXIES="10.0.0.1/99")
    assert "RETAINER_TRUSTED_PROXIES" in message
    assert "10.0.0.1/99" in message
    assert "10.0.0.0/8" in message, "the accepted form is shown"
    message = refused(tmp_path, *port, RETAINER_DATABASE_URL="mysql://root@db/x")
    assert "RETAINER_DATABASE_URL" in message
    assert "sqlite:///" in message
    assert list(tmp_path.iterdir()) == []


def test_a_setting_can_come_from_a_dotenv_file(tmp_path):
    (tmp_path / ".env").write_text("RETAINER_BASE_URL=https://agency.example\nRETAINER_CONTACT=Ops\n", encoding="utf-8")
    found = command(tmp_path, "doctor", "--json").json
    assert "https://agency.example" in found["RETAINER_BASE_URL"]
    assert ".env" in found["RETAINER_BASE_URL"]
    (tmp_path / ".env").write_text("RETAINER_COLOUR=red\n", encoding="utf-8")
    assert "RETAINER_COLOUR" in refused(tmp_path, "doctor")


def test_an_invalid_or_unreachable_database_is_reported_in_a_sentence(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "retainer.db").write_bytes(b"This is no database at all. " * 100)
    assert "Traceback" not in refused(tmp_path, "account", "list")
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert refused(tmp_path, "account", "list", RETAINER_DATA_DIR=str(tmp_path / "file" / "below"))
    place = {"RETAINER_DATA_DIR": str(tmp_path / "file")}
    assert "file is a file, and a folder is needed there." in refused(tmp_path, "migrate", **place)


def test_a_port_in_use_is_reported_in_a_sentence(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        message = refused(tmp_path, "serve", "--port", port)
        assert "in use. Choose another with --port" in refused(tmp_path, "demo", "--port", port)
        assert not (tmp_path / "data" / "demo.db").exists(), "it is told before the work"
    assert "in use. Choose another with --port" in message
    assert str(taken) not in message


def test_serve_with_json_writes_one_object_as_soon_as_it_listens(tmp_path):
    with running(with_database(tmp_path), "--json") as server:
        out = tmp_path / "out.txt"
        until(lambda: out.read_bytes().endswith(b"\n"), "the object is there while the server runs")
        site = f"http://127.0.0.1:{server.port}"
        places = {"reference": f"{site}/docs", "console": f"{site}/console"}
        assert json.loads(out.read_text()) == {"base_url": f"{site}/api/public/v1", **places}
        assert server.stop() == 0
    assert len(out.read_text().splitlines()) == 1, "and nothing else, to the end"


@only_full
def test_a_program_that_reads_serve_through_a_pipe_learns_when_it_is_ready(tmp_path):
    arguments = [*COMMAND, "serve", "--json", "--port", str(free_port())]
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(arguments, cwd=tmp_path, env=environment(tmp_path), text=True, **piped) as process:
        try:
            base_url = json.loads(process.stdout.readline())["base_url"]
            port = int(base_url.split(":")[2].split("/")[0])
            with Client(port) as client:
                assert client.get("/me").status == 401
        finally:
            process.terminate()
            assert process.wait(timeout=PATIENCE) == 0


@only_full
def test_the_demo_prints_what_works_and_ends_by_a_signal_to_any_of_its_threads(tmp_path):
    kept = tmp_path / "kept"
    with running(tmp_path, "--json", does="demo", RETAINER_BACKUP_DIR=str(kept)) as server:
        assert not kept.exists(), "a demo makes no backups"
        text = until((tmp_path / "out.txt").read_text, "the demo says how to call it")
        printed = json.loads(text)
        assert {"base_url", "reference", "console", "email", "password", "key", "curl"} == set(printed)
        header, url = re.fullmatch(r'curl -H "Authorization: (.*)" (\S+)', printed["curl"]).groups()
        assert header == f"Bearer {printed['key']}"
        assert url.startswith(printed["base_url"])
        with Client(server.port) as client:
            answer = client.get(url.removeprefix(printed["base_url"]), Authorization=header)
            assert answer.json["meta"]["total"] > 0
            me = client.get("/me", Authorization=header).data
            least = {"/clients": 12, "/projects": 30, "/tasks": 140, "/time-entries": 6_000}
            totals = {path: client.get(path, Authorization=header).json["meta"]["total"] for path in least}
            assert {path: total for path, total in totals.items() if total < least[path]} == {}
        assert len(me["key"]["scopes"]) == 19
        served = (tmp_path / "data" / "demo.db").stat().st_ino
        assert "Another server serves" in refused(tmp_path, "demo")
        assert (tmp_path / "data" / "demo.db").stat().st_ino == served, "a second demo spoils the first"
        process_id = server.process.pid
        drawing = next(path.name for path in Path(f"/proc/{process_id}/task").iterdir() if path.name != str(process_id))
        ctypes.CDLL(None).tgkill(process_id, int(drawing), signal.SIGTERM)
        assert server.process.wait(timeout=PATIENCE) == 0
    database = f"sqlite:///{tmp_path}/data/demo.db"
    assert command(tmp_path, "doctor", "--json", RETAINER_DATABASE_URL=database).json["result"] == "ok"


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_a_server_prints_its_address_at_once_where_nobody_watches(tmp_path, kind, options):
    folder, port, printed = with_database(tmp_path), free_port(), tmp_path / "printed"
    words = [*COMMAND, "serve", "--no-monitor", "--no-webhooks", "--port", str(port), *options]
    with contextlib.ExitStack() as block:
        out = block.enter_context(printed.open("wb")) if kind == "file" else subprocess.PIPE
        err = block.enter_context((tmp_path / "err").open("wb"))
        server = block.enter_context(
            subprocess.Popen(words, cwd=folder, env=environment(folder), stdout=out, stderr=err)
        )
        block.callback(server.kill)
        if kind == "file":
            line = until(printed.read_bytes, "the server prints its address")
        else:
            assert select.select([server.stdout], [], [], PATIENCE)[0], "the server prints its address"
            line = server.stdout.readline()
        assert f"http://127.0.0.1:{port}/api/public/v1".encode() in line
        assert server.poll() is None, "it serves on"


@only_full
def test_a_result_that_cannot_be_written_is_a_failure(tmp_path):
    with Path("/dev/full").open("wb") as full, contextlib.closing(full):
        done = subprocess.run(
            [sys.executable, "-m", "retainer", "doctor", "--json"],
            cwd=tmp_path, env=environment(tmp_path), stdout=full, stderr=subprocess.PIPE, check=False, timeout=PATIENCE,
        )  # fmt: skip
    assert done.returncode != 0
