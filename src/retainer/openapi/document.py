"""The OpenAPI 3.1 document, from the declarations alone: a new slice is described without a word here."""

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
    """The document as JSON."""
    return msgspec.json.encode(document(declared, base_url))


def document(declared: list[Operation], base_url: str) -> Json:
    """The document of these operations, served at a base URL. A declaration that does not say what it means raises."""
    schemas, tags, paths = Schemas(), Json(), Json()
    answers = [operations.answers_of(it, schemas) for it in declared]  # first: what is sent is named after them
    lists = {it.path for it in declared if it.paged}
    for it, its_answers in zip(declared, answers, strict=True):
        said = inspect.getdoc(sys.modules[it.handler.__module__]) or it.resource.tag
        tags.setdefault(it.resource.tag, {})[said] = None  # each module once, in their order
        paths.setdefault(it.path, {})[it.method.lower()] = operations.described(it, its_answers, schemas, lists)
    responses = refusals.responses(schemas)
    if schemas.silent:
        raise TypeError(f'Say in Annotated[..., "..."] what these mean: {", ".join(dict.fromkeys(schemas.silent))}.')
    shared = operations.share([its for methods in paths.values() for its in methods.values()])
    bearer = {"type": "http", "scheme": "bearer", "description": "A key as a Bearer token."}
    api_key = {"type": "apiKey", "in": "header", "name": "X-Api-Key", "description": "A key by itself."}
    about = {"title": "Retainer API", "version": __version__, "license": {"name": "MIT", "identifier": "MIT"}}
    return {
        "openapi": "3.1.0",
        "info": {**about, "description": CONVENTIONS},
        "servers": [{"url": base_url, "description": "This server."}],
        "tags": [{"name": name, "description": "\n\n".join(said)} for name, said in tags.items()],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": bearer, "apiKey": api_key},
            "parameters": headers.taken() | shared,
            "headers": headers.given(),
            "responses": responses,
            "schemas": schemas.named,
        },
    }
