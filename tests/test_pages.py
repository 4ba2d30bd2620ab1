"""What all pages for people share: their assets, headers and policy, told from responses and in a browser."""

import io
import os
import re
from importlib.resources import files
from pathlib import Path
from threading import Thread
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
from jinja2 import FileSystemLoader
from testing.wsgi import wsgi

from retainer.errors import Refusal
from retainer.kernel.http import Request, Response
from retainer.settings import Settings
from retainer.web.pages import ADDRESSES, ASSETS, TEMPLATES, answer_asset, page, publish, render

SPECIMEN = (Path(__file__).parent / "browser" / "specimen.html").read_text(encoding="utf-8")


def request(path: str = "/", method: str = "GET", **headers: str) -> Request:
    environ = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": "",
        "HTTP_HOST": "agency.example",
        "wsgi.url_scheme": "https",
        **{f"HTTP_{name}": value for name, value in headers.items()},
    }
    return Request(environ, Settings())


def specimen() -> str:
    return TEMPLATES.from_string(SPECIMEN).render(heading="<Specimen> & more")


def test_each_brace_of_the_style_sheet_has_its_counterpart():
    sheet = (files("retainer.web") / "assets" / "retainer.css").read_text(encoding="utf-8")
    depth = 0
    for brace in re.findall(r"[{}]", sheet):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0


def test_templates_escape_what_they_show_and_refuse_what_is_not_there():
    assert "<h1>&lt;Specimen&gt; &amp; more</h1>" in specimen()
    with pytest.raises(Exception, match="heading"):
        TEMPLATES.from_string(SPECIMEN).render()


def test_a_running_server_keeps_its_templates_while_an_upgrade_replaces_the_files(tmp_path):
    file, templates = tmp_path / "page.html", TEMPLATES.overlay(loader=FileSystemLoader(tmp_path))
    for text in ("of this version", "of the next"):
        file.write_text(text)
        os.utime(file, (len(text), len(text)))
        assert templates.get_template("page.html").render() == "of this version"


def test_no_page_runs_or_loads_anything_but_what_is_ours():
    headers = dict(page(request(), specimen()).headers)
    assert headers["content-security-policy"].split("; ") == [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ]
    assert "connect-src 'self'" in dict(page(request(), "", connect_src="'self'").headers)["content-security-policy"]
    addresses = re.findall(r'(?:src|href)="([^"#]*)"', specimen())
    assert {address for address in addresses if not address.startswith("/")} == set()
    assert not re.search(r"<script(?! src)|<style|\bstyle=|\bon\w+=", specimen())


def test_a_page_that_did_not_change_is_304_and_can_only_be_read():
    first = page(request(), specimen())
    tag = dict(first.headers)["etag"]
    again = page(request(IF_NONE_MATCH=tag), specimen())
    assert (first.status, again.status, again.body) == (200, 304, b"")
    assert "content-security-policy" in dict(again.headers)
    assert page(request(method="OPTIONS"), specimen()) == Response(204, [("allow", "GET, HEAD, OPTIONS")])
    with pytest.raises(Refusal) as refused:
        page(request(method="POST"), specimen())
    assert refused.value.code == "method_not_allowed"


def test_a_page_of_one_request_is_not_shared(monkeypatch):
    monkeypatch.setattr(TEMPLATES, "get_template", TEMPLATES.from_string)
    stored = ("cache-control", "no-store")
    response = render(request(method="POST"), SPECIMEN, status=422, headers=[stored], heading="For you")
    assert response.status == 422
    assert stored in response.headers
    assert "etag" not in dict(response.headers)


def test_an_asset_is_kept_for_ever_under_an_address_that_names_its_content(tmp_path):
    file = tmp_path / "note.css"
    file.write_text("a { color: red }")
    address = publish(file)
    response = answer_asset(request(address))
    headers = dict(response.headers)
    assert (response.status, response.body) == (200, file.read_bytes())
    assert headers["content-type"] == "text/css; charset=utf-8"
    assert headers["cache-control"] == "public, max-age=31536000, immutable"
    file.write_text("a { color: blue }")
    assert publish(file) != address
    for unknown in ("/assets/note.css", "/assets/", "/assets/../web/pages.py"):
        with pytest.raises(Refusal) as refused:
            answer_asset(request(unknown))
        assert refused.value.code == "not_found"


def test_the_headers_of_an_asset_on_its_way_out_say_once_how_long_it_may_be_kept(api):
    sent: list[tuple[str, str]] = []
    environ = request(ADDRESSES["retainer.css"]).environ | {"SERVER_PROTOCOL": "HTTP/1.1"}
    environ |= {"wsgi.input": io.BytesIO(), "wsgi.errors": io.StringIO()}
    wsgi(api.app)(environ, lambda _, headers: sent.extend(headers))
    assert [value for name, value in sent if name == "cache-control"] == ["public, max-age=31536000, immutable"]
    assert ("x-content-type-options", "nosniff") in sent


class Quiet(WSGIRequestHandler):
    def log_message(self, *_) -> None:
        """Say nothing."""


@pytest.fixture
def served():
    """The address of a server of the specimen and the assets."""

    def answer(environ, start_response):
        asked = Request(environ, Settings())
        is_asset = asked.path.startswith(ASSETS)
        response = answer_asset(asked) if is_asset else page(asked, specimen())
        start_response(f"{response.status} ", response.headers)
        return [response.body]

    with make_server("127.0.0.1", 0, answer, handler_class=Quiet) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (390, True)])
def test_the_look_can_be_used_by_everybody(browser, served, width, dark):
    browser.show(width=width, dark=dark)
    browser.get(served)
    assert browser.findings() == []
    assert not browser.overflows()


def test_a_finding_of_one_page_is_not_held_against_the_next(browser, served):
    browser.get(f"{served}assets/unknown.css")
    assert len(browser.findings()) > 0
    browser.get(f"{served}assets/unknown.css")
    browser.get(served)
    assert browser.findings() == []
