"""The pages /openapi.json and /openapi.yaml."""

from functools import lru_cache

import msgspec

from retainer.kernel import pipeline
from retainer.kernel.http import Request, Response
from retainer.kernel.routes import Routes
from retainer.openapi.document import document as make_document
from retainer.openapi.values import Json
from retainer.web.responses import document

YAML = "application/yaml"
ANYWHERE = "http://retainer.invalid"  # placeholder in the cached document


def answer(request: Request, routes: Routes) -> Response:
    body = as_json(routes).replace(msgspec.json.encode(ANYWHERE), msgspec.json.encode(request.base_url), 1)
    return document(request, pipeline.CONTENT[1], body)


def answer_yaml(request: Request, routes: Routes) -> Response:
    return document(request, YAML, as_yaml(routes).replace(ANYWHERE.encode(), request.base_url.encode(), 1))


@lru_cache(maxsize=1)
def document_of(routes: Routes) -> Json:
    """Return the document for any address, cached because it takes 0.1 seconds."""
    return make_document(routes.operations, ANYWHERE)


@lru_cache(maxsize=1)
def as_json(routes: Routes) -> bytes:
    return msgspec.json.encode(document_of(routes))


@lru_cache(maxsize=1)
def as_yaml(routes: Routes) -> bytes:
    return msgspec.yaml.encode(document_of(routes))
