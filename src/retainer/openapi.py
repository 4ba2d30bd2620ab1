"""The OpenAPI 3.1 document, from the declarations alone: a new slice is described without a word here."""

import inspect
import sys
from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from retainer import __version__
from retainer.domain.filters import LONGEST_LIST
from retainer.domain.keys import Scope
from retainer.domain.members import writable
from retainer.domain.values import Id, Instant
from retainer.errors import STATUS, Faults
from retainer.kernel import paging, query
from retainer.kernel.resource import Operation
from retainer.store.records import Record, Single, auto, wo

Json = dict[str, Any]
Types = dict[str, tuple[Any, Json]]  # the named schemas, each with the type that it describes

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
    503: "The database is out of reach. Nothing was changed; try again in a few seconds.",
}
MORE: Any = {402: {"plan": str}, 403: {"required_scope": Scope, "granted_scopes": list[Scope]}, 422: {"errors": Faults}}
BARE = {"api_disabled", "idempotency_key_reused"}  # codes that say no more than the usual

HEADERS: dict[str, tuple[str, int | str]] = {
    "X-RateLimit-Limit": ("How many requests are allowed in any 60 seconds.", 600),
    "X-RateLimit-Remaining": ("How many are left now.", 599),
    "X-RateLimit-Reset": ("The Unix second at which all are free again if nothing more is sent.", 1774967460),
    "X-Request-Id": ("Names the request in the logs: as it was sent, or made here.", "req_5f2b8c0d"),
    "ETag": ("The state of the record.", '"5f2b8c0d"'),
    "Location": ("The address of the new record.", "https://agency.example/1"),
    "Idempotency-Replayed": ("`true` on the stored answer to an earlier request.", "true"),
    "Retry-After": ("How many seconds to wait before trying again.", 2),
    "WWW-Authenticate": ("How to authenticate.", 'Bearer realm="Retainer"'),
}
SENT: dict[str, tuple[str, int | str]] = {
    "Idempotency-Key": ("Makes it safe to repeat this write within 24 hours: up to 255 visible ASCII.", "c0ffee-1"),
    "If-Match": ("Refuse the write unless the record has this ETag.", '"5f2b8c0d"'),
    "If-None-Match": ("Answer 304 if the record still has this ETag.", '"5f2b8c0d"'),
}
ON_REFUSAL = {401: ["WWW-Authenticate"], 409: ["Retry-After"], 429: ["Retry-After"], 503: ["Retry-After"]}
FILTERS = {
    "q": "Only records in which this text occurs.",
    "ids": "Only the records with these ids.",
    "from": "The first day.",
    "to": "The last day.",
}
Address = Annotated[str, Meta(examples=["https://agency.example/?page=1"], extra_json_schema={"format": "uri"})]
CLOSER: dict[type, Json] = {  # what members of the base types are, more closely than their plain types say
    Record: {"id": Id, "created_at": Instant, "updated_at": Instant},
    paging.Links: {"first": Address, "last": Address, "prev": Address | None, "next": Address | None},
    paging.Meta: {"path": Address},
}


def render(operations: list[Operation], base_url: str) -> bytes:
    """The document as JSON."""
    return msgspec.json.encode(document(operations, base_url))


def document(operations: list[Operation], base_url: str) -> Json:
    """The document of these operations, served at a base URL."""
    types, tags, paths = Types(), Json(), Json()
    for it in operations:
        said = inspect.getdoc(sys.modules[it.handler.__module__]) or it.resource.tag
        tags.setdefault(it.resource.tag, {})[said] = None  # each module once, in their order
        paths.setdefault(it.path, {})[it.method.lower()] = _operation(it, types)
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
            "parameters": {name: {"name": name, "in": "header", **_header(*said)} for name, said in SENT.items()},
            "headers": {name: _header(*said) for name, said in HEADERS.items()},
            "responses": {f"Error{status}": _refusal(status, types) for status in ADVICE},
            "schemas": {name: schema for name, (_, schema) in types.items()},
        },
    }


def _operation(it: Operation, types: Types) -> Json:
    about, scope = inspect.getdoc(it.handler) or "", it.scope
    needs = f"Needs the scope `{scope}`." if scope else "Needs a valid key, whatever its scopes."
    record = isinstance(it.record, type) and issubclass(it.record, Record)
    reads, changes = record and not it.writes, it.writes and not it.created
    taken = {"Idempotency-Key": it.writes, "If-Match": changes, "If-None-Match": reads}
    sent = [{"$ref": f"#/components/parameters/{name}"} for name in taken if taken[name]]
    given = {"ETag": record, "Location": record and it.created, "Idempotency-Replayed": it.writes}
    reasons = {404: it.parameters, 409: it.writes, 412: changes, 413: it.writes, 415: it.body is not None}
    refusals = [status for status in ADVICE if reasons.get(status, True)]
    done: Json = {"description": "Done.", "headers": _headers([name for name in given if given[name]])}
    answers = {"304": {**done, "description": "Unchanged."}} if reads else {}
    if it.answers is NoneType:
        answers["204"] = done
    else:
        data = {"data": _named(it.record, types)}
        if it.record is not it.answers:
            data["meta"] = _named(get_args(it.answers)[1], types)
        whole = data["data"] if it.paged else _closed("What was asked for, under data.", data, list(data), types)
        answers["201" if it.created else "200"] = {**done, "content": {"application/json": {"schema": whole}}}
    body = it.body and {"schema": _named(it.body, types, "Create" if it.created else "Update")}
    return {
        "operationId": it.id,
        "tags": [it.resource.tag],
        "summary": about.splitlines()[0].removesuffix("."),
        "description": f"{about}\n\n{needs}",
        "x-required-scope": scope,
        "security": [{scheme: [scope] if scope else []} for scheme in ("bearer", "apiKey")],
        "parameters": [*_parameters(it, types), *sent],
        **({"requestBody": {"required": True, "content": {"application/json": body}}} if body else {}),
        "responses": answers | {str(status): {"$ref": f"#/components/responses/Error{status}"} for status in refusals},
    }


def _parameters(it: Operation, types: Types) -> list[Json]:
    def asked(name: str, description: str, hint: Any, **more: Any) -> Json:
        commas = {"style": "form", "explode": False} if get_origin(hint) is tuple else {}
        place = {"in": "path", "required": True} if name in it.parameters else {"in": "query", **commas}
        schema = _schema(hint, name, types, sent=name not in it.parameters) | more
        return {"name": name, "description": description, "schema": schema, **place}

    found = [asked(name, f"Which {name.replace('_', ' ')}.", Id) for name in it.parameters]
    if it.paged:
        sorts = list(dict.fromkeys([*(name.removeprefix("-") for name in it.query.sorts), "id"]))
        order: Any = Literal[tuple(sign + name for name in sorts for sign in ("", "-"))]
        size = Annotated[int, Meta(ge=1, le=paging.LARGEST_PAGE)]
        usual = {"maxItems": len(sorts), "default": [it.query.sorts[0]]}
        found += [
            asked("page", "Which page.", Id, default=1),
            asked("per_page", "How many records on a page.", size, default=paging.PER_PAGE),
            asked("sort", "Order; a minus descends.", tuple[order, ...], **usual),
        ]
    defaults = {field.name: field.default for field in msgspec.structs.fields(it.query) if field.default is not None}
    for name, own in query.parameters(it.query).items():
        default = {"default": defaults[own.member]} if own.member in defaults else {}
        found.append(asked(name, FILTERS.get(name, f"Filters by {name.replace('_', ' ')}."), own.hint, **default))
    return found


def _refusal(status: int, types: Types) -> Json:
    codes = [code for code, its in STATUS.items() if its == status]
    one: Any = Literal[tuple(codes)]
    usual: Json = {"message": Annotated[str, Meta(examples=[ADVICE[status]])], "code": one, "request_id": str}
    members = {name: _schema(hint, name, types) for name, hint in (usual | MORE.get(status, {})).items()}
    schema = _closed(ADVICE[status], members, list(usual if BARE & set(codes) else members), types)
    whole = schema["examples"][0]
    bare = {name: whole[name] for name in usual}
    examples = {code: {"value": {**(bare if code in BARE else whole), "code": code}} for code in codes}
    content = {"application/json": {"schema": schema, "examples": examples}}
    return {"description": ADVICE[status], "headers": _headers(ON_REFUSAL.get(status, [])), "content": content}


def _header(description: str, example: str | int) -> Json:
    kind = "integer" if isinstance(example, int) else "string"
    return {"description": description, "schema": {"type": kind, "examples": [example]}}


def _headers(names: list[str]) -> Json:
    sent = [name for name in HEADERS if name in names or name.startswith("X-")]
    return {name: {"$ref": f"#/components/headers/{name}"} for name in sent}


def _example(schema: Json, types: Types) -> Any:
    its = types[schema["$ref"].rpartition("/")[2]][1] if "$ref" in schema else schema
    return its["examples"][0]


def _named(hint: Any, types: Types, use: str = "") -> Json:
    """A type by its name, as it is answered, alone or as a `Row` of a list, or as it is sent to Create or Update."""
    shape = get_origin(hint) or hint
    name = "".join(part.__name__ for part in (shape, *get_args(hint))) + use
    single = {name for name, its in get_type_hints(shape, include_extras=True).items() if _is_single(its)}
    if types.setdefault(name, (hint, {}))[0] != hint:
        raise TypeError(f"{hint} and {types[name][0]} cannot both be called {name}: rename one.")
    if not types[name][1]:
        closer = {member: its for base in CLOSER if issubclass(shape, base) for member, its in CLOSER[base].items()}
        writes = writable(shape, use) if use in {"Create", "Update"} else {}
        members = {}
        for field in msgspec.structs.fields(hint):
            if field.default is wo and field.name not in writes and (use == "Row" or field.name not in single):
                continue
            kind, write = closer.get(field.name, field.type), writes.get(field.encode_name)
            if shape is paging.Paged and field.name == "data":
                its = _rows(get_args(hint)[0], types)
            else:
                its = _schema(
                    kind | None if write and field.default is auto else kind, field.name, types, sent=bool(write)
                )
            if use in {"Create", "Update"} and write is None:
                its["readOnly"] = True
            elif field.default is wo and use and field.name not in single:
                its["writeOnly"] = True
            elif use == "Create" and write and write.default not in (None, msgspec.NODEFAULT):
                its["default"] = msgspec.to_builtins(write.default)
            members[field.encode_name] = its
        required = [known for known, own in writes.items() if own.required and not own.unless]
        needed = {"Create": required, "Update": []}.get(use, list(members))
        types[name][1].update(_closed(inspect.getdoc(shape) or name, members, needed, types))
    return {"$ref": f"#/components/schemas/{name}"}


def _rows(shape: Any, types: Types) -> Json:
    has_more = any(_is_single(hint) for hint in get_type_hints(shape, include_extras=True).values())
    items = _named(shape, types, "Row" if has_more else "")
    return {
        "type": "array",
        "description": "The records of the page.",
        "items": items,
        "examples": [[_example(items, types)]],
    }


def _or_none(schema: Json) -> Json:
    """How a value of a comma list is written where the word `none` stands for null."""
    words = [schema["pattern"].strip("^$"), "none"] if "pattern" in schema else ["none"]
    kinds = dict.fromkeys([*(kind for kind in schema["type"] if kind != "null"), "string"])
    said = f"{schema['description'].removesuffix('.')}, or none."
    return {"type": list(kinds), "pattern": f"^({'|'.join(words)})$", "description": said}


def _is_single(hint: Any) -> bool:
    return any(isinstance(mark, Single) for mark in getattr(hint, "__metadata__", ()))


def _closed(description: str, members: Json, required: list[str], types: Types) -> Json:
    example = {name: _example(its, types) for name, its in members.items() if "readOnly" not in its}
    its = {"type": "object", "description": description, "properties": members, "required": required}
    return {**its, "additionalProperties": False, "examples": [example]}


def _schema(hint: Any, name: str, types: Types, *, sent: bool = False) -> Json:
    """A value of a declared kind as it is answered or sent; the name serves where the kind has no words of its own."""
    bare, metas = (hint.__origin__, hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())
    origin, parts = get_origin(bare), get_args(bare)
    if origin in {Union, UnionType}:
        (inner,) = (part for part in parts if part is not NoneType)
        its = _schema(Annotated[inner, *metas, Meta()], name, types, sent=sent)
        if "$ref" in its:
            return {"anyOf": [its, {"type": "null"}], "examples": [_example(its, types)]}
        kinds = its["type"] if isinstance(its["type"], list) else [its["type"]]
        return its | {"type": [*kinds, "null"]} | ({"enum": [*its["enum"], None]} if "enum" in its else {})
    if isinstance(origin or bare, type) and issubclass(origin or bare, msgspec.Struct):
        return _named(bare, types, "Create" if sent else "")
    words = name.replace("_", " ").capitalize()
    extra = next((meta.extra for meta in metas if isinstance(meta, Meta) and meta.extra), {}) if sent else {}
    its = msgspec.json.schema(Annotated[list[Any] if origin in {list, tuple} else bare, *metas, Meta()])
    examples: dict[Any, Any] = {
        bool: True,
        int: its.get("minimum") or 1,
        float: 1.5,
        Decimal: "1.5",
        dict: {"name": ["Is required."]},
    }
    example = examples.get(origin or bare, words[: its.get("maxLength")])
    if origin in {list, tuple}:
        its["items"] = _schema(parts[0], name, types, sent=sent)
        if origin is tuple and NoneType in get_args(parts[0]):
            its["items"] |= _or_none(its["items"])
        example = [_example(its["items"], types)]
        its |= {"minItems": 1, "maxItems": LONGEST_LIST} if origin is tuple else {}
    elif origin is Literal:
        its |= {"type": "string", "enum": list(parts)}
    return {"description": f"{words}.", "examples": its.get("enum", [example])[:1], **its, **extra.get("sent", {})}
