import gc
from ipaddress import ip_network

import pytest

from retainer.kernel.body import RequestBody
from retainer.kernel.http import Request
from retainer.settings import Settings

PROXIED = Settings(trusted_proxies=(ip_network("10.0.0.0/8"),))


def request(settings=PROXIED, **environ):
    base = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": "/me",
        "QUERY_STRING": "",
        "REMOTE_ADDR": "10.0.0.1",
        "wsgi.url_scheme": "http",
        "HTTP_HOST": "inside:8000",
    }
    return Request(base | environ, settings)


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),  # no proxy of ours: what it forwards is not believed
        ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "1.1.1.1, 198.51.100.1", "198.51.100.1"),  # what the caller wrote itself is not believed
        ("10.0.0.1", "198.51.100.1, 10.2.3.4", "198.51.100.1"),
        ("10.0.0.1", "", "10.0.0.1"),  # asked by the machine of the proxy itself
        ("10.0.0.1", "nonsense", "None"),
        ("2001:db8:1:2:3:4:5:6", "", "2001:db8:1:2::/64"),  # a caller has a whole network of them
        ("::ffff:203.0.113.9", "", "203.0.113.9"),
        ("10.0.0.1", "1.1.1.1, 198.51.100.1:50123", "198.51.100.1"),  # as some load balancers write
        ("10.0.0.1", "198.51.100.1, [::ffff:10.2.3.4]:443", "198.51.100.1"),
        ("10.0.0.1", "[2001:db8:1:2::5]:50123", "2001:db8:1:2::/64"),
        ("10.0.0.1", "[198.51.100.1", "None"),
        ("unix:", "", "None"),
    ],
)
def test_the_address_is_the_peer_or_what_a_trusted_proxy_says(peer, forwarded, address):
    assert request(REMOTE_ADDR=peer, HTTP_X_FORWARDED_FOR=forwarded).address == address


@pytest.mark.parametrize(
    ("forwarded", "shown"), [("198.51.100.1", "198.51.100.1"), ("fe80::1%<b>", "fe80::1"), ("nonsense", None)]
)
def test_an_address_that_is_none_is_not_shown_as_one(forwarded, shown):
    assert request(HTTP_X_FORWARDED_FOR=forwarded).shown_address == shown


def test_links_name_the_public_address():
    asked = {"HTTP_X_FORWARDED_PROTO": "https", "HTTP_X_FORWARDED_HOST": "api.agency.example"}
    assert request(**asked).base_url == "https://api.agency.example/api/public/v1"
    assert request(**asked, REMOTE_ADDR="203.0.113.9").base_url == "http://inside:8000/api/public/v1"
    fixed = Settings(base_url="https://agency.example")
    assert request(fixed, **asked).base_url == "https://agency.example/api/public/v1"


@pytest.mark.parametrize("host", ['"><script>', "a b", "a,b", "a/b", "user@evil.example"])
def test_links_never_hold_what_is_no_host(host):
    asked = request(HTTP_X_FORWARDED_HOST=host, HTTP_X_FORWARDED_PROTO="javascript")
    assert asked.base_url == "http://inside:8000/api/public/v1"


def test_a_refused_request_leaves_nothing_behind(api):
    """What holds itself, as a traceback does that knows its frame, is found by the collector only if it may look."""
    gc.collect()
    before = sum(isinstance(each, RequestBody) for each in gc.get_objects())
    for _ in range(20):
        assert api.post("/clients", raw=b'{"name": ').status == 400
    gc.collect()
    assert sum(isinstance(each, RequestBody) for each in gc.get_objects()) <= before
