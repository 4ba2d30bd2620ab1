"""Requests outside the base path: the OpenAPI document, and 404 for all others."""

from functools import lru_cache

import msgspec

from retainer.errors import Refusal, method_not_allowed
from retainer.kernel import etag, pipeline
from retainer.kernel.http import Request, Response
from retainer.kernel.resource import Routes
from retainer.limits import ADDRESS_RATE_LIMIT, Limiter
from retainer.openapi.document import render
from retainer.server.log import Log
from retainer.settings import BASE_PATH

DOCUMENT = "/openapi.json"
ALLOW = "GET, HEAD, OPTIONS"
ANYWHERE = "http://retainer.invalid"  # stands in the cached document for the address of the request


def answer(request: Request, routes: Routes, limiter: Limiter, log: Log) -> Response:
    """Answer with the headers of the API and the rate limit of the address, to which refusals are charged."""
    try:
        request.check()
        allowance = limiter.hit(f"address:{request.address}", ADDRESS_RATE_LIMIT, charge=False)
        response = page(request, routes)
    except Exception as error:  # noqa: BLE001  # any error is answered as a refusal
        allowance, refusal = pipeline.limit_anonymous(request, pipeline.to_refusal(error, request, log), limiter)
        response = pipeline.refuse(refusal, request)
    pipeline.add_headers(response, request, allowance)
    log.request(request, response, None, None)
    return response


def page(request: Request, routes: Routes) -> Response:
    """Return the document. Raises `not_found` and `method_not_allowed`."""
    if request.path != DOCUMENT:
        raise Refusal("not_found", f"There is nothing here. The API is at {BASE_PATH}, its reference at {DOCUMENT}.")
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
