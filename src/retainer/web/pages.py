"""Pages: templates, and their responses."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, FileSystemLoader, PrefixLoader, StrictUndefined, select_autoescape

from retainer.kernel.http import Request, Response
from retainer.web.assets import ADDRESSES, PACKAGE
from retainer.web.responses import HTML, document, protection

NO_EXCEPTIONS: Mapping[str, str] = MappingProxyType({})
TEMPLATES = Environment(
    loader=PrefixLoader({folder.parent.name: FileSystemLoader(folder) for folder in PACKAGE.glob("*/templates")}),
    autoescape=select_autoescape(disabled_extensions=("md", "txt"), default=True, default_for_string=True),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
"""The templates of all rooms: `console/sign_in.html` is in `console/templates/` and extends `web/base.html`."""
TEMPLATES.globals["asset"] = ADDRESSES.__getitem__


def compile_templates(room: str) -> None:
    """Compile the templates of a room, so that the first page that needs one is as quick as the next."""
    for name in TEMPLATES.list_templates(filter_func=lambda name: name.startswith(f"{room}/")):
        TEMPLATES.get_template(name)


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
    body = markup(template, path=request.path, **context).encode()
    return Response(status, [("content-type", HTML), *protection(**policy), *headers], body)


def page(request: Request, html: str, **policy: str) -> Response:
    """Return a read-only page that is the same for all visitors. Raises `method_not_allowed`."""
    return document(request, HTML, html.encode(), *protection(**policy))
