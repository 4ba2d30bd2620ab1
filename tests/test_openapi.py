import re

import pytest
from openapi_spec_validator import validate

from retainer import openapi
from retainer.app import SLICES
from retainer.errors import STATUS
from retainer.kernel.resource import Routes

OPERATIONS = Routes(SLICES).operations
DOCUMENT = openapi.document(OPERATIONS, "https://retainer.example/api/public/v1")
SCHEMAS = DOCUMENT["components"]["schemas"]


def described(operation):
    return DOCUMENT["paths"][operation.path][operation.method.lower()]


def sent(operation_id):
    """The input schema of an operation."""
    operation = next(operation for operation in OPERATIONS if operation.id == operation_id)
    schema = described(operation)["requestBody"]["content"]["application/json"]["schema"]
    return SCHEMAS[schema["$ref"].rpartition("/")[2]]


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


@pytest.mark.parametrize("operation", OPERATIONS, ids=repr)
def test_an_operation_says_what_it_does_what_it_needs_and_how_it_refuses(operation):
    said = described(operation)
    assert said["summary"]
    assert not said["summary"].endswith(".")
    assert said["x-required-scope"] == operation.scope
    assert operation.scope is None or f"`{operation.scope}`" in said["description"]
    scopes = [] if operation.scope is None else [operation.scope]
    assert said["security"] == [{"bearer": scopes}, {"apiKey": scopes}]
    assert {"400", "401", "402", "403", "422", "429", "500", "503"} <= said["responses"].keys()
    assert ("404" in said["responses"]) == ("{" in operation.path)
    assert {"409", "413"} <= said["responses"].keys() or not operation.writes
    assert ("412" in said["responses"]) == (operation.method in {"PUT", "PATCH", "DELETE"})
    assert ("requestBody" in said) == ("415" in said["responses"]) == (operation.method in {"POST", "PUT", "PATCH"})


@pytest.mark.parametrize("operation", OPERATIONS, ids=repr)
def test_every_response_has_the_limits_and_the_request_id(operation):
    for response in described(operation)["responses"].values():
        name = response.get("$ref", "").rpartition("/")[2]
        headers = (DOCUMENT["components"]["responses"][name] if name else response)["headers"]
        assert {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Request-Id"} <= headers.keys()


def test_every_code_that_an_operation_can_refuse_with_has_an_example():
    shown = set()
    for response in DOCUMENT["components"]["responses"].values():
        shown |= response["content"]["application/json"]["examples"].keys()
    assert shown == STATUS.keys() - {"method_not_allowed"}


def test_objects_are_closed_and_have_an_example_and_words():
    for schema in objects(DOCUMENT["components"]):
        assert schema["additionalProperties"] is False
        assert schema["examples"]
        assert schema["description"]


def test_answers_are_complete():
    for name, schema in SCHEMAS.items():
        if not name.endswith(("Create", "Update")):
            assert schema["required"] == list(schema["properties"])


def test_what_the_server_fills_in_may_be_left_out_but_is_always_answered():
    assert SCHEMAS["ClientCreate"]["properties"]["currency"]["type"] == ["string", "null"]
    assert SCHEMAS["Client"]["properties"]["currency"]["type"] == "string"


def test_money_is_answered_as_a_string_and_read_from_a_number_too():
    assert SCHEMAS["Client"]["properties"]["hourly_rate"]["type"] == ["string", "null"]
    assert SCHEMAS["ClientCreate"]["properties"]["hourly_rate"]["type"] == ["string", "number", "null"]


def test_a_create_requires_what_has_no_default_and_an_update_nothing():
    assert sent("createClient")["required"] == ["name"]
    assert sent("updateClient")["required"] == []
    assert sent("replaceClient") is sent("updateClient")


def test_read_only_members_may_be_sent_back():
    assert sent("updateClient")["properties"]["contacts_count"]["readOnly"] is True
    assert "readOnly" not in sent("updateClient")["properties"]["name"]


def test_a_comma_list_has_its_bounds_and_its_values():
    said = described(next(operation for operation in OPERATIONS if operation.id == "listClients"))
    parameters = {parameter["name"]: parameter for parameter in said["parameters"]}
    assert parameters["status"]["explode"] is False
    assert parameters["status"]["schema"]["maxItems"] == 100
    assert parameters["status"]["schema"]["items"]["enum"] == ["prospect", "active", "archived"]
    assert parameters["sort"]["schema"]["default"] == ["name"]
    assert set(parameters["sort"]["schema"]["items"]["enum"]) >= {"name", "-name", "id", "-id"}


def test_operations_are_named_by_what_they_do():
    ids = [operation.id for operation in OPERATIONS]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z]+([A-Z][a-z]*)+", name) for name in ids)
    client = {described(operation)["operationId"] for operation in OPERATIONS if operation.path.startswith("/clients")}
    assert client == {"listClients", "createClient", "getClient", "updateClient", "replaceClient", "deleteClient"}


def test_two_types_of_one_name_do_not_pass_for_one_another():
    types = {}
    openapi._named(openapi.paging.Meta, types)  # noqa: SLF001
    with pytest.raises(TypeError, match="rename one"):
        openapi._named(type("Meta", (openapi.msgspec.Struct,), {}), types)  # noqa: SLF001
