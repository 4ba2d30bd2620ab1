"""The reference at /docs: it says everything that there is, its links lead somewhere, and everybody can use it."""

import io
import itertools
import re
from collections import Counter
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from testing.wsgi import wsgi

from retainer.api import ROUTES
from retainer.app import App
from retainer.errors import STATUS
from retainer.identity.keys.keys import SCOPES
from retainer.openapi.document import document_of
from retainer.reference import pages
from retainer.reference.examples import ADVICE, examples
from retainer.reference.markdown import slug
from retainer.reference.pages import pages_of
from retainer.reference.resources import title_of
from retainer.reference.search import search, sections_of
from retainer.settings import Settings
from tests.factories import Answer

PAGES = pages_of(ROUTES)
MAX_PAGE_BYTES = 150_000
HREF = re.compile(r'(?:href|src|action)="([^"]+)"')
ID = re.compile(r' id="([^"]+)"')
OUTSIDE = {"https://requests.readthedocs.io", "https://www.standardwebhooks.com"}
MORE = ("/docs/search?q=invoice", "/docs/try", "/docs/nothing")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Asks an application for a page."""
    return visitor(tmp_path_factory.mktemp("site"))


def visitor(folder, **settings):
    """Return a function that asks a new application for a page."""
    app = App(Settings(database_url=f"sqlite:///{folder / 'retainer.db'}", **settings), io.BytesIO())

    addresses = (f"198.51.{number // 256}.{number % 256}" for number in itertools.count())  # each may ask 600 times

    def get(target, method="GET", **headers):
        path, _, query = target.partition("?")
        sent = []
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": next(addresses),
            "HTTP_HOST": "agency.example",
            "wsgi.url_scheme": "https",
            "wsgi.input": io.BytesIO(),
            **{f"HTTP_{name}": value for name, value in headers.items()},
        }
        body = b"".join(wsgi(app)(environ, lambda *start: sent.extend(start)))
        return Answer(int(sent[0].split()[0]), sent[1], body)

    return get


def text_of(answer):
    return answer.body.decode()


def test_there_is_a_page_for_each_resource_and_a_place_for_each_operation(site):
    for operation in ROUTES.operations:
        (page,) = [page for page in PAGES.values() if f"\n`{operation.method} {operation.path}` needs " in page.text]
        scope = f"[`{operation.scope}`]" if operation.scope else "a valid key but no scope"
        assert f"\n`{operation.method} {operation.path}` needs {scope}" in page.text
        assert examples().operations[operation.id].path in page.text
    assert {page.title for page in PAGES.values() if page.group == "Resources" and not page.parent} == {
        operation.resource.tag for operation in ROUTES.operations
    }


def test_every_field_and_filter_of_the_document_is_on_the_page_of_its_resource():
    document = document_of(ROUTES)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            page = next(page for page in PAGES.values() if page.title == operation["tags"][0])
            text = page.text + "".join(part.text for part in PAGES.values() if part.parent == page.path)
            for parameter in operation["parameters"]:
                shared = parameter.get("$ref", "").rpartition("/")[2]
                name = document["components"]["parameters"][shared]["name"] if shared else parameter["name"]
                assert f"`{name}`" in text + PAGES["/docs/lists"].text, f"{method} {path}: {name}"
            if "requestBody" in operation:
                body = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
                for name in document["components"]["schemas"][body]["properties"]:
                    assert f"\n| `{name}` | " in text, f"{method} {path}: {name}"


def test_each_operation_has_a_table_of_its_writable_fields_before_its_sample():
    document = document_of(ROUTES)
    schemas = document["components"]["schemas"]
    for operation in (each for each in ROUTES.operations if each.body):
        if not operation.upserts and (operation.by_id or operation.method == "PUT"):
            continue  # the same as another
        (page,) = [page for page in PAGES.values() if f"\n`{operation.method} {operation.path}` needs " in page.text]
        section = page.text.partition(f"\n`{operation.method} {operation.path}` needs ")[2].partition("\n## ")[0]
        table = section.partition("```bash")[0].partition("| Body field |")[2]
        reference = document["paths"][operation.path][operation.method.lower()]["requestBody"]["content"]
        schema = schemas[reference["application/json"]["schema"]["$ref"].rpartition("/")[2]]
        writable = {name for name, each in schema["properties"].items() if not each.get("readOnly")}
        assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == writable, operation
        required = re.findall(r"^\| `(\w+)` \| [^|]*\*\*required\*\*", table, re.MULTILINE)
        assert set(required) == set(schema["required"]), operation
    assert "| `name` | string, 1 to 191 characters, **required** |" in PAGES["/docs/api/clients"].text


def test_names_of_fields_are_code_links_are_links_and_ids_have_no_limit(site):
    for page in (page for page in PAGES.values() if "/api/" in page.path):
        text = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)|(?<= )/\S+", "", page.text, flags=re.DOTALL)
        assert not re.findall(r"\b(?:[a-z]+_[a-z_]+|meta\.\w+|(?:GET|POST|PATCH|PUT|DELETE) /)", text), page.path
        assert "9007199254740991" not in page.text, page.path
    assert '<a href="/docs/sync">' in text_of(site("/docs/api/events"))


def test_the_whole_reference_is_one_text_too(site):
    answer = site("/llms-full.txt")
    text = text_of(answer)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    for operation in ROUTES.operations:
        assert f"\n`{operation.method} {operation.path}` needs " in text
    for page in PAGES.values():
        assert f"# {page.title}\n" in text
    assert all(f"## `{code}`" in text for code in STATUS)
    assert "retainer.invalid" not in text
    assert "https://agency.example/llms-full.txt" in text_of(site("/llms.txt"))


@pytest.mark.parametrize(
    ("query", "address"),
    [
        ("pagination", "/docs/lists#pages"),
        ("authentication", "/docs/keys#sending-the-key"),
        ("webhook", "/docs/webhooks"),
        ("Webhooks", "/docs/api/webhooks"),
        ("callback", "/docs/webhooks"),
        ("sync", "/docs/sync"),
        ("mirror", "/docs/sync"),
        ("deletions", "/docs/sync"),
        ("events", "/docs/api/events"),
        ("pdf", "/docs/questions#can-i-get-a-pdf-or-an-e-invoice"),
        ("bulk", "/docs/questions#can-i-write-in-bulk"),
        ("vat", "/docs/values#tax-and-rounding"),
        ("email", "/docs/recipes#send-an-invoice-by-email"),
        ("cancel", "/docs/questions#how-do-i-cancel-correct-or-refund-an-invoice"),
        ("refund", "/docs/questions#how-do-i-cancel-correct-or-refund-an-invoice"),
        ("csv", "/docs/questions#can-i-read-or-write-csv-files"),
        ("storno", "/docs/questions#how-do-i-cancel-correct-or-refund-an-invoice"),
        ("import csv", "/docs/recipes#import-clients-from-a-csv-file"),
        ("invoice", "/docs/api/invoices"),
        ("client", "/docs/api/clients"),
        ("toggl", "/docs/recipes#connect-a-time-tracker"),
        ("zapier", "/docs/questions#does-it-work-with-zapier-or-make"),
        ("postman", "/docs/questions#is-there-an-sdk"),
        ("rate limit", "/docs/limits"),
        ("currency", "/docs/values"),
        ("overdue", "/docs/api/invoices#list-invoices"),
        ("upsert", "/docs/writing#create-or-update-by-your-own-id"),
        ("batch import", "/docs/api/batches#run-batch"),
        ("oauth", "/docs/questions#is-there-oauth-or-a-login-for-users"),
        ("key rotation", "/docs/keys#rotate-a-key"),
        ("throttling", "/docs/limits#handle-429"),
    ],
)
def test_search_knows_the_words_of_other_apis(query, address):
    assert search(ROUTES, query)[0].address == address


def test_a_page_has_at_most_three_results_and_an_excerpt_shows_no_head_of_a_table():
    found = search(ROUTES, "invoice")
    assert max(Counter(result.page for result in found).values()) == 3
    assert all("Type Description" not in result.text and "---" not in result.text for result in found)
    words = {word for section in sections_of(ROUTES) for word in section.text.split()}
    assert all(word in words for result in found for word in result.text.split() if word != "…")


def test_the_sidebar_has_the_operations_of_the_page(site):
    side = text_of(site("/docs/api/clients")).partition('id="side"')[2].partition("</nav>")[0]
    for operation in ROUTES.operations:
        is_here = operation.resource.tag == "Clients"
        anchor = f'<a href="#{slug(title_of(operation.id))}"><span class="verb {operation.method.lower()}">'
        assert (anchor in side) == is_here, operation


def test_every_code_has_its_place_where_refusals_lead(site):
    assert list(ADVICE) == list(STATUS)
    html = text_of(site("/docs/errors"))
    for code, status in STATUS.items():
        assert f'id="{code}"' in html
        assert examples().errors[code].status == status
    refused = site("/nothing")
    assert refused.json["docs_url"] == "https://agency.example/docs/errors#not_found"


def test_the_guide_says_which_lists_cannot_be_read_in_the_order_of_their_changes(api):
    text = PAGES["/docs/lists"].text.partition("## Synchronize changes")[2].partition("## ")[0]
    lists = ("clients", "tags", "projects", "tasks", "time-entries", "expenses", "quotes", "invoices", "credit-notes")
    refused = [name for name in lists if api.get(f"/{name}", {"sort": "updated_at"}).status == 422]
    assert refused == [name for name in lists if f"`/{name}`" in text] == ["tags", "quotes", "credit-notes"]


def test_every_scope_has_its_operations():
    text = PAGES["/docs/scopes"].text
    for scope in SCOPES:
        part = text.partition(f"## `{scope}`\n")[2].partition("\n## ")[0]
        needed = [operation for operation in ROUTES.operations if operation.scope == scope]
        assert re.findall(r"`((?:GET|POST|PUT|PATCH|DELETE) [^`]+)`", part) == [str(operation) for operation in needed]


@pytest.mark.parametrize("path", [*PAGES, *MORE])
def test_a_page_is_small_and_its_links_lead_somewhere(site, path):
    answer = site(path)
    html = text_of(answer)
    assert answer.status == (404 if path == "/docs/nothing" else 200)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert len(answer.body) < MAX_PAGE_BYTES
    assert "retainer.invalid" not in html
    assert not re.search(r"<script(?! src)|<style|\bstyle=|\bon\w+=\"", html)
    assert len(ID.findall(html)) == len(set(ID.findall(html)))
    for address in set(HREF.findall(html)):
        target, _, anchor = address.partition("#")
        if target.startswith("https://"):
            assert target in OUTSIDE
            continue
        there = site(target) if target else answer
        assert target in {"", *MORE} or there.status == 200, address
        assert not anchor or target == "/docs/try" or f'id="{anchor}"' in text_of(there), address


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_also_available_as_markdown(site, path):
    markdown = site(PAGES[path].markdown_path)
    assert markdown.headers["content-type"] == "text/markdown; charset=utf-8"
    assert text_of(markdown).startswith(f"# {PAGES[path].title}\n")
    asked = site(path, ACCEPT="text/markdown")
    assert asked.body == markdown.body
    assert asked.headers["vary"] == "Accept, Accept-Encoding"
    assert "retainer.invalid" not in text_of(markdown)
    assert f"https://agency.example{PAGES[path].markdown_path}" in text_of(site("/llms.txt"))


def test_a_page_names_the_address_under_which_it_was_asked_for(site):
    assert "RETAINER_URL=https://agency.example/api/public/v1" in text_of(site("/docs"))
    other = text_of(site("/docs", HOST="other.example:8443"))
    assert "RETAINER_URL=https://other.example:8443/api/public/v1" in other


def test_a_page_that_did_not_change_is_304_and_can_only_be_read(site):
    first = site("/docs/errors")
    assert site("/docs/errors", IF_NONE_MATCH=first.headers["etag"]).status == 304
    assert site("/docs/errors", method="POST").status == 405
    assert site("/docs/errors", method="OPTIONS").headers["allow"] == "GET, HEAD, OPTIONS"
    assert site("/docs/errors/").body == first.body


def test_the_document_is_there_as_yaml_too(site):
    answer = site("/openapi.yaml")
    assert answer.headers["content-type"] == "application/yaml"
    assert msgspec.yaml.decode(answer.body) == site("/openapi.json").json
    assert site("/openapi.yaml/x").status == 404


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("create invoice", "/docs/api/invoices#create-invoice"),
        ("not_owner", "/docs/errors#not_owner"),
        ("webhook retry", "/docs/api/webhooks#redeliver-webhook-events"),
        ("Idempotency-Key", "/docs/retries"),
        ("duration_minutes", "/docs/api/time-entries#time-entry"),
    ],
)
def test_the_search_finds_operations_codes_headers_and_fields(site, query, first):
    found = [result.address for result in search(ROUTES, query)]
    assert first in found[:6]
    assert f'href="{first}"' in text_of(site(f"/docs/search?q={query.replace(' ', '+')}"))


def test_the_search_shows_what_was_asked_as_text(site):
    html = text_of(site("/docs/search?q=%3Cb%3Ebold"))
    assert "No results for “&lt;b&gt;bold”" in html
    assert search(ROUTES, "") == []
    assert site("/docs/search?q=invoice", method="POST").status == 405


def test_each_operation_leads_to_where_it_can_be_tried(site):
    for operation in ROUTES.operations:
        place = f"/docs/try#/{operation.resource.tag.replace(' ', '%20')}/{operation.id}"
        (page,) = [page for page in PAGES.values() if f"\n`{operation.method} {operation.path}` needs " in page.text]
        assert f"[Try\N{NO-BREAK SPACE}it]({place})" in page.text
    script = next(
        address for address in HREF.findall(text_of(site("/docs/try"))) if "/try." in address and "js" in address
    )
    assert "deepLinking: true" in text_of(site(script))


def test_what_is_tried_talks_to_this_server_alone(site):
    answer = site("/docs/try")
    policy = answer.headers["content-security-policy"]
    assert "connect-src 'self' https://agency.example;" in f"{policy};"
    assert "unsafe" not in policy
    script = next(address for address in HREF.findall(text_of(answer)) if "/try." in address and address.endswith("js"))
    assert "persistAuthorization: false" in text_of(site(script))


def test_the_changelog_is_that_of_the_repository():
    assert pages.CHANGELOG.read_text(encoding="utf-8").startswith("# Changelog\n")


def test_files_that_every_server_is_asked_for_are_found(site):
    icon, robots = site("/favicon.ico"), site("/robots.txt")
    assert (icon.status, icon.headers["content-type"]) == (200, "image/svg+xml; charset=utf-8")
    assert robots.headers["content-type"] == "text/plain; charset=utf-8"
    assert text_of(robots) == "User-agent: *\nDisallow: /console\nDisallow: /api/public/v1\n"
    assert site("/robots.txt", method="POST").status == 405
    assert site("/.well-known/change-password").status == 404


@pytest.mark.parametrize(
    ("contact", "shown"),
    [
        ("security@agency.example", "mailto:security@agency.example"),
        ("https://agency.example/security", "https://agency.example/security"),
        ("Ask Ana", None),
        ("", None),
    ],
)
def test_security_txt_names_the_operator_who_can_be_reached(tmp_path, contact, shown):
    answer = visitor(tmp_path, contact=contact)("/.well-known/security.txt")
    assert answer.status == (200 if shown else 404)
    if shown:
        lines = dict(line.split(": ", 1) for line in text_of(answer).splitlines())
        assert lines["Contact"] == shown
        left = datetime.fromisoformat(lines["Expires"]) - datetime.now(UTC)
        assert timedelta(0) < left < timedelta(days=365)
    else:
        assert "RETAINER_CONTACT" in answer.json["message"]
