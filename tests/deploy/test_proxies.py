"""A server behind nginx and behind Caddy, with the configuration in deploy/: they report the true address and host."""

import contextlib
import http.client
import json
import os
import socket
import subprocess

import pytest
from testing.ports import free_port
from testing.process import Client, running, until, with_database

from retainer.settings import BASE_PATH
from tests.deploy.programs import run, sample
from tests.skips import find_program

ADDRESS, TRUSTED, FORGED = "127.0.0.5", "127.0.0.1", "203.0.113.7"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = with_database(tmp_path_factory.mktemp("server"))
    with running(folder, "--no-monitor", RETAINER_TRUSTED_PROXIES="127.0.0.1/32") as running_server:
        yield running_server


def make_certificate(folder):
    names = ("-keyout", folder / "privkey.pem", "-out", folder / "fullchain.pem", "-subj", "/CN=agency.example")
    made = run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", 9, *names)
    assert made.returncode == 0, made.stdout


def nginx(folder, port, upstream):
    """Write the configuration with ports and folders of the test; without TLS if there is a port."""
    certificates = "/etc/letsencrypt/live/agency.example"
    replacements = (certificates, str(folder)), ("/var/log/nginx", str(folder))
    site = sample("nginx.conf", *replacements, ("127.0.0.1:8000", f"127.0.0.1:{upstream}"))
    if port is not None:
        site = site.replace("listen 443 ssl;", f"listen 127.0.0.1:{port};").replace("listen [::]:443 ssl;", "")
        site = "\n".join(line for line in site.splitlines() if "ssl_" not in line)
    (folder / "site.conf").write_text(site)
    temporary = "\n".join(
        f"{name}_temp_path {folder};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root; " if os.geteuid() == 0 else ""  # it writes into the folder of the test
    (folder / "nginx.conf").write_text(
        f"{user}daemon off; pid {folder}/pid; error_log stderr;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}\ninclude {folder}/site.conf;\n}}\n"
    )
    return ["-p", str(folder), "-c", str(folder / "nginx.conf")]


def caddy(folder, port, upstream):
    """Write the configuration with ports of the test, without TLS."""
    options = f"{{\n\tadmin off\n\tstorage file_system {folder}\n}}\n"
    replacements = (("agency.example {", f"http://agency.example:{port} {{"), (":8000", f":{upstream}"))
    (folder / "Caddyfile").write_text(options + sample("Caddyfile", *replacements))
    return ["run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


def listens(process, port):
    assert process.poll() is None
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True


@contextlib.contextmanager
def started(program, arguments, port, folder):
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen([find_program(program), *arguments], stdout=output, stderr=output)
    try:
        until(lambda: listens(process, port), f"{program} listens")
        yield
    finally:
        process.terminate()
        process.wait(timeout=20)


@pytest.fixture(scope="module", params=[nginx, caddy], ids=lambda each: each.__name__)
def proxy(request, server, tmp_path_factory):
    """A client of a running proxy."""
    find_program(request.param.__name__)
    folder, port = tmp_path_factory.mktemp("proxy"), free_port()
    arguments = request.param(folder, port, server.port)
    with started(request.param.__name__, arguments, port, folder), Client(port, address=ADDRESS) as client:
        yield client


def get(proxy, path, header, value, address=ADDRESS):
    """Send a request with a header whose name is not changed."""
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20, source_address=(address, 0))
    with contextlib.closing(connection):
        connection.putrequest("GET", path, skip_host=True)
        connection.putheader("Host", "agency.example")
        connection.putheader(header, value)
        connection.endheaders()
        return json.loads(connection.getresponse().read())


def addresses(server, path):
    lines = (json.loads(line) for line in server.log().splitlines())
    return [line["address"] for line in lines if line.get("path") == path]


def test_nginx_understands_the_sample_with_its_certificate(tmp_path, server):
    make_certificate(tmp_path)
    checked = run("nginx", "-t", *nginx(tmp_path, None, server.port))
    assert checked.returncode == 0, checked.stdout
    assert "warn" not in checked.stdout


def test_caddy_understands_the_sample(tmp_path):
    (tmp_path / "Caddyfile").write_text(sample("Caddyfile"))
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin"}
    checked = run("caddy", "validate", "--adapter", "caddyfile", "--config", tmp_path / "Caddyfile", env=environment)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("address", [ADDRESS, TRUSTED], ids=["stranger", "on this machine"])
@pytest.mark.parametrize("header", ["X-Forwarded-For", "X_Forwarded_For"])
def test_a_client_cannot_choose_the_address_that_is_logged(server, proxy, header, address):
    """From the address of a trusted proxy neither: what it says of another would be believed."""
    path = f"/clients/{header.count('_')}/{proxy.port}/{address}"
    assert get(proxy, BASE_PATH + path, header, FORGED, address)["code"]
    assert until(lambda: addresses(server, path), "the request is logged") == [address]


@pytest.mark.parametrize("header", ["X-Forwarded-Host", "X_Forwarded_Host"])
def test_a_client_cannot_choose_the_host_in_links(proxy, header):
    document = get(proxy, "/openapi.json", header, "evil.example")
    assert document["servers"][0]["url"].startswith("http://agency.example")


def has_the_form_of_an_error(answer, status, code):
    assert answer.status == status, answer
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert answer.headers["cache-control"] == "private, no-cache"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-request-id"] == answer.json["request_id"]
    assert ("retry-after" in answer.headers) == (status != 413)
    assert answer.json["code"] == code
    assert answer.json["docs_url"].endswith(f"://agency.example/docs/errors#{code}")
    assert answer.json["message"]


@contextlib.contextmanager
def nginx_before(folder, upstream, *replacements):
    """A client of an nginx with some texts of its site replaced."""
    port = free_port()
    arguments = nginx(folder, port, upstream)
    site = (folder / "site.conf").read_text()
    for old, new in replacements:
        assert old in site
        site = site.replace(old, new)
    (folder / "site.conf").write_text(site)
    with started("nginx", arguments, port, folder), Client(port, address=ADDRESS) as client:
        yield client


def test_the_log_of_nginx_has_no_secret_of_a_link(tmp_path, server):
    with nginx_before(tmp_path, server.port) as client:
        for path in ("/client", "/console/password"):
            client.send("GET", f"{path}?token=s3cret", Host="agency.example")
    lines = (tmp_path / "retainer.log").read_text().splitlines()
    assert [line.partition('"')[2].partition('"')[0] for line in lines] == ["GET /client", "GET /console/password"]
    assert "s3cret" not in "".join(lines)


@pytest.mark.parametrize("size", [1_100_000, 29_000_000])
def test_a_large_body_is_refused_in_json_by_the_server_and_by_nginx_before_it(tmp_path, server, size):
    with nginx_before(tmp_path, server.port) as client:
        answer = client.send("POST", f"{BASE_PATH}/clients", b" " * size, Host="agency.example")
    if size < 27 << 20:
        assert (answer.status, answer.json["code"]) == (413, "body_too_large")
        assert "x-ratelimit-limit" in answer.headers, "Retainer has refused it"
    else:
        has_the_form_of_an_error(answer, 413, "body_too_large")


@pytest.mark.parametrize("configure", [nginx, caddy])
def test_programs_are_told_in_json_that_nothing_answers_and_people_by_a_page(tmp_path, configure):
    find_program(configure.__name__)
    port = free_port()
    arguments = configure(tmp_path, port, free_port())
    with started(configure.__name__, arguments, port, tmp_path), Client(port, address=ADDRESS) as client:
        for method in ("GET", "POST"):
            answer = client.send(method, f"{BASE_PATH}/tags", b"", Host="agency.example")
            has_the_form_of_an_error(answer, 503, "unavailable")
        page = client.send("GET", "/console", Host="agency.example")
    assert page.status in {502, 503}
    assert page.headers.get("content-type") == ("text/html" if configure is nginx else None)


def test_too_many_requests_at_once_are_refused_in_json(tmp_path, server):
    with (
        nginx_before(tmp_path, server.port, ("limit_conn retainer 200", "limit_conn retainer 1")) as client,
        socket.create_connection(("127.0.0.1", client.port), source_address=(ADDRESS, 0)) as slow,
    ):
        head = f"POST {BASE_PATH}/clients HTTP/1.1\r\nHost: agency.example\r\nContent-Length: 9\r\n\r\n1"
        slow.sendall(head.encode())

        def refused():
            answer = client.send("GET", f"{BASE_PATH}/me", Host="agency.example")
            return answer if answer.status == 429 else None

        has_the_form_of_an_error(until(refused, "the other request runs"), 429, "rate_limited")


@pytest.mark.parametrize("size", [1_000_000, 1_200_000])
def test_the_refusal_of_a_large_body_reaches_the_client(proxy, size):
    refused = [proxy.send("POST", f"{BASE_PATH}/clients", b" " * size, Host="agency.example") for _ in range(10)]
    assert {answer.status for answer in refused} == {401 if size == 1_000_000 else 413}


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
def test_pages_of_operators_are_not_public(proxy, path):
    assert proxy.send("GET", path, Host="agency.example").status == 404


def test_the_console_and_the_reference_are_public(proxy):
    assert proxy.send("GET", "/docs", Host="agency.example").status == 200
    assert proxy.send("GET", "/console/sign-in", Host="agency.example").status == 200
