"""Operations: what each takes and answers."""

import inspect
import json
from collections import Counter
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta

from retainer.kernel import paging, query
from retainer.kernel.resource import Operation
from retainer.openapi import refusals
from retainer.openapi.headers import always_and
from retainer.openapi.schemas import Schemas
from retainer.openapi.values import Json, said_of, schema_of
from retainer.store.constraints import singular
from retainer.store.records import folds
from retainer.values.kinds import Id
from retainer.values.records import Record

PAGE = Annotated[int, Meta(ge=1), "Which page of the list, from 1; one past the end is empty."]
PER_PAGE = Annotated[int, Meta(ge=1, le=paging.LARGEST_PAGE), "How many records a page holds at most."]
SORT = "What records are ordered by, the first member first; a minus descends. `id` is always the last."


def described(it: Operation, answers: Json, schemas: Schemas, lists: set[str]) -> Json:
    """An operation, with what it answers; `lists` are the paths that can be read."""
    about, scope = inspect.getdoc(it.handler) or "", it.scope
    needs = f"Needs the scope `{scope}`." if scope else "Needs a valid key, whatever its scopes."
    taken = {"Idempotency-Key": it.writes, "If-Match": _changes(it), "If-None-Match": _reads(it)}
    sent = [{"$ref": f"#/components/parameters/{name}"} for name in taken if taken[name]]
    body = it.body and {"schema": schemas.create(it.body) if it.created else schemas.update(it.body)}
    reasons = {404: it.parameters, 409: it.writes, 412: _changes(it), 413: it.writes, 415: it.body is not None}
    refused = [status for status in refusals.ADVICE if reasons.get(status, True)]
    return {
        "operationId": it.id,
        "tags": [it.resource.tag],
        "summary": about.splitlines()[0].removesuffix("."),
        "description": f"{about}\n\n{needs}",
        "x-required-scope": scope,
        "security": [{scheme: [scope] if scope else []} for scheme in ("bearer", "apiKey")],
        "parameters": [*_path_parameters(it, lists, schemas), *_query_parameters(it, schemas), *sent],
        **({"requestBody": {"required": True, "content": {"application/json": body}}} if body else {}),
        "responses": answers | {str(status): refusals.reference(status) for status in refused},
    }


def answers_of(it: Operation, schemas: Schemas) -> Json:
    """What an operation answers when all is well."""
    given = {"ETag": _is_record(it), "Location": _is_record(it) and it.created, "Idempotency-Replayed": it.writes}
    headers = {"headers": always_and([name for name in given if given[name]])}
    answers: Json = {"304": {"description": "The record still has the ETag that was sent.", **headers}}
    if it.answers is NoneType:
        return {"204": {"description": "It is done; there is nothing more to say.", **headers}}
    if it.paged:
        schema = schemas.page(*get_args(it.answers))
    else:
        schema = schemas.response(it.record, get_args(it.answers)[1] if it.record is not it.answers else None)
    done = (
        "The record was created." if it.created else "The record as it is now." if _is_record(it) else "As asked for."
    )
    content = {"application/json": {"schema": schema}}
    whole = {"201" if it.created else "200": {"description": done, **headers, "content": content}}
    return whole | (answers if _reads(it) else {})


def share(operations: list[Json]) -> Json:
    """Replace the parameters that several operations take, in the same words, by references; answers what they name."""
    own = [(json.dumps(one), one) for its in operations for one in its["parameters"] if "$ref" not in one]
    counts = Counter(text for text, _ in own)
    shared: Json = {}
    for text, one in own:
        if counts[text] > 1:
            shared.setdefault(one["name"], one)
    for its in operations:
        found = [(one, shared.get(one.get("name"))) for one in its["parameters"]]
        its["parameters"] = [
            {"$ref": f"#/components/parameters/{one['name']}"} if one == same else one for one, same in found
        ]
    return shared


def _is_record(it: Operation) -> bool:
    return isinstance(it.record, type) and issubclass(it.record, Record)


def _reads(it: Operation) -> bool:
    return _is_record(it) and not it.writes


def _changes(it: Operation) -> bool:
    return it.writes and not it.created


def _path_parameters(it: Operation, lists: set[str], schemas: Schemas) -> list[Json]:
    """The ids in a path, each with where it is read."""
    found = []
    for name in it.parameters:
        at, _, rest = it.path.partition(f"/{{{name}}}")
        what = it.resource.parent if rest and it.resource.parent is not None else it.resource.table
        parent, _, children = at.rpartition("/")
        read = f"`id` in {at}" if at in lists else f"`id` in the `{children}` of {parent}"
        said = f"The id of the {'record' if what is None else singular(what)}, as {read}."
        place = {"in": "path", "required": True}
        found.append({"name": name, "description": said, "schema": schema_of(Id, name, schemas), **place})
    return found


def _query_parameters(it: Operation, schemas: Schemas) -> list[Json]:
    found = _paging(it, schemas) if it.paged else []
    defaults = {its.name: its.default for its in msgspec.structs.fields(it.query) if its.default is not None}
    for name, own in query.parameters(it.query).items():
        said = own.description or (own.where.said if it.paged else "")
        if name == "q" and it.resource.table is not None:
            said = said.format(searched=_listed(folds(it.resource.table)["search"][0]))
        if not said:
            schemas.silent.append(f"{it.query.__module__}.{it.query.__name__}.{own.field}")
        default = {"default": defaults[own.field]} if own.field in defaults else {}
        found.append(_query_parameter(name, said, own.hint, schemas, **default))
    return found


def _paging(it: Operation, schemas: Schemas) -> list[Json]:
    keys = list(dict.fromkeys([*(name.removeprefix("-") for name in it.query.sorts), "id"]))
    order: Any = Literal[tuple(sign + name for name in keys for sign in ("", "-"))]
    usual = {"maxItems": len(keys), "default": [it.query.sorts[0]]}
    return [
        _query_parameter("page", said_of(PAGE), PAGE, schemas, default=1),
        _query_parameter("per_page", said_of(PER_PAGE), PER_PAGE, schemas, default=paging.PER_PAGE),
        _query_parameter("sort", SORT, tuple[order, ...], schemas, **usual),
    ]


def _query_parameter(name: str, said: str, hint: Any, schemas: Schemas, **more: Any) -> Json:
    schema = schema_of(hint, name, schemas, sent=True) | more
    commas = {"style": "form", "explode": False} if get_origin(hint) is tuple else {}
    said = " ".join(filter(None, (said, schema.pop("description", ""))))
    return {"name": name, "description": said, "schema": schema, "in": "query", **commas}


def _listed(names: tuple[str, ...]) -> str:
    """Names as a sentence lists them."""
    *most, last = (f"`{name}`" for name in names)
    return f"{', '.join(most)} or {last}" if most else last
