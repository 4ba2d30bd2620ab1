"""Pages: templates and assets, responses to browsers, and the Content-Security-Policy of pages."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from mimetypes import guess_type
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, FileSystemLoader, PrefixLoader, StrictUndefined, select_autoescape

import retainer
from retainer.errors import Refusal, method_not_allowed
from retainer.kernel import etag
from retainer.kernel.http import Request, Response
from retainer.web.csv_files import PROGRAMS, Cell, Dialect, csv_text

PACKAGE = Path(retainer.__file__).parent
ASSETS = "/assets/"
CACHED_FOREVER = ("cache-control", "public, max-age=31536000, immutable")
READ = "GET, HEAD, OPTIONS"
HTML = "text/html; charset=utf-8"
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}
"""The Content-Security-Policy of every page; `protection` takes exceptions."""
NO_EXCEPTIONS: Mapping[str, str] = MappingProxyType({})
PUBLISHED: dict[str, tuple[str, bytes]] = {}
"""The content type and the content of each asset, by path."""


def publish(file: Path) -> str:
    """Return the path of an asset. It contains a hash of the content, so that browsers can keep the file forever."""
    body = file.read_bytes()
    path = f"{ASSETS}{file.stem}.{hashlib.sha256(body).hexdigest()[:12]}{file.suffix}"
    kind = guess_type(file.name)[0] or "application/octet-stream"
    is_text = kind.startswith("text/") or kind.endswith(("+xml", "json"))
    PUBLISHED[path] = (f"{kind}; charset=utf-8" if is_text else kind, body)
    return path


ADDRESSES = {file.name: publish(file) for file in sorted(PACKAGE.glob("*/assets/*"))}
"""The paths of all assets, by file name."""
TEMPLATES = Environment(
    loader=PrefixLoader({folder.parent.name: FileSystemLoader(folder) for folder in PACKAGE.glob("*/templates")}),
    autoescape=select_autoescape(disabled_extensions=("md", "txt"), default=True, default_for_string=True),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,  # during an upgrade, the templates of the next version do not fit this code
)
"""The templates of all rooms: `console/sign_in.html` is in `console/templates/` and extends `web/base.html`."""
TEMPLATES.globals["asset"] = ADDRESSES.__getitem__


@lru_cache(8)
def compile_templates(room: str) -> None:
    """Compile the templates of a room, and the shared ones, so that its first page is as quick as the next."""
    for name in TEMPLATES.list_templates(filter_func=lambda name: name.startswith((f"{room}/", "web/"))):
        TEMPLATES.get_template(name)


REFUSED = frozenset({409, 412, 422})
"""The statuses of a form that is shown again. Its title says so, since what reads a page aloud begins with that."""


def markup(template: str, **context: Any) -> str:
    return TEMPLATES.get_template(template).render(context)


def render(
    request: Request,
    template: str,
    *,
    status: int = 200,
    headers: Iterable[tuple[str, str]] = (),
    policy: Mapping[str, str] = NO_EXCEPTIONS,
    **context: Any,
) -> Response:
    body = markup(template, path=request.path, is_refused=status in REFUSED, **context).encode()
    return Response(status, [("content-type", HTML), *protection(**policy), *headers], body)


def page(request: Request, html: str, **policy: str) -> Response:
    """Return a read-only page that is the same for all visitors. Raises `method_not_allowed`."""
    return document(request, HTML, html.encode(), *protection(**policy))


def document(request: Request, content_type: str, body: bytes, *headers: tuple[str, str]) -> Response:
    """Return a read-only document, a 304 if the client has it, or a 204 to OPTIONS. Raises `method_not_allowed`."""
    if request.method == "OPTIONS":
        return Response(204, [("allow", READ)])
    if request.method not in {"GET", "HEAD"}:
        raise method_not_allowed(request.method, READ)
    tag = etag.compute(body)
    if etag.matches(request.header("IF_NONE_MATCH"), tag):
        return Response(304, [("etag", tag), *headers])
    return Response(200, [("content-type", content_type), ("etag", tag), *headers], body)


def csv_response(
    name: str,
    header: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *headers: tuple[str, str],
    dialect: Dialect = PROGRAMS,
) -> Response:
    """Return rows as a download; `name` is that of the file, in ASCII and without its extension."""
    disposition = ("content-disposition", f'attachment; filename="{name}.csv"')
    body = csv_text(header, rows, dialect).encode()
    return Response(200, [("content-type", "text/csv; charset=utf-8"), disposition, *protection(), *headers], body)


def answer_asset(request: Request) -> Response:
    asset = PUBLISHED.get(request.path)
    if asset is None:
        raise Refusal("not_found", "There is no such asset. Reload the page: its assets may have changed.")
    return document(request, *asset, CACHED_FOREVER)


def protection(**more: str) -> list[tuple[str, str]]:
    """Return the security headers of a page; `more` are exceptions to the policy, like `connect_src`."""
    policy = POLICY | {name.replace("_", "-"): value for name, value in more.items()}
    return [
        ("content-security-policy", "; ".join(f"{name} {value}" for name, value in policy.items())),
        ("cross-origin-opener-policy", "same-origin"),
        ("referrer-policy", "same-origin"),
    ]
