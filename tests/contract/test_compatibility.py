"""v1 only gains: what openapi.json promised, the declarations still keep."""

import copy

import pytest
from tools.openapi import current, losses, promised

PROMISE = promised()
COMPARED = ("/clients", "/projects", "/tags", "/files")
PART = PROMISE | {"paths": {path: each for path, each in PROMISE["paths"].items() if path.startswith(COMPARED)}}
"""A promise that is quick to compare."""


def test_nothing_that_was_promised_is_gone():
    assert list(losses(PROMISE, current())) == []


def test_the_promise_is_what_the_declarations_say():
    assert current() == PROMISE, "make openapi writes it anew"


def gone(document, *path):
    changed = copy.deepcopy(document)
    node = changed
    for part in path[:-1]:
        node = node[part]
    node.pop(path[-1]) if isinstance(node, dict) else node.remove(path[-1])
    return changed


SCHEMAS = ("components", "schemas")
CLIENT = (*SCHEMAS, "Client")


@pytest.mark.parametrize(
    ("path", "loss"),
    [
        (("paths", "/clients", "post"), "POST /clients is gone."),
        (("paths", "/clients", "get", "responses", "429"), "no longer answers 429"),
        ((*CLIENT, "properties", "currency"), "the field currency is gone."),
        ((*CLIENT, "required", "currency"), "the field currency need not come any more."),
        ((*SCHEMAS, "ClientStatus", "enum", "archived"), "POST /clients status: archived is no longer taken."),
        ((*SCHEMAS, "ClientStatus", "enum", "prospect"), "GET /clients status: prospect is no longer taken."),
        ((*SCHEMAS, "ClientSort", "enum", "-name"), "GET /clients sort: -name is no longer taken."),
        (
            ("paths", "/files", "post", "requestBody", "content", "multipart/form-data"),
            "POST /files no longer takes multipart/form-data.",
        ),
        ((*SCHEMAS, "NewFileForm", "properties", "name"), "POST /files: the field name is gone."),
        ((*SCHEMAS, "PlanErrorCode", "enum", "trial_ended"), ""),
        ((*SCHEMAS, "ProjectCreate", "properties", "billing_type", "anyOf", {"type": "null"}), "null/string is string"),
        ((*SCHEMAS, "ClientCreate", "properties", "currency", "type", "null"), "null/string is string now."),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else "",
)
def test_what_is_lost_is_named(path, loss):
    lost = list(losses(PART, gone(PART, *path)))
    assert any(loss in message for message in lost) if loss else lost == []


@pytest.mark.parametrize("status", [{"anyOf": [{"$ref": "#/components/schemas/ClientStatus"}, {"type": "null"}]}, {}])
def test_what_may_become_null_or_anything_is_a_loss(status):
    changed = copy.deepcopy(PART)
    changed["components"]["schemas"]["Client"]["properties"]["status"] = status
    assert [loss for loss in losses(PART, changed) if loss.startswith("GET /clients/{client_id} data status: ")]


def test_what_is_answered_with_other_fields_where_any_could_be_added_is_a_loss():
    changed = copy.deepcopy(PART)
    changed["components"]["schemas"]["Client"]["additionalProperties"] = False
    assert [loss for loss in losses(PART, changed) if loss.endswith("no other field can be added now.")]


def test_a_response_that_is_no_longer_among_the_choices_is_a_loss():
    for choices in (
        [{"$ref": "#/components/schemas/PartialClientPage"}],
        [{"$ref": "#/components/schemas/TagPage"}] * 2,
    ):
        changed = copy.deepcopy(PART)
        answer = changed["paths"]["/clients"]["get"]["responses"]["200"]["content"]["application/json"]
        answer["schema"] = {"anyOf": choices}
        assert [loss for loss in losses(PART, changed) if loss.startswith("GET /clients")]


def test_what_becomes_required_is_a_loss():
    changed = copy.deepcopy(PART)
    changed["components"]["schemas"]["ClientCreate"]["required"].append("email")
    assert [loss for loss in losses(PART, changed) if "email is required now" in loss]


def test_what_is_gained_is_no_loss():
    less = gone(PART, "paths", "/tags", "post")
    assert list(losses(less, PART)) == []
