"""Operations: the parameters, body and responses of each."""

import json
from collections import Counter
from functools import partial
from typing import Annotated, Any, Literal, get_origin

import msgspec
from msgspec import Meta
from sqlalchemy import Table

from retainer.kernel import paging, query
from retainer.kernel.answers import Feed, Nothing, One, SummedList
from retainer.kernel.resource import Bound, Operation
from retainer.kernel.uploads import FORM
from retainer.openapi import refusals
from retainer.openapi.headers import ONLY_CREATES, Json, always_and
from retainer.openapi.schemas import Schemas, description_of
from retainer.rollups.list_sums import MAX_SUMMED
from retainer.store.constraints import singular
from retainer.store.row_mapper import folds
from retainer.values.kinds import Code191, Id

PAGE = Annotated[int, Meta(ge=1), "Page number, from 1; pages past the end are empty."]
PER_PAGE = Annotated[int, Meta(ge=1, le=paging.MAX_PAGE_SIZE), "Maximum number of records on a page."]
TOTALS = (
    "With true, `meta.totals` has the sums of the whole filtered list by currency. Refused if more than "
    f"{MAX_SUMMED:,} records match and no stored totals have their sums."
)
CURSOR = (
    "Where the page begins: copy it from `links.next`, together with `page`. Pages after a cursor miss and repeat no "
    "record while others are added and removed."
)
INCLUDE = "Related records to add under `included`, each once. The key needs the scopes that read them."
IN_LISTS = "{} are added to each record in `data`, as when it is read alone."
IN_RECORDS = "{} are always in `data`."
FIELDS = (
    "Fields to return of the records in `data`, besides `id`. Default: all. With `fields`, the response is the partial "
    "one, of which only the id is required."
)
SORT_KEY = "A field to sort by; a minus means descending order."
SORT = "Fields to sort by, in order; a minus means descending order. `id` is always the last."


def described(bound: Bound, responses: Json, schemas: Schemas, lists: set[str]) -> Json:
    operation = bound.operation
    about, scope = operation.about, operation.scope
    anything = operation.resource.needs or "Needs a valid key with any scopes."
    needs = f"Needs the scope `{scope}`." if scope else anything
    writes, model = operation.writes, operation.body
    taken = {"Idempotency-Key": writes, "Prefer": isinstance(operation.answer, Feed)}
    names = [*(name for name in taken if taken[name]), *operation.preconditions]
    shared = (ONLY_CREATES if name == "If-None-Match" and operation.upserts else name for name in sorted(names))
    headers = [{"$ref": f"#/components/parameters/{name}"} for name in shared]
    content = {"application/json": {"schema": schemas.body(model, operation.use)}} if model else {}
    if model and operation.resource.takes_files:
        content[FORM] = {"schema": schemas.form(model)}
    reasons = {
        404: (operation.parameters and not operation.upserts) or operation.batched,
        405: operation.batched,
        406: bool(bound.media_types_of_others or operation.representations),
        409: writes,
        410: isinstance(operation.answer, Feed),
        412: operation.target is not None or operation.batched,
        415: model is not None,
    }
    refused = [status for status in refusals.ADVICE if reasons.get(status, True)]
    return {
        "operationId": operation.id,
        "tags": [operation.resource.tag],
        "summary": about.splitlines()[0].removesuffix(".").replace("`", ""),
        "description": f"{about}\n\n{needs}",
        "x-required-scope": scope,
        "security": [{scheme: [scope] if scope else []} for scheme in ("bearer", "apiKey")],
        "parameters": [*_path_parameters(operation, lists, schemas), *_query_parameters(bound, schemas), *headers],
        **({"requestBody": {"required": True, "content": content}} if content else {}),
        "responses": responses | {str(status): refusals.reference(status) for status in refused},
    }


def answers_of(bound: Bound, schemas: Schemas) -> Json:
    operation = bound.operation
    created = operation.created
    is_record = isinstance(operation.answer, One) and operation.answer.is_record
    carried = {"ETag": is_record, "Location": is_record and created, "Idempotency-Replayed": operation.writes}
    carried |= {"Preference-Applied": isinstance(operation.answer, Feed)}
    carried |= {"Content-Disposition": bool(operation.representations)}
    headers = {"headers": always_and([name for name in carried if carried[name]])}
    unchanged: Json = {"304": {"description": "The record still has the ETag that was sent.", **headers}}
    if isinstance(operation.answer, Nothing):
        return {"204": {"description": "Done; the response has no body.", **headers}}
    schema = _whole_or_partial(bound, schemas)
    done = "The record was created." if created else "The current record." if is_record else "The result."
    content = {"application/json": {"schema": schema}}
    for form in operation.representations:
        content[form.media_type] = {"schema": {"type": "string", "format": "binary"}}
    success = {"201" if created else "200": {"description": done, **headers, "content": content}}
    if operation.upserts:
        located = {"headers": always_and([*(name for name in carried if carried[name]), "Location"])}
        success["201"] = {"description": "The record was created.", **located, "content": content}
    return success | (unchanged if operation.answer.reads and not operation.paged else {})


def _whole_or_partial(bound: Bound, schemas: Schemas) -> Json:
    answer = bound.operation.answer
    if isinstance(answer, One):
        made = partial(schemas.response, answer.model, answer.meta)
    else:
        made = partial(schemas.page, answer.hint)
    whole = made(is_partial=False)
    return {"anyOf": [whole, made(is_partial=True)]} if bound.selectable else whole


def share(operations: list[Json]) -> Json:
    inline = [
        (json.dumps(parameter), parameter)
        for operation in operations
        for parameter in operation["parameters"]
        if "$ref" not in parameter
    ]
    counts = Counter(text for text, _ in inline)
    shared: Json = {}
    for text, parameter in inline:
        if counts[text] > 1:
            shared.setdefault(parameter["name"], parameter)
    for operation in operations:
        operation["parameters"] = [
            {"$ref": f"#/components/parameters/{parameter['name']}"}
            if parameter == shared.get(parameter.get("name"))
            else parameter
            for parameter in operation["parameters"]
        ]
    return shared


def _path_parameters(operation: Operation, lists: set[str], schemas: Schemas) -> list[Json]:
    parameters = []
    if "external_id" in operation.parameters:
        noun = noun_of(operation.resource.table)
        description = f"The `external_id` of the {noun}, percent-encoded. One with a slash cannot be in a path."
        schema = schemas.schema_of(Code191, "external_id", sent=True)
        return [{"name": "external_id", "description": description, "schema": schema, "in": "path", "required": True}]
    for name in operation.parameters:
        path, _, rest = operation.path.partition(f"/{{{name}}}")
        parent_table = operation.resource.parent
        table = parent_table if rest and parent_table is not None else operation.resource.table
        parent, _, children = path.rpartition("/")
        source = f"`id` in {path}" if path in lists else f"`id` in the `{children}` of {parent}"
        description = f"The id of the {noun_of(table)}, as {source}."
        place = {"in": "path", "required": True}
        parameters.append({"name": name, "description": description, "schema": schemas.schema_of(Id, name), **place})
    return parameters


def noun_of(table: Table | None) -> str:
    return "record" if table is None else singular(table)


def _query_parameters(bound: Bound, schemas: Schemas) -> list[Json]:
    operation = bound.operation
    model, table = operation.query, operation.resource.table
    parameters = [*(_paging(operation, schemas) if operation.paged else ()), *_selection(bound, schemas)]
    defaults = {field.name: field.default for field in msgspec.structs.fields(model) if field.default is not None}
    for name, parameter in query.parameters(model).items():
        field = parameter.field
        description = parameter.description or (parameter.where.description if operation.paged else "")
        if name == "q" and table is not None and "search" in folds(table):
            description = description.format(searched=_listed(folds(table)["search"][0]))
        if not description:
            schemas.undescribed.append(f"{model.__module__}.{model.__name__}.{field}")
        default = {"default": defaults[field]} if field in defaults else {}
        parameters.append(_query_parameter(name, description, parameter.hint, schemas, **default))
    return parameters


def _paging(operation: Operation, schemas: Schemas) -> list[Json]:
    sorts, is_summed = operation.query.sorts, isinstance(operation.answer, SummedList)
    keys = list(dict.fromkeys([*(name.removeprefix("-") for name in sorts), "id"]))
    words = tuple(sign + name for name in keys for sign in ("", "-"))
    listed = operation.answer.model
    names = [
        name + end for name in keys for end in ("", "_descending")
    ]  # for generated code, where -name is not a valid name
    about = Meta(title=f"{listed.__name__}Sort", description=SORT_KEY, extra_json_schema={"x-enum-varnames": names})
    order = _words(words, about)
    default = {"maxItems": len(keys), "default": [sorts[0]]}
    return [
        _query_parameter("page", description_of(PAGE), PAGE, schemas, default=1),
        _query_parameter("per_page", description_of(PER_PAGE), PER_PAGE, schemas, default=paging.PER_PAGE),
        _query_parameter("sort", SORT, order, schemas, **default),
        {"name": "cursor", "description": CURSOR, "schema": {"type": "string"}, "in": "query"},
        *([_query_parameter("totals", TOTALS, bool, schemas, default=False)] if is_summed else []),
    ]


def _selection(bound: Bound, schemas: Schemas) -> list[Json]:
    """Return `include`, if there is something to include, and `fields`; lists of some records have more or less."""
    selectable, model = bound.selectable, bound.operation.answer.reads
    if selectable is None or model is None:
        return []
    owner = f"{model.__name__}{'List' if selectable.is_list and selectable.parts else ''}"
    included = _words(selectable.names, Meta(title=f"{owner}Include"))
    fields = _words(selectable.fields, Meta(title=f"{owner}Field"))
    parts = IN_LISTS if selectable.is_list else IN_RECORDS
    about = f"{INCLUDE} {parts.format(_listed(selectable.parts))}" if selectable.parts else INCLUDE
    return [
        *([_query_parameter("include", about, included, schemas)] if selectable.names else []),
        _query_parameter("fields", FIELDS, fields, schemas),
    ]


def _words(words: tuple[str, ...], about: Meta) -> Any:
    word: Any = Literal[words]
    return tuple[Annotated[word, about], ...]


def _query_parameter(name: str, description: str, hint: Any, schemas: Schemas, **more: object) -> Json:
    schema = schemas.schema_of(hint, name, sent=True) | more
    commas = {"style": "form", "explode": False} if get_origin(hint) is tuple else {}
    description = " ".join(filter(None, (description, schema.pop("description", ""))))
    return {"name": name, "description": description, "schema": schema, "in": "query", **commas}


def _listed(names: tuple[str, ...]) -> str:
    """Return names as a list in a sentence: `a`, `b` or `c`."""
    *most, last = (f"`{name}`" for name in names)
    return f"{', '.join(most)} or {last}" if most else last
