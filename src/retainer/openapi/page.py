"""The page /openapi.json: the document, with the address of the request."""

from functools import lru_cache

import msgspec

from retainer.errors import Refusal, method_not_allowed
from retainer.kernel import etag, pipeline
from retainer.kernel.http import Request, Response
from retainer.kernel.resource import Routes
from retainer.openapi.document import render
from retainer.settings import BASE_PATH

DOCUMENT = "/openapi.json"
ALLOW = "GET, HEAD, OPTIONS"
ANYWHERE = "http://retainer.invalid"  # stands in the cached document for the address of the request


def answer(request: Request, routes: Routes) -> Response:
    """Return the document. Raises `not_found` and `method_not_allowed`."""
    if request.path != DOCUMENT:
        raise Refusal("not_found", f"There is nothing here. The document is at {DOCUMENT}, the API at {BASE_PATH}.")
    if request.method == "OPTIONS":
        return Response(204, [("allow", ALLOW)])
    if request.method not in {"GET", "HEAD"}:
        raise method_not_allowed(request.method, ALLOW)
    body = rendered(routes).replace(msgspec.json.encode(ANYWHERE), msgspec.json.encode(request.base_url), 1)
    tag = etag.of(body)
    if etag.matches(request.header("IF_NONE_MATCH"), tag):
        return Response(304, [("etag", tag)])
    return Response(200, [pipeline.CONTENT, ("etag", tag)], body)


@lru_cache(maxsize=1)
def rendered(routes: Routes) -> bytes:
    """Return the document, for any address; cached, for rendering takes a tenth of a second."""
    return render(routes.operations, ANYWHERE)
