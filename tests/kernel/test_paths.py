"""Which pattern a path matches."""

import pytest

from retainer.api import RESOURCES
from retainer.crm import clients
from retainer.kernel.routes import Paths, Routes

PATHS = Paths(
    {
        pattern: pattern
        for pattern in (
            "/clients",
            "/clients/{client_id}",
            "/clients/{client_id}/contacts",
            "/clients/external:{external_id}",
            "/records/{kind}/{record}",
            "/records/invoices/{invoice}/issue",
            "/records/{kind}/csv",
        )
    }
)


@pytest.mark.parametrize(
    ("path", "pattern", "parameters"),
    [
        ("/clients", "/clients", {}),
        ("/clients/7", "/clients/{client_id}", {"client_id": "7"}),
        ("/clients/external:7", "/clients/external:{external_id}", {"external_id": "7"}),
        ("/clients/external:7/contacts", "/clients/{client_id}/contacts", {"client_id": "external:7"}),
        ("/clients/external:a/b//external:c", "/clients/external:{external_id}", {"external_id": "a/b//external:c"}),
        ("/clients/external:", "/clients/{client_id}", {"client_id": "external:"}),
        ("/clients/{client_id}", "/clients/{client_id}", {"client_id": "{client_id}"}),
        ("/clients/a\nb", "/clients/{client_id}", {"client_id": "a\nb"}),
        ("/records/invoices/7", "/records/{kind}/{record}", {"kind": "invoices", "record": "7"}),
        ("/records/invoices/7/issue", "/records/invoices/{invoice}/issue", {"invoice": "7"}),
        ("/records/invoices/csv", "/records/{kind}/csv", {"kind": "invoices"}),
    ],
)
def test_a_literal_part_is_preferred_to_a_parameter(path, pattern, parameters):
    assert PATHS.find(path) == (pattern, parameters)


@pytest.mark.parametrize(
    "path",
    ["", "/", "/clients/", "//clients", "/clients//7", "/clients/7/x", "/clients/external:7/", "/Clients", "clients"],
)
def test_no_pattern_matches_another_path(path):
    assert PATHS.find(path) is None


def test_routes_leave_the_declarations_of_resources_as_they_are():
    before = [dict(vars(each)) for each in clients.api.operations]
    alone, whole = Routes([clients.api]).bound, Routes(RESOURCES).bound
    assert [vars(each) for each in clients.api.operations] == before
    listing = clients.api.operations[0]
    assert alone[listing].selectable.relations.keys() < whole[listing].selectable.relations.keys()
