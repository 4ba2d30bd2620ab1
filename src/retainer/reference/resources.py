"""Resources: the content of their pages, from the declarations, the OpenAPI document and the examples."""

from typing import Any, NamedTuple, get_args

from retainer.kernel.resource import Operation
from retainer.kernel.routes import Routes
from retainer.openapi.values import Json
from retainer.reference.examples import Example, examples
from retainer.reference.markdown import slug
from retainer.reference.models import Field, Model, body_fields, kind_of, models_of, title_of, words_of

MAX_MODELS = 4
"""Models on the page of a resource. Of more, only the record stays there."""
EVERY_LIST = {"page", "per_page", "sort", "ids", "created_since", "created_before", "updated_since", "updated_before"}
"""The parameters that all lists share; the page on lists describes them."""
ELSEWHERE = EVERY_LIST | {"fields"}
"""The parameters that tables of operations leave out; the page on lists describes them."""
ALWAYS = {"400", "401", "402", "403", "429", "500", "503"}
"""The error statuses of all operations; the page on errors describes them."""
READING = {"validation_failed", "unknown_parameter"}
"""The codes of 422 for operations that only read."""
ONLY_IN = {
    "invalid_transition": {"Projects", "Quotes", "Invoices"},
    "locked": {"Projects", "Milestones", "Tasks", "Time entries", "Expenses", "Quotes", "Invoices", "Credit notes"},
    "already_billed": {"Invoices"},
    "nothing_to_bill": {"Invoices"},
    "not_owner": {"Time entries", "Expenses"},
}
"""The codes that only some resources have."""


class Entry(NamedTuple):
    """An operation on its page; `sorts` are the fields that a list can be sorted by."""

    title: str
    operation: Operation
    text: str
    parameters: list[Field]
    sorts: list[str]
    headers: list[str]
    body: str
    fields: list[Field]
    errors: dict[str, list[str]]
    example: Example

    @property
    def repeats(self) -> str:
        """What another operation is called that takes the same parameters and fields; empty for none."""
        if self.operation.upserts:
            return ""
        return "by id" if self.operation.by_id else "for PATCH" if self.operation.method == "PUT" else ""


class Resource(NamedTuple):
    """A resource: its description, its operations and models, and the `parts` of these on a page of their own."""

    title: str
    text: str
    entries: list[Entry]
    models: list[Model]
    parts: list[Model]

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


def resources_of(routes: Routes, document: Json) -> list[Resource]:
    found = []
    for tag in document["tags"]:
        operations = [operation for operation in routes.operations if operation.resource.tag == tag["name"]]
        answered = [hint for operation in operations for hint in answered_by(operation)]
        models = models_of(answered, [operation.body for operation in operations])
        text = tag["description"].removeprefix(f"{tag['name']}: ")
        entries = [entry(each, document) for each in operations]
        kept = len(models) if len(models) <= MAX_MODELS else 1
        found.append(Resource(tag["name"], text[0].upper() + text[1:], entries, models[:kept], models[kept:]))
    return found


def answered_by(operation: Operation) -> list[Any]:
    parts = get_args(operation.answers)
    return list(parts or [operation.answers])


def entry(operation: Operation, document: Json) -> Entry:
    described = document["paths"][operation.path][operation.method.lower()]
    parameters = [resolved(parameter, document) for parameter in described["parameters"]]
    refusals = {status: codes_of(answer, document) for status, answer in described["responses"].items()}
    refusals = {status: codes for status, codes in refusals.items() if codes and status not in ALWAYS}
    refusals["422"] = [code for code in refusals["422"] if may_have(operation, code)]
    return Entry(
        title_of(operation.id),
        operation,
        described["description"].rpartition("\n\n")[0],
        [
            parameter_of(each, document)
            for each in parameters
            if each["in"] != "header" and each["name"] not in ELSEWHERE
        ],
        list(dict.fromkeys(name.removeprefix("-") for name in operation.query.sorts)) if operation.paged else [],
        [each["name"] for each in parameters if each["in"] == "header"],
        title_of(operation.body.__name__) if operation.body else "",
        body_fields(operation.body, is_new=operation.use == "Create") if operation.body else [],
        refusals,
        examples().operations[operation.id],
    )


def may_have(operation: Operation, code: str) -> bool:
    if not operation.writes:
        return code in READING
    if code == "in_use" and operation.method != "DELETE":
        return False
    return operation.resource.tag in ONLY_IN.get(code, {operation.resource.tag})


def codes_of(answer: Json, document: Json) -> list[str]:
    content = resolved(answer, document).get("content", {"application/json": {}})
    return list(content["application/json"].get("examples", {}))


def parameter_of(parameter: Json, document: Json) -> Field:
    schema = parameter["schema"]
    item = resolved(schema.get("items", schema), document)
    use = "in the path" if parameter["in"] == "path" else "several" if "items" in schema else ""
    text = " ".join(filter(None, (parameter["description"], words_of(item))))
    return Field(parameter["name"], kind_of(item), use, text)


def resolved(node: Json, document: Json) -> Json:
    while "$ref" in node:
        found: Any = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        node = found
    return node
