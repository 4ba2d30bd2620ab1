"""Resources: the content of their pages, with models and fields, from the OpenAPI document and the examples."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, get_args

import msgspec

from retainer.kernel.resource import Operation
from retainer.kernel.routes import Routes
from retainer.openapi.headers import Json
from retainer.openapi.schemas import fields_of
from retainer.reference.examples import Example, examples
from retainer.reference.markdown import slug
from retainer.values.kinds import MAX_INTEGER
from retainer.values.reading import unwrapped

FORMATS = {"date": "day", "date-time": "instant", "email": "email", "uri": "URL", "decimal": "decimal"}
UPPER = re.compile(r"(?<=[a-z])(?=[A-Z])")
USES = ("Create", "Upsert", "Update")
"""The ends of the names of schemas of a model in request bodies; the first that has a field describes it."""

NOWHERE: Json = {"properties": {}, "required": []}
MAX_MODELS = 4
"""Models on the page of a resource. Of more, only the record stays there."""
EVERY_LIST = {"page", "per_page", "sort", "ids", "created_since", "created_before", "updated_since", "updated_before"}
"""The parameters that all lists share; the page on lists describes them."""
ELSEWHERE = EVERY_LIST | {"fields"}
"""The parameters that tables of operations leave out; the page on lists describes them."""
ALWAYS = {"400", "401", "402", "403", "406", "413", "429", "500", "501", "503"}
"""The error statuses of all operations; the page on errors describes them."""
READING = {"validation_failed", "unknown_parameter"}
"""The codes of 422 for operations that only read."""
ONLY_IN = {
    "invalid_transition": {"Projects", "Quotes", "Invoices"},
    "locked": {
        *("Projects", "Milestones", "Tasks", "Time entries", "Expenses", "Quotes", "Invoices", "Credit notes"),
        *("Client links", "Files", "Webhooks"),
    },
    "already_billed": {"Invoices"},
    "nothing_to_bill": {"Invoices"},
    "not_owner": {"Tasks", "Time entries", "Expenses", "Files"},
    "mail_not_configured": {"Messages"},
}
"""The codes that only some resources have; a batch has those of all."""
FIXED_IN_USE = {"External contacts", "Sites"}
"""The resources whose client is fixed while other records refer to them."""


class DocumentedField(NamedTuple):
    """A field or a parameter: its kind, its use, and its description."""

    name: str
    kind: str
    use: str
    text: str


class DocumentedModel(NamedTuple):
    """An object with fields."""

    title: str
    text: str
    fields: list[DocumentedField]


class Entry(NamedTuple):
    """An operation on its page; `sorts` are the fields that a list can be sorted by."""

    title: str
    operation: Operation
    text: str
    parameters: list[DocumentedField]
    sorts: list[str]
    headers: list[str]
    is_selectable: bool
    """Whether requests can limit the fields of its records."""
    fields: list[DocumentedField]
    errors: dict[str, list[str]]
    example: Example

    @property
    def repeats(self) -> str:
        """What another operation is called that takes the same parameters and fields; empty for none."""
        if self.operation.upserts:
            return ""
        return "by id" if self.operation.by_id else "for PATCH" if self.operation.method == "PUT" else ""


class DocumentedResource(NamedTuple):
    """A resource: its description, its operations and models, and the `parts` of these on a page of their own."""

    title: str
    text: str
    entries: list[Entry]
    models: list[DocumentedModel]
    parts: list[DocumentedModel]

    @property
    def path(self) -> str:
        return f"/docs/api/{slug(self.title)}"

    @property
    def parts_path(self) -> str:
        return f"{self.path}/objects"

    def linked(self, text: str) -> str:
        """Return the text of a page, in which links to models lead to the page that has them."""
        for models, path in ((self.models, self.path), (self.parts, self.parts_path)):
            for model in models:
                text = text.replace(f"](#{slug(model.title)})", f"]({path}#{slug(model.title)})")
        return text

    @property
    def summary(self) -> str:
        return self.text.partition("\n\n")[0].replace("\n", " ")


def resources_of(routes: Routes, document: Json) -> list[DocumentedResource]:
    found = []
    for tag in document["tags"]:
        operations = [operation for operation in routes.operations if operation.resource.tag == tag["name"]]
        answered = [operation.answer.hint for operation in operations]
        in_answers = dict.fromkeys(walk(answered))
        in_bodies = dict.fromkeys(walk([operation.body for operation in operations]))
        models = [described(name, document, is_sent=name in in_bodies) for name in in_answers | in_bodies]
        text = tag["description"].removeprefix(f"{tag['name']}: ")
        entries = [entry(each, document) for each in operations]
        kept = len(models) if len(models) <= MAX_MODELS else 1
        found.append(DocumentedResource(tag["name"], text[0].upper() + text[1:], entries, models[:kept], models[kept:]))
    return found


def entry(operation: Operation, document: Json) -> Entry:
    described = document["paths"][operation.path][operation.method.lower()]
    parameters = [resolved(parameter, document) for parameter in described["parameters"]]
    headers = [each["name"] for each in parameters if each["in"] == "header"]
    others = [each for each in parameters if each["name"] not in ELSEWHERE.union(headers)]
    sorts = dict.fromkeys(name.removeprefix("-") for name in operation.query.sorts) if operation.paged else ()
    fields = []
    if operation.body:
        body = resolved(described["requestBody"]["content"]["application/json"]["schema"], document)
        for key, schema in writable(body).items():
            use = "required" if key in body["required"] else ""
            fields.append(field_of(key, schema, document, use, has_limits=True))
    refusals = {}
    for status, answer in described["responses"].items():
        content = resolved(answer, document).get("content", {}).get("application/json", {})
        codes = [code for code in content.get("examples", {}) if status != "422" or may_have(operation, code)]
        if codes and status not in ALWAYS:
            refusals[status] = codes
    return Entry(
        title_of(operation.id),
        operation,
        described["description"].rpartition("\n\n")[0],
        [parameter_of(each, document) for each in others],
        [*sorts],
        headers,
        any(each["name"] == "fields" for each in parameters),
        fields,
        refusals,
        examples().operations[operation.id],
    )


def may_have(operation: Operation, code: str) -> bool:
    if not operation.writes:
        return code in READING
    tag = operation.resource.tag
    if operation.batched:
        return True
    if code == "in_use":
        return operation.method == "DELETE" or (operation.method in {"PUT", "PATCH"} and tag in FIXED_IN_USE)
    return tag in ONLY_IN.get(code, {tag})


def parameter_of(parameter: Json, document: Json) -> DocumentedField:
    schema = parameter["schema"]
    use = "in the path" if parameter["in"] == "path" else "several" if "items" in schema else ""
    about = {"description": parameter["description"]}
    return field_of(parameter["name"], schema.get("items", schema) | about, document, use)


def resolved(node: Json, document: Json) -> Json:
    while "$ref" in node:
        found: Any = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        node = found
    return node


def walk(hints: Iterable[Any]) -> Iterator[str]:
    """Yield the names of the models in type hints, each once."""
    todo, seen = list(hints), set()
    while todo:
        bare, _ = unwrapped(todo.pop(0))
        if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
            if bare not in seen:
                seen.add(bare)
                yield bare.__name__
                todo += [field.hint for field in fields_of(bare)]
        else:
            todo += get_args(bare)


def described(name: str, document: Json, *, is_sent: bool) -> DocumentedModel:
    schemas = document["components"]["schemas"]
    answered, listed = schemas.get(name, NOWHERE), schemas.get(f"{name}Summary", NOWHERE)
    bodies = [schemas[name + use] for use in USES if name + use in schemas] or [answered] * is_sent
    written = {key: each for body in reversed(bodies) for key, each in writable(body).items()}
    required = {key for body in bodies for key in body["required"]} if is_sent else set()
    fields = []
    for key in answered["properties"] | written:
        returned = answered["properties"].get(key)
        use = "read-only" if is_sent and key not in written else "required" if key in required else ""
        use = "write-only" if not use and returned is None and answered["properties"] else use
        single = "not in lists" if key in listed["properties"] and key not in listed["required"] else ""
        shown = returned or written[key]
        about = {"description": written.get(key, shown).get("description")}
        fields.append(field_of(key, shown | about, document, ", ".join(filter(None, (use, single)))))
    return DocumentedModel(title_of(name), [*bodies, answered][0]["description"], fields)


def writable(body: Json) -> Json:
    return {key: schema for key, schema in body["properties"].items() if "readOnly" not in schema}


def field_of(name: str, schema: Json, document: Json, use: str, *, has_limits: bool = False) -> DocumentedField:
    text = " ".join(filter(None, (schema.get("description"), words_of(schema, document))))
    limits = limits_of(schema) if has_limits else ""
    return DocumentedField(name, ", ".join(filter(None, (kind_of(schema, document), limits))), use, text)


def limits_of(schema: Json) -> str:
    schema = schema["anyOf"][0] if "anyOf" in schema else schema
    for names, unit in (
        (("minLength", "maxLength"), " characters"),
        (("minItems", "maxItems"), " entries"),
        (("minimum", "maximum"), ""),
    ):
        low, high = (schema.get(name) for name in names)
        if high == MAX_INTEGER:
            return ""
        if high is not None:
            return f"{low} to {high}{unit}" if low else f"up to {high}{unit}"
        if low:
            return f"at least {low}{unit if low != 1 else unit.removesuffix('s')}"
    return ""


def kind_of(schema: Json, document: Json) -> str:
    if "anyOf" in schema:
        return f"{kind_of(schema['anyOf'][0], document)} or null"
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if "enum" in resolved(schema, document):
            return "string"
        title = title_of(re.sub(rf"^Record(?=Payment$)|({'|'.join(USES)})$", "", name))
        return f"[{title}](#{slug(title)})"
    kinds: list[str] = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "items" in schema:
        word = f"array of {kind_of(schema['items'], document)}"
    else:
        word = FORMATS.get(schema.get("format", ""), kinds[0])
    return f"{word} or null" if "null" in kinds else word


def words_of(schema: Json, document: Json) -> str:
    inner = resolved(schema["anyOf"][0] if "anyOf" in schema else schema, document)
    words = [f"`{word}`" for word in inner.get("enum", []) if word is not None]
    return f"One of {', '.join(words)}." if words else ""


def title_of(name: str) -> str:
    title = UPPER.sub(" ", name).capitalize()
    return re.sub("(?<=^Get )report (.+)", r"\1 report", title)
