"""The OpenAPI 3.1 document, from the declarations alone: a new resource needs no change here."""

import inspect
import sys

import msgspec

from retainer import __version__
from retainer.kernel.resource import Operation
from retainer.openapi import headers, operations, refusals
from retainer.openapi.schemas import Schemas
from retainer.openapi.values import Json

CONVENTIONS = """\
- **Keys** go into `Authorization: Bearer <key>` or `X-Api-Key`. Each operation names its scope; write does not include
  read. **Limits** hold for each key in any 60 seconds, by the account's plan; every answer tells how the key stands.
- **Lists**: commas in a filter mean "one of these", different filters are combined with "and", unknown ones refused.
  What is given as `since`, `from`, `to`, `min` or `max` is included, what is given as `before` is not.
- **Values**: what is unknown is null. Money and other exact decimals are strings, and are read from strings or numbers.
  Days are those of the account's time zone, instants are UTC, durations whole minutes. Blank text is null.
- **Changes**: PUT and PATCH are one operation: members left out keep their value, read-only ones are ignored, unknown
  ones refused. With `If-Match` or `Idempotency-Key`, a write can neither undo another's change nor happen twice.
- **Errors**: `message` says what to do, `code` is for programs, `errors` names all faults; a 405 comes with `Allow`."""


def render(declared: list[Operation], base_url: str) -> bytes:
    """Return the document as JSON."""
    return msgspec.json.encode(document(declared, base_url))


def document(declared: list[Operation], base_url: str) -> Json:
    """Return the document of these operations, served at a base URL.

    Raises TypeError for a declaration without a description.
    """
    schemas, tags, paths = Schemas(), Json(), Json()
    # Responses first: the names of schemas in bodies depend on which models responses have.
    successes = [operations.answers_of(operation, schemas) for operation in declared]
    lists = {operation.path for operation in declared if operation.paged}
    for operation, responses in zip(declared, successes, strict=True):
        description = inspect.getdoc(sys.modules[operation.handler.__module__]) or operation.resource.tag
        tags.setdefault(operation.resource.tag, {})[description] = None  # each module once, in their order
        methods = paths.setdefault(operation.path, {})
        methods[operation.method.lower()] = operations.described(operation, responses, schemas, lists)
    errors = refusals.responses(schemas)
    if schemas.undescribed:
        raise TypeError(
            f'Say in Annotated[..., "..."] what these mean: {", ".join(dict.fromkeys(schemas.undescribed))}.'
        )
    shared = operations.share([operation for methods in paths.values() for operation in methods.values()])
    bearer = {"type": "http", "scheme": "bearer", "description": "A key as a Bearer token."}
    api_key = {"type": "apiKey", "in": "header", "name": "X-Api-Key", "description": "A key by itself."}
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
