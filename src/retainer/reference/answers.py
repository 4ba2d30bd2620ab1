"""What is answered under /docs and at /llms.txt: pages as HTML and as Markdown, the search, and Swagger UI."""

from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from markupsafe import Markup, escape

from retainer import __version__
from retainer.kernel.http import Request, Response
from retainer.kernel.resource import Routes
from retainer.reference.examples import ORIGIN
from retainer.reference.markdown import html_of
from retainer.reference.pages import START, ReferencePage, groups_of, pages_of
from retainer.reference.search import search
from retainer.web.assets import publish
from retainer.web.pages import markup, page, render
from retainer.web.responses import document

MARKDOWN = "text/markdown; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
VARY = ("vary", "Accept, Accept-Encoding")
MAX_QUERY_LENGTH = 100


class Place(NamedTuple):
    """A page that is no text: its path and title, and where it is as Markdown."""

    path: str
    title: str
    twin: str = ""
    group: str = "More"


SWAGGER_UI = Path(str(distribution("swagger-ui-py").locate_file("swagger_ui/static")))
SWAGGER_STYLE, SWAGGER_SCRIPT = (publish(SWAGGER_UI / name) for name in ("swagger-ui.css", "swagger-ui-bundle.js"))
"""Of that package only these two files are used; none of its code runs."""
TRY = Place(f"{START}/try", "Try it")
SEARCH = Place(f"{START}/search", "Search")
MISSING = Place("", "No such page")


def answer(request: Request, routes: Routes) -> Response:
    """Return a page of the reference; one that does not exist says so. Raises `method_not_allowed`."""
    pages, path = pages_of(routes), request.path.rstrip("/")
    if path == TRY.path:
        return answer_try(request, routes)
    if path == SEARCH.path:
        query = " ".join(parse_qs(request.query).get("q", []))[:MAX_QUERY_LENGTH].strip()
        context = frame(routes, SEARCH, query) | {"results": search(routes, query)}
        return page(request, markup("reference/search.html", **context))
    twins = {each.twin: each for each in pages.values()}
    found = pages.get(path) or twins.get(path)
    if found is None:
        return render(request, "reference/missing.html", status=404, **frame(routes, MISSING))
    if path == found.twin or "text/markdown" in (request.header("ACCEPT") or ""):
        text = found.text.replace(ORIGIN, request.origin)
        return document(request, MARKDOWN, text.encode(), VARY)
    html = html_page(routes, found.path).replace(ORIGIN, str(escape(request.origin)))
    response = page(request, html)
    response.headers.append(VARY)
    return response


def answer_llms(request: Request, routes: Routes) -> Response:
    """Return /llms.txt: all pages as Markdown, for programs that read."""
    text = markup("reference/llms.txt", groups=groups_of(pages_of(routes)).items(), origin=request.origin)
    return document(request, TEXT, text.encode())


def answer_try(request: Request, routes: Routes) -> Response:
    """Return the page with Swagger UI, which may talk to this server and to nothing else."""
    context = frame(routes, TRY) | {"swagger_style": SWAGGER_STYLE, "swagger_script": SWAGGER_SCRIPT}
    html = markup("reference/try.html", **context)
    return page(request, html, connect_src=f"'self' {request.origin}")


@cache
def html_page(routes: Routes, path: str) -> str:
    """Return a page as HTML; kept, for it is the same for everybody but for the address of the server."""
    found = pages_of(routes)[path]
    context = frame(routes, found) | {"body": Markup(html_of(found.text)), "headings": found.headings}  # noqa: S704  # ours
    return markup("reference/page.html", **context)


def frame(routes: Routes, shown: ReferencePage | Place, query: str = "") -> dict[str, Any]:
    """Return what stands around every page."""
    groups: dict[str, list[Any]] = {**groups_of(pages_of(routes))}
    groups["More"] = [*groups["More"], TRY]
    return {"page": shown, "groups": groups.items(), "query": query, "headings": [], "version": __version__}
