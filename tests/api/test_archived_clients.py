"""An archived client accepts nothing new by any relation; what it has stays editable, and it can be active again."""

import pytest

NARROWER = {
    "project_id": "/projects",
    "parent_id": "/tasks",
    "ticket_id": "/tickets",
    "contact_id": "/external-contacts",
    "site_id": "/sites",
}
WAYS = {
    "/external-contacts": ("client_id",),
    "/projects": ("client_id",),
    "/sites": ("client_id", "project_id"),
    "/tasks": ("client_id", "project_id", "milestone_id", "parent_id", "ticket_id"),
    "/tickets": ("client_id", "contact_id", "site_id", "project_id"),
}


@pytest.mark.parametrize(("collection", "way"), [(collection, way) for collection in WAYS for way in WAYS[collection]])
def test_an_archived_client_accepts_nothing_new_by_any_relation(api, collection, way):
    client, other = (api.make("/clients")["id"] for _ in range(2))
    related = {name: api.make(path, client_id=client)["id"] for name, path in NARROWER.items()} | {"client_id": client}
    related["milestone_id"] = api.make(f"/projects/{related['project_id']}/milestones")["id"]
    theirs, others = (api.make(collection, client_id=each) for each in (client, other))
    theirs, others = (f"{collection}/{record['id']}" for record in (theirs, others))
    api.patch(f"/clients/{client}", {"status": "archived"})
    message = f"Client {client} is archived. Make it active first."
    for answer in (api.create(collection, **{way: related[way]}), api.patch(others, {way: related[way]})):
        assert answer.errors == {way: [message]}
    assert api.patch(theirs, {"client_id": client, "external_id": "x"}).status == 200
    api.patch(f"/clients/{client}", {"status": "active"})
    assert api.patch(others, {way: related[way]}).data["client_id"] == client
