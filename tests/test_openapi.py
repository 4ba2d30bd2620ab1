import itertools
import random
import re
from typing import Annotated

import msgspec
import pytest
from jsonschema_rs import Draft202012Validator
from openapi_spec_validator import validate

from retainer.api import RESOURCES
from retainer.errors import STATUS
from retainer.kernel.paging import ListPage, Page, PageMeta
from retainer.kernel.query import Filter
from retainer.kernel.resource import Resource
from retainer.kernel.routes import Routes
from retainer.kernel.uploads import FORM
from retainer.openapi import document as openapi
from retainer.openapi.schemas import Schemas
from retainer.schema.filters import Where
from retainer.store.tx import Tx
from retainer.values.records import Record
from tests.contract.cases import kinds
from tests.contract_checker import resolved
from tests.length import length

ROUTES = Routes(RESOURCES)
OPERATIONS = ROUTES.operations
WITH_BODY = [operation for operation in OPERATIONS if operation.body]
DOCUMENT = openapi.document(ROUTES.bound.values(), "https://retainer.example/api/public/v1")
SCHEMAS = DOCUMENT["components"]["schemas"]
MODELS = {name: schema for name, schema in SCHEMAS.items() if schema["type"] == "object"}
PARTIAL_RECORDS = [name for name in MODELS if name.startswith("Partial") and "id" in MODELS[name]["properties"]]


def described(operation):
    return DOCUMENT["paths"][operation.path][operation.method.lower()]


def sent(operation_id, media_type="application/json"):
    """The input schema of an operation."""
    operation = next(operation for operation in OPERATIONS if operation.id == operation_id)
    schema = described(operation)["requestBody"]["content"][media_type]["schema"]
    return SCHEMAS[schema["$ref"].rpartition("/")[2]]


FORMS = [sent(operation.id, FORM) for operation in WITH_BODY if operation.resource.takes_files]


def objects(value):
    """Every object schema inside a value."""
    if isinstance(value, dict):
        if value.get("type") == "object" and "properties" in value:
            yield value
        for inner in value.values():
            yield from objects(inner)


def test_the_document_is_valid_openapi():
    validate(DOCUMENT)


def test_every_operation_is_described_and_nothing_else():
    assert {(path, method.upper()) for path, methods in DOCUMENT["paths"].items() for method in methods} == {
        (operation.path, operation.method) for operation in OPERATIONS
    }


def test_an_operation_says_what_it_does_what_it_needs_and_how_it_refuses():
    for operation in OPERATIONS:
        says_what_it_does_what_it_needs_and_how_it_refuses(operation, described(operation))


def says_what_it_does_what_it_needs_and_how_it_refuses(operation, spec):
    assert spec["summary"]
    assert not spec["summary"].endswith(".")
    assert spec["x-required-scope"] == operation.scope
    assert operation.scope is None or f"`{operation.scope}`" in spec["description"]
    scopes = [] if operation.scope is None else [operation.scope]
    assert spec["security"] == [{"bearer": scopes}, {"apiKey": scopes}]
    assert {"400", "401", "402", "403", "413", "422", "429", "500", "501", "503"} <= spec["responses"].keys()
    is_in_path = "{" in operation.path and not operation.upserts
    acts_on_one = operation.writes and "{" in operation.path
    assert ("404" in spec["responses"]) == (is_in_path or operation.batched)
    assert ("405" in spec["responses"]) == operation.batched
    assert ("409" in spec["responses"]) == operation.writes
    assert ("412" in spec["responses"]) == (acts_on_one or operation.batched)
    assert ("requestBody" in spec) == ("415" in spec["responses"]) == (operation.body is not None)
    assert operation.body is not None or operation.method not in {"PUT", "PATCH"}


def test_every_response_has_the_limits_and_the_request_id():
    for response in itertools.chain(*(described(operation)["responses"].values() for operation in OPERATIONS)):
        name = response.get("$ref", "").rpartition("/")[2]
        headers = (DOCUMENT["components"]["responses"][name] if name else response)["headers"]
        assert {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Request-Id"} <= headers.keys()


def test_every_code_that_an_operation_can_refuse_with_has_an_example():
    shown = set()
    for response in DOCUMENT["components"]["responses"].values():
        shown |= response["content"]["application/json"]["examples"].keys()
    assert shown == STATUS.keys()


def test_bodies_are_closed_and_responses_open():
    taken = [schema for operation in WITH_BODY for schema in reached(sent(operation.id))]
    assert len(taken) > len(WITH_BODY)
    for schema in taken:
        assert schema["additionalProperties"] is False
        assert schema["examples"]
    assert [form["additionalProperties"] for form in FORMS] == [False]
    for schema in objects(DOCUMENT["components"]):
        assert "additionalProperties" not in schema or schema in taken + FORMS


def test_parameters_of_paths_have_names_that_generated_clients_do_not_use():
    names = {name for operation in OPERATIONS for name in operation.parameters}
    assert len(names) > 10
    assert [name for name in names if not name.endswith("_id")] == []


def enumerations(value, where=""):
    """Every enumeration in a document: where it stands, and its words."""
    if isinstance(value, list):
        for place, inner in enumerate(value):
            yield from enumerations(inner, f"{where}/{place}")
    elif isinstance(value, dict):
        if isinstance(value.get("enum"), list):
            yield where, tuple(value["enum"])
        for key, inner in value.items():
            if key not in {"example", "examples"}:
                yield from enumerations(inner, f"{where}/{key}")


def test_each_enumeration_is_one_named_schema():
    found = dict(enumerations(DOCUMENT))
    named = {f"/components/schemas/{name}": schema for name, schema in SCHEMAS.items() if "enum" in schema}
    assert sorted(found.keys() - named.keys()) == []
    assert len(named) > 40
    meant = [words for name, words in found.items() if not name.endswith(("Include", "Sort"))]  # some records are alike
    assert len(set(meant)) == len(meant)
    assert {schema["type"] for schema in named.values()} == {"string"}
    assert SCHEMAS["ClientStatus"]["enum"] == ["prospect", "active", "archived"]
    reference = {"$ref": "#/components/schemas/Priority"}
    for name in ("Task", "TicketUpdate"):
        assert SCHEMAS[name]["properties"]["priority"].items() > reference.items()
    assert SCHEMAS["Ticket"]["properties"]["awaiting"]["anyOf"] == [
        {"$ref": "#/components/schemas/TicketAwaiting"},
        {"type": "null"},
    ]


def test_bodies_of_a_batch_are_any_objects():
    for name in ("BatchOperation", "BatchResult"):
        assert (
            SCHEMAS[name]["properties"]["body"].items()
            >= {"additionalProperties": True, "type": ["object", "null"]}.items()
        )
    assert SCHEMAS["BatchOperation"]["examples"] == [
        {"method": "POST", "path": "/clients", "body": {"name": "Nordwind Logistics"}}
    ]


def test_what_has_one_use_has_no_example():
    """A tool that sends examples would send the same key, ETag or cursor each time."""
    for name in ("Idempotency-Key", "If-Match", "If-None-Match", "cursor"):
        assert "examples" not in DOCUMENT["components"]["parameters"][name]["schema"]


def test_an_upsert_can_only_be_conditional_on_there_being_none():
    upserts = [operation for operation in OPERATIONS if operation.upserts]
    assert upserts
    for operation in upserts:
        assert {"$ref": "#/components/parameters/If-None-Match-Any"} in described(operation)["parameters"]
    assert DOCUMENT["components"]["parameters"]["If-None-Match-Any"]["schema"] == {
        "$ref": "#/components/schemas/AnyETag"
    }
    assert SCHEMAS["AnyETag"]["enum"] == ["*"]


@pytest.mark.parametrize("name", ["include", "fields"])
def test_a_selection_has_as_many_names_as_its_schema_allows(api, name):
    word = {"include": "client", "fields": "number"}[name]
    (schema,) = [each["schema"] for each in described_list() if each.get("name") == name]
    assert api.get("/invoices", {name: ",".join([word] * schema["maxItems"])}).status == 200
    refused = api.get("/invoices", {name: ",".join([word] * (schema["maxItems"] + 1))})
    assert refused.status == 422
    assert "at most 100 names; this has 101" in refused.json["errors"][name][0]


def described_list():
    return [resolved(each) for each in DOCUMENT["paths"]["/invoices"]["get"]["parameters"]]


def schemas_within(value):
    """Every schema with a type inside a value."""
    if isinstance(value, dict):
        if "type" in value:
            yield value
        for inner in value.values():
            yield from schemas_within(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from schemas_within(inner)


def reached(schema):
    """An input schema, and those of the parts that can be sent within it."""
    yield schema
    for field in schema["properties"].values():
        inner = [field, field.get("items", {}), *field.get("anyOf", ())]
        for part in (SCHEMAS[one["$ref"].rpartition("/")[2]] for one in inner if "$ref" in one):
            if "readOnly" not in field and "properties" in part:
                yield from reached(part)


ON_REQUEST = {
    "PageMeta": ["totals"],
    "Page": ["included"],
    "Response": ["included"],
    "InvoiceSummary": ["lines", "payments", "credit_notes"],
    "QuoteSummary": ["lines"],
    "SiteSummary": ["plugins"],
}
"""What comes only if a request asks for it, by the end of the model's name."""


def without_texts(properties):
    return {
        name: {keyword: value for keyword, value in schema.items() if keyword not in {"description", "examples"}}
        for name, schema in properties.items()
    }


def test_fields_of_responses_are_required_and_those_of_bodies_only_without_default():
    taken = FORMS + [schema for operation in WITH_BODY for schema in reached(sent(operation.id))]
    answered = {name: schema for name, schema in MODELS.items() if schema not in taken}
    for name in PARTIAL_RECORDS:
        partial, whole = answered.pop(name), MODELS[name.removeprefix("Partial")]
        assert (partial["required"], partial["properties"]) == (["id"], without_texts(whole["properties"]))
    for name, schema in answered.items():
        asked = next((asked for end, asked in ON_REQUEST.items() if name.endswith(end)), [])
        asked = [field for field in asked if field in schema["properties"]]
        assert name.endswith(("Error", "Included")) or [*schema["required"], *asked] == list(schema["properties"])
    assert {"Invoice", "InvoiceSummary", "InvoiceLine", "Payment", "Plugin", "PageMeta"} < answered.keys()
    assert SCHEMAS["RecordPayment"]["required"] == SCHEMAS["InvoiceLineCreate"]["required"] == []
    assert SCHEMAS["QuoteLineCreate"]["required"] == ["description", "unit_price"]
    assert SCHEMAS["PluginCreate"]["required"] == ["slug"]


def test_a_response_that_fields_can_limit_is_whole_or_partial():
    for operation in OPERATIONS:
        names = [resolved(parameter)["name"] for parameter in described(operation)["parameters"]]
        schema = (
            described(operation)["responses"]
            .get("200", {})
            .get("content", {})
            .get("application/json", {})
            .get("schema")
        )
        assert ("fields" in names) == (schema is not None and "anyOf" in schema), operation
        if "fields" in names:
            whole, partial = (choice["$ref"].rpartition("/")[2] for choice in schema["anyOf"])
            assert partial == f"Partial{whole}"


def test_what_is_sent_has_no_default_since_generated_clients_would_demand_it():
    for operation in WITH_BODY:
        for schema in reached(sent(operation.id)):
            assert not [name for name, field in schema["properties"].items() if "default" in field]
    assert "Defaults to `active`." in sent("createClient")["properties"]["status"]["description"]
    assert "Defaults" not in sent("updateClient")["properties"]["status"]["description"]


def test_what_the_server_fills_in_may_be_left_out_but_is_always_answered():
    assert SCHEMAS["ClientCreate"]["properties"]["currency"]["type"] == ["string", "null"]
    assert SCHEMAS["Client"]["properties"]["currency"]["type"] == "string"


def test_an_exact_decimal_is_a_string_in_responses_and_in_requests(api):
    for name in ("Client", "ClientCreate", "ClientUpdate"):
        assert SCHEMAS[name]["properties"]["hourly_rate"]["type"] == ["string", "null"]
    patterns = [
        schema
        for schema in schemas_within(DOCUMENT["components"]["schemas"])
        if "[0-9]{1,4}" in str(schema.get("pattern"))
    ]
    assert len(patterns) > 30
    assert {kind for schema in patterns for kind in kinds(schema)} == {"string", "null"}
    assert api.post("/clients", {"name": "Nordlicht Verlag", "hourly_rate": 95.5}).data["hourly_rate"] == "95.50"


def test_a_create_requires_what_has_no_default_and_an_update_nothing():
    assert sent("createClient")["required"] == ["name"]
    assert sent("updateClient")["required"] == []
    assert sent("replaceClient") is sent("updateClient")


def test_read_only_members_may_be_sent_back():
    assert sent("updateClient")["properties"]["contacts_count"]["readOnly"] is True
    assert "readOnly" not in sent("updateClient")["properties"]["name"]


def test_a_comma_list_has_its_bounds_and_its_values():
    spec = described(next(operation for operation in OPERATIONS if operation.id == "listClients"))
    parameters = {parameter["name"]: parameter for parameter in map(resolved, spec["parameters"])}
    assert parameters["status"]["explode"] is False
    assert parameters["status"]["schema"]["maxItems"] == 100
    assert parameters["status"]["schema"]["items"] == {"$ref": "#/components/schemas/ClientStatus"}
    assert parameters["sort"]["schema"]["default"] == ["name"]
    assert set(resolved(parameters["sort"]["schema"]["items"])["enum"]) >= {"name", "-name", "id", "-id"}


def test_operations_are_named_by_what_they_do():
    ids = [operation.id for operation in OPERATIONS]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z]+([A-Z][a-z]*)+", name) for name in ids)
    client = {described(operation)["operationId"] for operation in OPERATIONS if operation.path.startswith("/clients")}
    assert client == {
        *("listClients", "createClient", "getClient", "updateClient", "replaceClient", "deleteClient", "upsertClient"),
        *("getClientByExternalId", "updateClientByExternalId", "deleteClientByExternalId", "getUnbilledWorkOfClient"),
    }


def test_two_types_of_one_name_do_not_pass_for_one_another():
    schemas = Schemas()
    schemas.answer(PageMeta)
    with pytest.raises(TypeError, match="rename one"):
        schemas.answer(type("PageMeta", (msgspec.Struct,), {}))


# Errors


def test_each_error_is_named_once_and_every_refusal_refers_to_one():
    errors = {name for name, schema in MODELS.items() if "code" in schema["properties"] and name.endswith("Error")}
    assert errors == {"Error", "PlanError", "ForbiddenError", "ValidationError"}
    codes = [code for name in errors for code in SCHEMAS[f"{name}Code"]["enum"]]
    assert sorted(codes) == sorted(STATUS)
    for operation in OPERATIONS:
        for status, response in described(operation)["responses"].items():
            if status >= "400":
                assert response == {"$ref": f"#/components/responses/Error{status}"}
    for name, response in DOCUMENT["components"]["responses"].items():
        content = response["content"]["application/json"]
        refused = SCHEMAS[content["schema"]["$ref"].rpartition("/")[2]]
        assert {STATUS[code] for code in content["examples"]} == {int(name.removeprefix("Error"))}
        for code, example in content["examples"].items():
            assert example["value"]["code"] == code
            assert set(refused["required"]) <= example["value"].keys() <= refused["properties"].keys()


def test_members_of_an_error_that_some_codes_do_not_have_are_not_required():
    fields = ["message", "code", "request_id", "docs_url"]
    assert SCHEMAS["Error"]["required"] == fields
    assert list(SCHEMAS["Error"]["properties"]) == [*fields, "operation"]
    assert SCHEMAS["PlanError"]["required"] == [*fields, "plan"]
    assert SCHEMAS["ForbiddenError"]["required"] == fields
    assert SCHEMAS["ValidationError"]["required"] == [*fields, "errors"]


def test_the_form_of_an_idempotency_key_is_documented():
    schema = DOCUMENT["components"]["parameters"]["Idempotency-Key"]["schema"]
    assert (schema["pattern"], schema["minLength"], schema["maxLength"]) == ("^[!-~]{1,255}$", 1, 255)


# Words

FILLING = {
    *("a", "an", "and", "at", "by", "filter", "filters", "for", "has", "here", "in", "is", "it", "its", "of", "on"),
    *("only", "record", "records", "that", "the", "their", "these", "this", "to", "value", "was", "when", "which"),
}
"""Words that tell nothing by themselves."""


def bare_words(text):
    """The words of a text that tell something, without case and without the ending of the plural."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    return {word.removesuffix("s") for word in re.findall(r"[a-z0-9]+", spaced.casefold()) if word not in FILLING}


def repeats(name, description):
    """Whether a description says no more than the name."""
    return bare_words(description) <= bare_words(name)


def named_things(value, where=""):
    """Everything in a document that has a name: where it stands, the name, and what it is said to be."""
    if isinstance(value, list):
        for place, inner in enumerate(value):
            yield from named_things(inner, f"{where}/{place}")
    elif isinstance(value, dict):
        if {"name", "in"} <= value.keys():
            yield where, value["name"], value.get("description", "")
        for group in ("properties", "schemas", "headers", "responses"):
            for name, inner in value.get(group, {}).items() if isinstance(value.get(group), dict) else ():
                if "$ref" not in inner or group == "properties":
                    yield f"{where}/{group}/{name}", name, inner.get("description", "")
        for key, inner in value.items():
            if key not in {"example", "examples", "if", "then", "else"}:
                yield from named_things(inner, f"{where}/{key}")


def test_everything_is_described_by_more_than_its_name():
    partial = {f"/components/schemas/{name}/properties" for name in PARTIAL_RECORDS}  # whole records describe them
    found = [thing for thing in named_things(DOCUMENT) if thing[0].rpartition("/")[0] not in partial]
    assert len(found) > 1000
    assert [f"{where}: {text!r}" for where, name, text in found if repeats(name, text)] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("billable", ""),
        ("billable", "Billable."),
        ("client_id", "Filters by client id."),
        ("client_id", "The id of the client."),
        ("sent_at", "When it was sent."),
        ("tasks_count", "The count of tasks."),
        ("InvoiceLine", "An invoice line."),
    ],
)
def test_a_description_that_only_repeats_the_name_is_seen(name, text):
    assert repeats(name, text)


class Untold(Record):
    """Says what one of its members means."""

    expected: Annotated[str, "What somebody said."]
    untold: str


class UntoldFilter(Filter):
    """Has a filter that nothing is said of; what its operator says is enough for the other."""

    flagged: bool | None = None
    odd: Annotated[bool | None, Where(lambda table, yes: table.c.odd == yes)] = None


def test_a_declaration_that_does_not_say_what_it_means_is_named():
    api = Resource("/untold", tag="Untold", scope=None)

    @api.get()
    def list_untold(tx: Tx, only: UntoldFilter, page: Page) -> ListPage[Untold]:
        """List what is untold."""
        raise NotImplementedError

    with pytest.raises(TypeError, match=r": tests\.test_openapi\.Untold\.untold, .*\.UntoldFilter\.odd\.$"):
        openapi.document(Routes([api]).bound.values(), "https://retainer.example")


def test_a_body_is_valid_by_its_schema_if_and_only_if_the_server_takes_it(api):
    """Where fields are needed unless others are sent, or a new record refuses a word that a changed one may have."""
    client = api.make("/clients")
    invoice = api.make("/invoices", client_id=client["id"], lines=[{"description": "a", "unit_price": "9"}])
    api.patch(f"/invoices/{invoice['id']}", {"status": "sent"})
    of_invoice = {"invoice_line_id": invoice["lines"][0]["id"], "quantity": "0.1"}
    project = api.make("/projects", client_id=client["id"], hourly_rate="10")
    entry = api.post("/time-entries", {"project_id": project["id"], "duration_minutes": 60}).data
    line, free = {"description": "a", "unit_price": "9"}, {"description": "b", "unit_price": "1"}
    url = {"url": "https://example.com/hooks"}
    bodies = {
        "/projects": [{}, {"name": "a"}, {"code": "b"}, {"quote_id": None}, {"quote_id": None, "name": "a"}],
        "/invoices": [{}, {"client_id": client["id"]}, {"quote_id": None}, {"subject": "a"}],
        "/external-contacts": [{}, {"email": "a@x.example"}, {"last_name": "a"}, {"first_name": None}],
        "/quotes": [{}, {"client_id": client["id"]}],
        "/webhooks": [{**url, "status": status} for status in ("active", "paused", "disabled")],
    }
    worked = {"project_id": project["id"], "duration_minutes": 5}
    times = {"started_at": "2026-03-02T09:00:00Z", "ended_at": "2026-03-02T09:05:00Z"}
    bodies["/time-entries"] = [
        *({}, worked, times, {"duration_minutes": 5}, {"project_id": project["id"], **times}),
        *({"client_id": client["id"], "duration_minutes": 5}, {"project_id": None, "duration_minutes": 5}),
        *({"project_id": project["id"]}, {**worked, "duration_minutes": None}, {**worked, **times}),
        *({**worked, **times, "duration_minutes": None}, {**worked, "client_id": None}),
        *({"project_id": project["id"], "started_at": each} for each in (times["started_at"], None)),
        {"project_id": project["id"], **times, "ended_at": None},
    ]
    lines = [{}, line, {"description": "a"}, {"unit_price": "9"}, {**line, "description": None}]
    bodies["/quotes"] += [{"client_id": client["id"], "lines": [each]} for each in lines]
    lines += [{"time_entry_ids": []}, {"milestone_id": None}, {"time_entry_ids": [entry["id"]]}]
    bodies["/invoices"] += [{"client_id": client["id"], "lines": [each]} for each in lines]
    bodies["/invoices/{invoice_id}/credit-notes"] = [
        {"lines": [each]} for each in ({}, of_invoice, {"description": "b"}, free)
    ]
    taken = {}
    for path, sent_bodies in bodies.items():
        (operation,) = [each for each in WITH_BODY if (each.method, each.path) == ("POST", path)]
        schema = described(operation)["requestBody"]["content"]["application/json"]["schema"]
        check = Draft202012Validator({**schema, "components": {"schemas": SCHEMAS}})
        for body in sent_bodies:
            answer = api.post(path.format(invoice_id=invoice["id"]), body)
            taken[path, str(body)] = (answer.status == 201, check.is_valid(body))
    assert {body: found for body, found in taken.items() if found[0] != found[1]} == {}
    assert set(taken.values()) == {(True, True), (False, False)}


def random_bodies(operation, count):
    """Bodies that are valid by their schema, each with some of the fields and the examples of these."""
    schema = described(operation)["requestBody"]["content"]["application/json"]["schema"]
    check = Draft202012Validator({**schema, "components": {"schemas": SCHEMAS}})
    (example,) = SCHEMAS[schema["$ref"].rpartition("/")[2]]["examples"]
    chosen = random.Random(operation.id)
    while count:
        body = {name: chosen.choice([value, None]) for name, value in example.items() if chosen.random() < 0.5}
        if check.is_valid(body):
            count -= 1
            yield body


CREATES = [each for each in WITH_BODY if each.created and not each.parameters]


@pytest.mark.parametrize("operation", CREATES, ids=str)
def test_a_body_that_is_valid_by_its_schema_lacks_nothing(api, operation):
    found = {}
    for body in random_bodies(operation, length(60)):
        answer = api.call("POST", operation.path, body)
        errors = answer.json.get("errors", {})
        found |= {str(body): field for field, messages in errors.items() if "required" in str(messages)}
    assert found == {}
