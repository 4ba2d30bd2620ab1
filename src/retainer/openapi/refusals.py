"""Error responses: the advice and codes of each status, and four schemas for all of them."""

from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta

from retainer.errors import CODES, STATUS
from retainer.identity.keys.keys import Scope
from retainer.kernel import pipeline
from retainer.openapi.headers import Json, always_and
from retainer.openapi.schemas import Schemas, description_of

ADVICE = {
    400: "The request cannot be read. Correct it and send it again.",
    401: "No valid key was sent. Send one that is neither revoked nor expired, and whose user is active.",
    402: "The account's plan does not include the API. Change it to one that does.",
    403: "The account is suspended, its API is switched off, or the key lacks the scope. Ask an admin.",
    404: "There is no such record in this account. Check the id in the path.",
    405: "An operation of the atomic batch has a path without its method. Send one of those in Allow.",
    406: "Accept asks for a form, like a PDF, that this record or path does not have. Send Accept: application/json.",
    409: "The first request with this Idempotency-Key is still running. Wait a second and send it again.",
    410: "The events after this position are gone. Read all records again, then continue from the newest position.",
    412: "The record has changed since you read it. Read it again, then change it.",
    413: "The body is larger than 1 MiB. Split it into several requests.",
    415: "The body is not declared as JSON. Send the header Content-Type: application/json.",
    422: "The request breaks a rule. Correct the named fields and send it again.",
    429: "Too many requests. Wait for Retry-After and try again.",
    500: "Internal error. Report the request id to the operator.",
    501: "Transfer-Encoding names another coding than chunked. Send the body as it is.",
    503: "The database is out of reach or busy, or too many requests wait for their bodies. Try again after "
    "Retry-After; send a write with its Idempotency-Key, because it may have been saved.",
}
DOCS_OF_ERRORS = f"https://agency.example{pipeline.DOCS_OF_ERRORS}"
WITH_HEADERS = {
    401: ["WWW-Authenticate"],
    405: ["Allow"],
    409: ["Retry-After"],
    429: ["Retry-After"],
    503: ["Retry-After"],
}
BARE = {"account_suspended", "api_disabled"}
"""The codes whose errors have only the common fields."""

OF_BATCH: Json = {
    "operation": Annotated[
        int, Meta(ge=0, examples=[0]), "Position of the refused operation, from 0. Only with an atomic batch."
    ]
}


class Shape(NamedTuple):
    """An error schema; `members` are its fields in addition to the common ones."""

    name: str
    description: str
    members: Json


PLAN = Shape(
    "PlanError",
    "The account's plan does not include the API.",
    {"plan": Annotated[str, Meta(examples=["studio"]), "The current plan of the account."]},
)
FORBIDDEN = Shape(
    "ForbiddenError",
    "The account is suspended, its API is switched off, or the key lacks the scope of the operation.",
    {
        "required_scope": Annotated[Scope, "The scope that the operation needs. Only with `missing_scope`."],
        "granted_scopes": Annotated[
            list[Scope], Meta(examples=[["clients:read"]]), "The scopes of the key. Only with `missing_scope`."
        ],
    },
)
INVALID = Shape(
    "ValidationError",
    "The request breaks rules; the errors are listed, up to 20 of each kind.",
    {
        "errors": Annotated[
            dict[str, list[str]],
            Meta(examples=[{"lines.0.quantity": ["Is required."]}]),
            "Messages by field, parameter, header, or what blocks the request; nested fields are dotted.",
        ]
    },
)
ERROR = Shape("Error", "Any other error.", {})
SHAPES = {402: PLAN, 403: FORBIDDEN, 422: INVALID}


def responses(schemas: Schemas) -> Json:
    for model in (ERROR, *SHAPES.values()):
        codes = [code for code, status in STATUS.items() if SHAPES.get(status, ERROR) is model]
        hints = _common_fields(codes, f"{model.name}Code") | model.members | OF_BATCH
        fields = {
            name: {**schemas.schema_of(hint, name), "description": description_of(hint)} for name, hint in hints.items()
        }
        optional = [*OF_BATCH, *(() if BARE.isdisjoint(codes) else model.members)]
        required = [name for name in fields if name not in optional]
        schemas.add(model.name, model, {"description": model.description}, fields, required)
    return {f"Error{status}": _response(status, schemas) for status in ADVICE}


def reference(status: int) -> Json:
    return {"$ref": f"#/components/responses/Error{status}"}


def _common_fields(codes: list[str], name: str) -> Json:
    code: Any = Annotated[Literal[tuple(codes)], Meta(title=name)]
    return {
        "message": Annotated[str, Meta(examples=[ADVICE[404]]), "What is wrong and what to do next, for a person."],
        "code": Annotated[code, "The reason, for programs. It never changes, but `message` may."],
        "request_id": Annotated[
            str, Meta(examples=["req_5f2b8c0d"]), "The id of the request in the logs, as in `X-Request-Id`."
        ],
        "docs_url": Annotated[
            str,
            Meta(examples=[f"{DOCS_OF_ERRORS}#not_found"], extra_json_schema={"format": "uri"}),
            "The page that explains the code and what to do.",
        ],
    }


def _response(status: int, schemas: Schemas) -> Json:
    model = SHAPES.get(status, ERROR)
    fields = schemas.named[model.name]["properties"]
    values = {name: schemas.example(field) for name, field in fields.items() if name not in OF_BATCH}
    values["message"] = ADVICE[status]
    examples = {}
    for code in CODES[status]:
        shown = {name: value for name, value in values.items() if code not in BARE or name not in model.members}
        examples[code] = {"value": shown | {"code": code, "docs_url": f"{DOCS_OF_ERRORS}#{code}"}}
    schema = {"$ref": f"#/components/schemas/{model.name}"}
    content = {"application/json": {"schema": schema, "examples": examples}}
    description = f"{ADVICE[status]} Codes: {', '.join(f'`{code}`' for code in CODES[status])}."
    return {"description": description, "headers": always_and(WITH_HEADERS.get(status, [])), "content": content}
