"""Responses under /docs, at /llms.txt and /llms-full.txt: pages as HTML and as Markdown, the search, and Swagger UI."""

from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from markupsafe import Markup, escape

from retainer import __version__
from retainer.kernel.http import Request, Response
from retainer.kernel.routes import Routes
from retainer.reference.examples import ORIGIN
from retainer.reference.markdown import beside_samples, html_of
from retainer.reference.pages import RESOURCES, START, ReferencePage, groups_of, pages_of
from retainer.reference.search import search
from retainer.web.pages import document, markup, page, publish, render

MARKDOWN = "text/markdown; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
VARY = ("vary", "Accept, Accept-Encoding")
MAX_QUERY_LENGTH = 100


SWAGGER_UI = Path(str(distribution("swagger-ui-py").locate_file("swagger_ui/static")))
SWAGGER_STYLE, SWAGGER_SCRIPT = (publish(SWAGGER_UI / name) for name in ("swagger-ui.css", "swagger-ui-bundle.js"))
"""The only two files of that package that are used; none of its Python code runs."""
TRY = ReferencePage(f"{START}/try", "More", "# Try it")
SEARCH = ReferencePage(f"{START}/search", "More", "# Search")
MISSING = ReferencePage("", "More", "# Page not found")


def answer(request: Request, routes: Routes) -> Response:
    """Return a page of the reference, or a 404. Raises `method_not_allowed`."""
    pages, path = pages_of(routes), request.path.removesuffix("/")
    if path == TRY.path:
        context = frame(routes, TRY) | {"swagger_style": SWAGGER_STYLE, "swagger_script": SWAGGER_SCRIPT}
        return page(request, markup("reference/try.html", **context), connect_src=f"'self' {request.origin}")
    if path == SEARCH.path:
        query = " ".join(parse_qs(request.query).get("q", []))[:MAX_QUERY_LENGTH].strip()
        context = frame(routes, SEARCH, query) | {"results": search(routes, query)}
        return page(request, markup("reference/search.html", **context))
    as_markdown = {each.markdown_path: each for each in pages.values()}
    found = pages.get(path) or as_markdown.get(path)
    if found is None:
        return render(request, "reference/missing.html", status=404, **frame(routes, MISSING))
    if path == found.markdown_path or "text/markdown" in (request.header("ACCEPT") or ""):
        text = found.text.replace(ORIGIN, request.origin)
        return document(request, MARKDOWN, text.encode(), VARY)
    html = html_page(routes, found.path).replace(ORIGIN, str(escape(request.origin)))
    response = page(request, html)
    response.headers.append(VARY)
    return response


def answer_llms(request: Request, routes: Routes) -> Response:
    text = markup("reference/llms.txt", groups=groups_of(pages_of(routes)).items(), origin=request.origin)
    return document(request, TEXT, text.encode())


def answer_llms_full(request: Request, routes: Routes) -> Response:
    text = "\n".join(page.text for page in pages_of(routes).values()).replace(ORIGIN, request.origin)
    return document(request, TEXT, text.encode())


@cache
def html_page(routes: Routes, path: str) -> str:
    """Return a page as HTML, cached with a placeholder for the address of the server."""
    found = pages_of(routes)[path]
    body = html_of(found.text)
    if found.group == RESOURCES:
        body = beside_samples(body)
    context = frame(routes, found) | {"body": Markup(body), "headings": found.headings}  # noqa: S704  # ours
    return markup("reference/page.html", **context)


def frame(routes: Routes, shown: ReferencePage, query: str = "") -> dict[str, Any]:
    groups: dict[str, list[Any]] = {**groups_of(pages_of(routes))}
    groups["More"] = [*groups["More"], TRY]
    return {"page": shown, "groups": groups.items(), "query": query, "headings": [], "version": __version__}
