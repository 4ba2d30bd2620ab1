"""The probe: what counts as up, its limits, and that it always ends. Also the fake sites of these tests."""

import asyncio
import contextlib
import gzip
import json
import re
import socket
import ssl
import subprocess
import threading
import time
import tracemalloc
import zlib
from datetime import UTC, datetime
from ipaddress import ip_network

import brotli
import pytest
from testing.process import PATIENCE

from retainer import __version__
from retainer.outbound import client, names
from retainer.outbound.client import GuardedClient
from retainer.sites.monitor import probe
from retainer.sites.monitor.page_text import find_keyword
from retainer.sites.monitor.schedule import CheckResult, DueSite
from tests.name_server import NameServer
from tests.skips import find_program

LOOPBACK = (ip_network("127.0.0.0/8"),)
UP = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
KB = 1024


class FakeSite:
    """A listener on a loopback address; `answer` is bytes, or a function that writes to the connection."""

    def __init__(self, answer=UP, address="127.0.0.1", port=0, tls=None):
        self.answer, self.tls = answer, tls
        self.asked = []
        self.connections = 0
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.listener = socket.create_server((address, port), family=family, backlog=256)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                link, _ = self.listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def _serve(self, link):
        with contextlib.suppress(OSError, ValueError), link:
            link.settimeout(PATIENCE)
            stream = self.tls.wrap_socket(link, server_side=True) if self.tls else link
            with stream:
                head = b""
                while b"\r\n\r\n" not in head:
                    part = stream.recv(65536)
                    if not part:
                        return
                    head += part
                self.asked.append(head.decode())
                if isinstance(self.answer, bytes):
                    stream.sendall(self.answer)
                else:
                    self.answer(stream, head.decode())

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture
def serve():
    """Open fake sites, and close them after the test."""
    opened = []

    def open_site(answer=UP, **options):
        opened.append(FakeSite(answer, **options))
        return opened[-1]

    yield open_site
    for each in opened:
        each.close()


def due_site(url, expected=None, keyword=None):
    return DueSite(
        "", 1, 1, "2026-03-01T00:00:00.000000Z", url, json.dumps(expected) if expected else None, keyword, 60
    )


async def search_now(site, *page):
    return find_keyword(site.keyword, *page)


def check(url, expected=None, keyword=None, opened=LOOPBACK):
    async def probed():
        async with GuardedClient(opened, "site") as client:
            return await probe.probe(client, due_site(url, expected, keyword), search_now)

    return asyncio.run(probed())


def response(status, body=b"", **headers):
    """Return a response with its length."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = "\r\n".join([f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}", *lines])
    return head.encode() + b"\r\n\r\n" + body


@pytest.fixture
def route(tmp_path, monkeypatch):
    """Write names into a hosts file; `_` in a name stands for a dot. Others do not exist."""
    file = tmp_path / "hosts"
    monkeypatch.setattr(names, "HOSTS", file)
    server = NameServer(monkeypatch, lambda *_: [])

    def write(**addresses):
        rows = [f"{each}\t{name.replace('_', '.')}  # a test" for name, found in addresses.items() for each in found]
        file.write_text("\n".join(["# hosts", *rows]), encoding="utf-8")

    yield write
    server.close()


@pytest.fixture
def short(monkeypatch):
    """The whole time for a look is 0.4 seconds."""
    monkeypatch.setattr(probe, "TOTAL_SECONDS", 0.4)


@pytest.mark.parametrize(
    ("status", "expected", "is_up"),
    [
        (200, None, True),
        (204, None, True),
        (304, None, True),
        (399, None, True),
        (400, None, False),
        (404, None, False),
        (500, None, False),
        (599, None, False),
        (200, [200], True),
        (204, [200], False),
        (404, [404], True),
        (503, [200, 401, 503], True),
        (402, [200, 401, 503], False),
    ],
)
def test_a_site_is_up_if_it_answers_an_expected_status(serve, status, expected, is_up):
    found = check(serve(response(status)).url, expected)
    assert (found.is_up, found.status_code) == (is_up, status)
    assert found.error == (None if is_up else f"The site answered {status}.")
    assert 0 <= found.milliseconds < 5000
    assert found.ssl_expires_at is None


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed_unless_they_are_expected(serve, status):
    end = serve(response(404))
    start = serve(response(status, Location=end.url + "there?a=b"))
    found = check(start.url)
    assert (found.is_up, found.status_code) == (False, 404)
    assert end.asked[0].startswith("GET /there?a=b HTTP/1.1\r\n")
    assert check(start.url, [status]).status_code == status
    assert end.connections == 1, "the second check did not follow"


@pytest.mark.parametrize("status", [300, 304, 305, 306])
def test_other_responses_with_a_location_are_not_followed(serve, status):
    end = serve()
    found = check(serve(response(status, Location=end.url)).url)
    assert (found.is_up, found.status_code, end.connections) == (True, status, 0)


@pytest.mark.parametrize(("redirects", "is_up"), [(1, True), (3, True), (4, False), (9, False)])
def test_three_redirects_are_followed_and_a_fourth_is_a_failure(serve, redirects, is_up):
    def answer(link, head):
        number = int(head.split(" ")[1].rpartition("/")[2] or 0)
        link.sendall(response(302, Location=f"/{number + 1}") if number < redirects else UP)

    site = serve(answer)
    found = check(site.url)
    assert found.is_up is is_up
    assert site.connections == min(redirects, 3) + 1
    assert found.error == (None if is_up else "The site redirects more than 3 times.")


@pytest.mark.parametrize(
    ("location", "asked"),
    [("next", "/a/next"), ("/next", "/next"), ("?q=1", "/a/b?q=1"), ("../c", "/c"), ("//127.0.0.1:{port}/d", "/d")],
)
def test_a_relative_redirect_is_resolved_against_its_page(serve, location, asked):
    def answer(link, head):
        start = head.startswith("GET /a/b HTTP")
        link.sendall(response(302, Location=location.format(port=site.port)) if start else UP)

    site = serve(answer)
    assert check(f"{site.url}a/b").is_up
    assert site.asked[1].split(" ")[1] == asked


@pytest.mark.parametrize(
    "location",
    [
        *("ftp://127.0.0.1/", "javascript:alert(1)", "file:///etc/passwd", "http://a:b/", "http://user:pw@127.0.0.1/"),
        *("http://127.0.0.1:0/", "//127.0.0.1:65536/"),
    ],
)
def test_a_redirect_to_no_http_address_is_a_failure(serve, location):
    found = check(serve(response(302, Location=location)).url)
    error = "The site redirects to an address that is not allowed."
    assert (found.is_up, found.status_code, found.error) == (False, 302, error)


def page(body, **headers):
    return response(200, body, **headers)


MB = 1024 * KB
HTML = {"Content_Type": "text/html"}
NOT_FOUND = "The keyword is not on the page."
CUT = "The keyword is not in the first MiB of the page."


def deflated(body, wbits):
    made = zlib.compressobj(wbits=wbits)
    return made.compress(body) + made.flush()


@pytest.mark.parametrize(
    ("body", "headers", "keyword", "error"),
    [
        (b"Welcome to the shop", {}, "shop", None),
        (b"Welcome to the shop", {}, "SHOP", None),
        ("GRÜSSE".encode(), {}, "Grüße", None),
        (b"", {}, "shop", NOT_FOUND),
        (b"x" * 64 * KB + b"shop", {}, "shop", None),
        (b"x" * (MB - 4) + b"shop", {}, "shop", None),
        (b"x" * (MB - 3) + b"shop", {}, "shop", CUT),
        (b"shop" + "é".encode() * MB, {}, "shop", None),
        (b"<p>Fish &amp; Chips &#8211; caf&eacute;</p>", HTML, "Fish & Chips \u2013 café", None),
        (b'<div class="a&amp;b">', HTML, '<div class="a&amp;b">', None),
        (b"Open\r\n    from&nbsp;9 to\xc2\xa05", HTML, "Open from 9 to 5", None),
        (b"Open from 9", HTML, "Open\nfrom\u00a09", None),
        ("Liefer\u00adbe&shy;din\u200bgungen".encode(), HTML, "Lieferbedingungen", None),
        (b"a shop", HTML, "\u00ad", NOT_FOUND),
        (b"&#" + b"1" * 5000 + b"; shop", HTML, "shop", None),
        ("Grüße".encode(), {}, "Grüße", None),
        ("Grüße".encode("latin-1"), {"Content_Type": "text/html; charset=ISO-8859-1"}, "Grüße", None),
        ("Grüße".encode("latin-1"), HTML, "Grüße", None),
        ("\u20ac".encode("cp1252"), {"Content_Type": "text/html; charset=ISO-8859-1"}, "\u20ac", None),
        (b"<meta charset=windows-1251>" + "Привет".encode("cp1251"), HTML, "Привет", None),
        (b"<META  http-equiv=a content='text/html; charset=koi8-r'>" + "Привет".encode("koi8-r"), HTML, "Привет", None),
        (b"<!-- <meta charset=koi8-r> --><meta charset=utf-8>" + "Привет".encode(), HTML, "Привет", None),
        (b'<?xml version="1.0" encoding="koi8-r"?>' + "Привет".encode("koi8-r"), HTML, "Привет", None),
        (b"<meta charset=utf-16>" + "Привет".encode(), HTML, "Привет", None),
        (b"<meta charset=koi8-r>" + "Привет".encode(), {"Content_Type": "text/html; charset=utf-8"}, "Привет", None),
        ("Grüße".encode("utf-16"), {"Content_Type": "text/html; charset=utf-16"}, "Grüße", None),
        ("Grüße".encode("utf-16"), HTML, "Grüße", None),
        ("\ufeffGrüße".encode("utf-16-be"), HTML, "Grüße", None),
        ("Grüße".encode("utf-16-be"), {"Content_Type": "text/html; charset=utf-16be"}, "Grüße", None),
        ("店".encode("shift_jis"), {"Content_Type": 'text/html; charset="Shift_JIS"'}, "店", None),
        (b"a shop", {"Content_Type": "text/html; charset=no-such-thing"}, "shop", None),
        (b"a shop", {"Content_Type": "text/html; charset=base64"}, "shop", None),
        (b"a shop", {"Content_Type": "text/html; charset="}, "shop", None),
        (b"\xff\xfd shop", {}, "shop", None),
        ("Cafe\u0301".encode(), {}, "café", None),
        ("café".encode(), {}, "cafe\u0301", None),
        (gzip.compress(b"a shop", mtime=0), {"Content_Encoding": "gzip"}, "shop", None),
        (gzip.compress(b"a shop", mtime=0), {"Content_Encoding": "X-GZIP"}, "shop", None),
        (deflated(b"a shop", 15), {"Content_Encoding": "deflate"}, "shop", None),
        (deflated(b"a shop", -15), {"Content_Encoding": "deflate"}, "shop", None),
        (brotli.compress(b"a shop"), {"Content_Encoding": "br"}, "shop", None),
        (gzip.compress(brotli.compress(b"a shop"), mtime=0), {"Content_Encoding": "br, gzip"}, "shop", None),
        (b"a shop", {"Content_Encoding": "identity"}, "shop", None),
        (
            b"a shop",
            {"Content_Encoding": "gzip"},
            "shop",
            "The page says that it is compressed with gzip, but it is not.",
        ),
        (b"a shop", {"Content_Encoding": "br"}, "shop", "The page says that it is compressed with br, but it is not."),
        (
            b"a shop",
            {"Content_Encoding": "zstd"},
            "shop",
            "The page is compressed with zstd, although the monitor asks for none.",
        ),
        (
            b"a shop",
            {"Content_Encoding": "gzip, gzip, gzip"},
            "shop",
            "The page is compressed 3 times. The maximum is 2.",
        ),
    ],
)
def test_a_keyword_is_searched_in_what_a_browser_would_show_of_the_first_mebibyte(serve, body, headers, keyword, error):
    found = check(serve(page(body, **headers)).url, keyword=keyword)
    assert (found.is_up, found.status_code, found.error) == (error is None, 200, error)


BOMBS = {
    "gzip": lambda: gzip.compress(b"x" * 100 * MB, mtime=0),
    "br": lambda: brotli.compress(b"x" * 100 * MB, quality=1),
    "gzip, br": lambda: brotli.compress(gzip.compress(b"x" * 100 * MB, mtime=0)),
}


@pytest.mark.parametrize("coding", BOMBS)
def test_a_page_that_grows_without_end_is_read_to_the_limit(serve, coding):
    bomb = BOMBS[coding]()
    assert len(bomb) < MB
    tracemalloc.start()
    try:
        found = check(serve(page(bomb, Content_Encoding=coding)).url, keyword="shop")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.error == CUT
    assert most < 20 * MB


@pytest.mark.parametrize(
    "text",
    ["a" + "\u0301\u0323" * 250_000, "a" + "\u0f73" * 340_000, "<meta " * 180_000, "&#" * 500_000, "<!--" * 250_000],
)
def test_a_page_that_is_made_to_be_slow_is_searched_in_a_moment(serve, text):
    found = check(serve(page(text.encode())).url, keyword="shop")
    assert found.error in {NOT_FOUND, CUT}


@pytest.mark.parametrize("pieces", [[b"sh", b"op"], [b"Gr\xc3", b"\xbc\xc3", b"\x9fe shop"], [b"s", b"h", b"o", b"p"]])
def test_the_keyword_is_found_across_chunks(serve, pieces):
    def answer(link, _):
        link.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in pieces:
            link.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
            time.sleep(0.02)
        link.sendall(b"0\r\n\r\n")

    assert check(serve(answer).url, keyword="shop").is_up


NOT_HTTP = "The site did not give a valid HTTP answer."


def endless(first, again, pause=0.0):
    """Says something for ever, or until nobody listens."""

    def answer(link, _):
        link.sendall(first)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            link.sendall(again)
            time.sleep(pause)

    return answer


HEAD = b"HTTP/1.1 200 OK\r\n"
ENDLESS = {
    "says nothing": endless(b"", b"", 0.05),
    "dribbles its first line": endless(b"HTTP/1.1 200 ", b"O", 0.05),
    "dribbles headers": endless(HEAD, b"X: y\r\n", 0.05),
    "floods headers": endless(HEAD, b"X: " + b"y" * 1000 + b"\r\n"),
    "one endless header": endless(HEAD + b"X: ", b"y" * 10000),
    "floods 1xx answers": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "dribbles the page": endless(HEAD + b"\r\n", b"x", 0.05),
    "dribbles chunks": endless(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n", 0.05),
    "one endless chunk size": endless(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
}


@pytest.mark.parametrize("answer", ENDLESS.values(), ids=ENDLESS)
def test_an_endless_response_ends_with_the_timeout(serve, short, answer):
    began = time.monotonic()
    found = check(serve(answer).url, keyword="shop")
    assert time.monotonic() - began < PATIENCE / 2
    assert not found.is_up
    assert found.error in {"The site did not answer within 0 seconds.", NOT_HTTP}


def test_the_timeout_covers_all_redirects(serve, short):
    def answer(link, _):
        time.sleep(0.15)
        link.sendall(response(302, Location="/again"))

    site = serve(answer)
    assert check(site.url).error == "The site did not answer within 0 seconds."
    assert site.connections <= 3, "0.4 seconds hold two redirects of 0.15 and the beginning of a third"


def test_no_more_than_a_mebibyte_of_an_endless_page_is_read(serve):
    sent = []

    def answer(link, _):
        link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 * KB)
        link.sendall(HEAD + b"\r\n")
        for _ in range(20_000):
            link.sendall(b"x" * KB)
            sent.append(KB)

    found = check(serve(answer).url, keyword="shop")
    assert (found.status_code, found.error) == (200, CUT)
    assert sum(sent) < 10_000 * KB, "the rest was still in the buffers of the sockets"


def test_without_a_keyword_the_body_is_not_awaited(serve):
    assert check(serve(endless(HEAD + b"\r\n", b"x", 0.05)).url).is_up


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\r\n",
        b"hello\r\n\r\n",
        b"SSH-2.0-x\r\n",
        b"HTTP/1.1 999999 No\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"\x16\x03\x01\x00\x00",
        b"\x00" * 500,
        HEAD + b"no colon\r\n\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
    ],
)
def test_a_server_that_does_not_speak_http_gives_no_valid_answer(serve, answer):
    found = check(serve(answer).url, keyword="shop")
    assert (found.is_up, found.status_code, found.error) == (False, None, NOT_HTTP)


@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: 100\r\n\r\nshop",
        b"Transfer-Encoding: chunked\r\n\r\n4\r\nshop\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n4\r\nshop\r\nfour\r\n",
    ],
)
def test_a_page_that_breaks_off_has_a_status_and_ended_early(serve, rest):
    found = check(serve(HEAD + rest).url, keyword="shop")
    assert (found.is_up, found.status_code, found.error) == (False, 200, "The page ended early.")
    assert found.milliseconds is not None


def test_a_page_that_does_not_arrive_in_time_has_the_status_that_came(serve, monkeypatch):
    monkeypatch.setattr(probe, "TOTAL_SECONDS", 2)  # in which the status has to come
    found = check(serve(endless(HEAD + b"\r\n", b"x", 0.05)).url, keyword="shop")
    assert (found.status_code, found.error) == (200, "The site did not answer within 2 seconds.")


def test_a_refused_port_and_a_forbidden_address_are_told_alike(serve, route):
    closed = serve()
    closed.close()
    route(shop_example=["127.0.0.1"], inner_example=["10.0.0.1"])
    hosts = (f"shop.example:{closed.port}", f"inner.example:{closed.port}", "169.254.169.254", "no-such.example")
    assert {check(f"http://{host}/") for host in hosts} == {CheckResult(False, error="The site cannot be reached.")}
    for host in hosts:
        found = check(serve(response(302, Location=f"http://{host}/")).url)
        name = host.partition(":")[0]
        error = f"The site redirects to {name}, which cannot be reached."
        assert found == CheckResult(False, 302, error=error)


def test_a_request_has_no_cookies_credentials_or_proxies_of_the_environment(serve, monkeypatch):
    proxy = serve()
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    monkeypatch.setenv("no_proxy", "")

    def answer(link, head):
        first = head.startswith("GET / HTTP")
        link.sendall(response(302, Location="/next", Set_Cookie="a=b; Path=/") if first else UP)

    site = serve(answer)
    assert check(site.url).is_up
    assert check(site.url).is_up
    assert proxy.connections == 0
    assert site.connections == 4, "no connection is kept"
    for asked in site.asked:
        lines = asked.rstrip().split("\r\n")[1:]
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        assert headers["host"] == f"127.0.0.1:{site.port}"
        assert headers["user-agent"] == f"Retainer-Monitor/{__version__}"
        assert not {"cookie", "authorization", "referer"} & set(headers)


def test_the_host_header_has_the_name_and_a_port_that_is_not_the_default(serve, route):
    site = serve()
    route(shop_example=["127.0.0.1"])
    assert check(f"http://shop.example:{site.port}/a?b=c").is_up
    assert site.asked[0].startswith("GET /a?b=c HTTP/1.1\r\n")
    assert re.search(rf"(?im)^host: shop\.example:{site.port}\r$", site.asked[0])


def test_another_address_of_a_name_is_tried_if_the_first_does_not_answer(serve, route):
    site = serve(address="127.0.0.2")
    route(shop_example=["127.0.0.1", "127.0.0.2"])
    assert check(f"http://shop.example:{site.port}/").is_up
    assert site.connections == 1


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """An authority of our own, and what it has signed: a good certificate, an old one; and one that nobody signed."""
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*words):
        done = subprocess.run(
            [find_program("openssl"), *words], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=True
        )
        return done.stdout

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    (folder / "names").write_text("subjectAltName=DNS:shop.example", encoding="utf-8")
    for name in ("ca", "alone"):
        options = ("-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", "/CN=Own", "-days", "9")
        openssl("req", "-x509", *key, *options)
    openssl("req", *key, "-keyout", "shop.key", "-out", "shop.csr", "-subj", "/CN=shop.example")
    signed = ("x509", "-req", "-in", "shop.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
    openssl(*signed, "-extfile", "names", "-days", "30", "-out", "shop.pem")
    openssl(
        "req", "-newkey", "rsa:2048", "-nodes", "-keyout", "rsa.key", "-out", "rsa.csr", "-subj", "/CN=shop.example"
    )
    openssl("x509", "-req", "-in", "rsa.csr", *signed[4:], "-extfile", "names", "-days", "30", "-out", "rsa.pem")
    (folder / "primes").write_text(openssl("genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt", "group:ffdhe2048"))
    version = tuple(map(int, openssl("version").split()[1].split(".")[:2]))
    ended = ("-days", "-1")
    if version >= (3, 4):  # which refuse days before today
        ended = ("-not_before", "20240101000000Z", "-not_after", "20240102000000Z")
    openssl(*signed, "-extfile", "names", *ended, "-out", "old.pem")
    (folder / "issuers").write_text("basicConstraints=critical,CA:TRUE", encoding="utf-8")
    openssl("req", *key, "-keyout", "middle.key", "-out", "middle.csr", "-subj", "/CN=Middle")
    openssl(
        "x509", "-req", "-in", "middle.csr", *signed[4:], "-extfile", "issuers", "-days", "30", "-out", "middle.pem"
    )
    of_middle = ("-CA", "middle.pem", "-CAkey", "middle.key", "-CAcreateserial", "-extfile", "names", "-days", "30")
    openssl("x509", "-req", "-in", "shop.csr", *of_middle, "-out", "leaf.pem")
    (folder / "leaf.key").write_bytes((folder / "shop.key").read_bytes())
    (folder / "old.key").write_bytes((folder / "shop.key").read_bytes())
    end = openssl("x509", "-in", "shop.pem", "-noout", "-enddate").strip().removeprefix("notAfter=")
    return folder, datetime.strptime(end, "%b %d %H:%M:%S %Y GMT").replace(tzinfo=UTC)


def tls(folder, name):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return context


@pytest.fixture
def secure(serve, certificates, monkeypatch, route):
    """Opens fake sites that speak TLS, at names; our own authority is trusted."""
    folder, _ = certificates
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "ca.pem"))
    route(shop_example=["127.0.0.1"], other_example=["127.0.0.1"])
    return lambda name="shop", answer=UP: serve(answer, tls=tls(folder, name))


def test_the_expiry_of_a_valid_certificate_is_returned(secure, certificates):
    found = check(f"https://shop.example:{secure().port}/")
    assert found.is_up
    assert found.ssl_expires_at == f"{certificates[1]:%Y-%m-%dT%H:%M:%S}.000000Z"


@pytest.mark.parametrize(
    ("name", "host", "fault"),
    [
        ("old", "shop", "that has expired"),
        ("shop", "other", "for another name"),
        ("leaf", "shop", "whose issuer is unknown, or whose intermediate certificate is missing"),
        ("alone", "shop", "a self-signed certificate"),
    ],
)
def test_each_fault_of_a_certificate_has_its_own_sentence(secure, serve, name, host, fault):
    site = secure(name)
    url = f"https://{host}.example:{site.port}/"
    predicate = f"has {fault}" if fault.startswith("a ") else f"has a certificate {fault}"
    assert check(url) == CheckResult(False, error=f"The site {predicate}.")
    assert site.asked == []
    found = check(serve(response(302, Location=url)).url)
    assert found == CheckResult(False, 302, error=f"The site redirects to {host}.example, which {predicate}.")
    assert len(found.error) <= 191


def test_a_long_host_in_a_message_is_cut_and_an_international_one_is_read(serve):
    for host, shown in (("xn--mnchen-3ya.example", "münchen.example"), (f"{'a' * 60}.{'b' * 60}", "a" * 60 + ".")):
        error = check(serve(response(302, Location=f"http://{host}/")).url).error
        assert error.startswith(f"The site redirects to {shown}")
        assert len(error) <= 191


@pytest.mark.usefixtures("secure")
def test_a_server_that_chooses_the_primes_of_its_handshake_is_not_reached(serve, certificates):
    context = tls(certificates[0], "rsa")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    url = f"https://shop.example:{serve(tls=context).port}/"
    assert check(url).is_up
    context.load_dh_params(certificates[0] / "primes")
    context.set_ciphers("DHE")
    assert check(url).error == "The site cannot be reached."


def test_the_first_certificate_of_a_redirect_counts(secure, serve, certificates):
    plain = serve()
    site = secure(answer=response(302, Location=plain.url))
    found = check(f"https://shop.example:{site.port}/")
    assert found.is_up
    assert found.ssl_expires_at == f"{certificates[1]:%Y-%m-%dT%H:%M:%S}.000000Z"
    assert plain.connections == 1
    to = serve(response(301, Location=f"https://shop.example:{secure().port}/"))
    assert check(to.url).ssl_expires_at == found.ssl_expires_at


def test_http_at_a_port_of_https_is_not_reached(serve, monkeypatch):
    monkeypatch.setattr(client, "CONNECT_SECONDS", 0.3)
    found = check(serve().url.replace("http:", "https:"))
    assert (found.is_up, found.error) == (False, "The site cannot be reached.")


def test_the_guard_checks_every_redirect(serve, route):
    route(shop_example=["127.0.0.2"])
    end = serve(address="127.0.0.2")
    start = serve(response(302, Location=f"http://shop.example:{end.port}/"))
    assert check(start.url).is_up
    first_only = (ip_network("127.0.0.1/32"),)
    found = check(start.url, opened=first_only)
    assert (found.is_up, found.error) == (False, "The site redirects to shop.example, which cannot be reached.")
    assert (start.connections, end.connections) == (2, 1)
