"""The page /openapi.json: the document, with the address of the request."""

from functools import lru_cache

import msgspec

from retainer.errors import Refusal
from retainer.kernel import pipeline
from retainer.kernel.http import Request, Response
from retainer.kernel.resource import Routes
from retainer.openapi.document import render
from retainer.settings import BASE_PATH
from retainer.web.responses import document

DOCUMENT = "/openapi.json"
ANYWHERE = "http://retainer.invalid"  # stands in the cached document for the address of the request


def answer(request: Request, routes: Routes) -> Response:
    """Return the document. Raises `not_found` and `method_not_allowed`."""
    if request.path != DOCUMENT:
        raise Refusal("not_found", f"There is nothing here. The document is at {DOCUMENT}, the API at {BASE_PATH}.")
    body = rendered(routes).replace(msgspec.json.encode(ANYWHERE), msgspec.json.encode(request.base_url), 1)
    return document(request, pipeline.CONTENT[1], body)


@lru_cache(maxsize=1)
def rendered(routes: Routes) -> bytes:
    """Return the document, for any address; cached, for rendering takes a tenth of a second."""
    return render(routes.operations, ANYWHERE)
