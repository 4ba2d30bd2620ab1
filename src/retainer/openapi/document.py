"""The OpenAPI 3.1 document, generated from the declarations of operations."""

import inspect
import sys

import msgspec
from msgspec import Struct

from retainer import __version__
from retainer.kernel.resource import Operation, Resource
from retainer.openapi import headers, operations, refusals
from retainer.openapi.schemas import Schemas
from retainer.openapi.values import Json

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


def render(declared: list[Operation], base_url: str) -> bytes:
    return msgspec.json.encode(document(declared, base_url))


def document(declared: list[Operation], base_url: str) -> Json:
    """Return the document of operations served at a base URL. Raises TypeError for a missing description."""
    included: dict[type[Struct], dict[str, type[Struct]]] = {
        operation.reads: {str(source.table.name): source.model for _, source in operation.selectable.relations.values()}
        for operation in declared
        if operation.reads and operation.selectable
    }
    schemas, tags, paths = Schemas(included), Json(), Json()
    # Responses first: the names of schemas in bodies depend on which models responses have.
    successes = [operations.answers_of(operation, schemas) for operation in declared]
    lists = {operation.path for operation in declared if operation.paged}
    for operation, responses in zip(declared, successes, strict=True):
        module = (operation.query if operation.paged else operation.handler).__module__
        if module != Resource.__module__:  # a plain read is described with its list
            description = inspect.getdoc(sys.modules[module]) or operation.resource.tag
            tags.setdefault(operation.resource.tag, {})[description] = None  # each module once, in their order
        methods = paths.setdefault(operation.path, {})
        methods[operation.method.lower()] = operations.described(operation, responses, schemas, lists)
    errors = refusals.responses(schemas)
    if schemas.undescribed:
        raise TypeError(f'Describe these in Annotated[..., "..."]: {", ".join(dict.fromkeys(schemas.undescribed))}.')
    shared = operations.share([operation for methods in paths.values() for operation in methods.values()])
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
            "parameters": headers.parameters() | shared,
            "headers": headers.response_headers(),
            "responses": errors,
            "schemas": schemas.named,
        },
    }
