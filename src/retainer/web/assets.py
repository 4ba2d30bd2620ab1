"""Assets: style sheets, scripts and images, cached forever because their paths contain a hash of their content."""

import hashlib
from mimetypes import guess_type
from pathlib import Path

import retainer
from retainer.errors import Refusal
from retainer.kernel.http import Request, Response
from retainer.web.responses import document

PACKAGE = Path(retainer.__file__).parent
ROOT = "/assets/"
CACHED_FOREVER = ("cache-control", "public, max-age=31536000, immutable")


PUBLISHED: dict[str, tuple[str, bytes]] = {}
"""The content type and the content of each file, by path."""


def publish(file: Path) -> str:
    body = file.read_bytes()
    path = f"{ROOT}{file.stem}.{hashlib.sha256(body).hexdigest()[:12]}{file.suffix}"
    kind = guess_type(file.name)[0] or "application/octet-stream"
    is_text = kind.startswith("text/") or kind.endswith(("+xml", "json"))
    PUBLISHED[path] = (f"{kind}; charset=utf-8" if is_text else kind, body)
    return path


ADDRESSES = {file.name: publish(file) for file in sorted(PACKAGE.glob("*/assets/*"))}
"""The paths of all assets, by file name."""


def answer(request: Request) -> Response:
    """Return an asset. Raises `not_found`, `method_not_allowed`."""
    asset = PUBLISHED.get(request.path)
    if asset is None:
        raise Refusal("not_found", "There is no such asset. Reload the page: its assets may have changed.")
    return document(request, *asset, CACHED_FOREVER)
