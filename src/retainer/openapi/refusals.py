"""Refusals: each status with its advice and its codes; four shapes of error serve them all."""

from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta

from retainer.errors import STATUS, FieldErrors
from retainer.identity.keys import Scope
from retainer.openapi.headers import always_and
from retainer.openapi.schemas import Schemas
from retainer.openapi.values import Json, said_of, schema_of

ADVICE = {
    400: "The request cannot be read. Correct it and send it again.",
    401: "No valid key was sent. Send one that is neither revoked nor expired, and whose user is active.",
    402: "The account's plan does not include the API. Change it to one that does.",
    403: "The API is switched off for this account, or the key lacks the scope. Ask an admin.",
    404: "There is no such record in this account. Check the id in the path.",
    409: "The first request with this Idempotency-Key is still running. Wait a second and send it again.",
    412: "The record has changed since you read it. Read it again, then change it.",
    413: "The body is larger than 1 MiB. Send less at once.",
    415: "The body is not declared as JSON. Send the header Content-Type: application/json.",
    422: "The request breaks a rule. Correct what is named and send it again.",
    429: "Too many requests. Wait as long as Retry-After says and try again.",
    500: "Something went wrong here. Report the request id to the operator.",
    503: "The database is out of reach, or too many bodies are awaited. Try again after Retry-After; a write with its "
    "Idempotency-Key, for it may have been done.",
}
WITH_HEADERS = {401: ["WWW-Authenticate"], 409: ["Retry-After"], 429: ["Retry-After"], 503: ["Retry-After"]}
BARE = {"api_disabled", "idempotency_key_reused"}
"""The codes whose error has no more members than any."""


class Shape(NamedTuple):
    """The errors of some statuses: what they are called and are, and the members that they have beside the usual."""

    name: str
    description: str
    members: Json


PLAN = Shape(
    "PlanError",
    "The account's plan does not include the API.",
    {"plan": Annotated[str, Meta(examples=["studio"]), "The plan that the account has now."]},
)
FORBIDDEN = Shape(
    "ForbiddenError",
    "The API is switched off, or the key lacks the scope of the operation.",
    {
        "required_scope": Annotated[Scope, "The scope that the operation needs. Absent with `api_disabled`."],
        "granted_scopes": Annotated[
            list[Scope], Meta(examples=[["clients:read"]]), "All that the key holds. Absent with `api_disabled`."
        ],
    },
)
INVALID = Shape(
    "ValidationError",
    "The request breaks rules, all of which are named at once.",
    {
        "errors": Annotated[
            FieldErrors,
            Meta(examples=[{"lines.0.quantity": ["Is required."]}]),
            "Sentences under each faulty field, parameter or blocking relation; nested fields are dotted. "
            "Absent with `idempotency_key_reused`.",
        ]
    },
)
ERROR = Shape("Error", "Any other refusal.", {})
SHAPES = {402: PLAN, 403: FORBIDDEN, 422: INVALID}


def responses(schemas: Schemas) -> Json:
    """The refusals by name, and among the schemas those of their errors."""
    for shape in (ERROR, *SHAPES.values()):
        statuses = [status for status in {*STATUS.values()} if SHAPES.get(status, ERROR) is shape]
        hints = _usual([code for code, status in STATUS.items() if status in statuses]) | shape.members
        members = {name: _described(hint, schema_of(hint, name, schemas)) for name, hint in hints.items()}
        bare = any(STATUS[code] in statuses for code in BARE)
        required = [name for name in members if not bare or name not in shape.members]
        schemas.add(shape.name, shape, {"description": shape.description}, members, required)
    return {f"Error{status}": _response(status, schemas.named) for status in ADVICE}


def reference(status: int) -> Json:
    """The reference to a refusal."""
    return {"$ref": f"#/components/responses/Error{status}"}


def _usual(codes: list[str]) -> Json:
    code: Any = Literal[tuple(codes)]
    return {
        "message": Annotated[str, Meta(examples=[ADVICE[404]]), "What is wrong and what to do next, for a person."],
        "code": Annotated[code, "The reason, for programs: it never changes, where `message` may."],
        "request_id": Annotated[str, Meta(examples=["req_5f2b8c0d"]), "As in `X-Request-Id`; the logs know it."],
    }


def _described(hint: Any, schema: Json) -> Json:
    return {**schema, "description": said_of(hint)}


def _response(status: int, named: Json) -> Json:
    shape = SHAPES.get(status, ERROR)
    codes = [code for code, its in STATUS.items() if its == status]
    its = {name: member["examples"][0] for name, member in named[shape.name]["properties"].items()}
    its["message"] = ADVICE[status]
    examples = {
        code: {"value": {name: one for name, one in its.items() if not (code in BARE and name in shape.members)}}
        for code in codes
    }
    for code, example in examples.items():
        example["value"]["code"] = code
    schema = {"$ref": f"#/components/schemas/{shape.name}"}
    content = {"application/json": {"schema": schema, "examples": examples}}
    said = f"{ADVICE[status]} Codes: {', '.join(f'`{code}`' for code in codes)}."
    return {"description": said, "headers": always_and(WITH_HEADERS.get(status, [])), "content": content}
