"""Quotas by plan: what an account has is counted where it is written, and a refusal says how much is included."""

import base64
import itertools

import pytest
from testing.process import at_once, running, statuses, tell

from retainer.errors import Refusal
from retainer.identity import logos
from retainer.identity.plans import limits_of
from retainer.settings import SettingsError, load
from tests.databases import each_database
from tests.length import only_full

SITES = "Delete sites that are no longer maintained, or ask the operator for more."
NUMBERS = itertools.count(1)


def limit(api, **settings):
    """Set quotas, as the operator does in the environment."""
    environment = {f"RETAINER_{name.upper()}": value for name, value in settings.items()}
    api.store.limits = limits_of(load(environment))


@each_database
def test_an_account_has_the_sites_of_its_plan_however_they_are_created(both):
    api, other = both
    limit(api, max_sites="2,scale=3")
    kept = [api.make("/sites")["id"] for _ in range(2)]
    sent = {"url": "https://third.example"}
    for refused in (api.post("/sites", sent), api.put("/sites/external:third", sent)):
        message = f"The account would have 3 sites, and its plan includes 2. {SITES}"
        assert (refused.status, refused.errors) == (422, {"url": [message]})
    assert api.put(f"/sites/{kept[0]}", {"url": "https://moved.example"}).status == 200
    assert other.create("/sites").status == 201
    api.set_account({"plan": "scale"})
    assert api.post("/sites", sent).status == 201
    assert api.create("/sites").errors == {"url": [f"The account would have 4 sites, and its plan includes 3. {SITES}"]}
    api.set_account({"plan": "agency"})
    assert len(api.get("/sites").data) == 3, "nothing is lost with a smaller plan"
    api.delete(f"/sites/{kept[0]}")
    assert api.create("/sites").status == 422
    api.delete(f"/sites/{kept[1]}")
    assert api.create("/sites").status == 201


def test_the_plan_says_how_many_webhooks_there_are(api):
    limit(api, max_webhooks="0,agency=1")
    api.make("/webhooks")
    assert "its plan includes 1. Delete a webhook" in api.create("/webhooks").errors["url"][0]
    api.set_account({"plan": "enterprise"})
    assert "would have 2 webhooks, and its plan includes 0." in api.create("/webhooks").errors["url"][0]


def test_logos_of_issued_documents_count_and_a_refused_one_changes_nothing(api):
    limit(api, max_logo_kb="1")

    def save(size):
        with api.operating() as tx:
            number = next(NUMBERS)
            logos.set_logo(tx, f"logo {number:09}".encode().ljust(size))

    save(900)
    save(1000)  # the former one is on no document, and goes
    client = api.make("/clients")["id"]
    api.make("/invoices", client_id=client, status="sent", lines=[{"description": "Logo", "unit_price": "9"}])
    with pytest.raises(Refusal) as refused:
        save(300)
    message = "The account would have 2 KB of logos, and its plan includes 1. Logos on issued documents are kept."
    assert refused.value.members["errors"]["logo"][0].startswith(message)
    with api.operating() as tx:
        assert len(tx.all(logos.select(logos.logos.c.id))) == 1
    limit(api, max_logo_kb="2")
    save(300)


def test_the_files_of_an_account_have_the_room_of_its_plan(both):
    api, other = both
    limit(api, max_file_mb="1")
    content = base64.b64encode(bytes(600_000)).decode()
    file = api.create("/files", content=content).data
    message = "The account would have 2 MB of files, and its plan includes 1. Delete files that are no longer needed"
    assert api.create("/files", content=content).errors["content"][0].startswith(message)
    assert [row["id"] for row in api.get("/files").data] == [file["id"]]
    assert other.create("/files", content=content).status == 201
    api.delete(f"/files/{file['id']}")
    assert api.create("/files", content=content).status == 201


def test_a_plan_that_does_not_exist_ends_the_start_with_a_sentence():
    with pytest.raises(SettingsError, match=r"RETAINER_MAX_SITES names the plan gold. Plans: solo, studio"):
        limits_of(load({"RETAINER_MAX_SITES": "5,gold=7"}))
    for wrong in ("solo=5", "5;scale=7", "-1", "", "many"):
        with pytest.raises(SettingsError, match="a whole number, with others for some plans"):
            load({"RETAINER_MAX_SITES": wrong})


@only_full
def test_writers_at_the_same_time_share_what_is_left(tmp_path):
    with running(tmp_path, "--no-monitor", RETAINER_MAX_SITES="9,agency=3") as server:
        agency = server.agency("Full", "agency")

        def create(number):
            with server.client(agency["key"]) as client:
                return client.post("/sites", {"url": f"https://{number}.example"})

        assert statuses(at_once(8, create)) == {201: 3, 422: 5}
    (listed,) = tell(tmp_path, "account", "list", "--usage", RETAINER_MAX_SITES="9,agency=3")["accounts"]
    assert (listed["sites"], listed["max_sites"]) == (3, 3)
