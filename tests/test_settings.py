import sys
from ipaddress import ip_network
from pathlib import Path

import pytest

from retainer.settings import Settings, SettingsError, in_force, load, setting_text

MISSING_FILE = Path("/nonexistent/.env")


def test_an_environment_that_is_given_counts_alone_even_when_it_is_empty(monkeypatch):
    monkeypatch.setenv("RETAINER_THREADS", "3")
    assert load({}, MISSING_FILE).threads == 16


def test_nothing_is_required():
    found = load({}, MISSING_FILE)
    assert found.database == "sqlite:///data/retainer.db"
    assert (found.base_url, found.trusted_proxies, found.threads) == ("", (), 16)
    assert found.sources == {}


def test_values_are_read_and_say_where_they_came_from(tmp_path):
    (tmp_path / ".env").write_text("RETAINER_THREADS=8\nRETAINER_BASE_URL=https://file.example\nOTHER=1\n")
    given = {
        "RETAINER_BASE_URL": "https://agency.example/api/public/v1/",
        "RETAINER_TRUSTED_PROXIES": "10.0.0.0/8, ::1/128",
    }
    found = load(given, tmp_path / ".env")
    assert found.base_url == "https://agency.example"
    assert found.trusted_proxies == (ip_network("10.0.0.0/8"), ip_network("::1/128"))
    assert (found.threads, found.sources["threads"], found.sources["base_url"]) == (8, ".env", "environment")


def test_the_settings_in_force_are_shown_as_they_are_written_with_their_source(tmp_path):
    (tmp_path / ".env").write_text("RETAINER_TRUSTED_PROXIES=10.0.0.0/8, ::1/128\n")
    (tmp_path / "keep").write_text("3\n")
    given = {
        "RETAINER_MONITOR": "no",
        "RETAINER_BACKUP_DIR": "/mnt/b",
        "RETAINER_BACKUP_EVERY": "0.5",
        "RETAINER_BACKUP_KEEP_FILE": str(tmp_path / "keep"),
    }
    found = {row["name"]: (row["value"], row["source"]) for row in in_force(load(given, tmp_path / ".env"))}
    assert found == {
        "RETAINER_DATA_DIR": ("data", "default"),
        "RETAINER_DATABASE_URL": ("none", "default"),
        "RETAINER_VALKEY_URL": ("none", "default"),
        "RETAINER_BASE_URL": ("none", "default"),
        "RETAINER_CONTACT": ("none", "default"),
        "RETAINER_TRUSTED_PROXIES": ("10.0.0.0/8,::1/128", ".env"),
        "RETAINER_THREADS": ("16", "default"),
        "RETAINER_HEALTH": ("public", "default"),
        "RETAINER_METRICS": ("none", "default"),
        "RETAINER_STOP_DELAY": ("0", "default"),
        "RETAINER_MONITOR": ("no", "environment"),
        "RETAINER_MONITOR_ALLOW": ("none", "default"),
        "RETAINER_MAX_SITES": ("1000", "default"),
        "RETAINER_MAX_WEBHOOKS": ("20", "default"),
        "RETAINER_MAX_LOGO_KB": ("20000", "default"),
        "RETAINER_MAX_FILE_MB": ("2000", "default"),
        "RETAINER_MAX_MESSAGES": ("1000", "default"),
        "RETAINER_SMTP_URL": ("none", "default"),
        "RETAINER_MAIL_FROM": ("none", "default"),
        "RETAINER_WEBHOOKS": ("yes", "default"),
        "RETAINER_BACKUP_DIR": ("/mnt/b", "environment"),
        "RETAINER_BACKUP_EVERY": ("0.5", "environment"),
        "RETAINER_BACKUP_KEEP": ("3", f"environment, file {tmp_path / 'keep'}"),
        "RETAINER_REQUEST_LOG_DAYS": ("30", "default"),
        "RETAINER_EVENT_DAYS": ("30", "default"),
    }


@pytest.mark.parametrize(
    ("address", "masked"),
    [
        ("postgresql://me:secret@db:5432/retainer", "postgresql://me:***@db:5432/retainer"),
        ("postgresql://me:sec/r@et@db/retainer", "postgresql://me:***@db/retainer"),
        ("postgresql://db/retainer?user=me&password=secret&x=1", "postgresql://db/retainer?user=me&password=***&x=1"),
        ("redis://:secret@cache", "redis://:***@cache"),
        ("postgresql://me@db/retainer", "postgresql://me@db/retainer"),
        ("https://agency.example/a:b@c", "https://agency.example/a:b@c"),
        ("sqlite:///a:b@c.db", "sqlite:///a:b@c.db"),
    ],
)
def test_passwords_in_addresses_are_masked(address, masked):
    assert setting_text(address) == masked


def test_no_password_is_shown_not_even_of_what_cannot_be_read():
    given = {
        "RETAINER_BASE_URL": "https://me:secret@agency.example",
        "RETAINER_DATABASE_URL": "postgres://me:secret@db",
        "RETAINER_VALKEY_URL": "valkey://:secret@cache",
    }
    rows = str(in_force(load(given, MISSING_FILE)))
    assert "secret" not in rows
    assert "postgres://me:***@db" in rows
    assert "valkey://:***@cache" in rows
    with pytest.raises(SettingsError) as error:
        load({"RETAINER_DATABASE_URL": "mysql://me:secret@db"}, MISSING_FILE)
    assert "mysql://me:***@db" in str(error.value)


def test_a_value_may_come_from_a_file(tmp_path):
    (tmp_path / "url").write_text("sqlite:///else.db\n")
    found = load({"RETAINER_DATABASE_URL_FILE": str(tmp_path / "url")}, MISSING_FILE)
    assert found.database == "sqlite:///else.db"
    with pytest.raises(SettingsError, match="cannot be read"):
        load({"RETAINER_DATABASE_URL_FILE": str(tmp_path / "none")}, MISSING_FILE)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("RETAINER_THREAD", "4", "Did you mean RETAINER_THREADS"),
        ("RETAINER_COLOUR", "red", "is not a setting"),
        ("RETAINER_PORT", "8000", "is not a setting. Settings:"),
        ("RETAINER_DATABASE", "x.db", "Did you mean RETAINER_DATABASE_URL"),
        ("RETAINER_SERVICE", "x", "is not a setting"),
        ("RETAINER_PORT_HTTP", "8000", "is not a setting"),
        ("RETAINER_THREADS", "many", "'many'. It must be a whole number from 1 to 256"),
        *(
            ("RETAINER_BACKUP_EVERY", text, "It must be a number of hours")
            for text in ("0", "-1", "nan", "1e3", "", "daily")
        ),
        *(("RETAINER_BACKUP_KEEP", text, "from 1 to 9999") for text in ("0", "all", "10000")),
        *(("RETAINER_REQUEST_LOG_DAYS", text, "from 0 to 3650") for text in ("-1", "all", "3651")),
        *(("RETAINER_EVENT_DAYS", text, "from 1 to 3650") for text in ("0", "all", "3651")),
        ("RETAINER_BASE_URL", "agency.example", "an address like https://"),
        ("RETAINER_CONTACT", "a\tb", "a name or an address"),
        ("RETAINER_TRUSTED_PROXIES", "localhost", "address ranges"),
        ("RETAINER_DATABASE_URL", "mysql://x", "sqlite:///path"),
        ("RETAINER_DATABASE_URL", "postgres:shop", "sqlite:///path"),
        *(
            ("RETAINER_VALKEY_URL", url, "is ***. It must be valkey://[user:password@]host[:port][/number]")
            for url in (
                "valkey://",
                "redis://cache.example",
                "cache.example:6379",
                "valkey://cache.example:many",
                "valkey://cache.example:0",
                "valkey://cache.example/first",
                "valkey://cache.example/0?ssl_cert_reqs=none",
            )
        ),
    ],
)
def test_what_cannot_be_understood_stops_with_the_name_and_the_accepted_form(name, value, says):
    with pytest.raises(SettingsError, match=name) as error:
        load({name: value}, MISSING_FILE)
    assert says in str(error.value)


def test_what_kubernetes_adds_for_a_service_of_that_name_is_ignored(tmp_path):
    added = {
        "RETAINER_SERVICE_HOST": "10.96.12.7",
        "RETAINER_SERVICE_PORT": "8000",
        "RETAINER_SERVICE_PORT_HTTP": "8000",
        "RETAINER_PORT": "tcp://10.96.12.7:8000",
        "RETAINER_PORT_8000_TCP": "tcp://10.96.12.7:8000",
        "RETAINER_PORT_8000_TCP_PROTO": "tcp",
        "RETAINER_PORT_8000_TCP_PORT": "8000",
        "RETAINER_PORT_8000_TCP_ADDR": "10.96.12.7",
        "RETAINER_DB_SERVICE_HOST": "10.96.12.8",
        "RETAINER_DB_PORT": "tcp://10.96.12.8:5432",
    }
    assert load(added | {"RETAINER_THREADS": "4"}, MISSING_FILE) == Settings(threads=4)
    by_hand = tmp_path / ".env"
    by_hand.write_text("RETAINER_SERVICE_HOST=10.96.12.7\n")
    with pytest.raises(SettingsError, match="is not a setting"):
        load({}, by_hand)


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("valkey://cache.example", "valkey://cache.example"),
        ("valkeys://cache.example:6380/2", "valkeys://cache.example:6380/2"),
        ("valkey://:s3cr:t@[::1]:6379/0", "valkey://:***@[::1]:6379/0"),
        ("valkeys://office:s3cr@t@cache.example", "valkeys://office:***@cache.example"),
    ],
)
def test_a_valkey_is_named_by_its_address_and_the_password_is_not_shown(url, seen):
    found = load({"RETAINER_VALKEY_URL": url}, MISSING_FILE)
    assert found.valkey_url == url
    assert setting_text(found.valkey_url) == seen


def test_a_valkey_without_its_library_stops_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "valkey", None)
    with pytest.raises(SettingsError, match=r'RETAINER_VALKEY_URL .* pip install "valkey\[libvalkey\]>=6.2"'):
        load({"RETAINER_VALKEY_URL": "valkey://cache.example"}, MISSING_FILE)
    assert load({}, MISSING_FILE).valkey_url == ""
