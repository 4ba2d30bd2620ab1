import sys
from ipaddress import ip_network
from pathlib import Path

import pytest

from retainer.settings import SettingsError, load, shown

MISSING_FILE = Path("/nonexistent/.env")


@pytest.fixture(autouse=True)
def _only_what_is_given(monkeypatch):
    monkeypatch.delenv("RETAINER_TEST_LENGTH", raising=False)  # is for the tests; the product knows no such setting


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
        ("RETAINER_COLOUR", "red", "is no setting"),
        ("RETAINER_THREADS", "many", "'many'; it takes a whole number from 1 to 256"),
        ("RETAINER_BASE_URL", "agency.example", "an address like https://"),
        ("RETAINER_TRUSTED_PROXIES", "localhost", "address ranges"),
        ("RETAINER_DATABASE_URL", "mysql://x", "sqlite:///path"),
        *(
            ("RETAINER_VALKEY_URL", url, "is ***; it takes valkey://[user:password@]host[:port][/number]")
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
    assert shown(found.valkey_url) == seen


def test_no_password_of_a_database_is_shown():
    assert shown("postgresql://office:s3cret@db.example:5432/retainer") == (
        "postgresql://office:***@db.example:5432/retainer"
    )
    assert shown("postgresql:///retainer?host=/run&password=s3cret&user=office") == (
        "postgresql:///retainer?host=/run&password=***&user=office"
    )


def test_a_valkey_without_its_library_stops_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "valkey", None)
    with pytest.raises(SettingsError, match=r'RETAINER_VALKEY_URL .* pip install "retainer\[valkey\]"'):
        load({"RETAINER_VALKEY_URL": "valkey://cache.example"}, MISSING_FILE)
    assert load({}, MISSING_FILE).valkey_url == ""
