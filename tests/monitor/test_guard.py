"""The guard: the monitor never connects to a forbidden address, in any spelling, by name or by redirect."""

import asyncio
import errno
import re
import socket
from ipaddress import IPv4Address, ip_address, ip_network

import pytest
from testing.ports import free_port

from retainer.outbound import client, guard
from retainer.outbound.client import GuardedClient
from retainer.outbound.leases import Places
from retainer.sites.monitor import probe, schedule
from retainer.sites.monitor.schedule import CheckResult
from tests.length import TURN, first, sampled
from tests.monitor.test_probe import FakeSite, due_site, response, search_now
from tests.name_server import NameServer

CIRCLED = "\u24ea\u2460\u2461\u2462\u2463\u2464\u2465\u2466\u2467\u2468"
PUBLIC, OTHER = "93.184.215.14", "93.184.215.15"  # they stand for the internet, and are led to loopback here
NOT_REACHED = "The site cannot be reached."
EVERYWHERE = (ip_network("0.0.0.0/0"), ip_network("::/0"))

FORBIDDEN = [
    "0.0.0.0",
    "10.0.0.1",
    "10.255.255.254",
    "100.64.0.1",
    "100.127.255.254",
    "127.0.0.1",
    "127.0.0.2",
    "127.255.255.254",
    "169.254.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.254",
    "192.168.0.1",
    "192.168.255.254",
    "198.18.0.1",
    "192.0.2.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
]
FORBIDDEN_6 = [
    "::",
    "::1",
    "0:0:0:0:0:0:0:1",
    "0000:0000:0000:0000:0000:0000:0000:0001",
    "fe80::1",
    "FE80::1",
    "febf::1",
    "fc00::1",
    "fd00::1",
    "fd00:ec2::254",
    "fdff:ffff::1",
    "ff02::1",
    "ff0e::1",
    "2001:db8::1",
    "100::1",
    "64:ff9b:1::1",
    "2001::1",
    "2002::1",
    "2002:101:101::1",
    "4000::1",
]
RESOLVED = {
    "localhost": ["::1", "127.0.0.1"],
    "localhost.": ["127.0.0.1"],
    "shop.localhost": ["127.0.0.1"],
    "inside.example": ["127.0.0.1"],
    "inside.example.": ["127.0.0.1"],
    "inside_1.example": ["127.0.0.1"],
    "xn--bcher-kva.example": ["127.0.0.2"],
    "ten.example": ["10.1.2.3"],
    "mapped.example": ["::ffff:127.0.0.1"],
    "metadata.example": ["169.254.169.254"],
    "linklocal.example": ["fe80::1"],
    "first.example": ["127.0.0.1", PUBLIC],
    "last.example": [PUBLIC, "127.0.0.1"],
    "six.example": [PUBLIC, "::1"],
}
ONLY_TEXT = [
    "http://user@127.0.0.1:{port}/",
    "http://user:secret@127.0.0.1:{port}/",
    "http://@127.0.0.1:{port}/",
    "http://shop.example@127.0.0.1:{port}/",
    "http://127.0.0.1.:{port}/",
    "http://%31%32%37.0.0.1:{port}/",
    "http://127.0.0.1%00:{port}/",
    "http://127.0.0.1%2f@shop.example:{port}/",
    "http://[::1%25lo]:{port}/",
    "http://[::ffff:127.0.0.1%25lo]:{port}/",
    "http:127.0.0.1:{port}/",
    "http:/127.0.0.1:{port}/",
    "http:///127.0.0.1:{port}/",
    "http://127.0.0.1\\@shop.example:{port}/",
    "http:\\\\127.0.0.1:{port}/",
    "http://[v1.fe80]:{port}/",
    "http://127.0.0.1:{port}:80/",
    "http://127.0.0.256:{port}/",
    "http://4294967296:{port}/",
    "//127.0.0.1:{port}/",
    "ftp://127.0.0.1:{port}/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:{port}/",
    "unix:///run/x.sock",
    "http://nothing.example:{port}/",
    "http://[::1:{port}/",
    "http://::1:{port}/",
    "http://0177.0.0.08:{port}/",
]


def numbers(text):
    """What the system reads as an IPv4 address."""
    whole = int(IPv4Address(text))
    a, b, c, d = whole.to_bytes(4)
    return [
        text,
        f"{whole}",
        f"{whole:#x}",
        f"0X{whole:X}",
        f"0{whole:o}",
        f"{a:#x}.{b:#x}.{c:#x}.{d:#x}",
        f"{a:#x}.{b}.0{c:o}.{d}",
        f"{a}.{whole & 0xFFFFFF}",
        f"{a}.{b}.{whole & 0xFFFF}",
        text.replace(".", "\u3002"),
    ]


def within(text):
    """IPv6 addresses that hold an IPv4 one: mapped, translated, compatible, NAT64, 6to4, Teredo, ISATAP."""
    whole = int(IPv4Address(text))
    pair, turned = (f"{each >> 16:x}:{each & 0xFFFF:x}" for each in (whole, whole ^ 0xFFFFFFFF))
    return [
        f"::ffff:{text}",
        f"::ffff:{pair}",
        f"::FFFF:{pair.upper()}",
        f"0:0:0:0:0:ffff:{pair}",
        f"0000:0000:0000:0000:0000:ffff:{text}",
        f"::ffff:0:{text}",
        f"::{text}",
        f"64:ff9b::{text}",
        f"64:ff9b::{pair}",
        f"0064:ff9b:0:0:0:0:{pair}",
        f"64:ff9b:1::{text}",
        f"2002:{pair}::",
        f"2002:{pair}::1",
        f"2001:0:{pair}:0:0:f7f7:f7f7",
        f"2001:0:808:808:0:0:{turned}",
        f"2606:4700::5efe:{pair}",
        f"2606:4700::200:5efe:{pair}",
    ]


def unread(text):
    """What the system does not read as an address, but others do: digits of other alphabets, four octal numbers."""
    a, b, c, d = int(IPv4Address(text)).to_bytes(4)
    return [
        "".join(chr(0xFF10 + int(each)) if each.isdigit() else each for each in text),
        "".join(CIRCLED[int(each)] if each.isdigit() else each for each in text),
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
        f"000{a:o}.000{b:o}.000{c:o}.000{d:o}",
    ]


def urls(hosts):
    return [f"http://{f'[{host}]' if ':' in host else host}:{{port}}/" for host in hosts]


REACHING = {
    **{f"numbers of {text}": urls(numbers(text)) for text in FORBIDDEN},
    **{f"within IPv6, {text}": urls(within(text)) for text in FORBIDDEN},
    "IPv6": urls(FORBIDDEN_6),
    "names": urls([*RESOLVED, "LOCALHOST", "LocalHost", "INSIDE.EXAMPLE", "b\u00fccher.example"]),
    "other ways to write it": [
        "HTTP://127.0.0.1:{port}",
        "hTTp://LOCALHOST:{port}/a?b#c",
        "http://127.0.0.1:{port}/%2e%2e/",
    ],
    "TLS and usual ports": [
        "https://127.0.0.1:{port}/",
        "https://[::1]:{port}/",
        "http://127.0.0.1/",
        "http://10.0.0.1:22/",
    ],
}
"""Addresses of sites; without the guard, each is connected to."""
UNREADABLE = {"unread numbers": urls(each for text in FORBIDDEN for each in unread(text)), "only text": ONLY_TEXT}
"""Those that lead nowhere, or would if they were read in another way."""


class World:
    """The outside: names, their answers, fake sites on every loopback address, and every attempt to connect."""

    def __init__(self, monkeypatch):
        self.names = {name.rstrip("."): [addresses] for name, addresses in RESOLVED.items()}
        self.roads = {}
        self.tried = []
        self.tries = {}
        self.servers = [FakeSite()]
        self.port = self.servers[0].port
        self.servers += [FakeSite(address=each, port=self.port) for each in ("127.0.0.2", *["::1"] * has_ipv6())]
        self.name_server = NameServer(monkeypatch, self.addresses_of)
        self._connect = socket.socket.connect

        def connect(link, address):
            return self.connect(link, address)

        monkeypatch.setattr(socket.socket, "connect", connect)

    def addresses_of(self, name, kind):
        """Return the next addresses of a name, whose IPv6 addresses never change."""
        answers = self.names.get(name, [[]])
        return answers.pop(0) if kind == "A" and len(answers) > 1 else answers[0]

    def connect(self, link, address):
        self.tried.append(address[0])
        ip = ip_address(address[0])
        ip = getattr(ip, "ipv4_mapped", None) or ip
        if address[0] in self.roads:
            return self._connect(link, ("127.0.0.1", self.roads[address[0]]))
        if ip.is_loopback or ip.is_unspecified:
            return self._connect(link, address)
        raise OSError(errno.ENETUNREACH, "nothing leaves this machine")

    @property
    def connections(self):
        return sum(each.connections for each in self.servers)

    def probe(self, spellings, allowed=()):
        """Return the result of each."""

        async def probed():
            found = []
            async with GuardedClient(allowed, "site") as client:
                for spelling in spellings:
                    before = len(self.tried)
                    found.append(
                        await probe.probe(client, due_site(spelling.replace("{port}", str(self.port))), search_now)
                    )
                    self.tries[spelling] = len(self.tried) - before
            return found

        return asyncio.run(probed())


def has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.fixture
def world(monkeypatch):
    network = World(monkeypatch)
    yield network
    for each in (*network.servers, network.name_server):
        each.close()


@pytest.fixture
def allow_every_address(monkeypatch):
    """Disable the guard."""
    monkeypatch.setattr(guard, "is_allowed", lambda *_: True)


def answer_from(world, address, answer):
    """Have an address of the internet answer."""
    world.servers.append(FakeSite(answer))
    world.roads[address] = world.servers[-1].port
    return world.servers[-1]


def test_there_are_enough_spellings():
    every = [each for group in (*REACHING.values(), *UNREADABLE.values()) for each in group]
    assert len(every) == len(set(every)) > 600


@pytest.mark.parametrize("group", sampled(REACHING | UNREADABLE, 4, TURN))
def test_the_monitor_never_connects_to_a_forbidden_address(world, group):
    spellings = (REACHING | UNREADABLE)[group]
    for spelling, found in zip(spellings, world.probe(spellings), strict=True):
        assert (found.is_up, found.status_code, found.milliseconds, found.error) == (False, None, None, NOT_REACHED), (
            spelling
        )
    assert (world.tried, world.connections) == ([], 0)


@pytest.mark.parametrize("group", sampled(REACHING, 10, TURN))
def test_without_the_guard_each_of_them_would_connect(world, allow_every_address, monkeypatch, group):
    monkeypatch.setattr(client, "CONNECT_SECONDS", 0.2)  # nobody answers there
    world.probe(REACHING[group])
    assert [spelling for spelling in REACHING[group] if not world.tries[spelling]] == []


def test_without_the_guard_loopback_addresses_would_be_connected_to(world, allow_every_address):
    hosts = ["127.0.0.1", "127.0.0.2", "0.0.0.0", "::ffff:127.0.0.1", "localhost", *["::1", "::"] * has_ipv6()]
    assert [found.is_up for found in world.probe(urls(hosts))] == [True] * len(hosts)
    assert world.connections == len(hosts)


@pytest.mark.parametrize(
    "allowed", [EVERYWHERE, (ip_network("127.0.0.0/8"),), (ip_network("127.0.0.1/32"),)], ids=["all", "8", "32"]
)
def test_an_allowed_network_is_connected_to_in_any_spelling(world, allowed):
    spellings = urls([*numbers("127.0.0.1"), "::ffff:127.0.0.1", "::ffff:7f00:1", "inside.example"])
    assert [found.is_up for found in world.probe(spellings, allowed)] == [True] * len(spellings)
    assert world.connections == len(spellings)


@pytest.mark.parametrize("text", ["169.254.0.1", "169.254.169.254"])
def test_no_setting_allows_link_local_and_metadata_addresses(world, text):
    spellings = urls(
        [
            *numbers(text),
            *(each for each in within(text) if "ffff:0:" not in each),
            "fe80::1",
            "fd00:ec2::254",
            "metadata.example",
            "linklocal.example",
        ]
    )
    assert {found.error for found in world.probe(spellings, EVERYWHERE)} == {NOT_REACHED}
    assert world.tried == []


def test_an_allowed_network_allows_no_other(world):
    spellings = urls(["10.0.0.1", "10.1.0.1", "ten.example"])
    world.probe(spellings, (ip_network("10.1.0.0/16"),))
    assert sorted(world.tried) == ["10.1.0.1", "10.1.2.3"]


NEIGHBOURS = [
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.1",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "192.169.0.0",
    "169.253.255.255",
    "223.255.255.1",
    "2606:4700::1111",
    "2a00:1450::5e",
    "::ffff:1.1.1.1",
    "64:ff9b::1.1.1.1",
]


@pytest.mark.parametrize("address", NEIGHBOURS)
def test_public_addresses_next_to_forbidden_ones_are_connected_to(world, address):
    world.probe(urls([address]))
    assert [ip_address(each) for each in world.tried] == [ip_address(address)]


def test_a_name_is_resolved_once_and_the_checked_address_is_connected_to(world):
    site = answer_from(world, PUBLIC, response(200))
    world.names["turning.example"] = [[PUBLIC], ["127.0.0.1"]]
    assert world.probe(urls(["turning.example"]))[0].is_up
    assert (sorted(world.name_server.asked), world.tried, site.connections) == (
        [("turning.example", "A"), ("turning.example", "AAAA")],
        [PUBLIC],
        1,
    )


def test_a_name_that_resolves_to_a_forbidden_address_at_a_redirect_is_refused(world):
    site = answer_from(world, PUBLIC, response(302, Location="/again"))
    world.names["turning.example"] = [[PUBLIC], ["127.0.0.1"], [PUBLIC]]
    assert world.probe(urls(["turning.example"]))[0].error == redirected_to("turning.example")
    assert (world.tried, site.connections) == ([PUBLIC], 1)


def redirected_to(host):
    return f"The site redirects to {host}, which cannot be reached."


INSIDE = [
    "http://127.0.0.1:{port}/",
    "//127.0.0.1:{port}/",
    "https://127.0.0.1:{port}/",
    "http://2130706433:{port}/",
    "http://0x7f.1:{port}/",
    "http://[::1]:{port}/",
    "http://[::ffff:7f00:1]:{port}/",
    "http://[64:ff9b::127.0.0.1]:{port}/",
    "http://localhost:{port}/",
    "http://inside.example:{port}/",
    "http://last.example:{port}/",
    "http://169.254.169.254/latest/meta-data/",
]
NO_ADDRESSES = ["http://user:secret@shop.example/", "http://user@127.0.0.1:{port}/", "http://127.0.0.1\t:{port}/"]


@pytest.mark.parametrize("status", first([302, 301, 303, 307, 308]))
def test_no_redirect_leads_to_a_forbidden_address(world, status):
    world.names["shop.example"] = [[PUBLIC]]
    for location in (*INSIDE, *NO_ADDRESSES):
        site = answer_from(world, PUBLIC, response(status, Location=location.replace("{port}", str(world.port))))
        world.tried.clear()
        (found,) = world.probe(["http://shop.example/"])
        assert (found.is_up, found.status_code) == (False, status), location
        if location in INSIDE:
            assert re.fullmatch(re.escape(redirected_to("HOST")).replace("HOST", "[^ ]+"), found.error), location
        else:
            assert found.error == "The site redirects to an address that is not allowed.", location
        assert (world.tried, site.connections) == ([PUBLIC], 1), location
    assert sum(each.connections for each in world.servers[:3]) == 0


def test_a_chain_of_redirects_that_ends_at_a_forbidden_address_is_refused(world):
    world.names |= {"shop.example": [[PUBLIC]], "other.example": [[OTHER]]}
    answer_from(world, PUBLIC, response(301, Location="http://other.example/"))
    answer_from(world, OTHER, response(301, Location=f"http://localhost:{world.port}/"))
    (found,) = world.probe(["http://shop.example/"])
    assert (found.error, world.tried) == (redirected_to("localhost"), [PUBLIC, OTHER])
    answer_from(world, OTHER, response(200))
    assert world.probe(["http://shop.example/"])[0].is_up


def test_a_url_of_a_site_is_refused_or_never_connected_to(api, world):
    taken, key = [], None
    every = [each for group in (*REACHING.values(), *UNREADABLE.values()) for each in group]
    for number, spelling in enumerate(every[::3]):
        key = api.new_key() if number % 100 == 0 else key
        answer = api.post("/sites", {"url": spelling.replace("{port}", str(world.port))}, key=key)
        assert answer.status == 201 or answer.errors["url"], answer
        taken += [answer.data["url"]] if answer.status == 201 else []
    assert len(taken) > 100
    assert {found.error for found in world.probe(taken)} == {NOT_REACHED}
    assert (world.tried, world.connections) == ([], 0)


def test_a_result_does_not_reveal_whether_an_address_is_forbidden_or_missing(api, world):
    world.names |= {"refused.example": [[OTHER]], "leading.example": [[PUBLIC]], "none.example": [[]]}
    world.roads[OTHER] = free_port()
    hosts = ["refused.example", "127.0.0.1", "10.0.0.1", "metadata.example", "none.example", "9.9.9.9"]
    sites = [api.make("/sites", url=f"http://{host}/")["id"] for host in hosts]
    taken = schedule.DUE.claim(api.store, Places(100, ()), probe.Monitor.lease)
    found = world.probe([check.url for check in taken])
    for due, result in zip(taken, found, strict=True):
        schedule.save_result(api.store, due, result)
    expected = [api.get(f"/sites/{site}").data for site in sites]
    own_fields = ("id", "url", "name", "created_at", "updated_at", "last_checked_at", "down_since")
    assert [{name: each[name] for name in each if name not in own_fields} for each in expected] == [
        {name: expected[0][name] for name in expected[0] if name not in own_fields}
    ] * len(hosts)
    assert expected[0]["last_error"] == NOT_REACHED
    assert (expected[0]["last_status_code"], expected[0]["response_time_ms"], expected[0]["ssl_expires_at"]) == (
        None,
        None,
        None,
    )
    for host in ("127.0.0.1", "10.0.0.1", "refused.example", "none.example", "metadata.example"):
        answer_from(world, PUBLIC, response(302, Location=f"http://{host}/"))
        assert world.probe(["http://leading.example/"]) == [CheckResult(False, 302, error=redirected_to(host))]
