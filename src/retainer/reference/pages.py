"""The pages of the reference: their texts in Markdown, from templates, declarations and examples."""

import re
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

from retainer.errors import CODES
from retainer.identity.keys.keys import SCOPES
from retainer.identity.plans import PLANS
from retainer.kernel import paging
from retainer.kernel.routes import Routes
from retainer.openapi import document as openapi
from retainer.openapi.headers import RESPONSE_HEADERS
from retainer.reference import samples
from retainer.reference.examples import ADVICE, ORIGIN, Example, examples, json_text
from retainer.reference.markdown import SectionHeading, headings, slug
from retainer.reference.resources import EVERY_LIST, parameter_of, resolved, resources_of
from retainer.web.pages import TEMPLATES, markup

CHANGELOG = Path(__file__).parent / "changelog.md"
GUIDE = ("keys", "lists", "writing", "values", "limits", "retries", "sync", "webhooks", "reports", "questions")


class ReferencePage(NamedTuple):
    """A page in Markdown, and its group in the menu. The first heading is the title."""

    path: str
    group: str
    text: str

    @property
    def parent(self) -> str:
        return self.path.removesuffix("/objects") if self.path.endswith("/objects") else ""

    @property
    def title(self) -> str:
        return self.text.partition("\n")[0].removeprefix("# ")

    @property
    def markdown_path(self) -> str:
        return f"{self.path}/index.md" if self.path == START else f"{self.path}.md"

    @property
    def summary(self) -> str:
        paragraph = next(part for part in self.text.split("\n\n") if part[0].isalpha()).replace("\n", " ")
        return re.split(r"(?<=[.:]) (?=[A-Z])", paragraph)[0]

    @property
    def headings(self) -> list[SectionHeading]:
        return headings(self.text)


START, RESOURCES = "/docs", "Resources"


@cache
def pages_of(routes: Routes) -> dict[str, ReferencePage]:
    """Return all pages by path, in the order of the menu; URLs begin with `ORIGIN`."""
    document = openapi.document_of(routes)
    resources = resources_of(routes, document)
    shared = [parameter_of(document["components"]["parameters"][name], document) for name in LISTED]
    written = examples()
    context = {
        "origin": ORIGIN,
        "resources": resources,
        "errors": written.errors,
        "advice": ADVICE,
        "by_status": [(f"{status} {HTTPStatus(status).phrase}", codes) for status, codes in CODES.items()],
        "plans": PLANS.values(),
        "headers": [(name, text) for name, (text, _) in RESPONSE_HEADERS.items() if name.startswith("X-RateLimit")],
        "every_list": shared,
        "unordered": unordered(document),
        "per_page": paging.PER_PAGE,
        "max_page_size": paging.MAX_PAGE_SIZE,
        "scopes": [
            (scope, [(each, entry) for each in resources for entry in each.entries if entry.operation.scope == scope])
            for scope in SCOPES
        ],
    }
    shown = {"lists": "listTags", "reports": "getReportRevenueByClient"}
    found = [page_of(START, "Guide", "start.md", context | {"example": written.operations["getMe"]})]
    for name in GUIDE:
        example = written.operations[shown[name]] if name in shown else None
        found.append(page_of(f"{START}/{name}", "Guide", f"guide/{name}.md", context | {"example": example}))
    found += [page_of(f"{START}/{name}", "Guide", f"{name}.md", context) for name in ("errors", "scopes")]
    for resource in resources:
        for path, template in ((resource.path, "resource.md"), (resource.parts_path, "objects.md")):
            if template == "resource.md" or resource.parts:
                page = page_of(path, RESOURCES, template, {"resource": resource})
                found.append(page._replace(text=resource.linked(page.text)))
    found.append(page_of(f"{START}/recipes", "Guide", "guide/recipes.md", context))
    found.append(ReferencePage(f"{START}/changelog", "More", CHANGELOG.read_text(encoding="utf-8")))
    return {page.path: page for page in found}


LISTED = sorted(EVERY_LIST - {"sort", "page", "per_page"})
"""The filters of all lists."""


def unordered(document: dict[str, Any]) -> list[str]:
    """Return the paths of the lists that filter by `updated_since`, but cannot be sorted by `updated_at`."""
    found = []
    for path, operations in document["paths"].items():
        parameters = [resolved(each, document) for each in operations.get("get", {}).get("parameters", ())]
        schemas = {each["name"]: each["schema"] for each in parameters}
        fields = resolved(schemas["sort"]["items"], document).get("enum", ()) if "sort" in schemas else ()
        if "updated_since" in schemas and "updated_at" not in fields:
            found.append(path)
    return found


def page_of(path: str, group: str, template: str, context: dict[str, Any]) -> ReferencePage:
    text = markup(f"reference/{template}", samples=sample_blocks, json=json_text, **context)
    return ReferencePage(path, group, re.sub(r"\n{3,}", "\n\n", text).strip() + "\n")


def sample_blocks(example: Example) -> str:
    return "\n\n".join(f"```{name}\n{write(example)}\n```" for name, write in samples.LANGUAGES.items())


def groups_of(pages: dict[str, ReferencePage]) -> dict[str, list[ReferencePage]]:
    found: dict[str, list[ReferencePage]] = {}
    for page in pages.values():
        found.setdefault(page.group, []).append(page)
    return found


def cell(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")


TEMPLATES.filters |= {"cell": cell, "slug": slug}
