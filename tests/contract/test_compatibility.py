"""v1 only gains: what openapi.json promised, the declarations still keep."""

import copy

import pytest
from tools.openapi import current, losses, promised

PROMISE = promised()


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


CLIENT = ("components", "schemas", "Client")


@pytest.mark.parametrize(
    ("path", "loss"),
    [
        (("paths", "/clients", "post"), "POST /clients is gone."),
        (("paths", "/clients", "get", "responses", "429"), "no longer answers 429"),
        ((*CLIENT, "properties", "currency"), "the field currency is gone."),
        ((*CLIENT, "required", "currency"), "the field currency need not come any more."),
        ((*CLIENT, "properties", "status", "enum", "archived"), ""),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else "",
)
def test_what_is_lost_is_named(path, loss):
    lost = list(losses(PROMISE, gone(PROMISE, *path)))
    assert any(loss in message for message in lost) if loss else lost == []


def test_what_becomes_required_is_a_loss():
    changed = copy.deepcopy(PROMISE)
    changed["components"]["schemas"]["ClientCreate"]["required"].append("email")
    assert [loss for loss in losses(PROMISE, changed) if "email is required now" in loss]


def test_what_is_gained_is_no_loss():
    less = gone(PROMISE, "paths", "/tags", "post")
    assert list(losses(less, PROMISE)) == []
