"""Names: looked up in the hosts file and at name servers, within a time limit, and without a thread that gets stuck."""

import asyncio
import threading

import pytest
from dns.asyncresolver import Resolver
from dns.resolver import NoNameservers
from testing.process import PATIENCE

from retainer.outbound import names
from retainer.outbound.names import look_up
from tests.name_server import NameServer

V4, V6 = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"], ["2001:db8::1", "2001:db8::2"]


@pytest.fixture
def hosts(tmp_path, monkeypatch):
    file = tmp_path / "hosts"
    monkeypatch.setattr(names, "HOSTS", file)
    return file


@pytest.fixture
def ask(monkeypatch, hosts):
    """Open a name server with these names; return a function that looks names up in turn."""
    servers = []

    def ready(find):
        servers.append(NameServer(monkeypatch, find))

        def ask(*wanted):
            async def asked():
                return [list(await look_up(name)) for name in wanted]

            return asyncio.run(asked())

        return ask

    yield ready
    for each in servers:
        each.close()


def test_the_families_take_turns_so_that_both_are_tried_first(ask):
    (found,) = ask(lambda *_: [*V6, *V4])("shop.example")
    assert [":" in each for each in found] == [False, True, False, True, False, False]
    assert sorted(found) == sorted([*V4, *V6])


def test_a_server_that_is_silent_about_one_family_does_not_hide_the_other(ask, monkeypatch):
    resolve = Resolver.resolve

    def resolve_soon(resolver, host, kind, **options):
        return resolve(resolver, host, kind, **options | {"lifetime": 0.3 if kind == "AAAA" else PATIENCE})

    monkeypatch.setattr(Resolver, "resolve", resolve_soon)
    assert ask(lambda _, kind: None if kind == "AAAA" else V4[:1])("shop.example") == [V4[:1]]


def test_a_silent_server_ends_with_the_lifetime_and_leaves_nothing_behind(ask, monkeypatch):
    monkeypatch.setattr(names, "LIFETIME", 0.3)
    assert ask(lambda *_: None)("shop.example", "other.example") == [[], []]
    assert [each.name for each in threading.enumerate() if "asyncio" in each.name] == []


@pytest.mark.parametrize("name", ["nothing.example", "a" * 64 + ".example", "a..example", "-", "a\\b.example"])
def test_what_is_no_name_or_does_not_exist_has_no_address(ask, name):
    assert ask(lambda *_: [])(name) == [[]]


def test_the_hosts_file_comes_first_and_is_read_again_when_it_has_changed(ask, hosts):
    find = ask(lambda *_: V4[:1])
    assert find("shop.example") == [V4[:1]]
    hosts.write_text("# local names\n10.0.0.1 Shop.Example  shop # ours\n\nfd00::1\tshop.example\n", encoding="utf-8")
    assert find("shop.example", "SHOP.example.", "shop", "else.example") == [
        *[["10.0.0.1", "fd00::1"]] * 2,
        ["10.0.0.1"],
        V4[:1],
    ]

    async def changing():
        found = []
        for line in ("10.0.0.2 shop.example\n", ""):
            hosts.write_text(line, encoding="utf-8")
            found.append(list(await look_up("shop.example")))
        return found

    assert asyncio.run(changing()) == [["10.0.0.2"], V4[:1]]


def test_localhost_is_this_machine_also_without_a_hosts_file(ask):
    asked = ask(lambda *_: V4[:1])("localhost", "LOCALHOST.", "shop.localhost")
    assert asked == [["127.0.0.1"]] * 3


def test_other_name_servers_are_asked_once_the_file_of_name_servers_has_changed(tmp_path, monkeypatch, hosts):
    file = tmp_path / "resolv.conf"
    monkeypatch.setattr(names, "NAME_SERVERS", file)
    monkeypatch.setattr(names, "LIFETIME", 0.2)
    asked = []

    async def ask(self, *_, **__):
        asked.append(self.nameservers)
        raise NoNameservers

    monkeypatch.setattr(Resolver, "resolve", ask)
    for address in ("192.0.2.1", "192.0.2.2"):
        file.write_text(f"nameserver {address}\n", encoding="utf-8")
        assert list(asyncio.run(look_up("shop.example"))) == []
    assert asked == [["192.0.2.1"]] * 2 + [["192.0.2.2"]] * 2


@pytest.mark.parametrize("text", [None, "", "nameserver localhost\n"])
def test_without_name_servers_this_machine_is_asked(tmp_path, monkeypatch, text):
    file = tmp_path / "resolv.conf"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    monkeypatch.setattr(names, "NAME_SERVERS", file)
    monkeypatch.setattr(names, "LIFETIME", 0.2)
    assert list(asyncio.run(look_up("shop.example"))) == []
    assert names._resolver().nameservers == ["127.0.0.1"]  # noqa: SLF001
