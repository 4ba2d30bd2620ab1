"""The OpenAPI 3.1 document, generated from the declarations of operations; and its pages."""

from collections.abc import Callable, Collection
from functools import lru_cache

import msgspec
from msgspec import Struct

from retainer import __version__
from retainer.kernel import answers
from retainer.kernel.http import Request, Response
from retainer.kernel.resource import Bound
from retainer.kernel.routes import Routes
from retainer.openapi import operations, refusals
from retainer.openapi.headers import ANY, RESPONSE_HEADERS, Json, header_of, request_headers
from retainer.openapi.schemas import Schemas
from retainer.web import pages

FORMS = {
    "/openapi.json": (answers.CONTENT[1], msgspec.json.encode),
    "/openapi.yaml": ("application/yaml", msgspec.yaml.encode),
}
ANYWHERE = "http://retainer.invalid"  # placeholder in the cached document
CONVENTIONS = """\
- **Keys** are sent in `Authorization: Bearer <key>` or `X-Api-Key`. Each operation needs a scope; write does not
  include read. **Rate limits** apply to each key in any 60 seconds; they depend on the plan, and headers of each
  response show them.
- **Lists**: commas in a filter mean "one of these", different filters are combined with "and", unknown ones refused.
  `since`, `from`, `to`, `min` and `max` include the value, `before` does not.
- **Values**: unknown values are null. Money and other exact decimals are strings; requests may also send numbers. Days
  are in the time zone of the account, timestamps in UTC, durations in whole minutes. Blank text becomes null.
- **Changes**: PUT and PATCH are the same: omitted fields keep their values, read-only fields are ignored, unknown
  fields are refused. `If-Match` prevents lost updates, `Idempotency-Key` duplicate writes.
- **Errors**: `message` says what to do, `code` is for programs, `errors` lists all errors; a 405 has `Allow`."""


def document(declared: Collection[Bound], base_url: str) -> Json:
    """Return the document of operations served at a base URL. Raises TypeError for a missing description."""
    included: dict[type[Struct], dict[str, type[Struct]]] = {
        model: {str(source.table.name): source.model for _, source in bound.selectable.relations.values()}
        for bound in declared
        if bound.selectable and (model := bound.operation.answer.reads)
    }
    schemas, tags, paths = Schemas(included), Json(), Json()
    # Responses first: the names of schemas in bodies depend on which models responses have.
    successes = [operations.answers_of(bound, schemas) for bound in declared]
    lists = {bound.operation.path for bound in declared if bound.operation.paged}
    for bound, responses in zip(declared, successes, strict=True):
        operation = bound.operation
        if text := operation.introduction:
            tags.setdefault(operation.resource.tag, {})[text] = None  # each module once, in their order
        methods = paths.setdefault(operation.path, {})
        methods[operation.method.lower()] = operations.described(bound, responses, schemas, lists)
    errors = refusals.responses(schemas)
    if schemas.undescribed:
        raise TypeError(f'Describe these in Annotated[..., "..."]: {", ".join(dict.fromkeys(schemas.undescribed))}.')
    shared = operations.share([operation for methods in paths.values() for operation in methods.values()])
    parameters = request_headers(schemas.enumeration({**ANY, "examples": ANY["enum"]}))
    bearer = {"type": "http", "scheme": "bearer", "description": "An API key as a Bearer token."}
    api_key = {"type": "apiKey", "in": "header", "name": "X-Api-Key", "description": "An API key in its own header."}
    about = {"title": "Retainer API", "version": __version__, "license": {"name": "MIT", "identifier": "MIT"}}
    return {
        "openapi": "3.1.0",
        "info": {**about, "description": CONVENTIONS},
        "servers": [{"url": base_url, "description": "This server."}],
        "tags": [{"name": name, "description": "\n\n".join(texts)} for name, texts in tags.items()],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": bearer, "apiKey": api_key},
            "parameters": parameters | shared,
            "headers": {name: header_of(*header) for name, header in RESPONSE_HEADERS.items()},
            "responses": errors,
            "schemas": schemas.named,
        },
    }


def answer(request: Request, routes: Routes) -> Response:
    content_type, encode = FORMS[request.path]
    body = rendered(routes, encode).replace(ANYWHERE.encode(), request.base_url.encode(), 1)
    return pages.document(request, content_type, body)


@lru_cache(maxsize=1)
def document_of(routes: Routes) -> Json:
    """Return the document for any address, cached because it takes 0.1 seconds."""
    return document(routes.bound.values(), ANYWHERE)


@lru_cache(maxsize=len(FORMS))
def rendered(routes: Routes, encode: Callable[[Json], bytes]) -> bytes:
    return encode(document_of(routes))
