from datetime import timedelta

import pytest
import time_machine

from retainer.outbound.leases import Places
from retainer.sites.monitor import schedule
from retainer.sites.monitor.schedule import CheckResult

OBSERVED = (
    *("last_checked_at", "down_since", "last_status_code", "response_time_ms", "last_error", "ssl_expires_at"),
    *("uptime_percent_24h", "uptime_percent_7d", "uptime_percent_30d"),
)
NO_URL = "Must be an http or https URL without user and password, like https://shop.example"
BELONGS = "Belongs to client {}, not to client {}. Send matching values, or only project_id."
WOO = {"slug": "woocommerce", "version": "9.1", "update_version": "9.10"}


def at(moment):
    return time_machine.travel(f"2027-03-01T{moment}Z", tick=False)


def new(api, collection, **members):
    return api.make(collection, **members)["id"]


def site_of(api, **members):
    """The path of a new site."""
    return f"/sites/{new(api, '/sites', **members)}"


def found(api, **query):
    return [row["id"] for row in api.get("/sites", query).data]


def observe(api, *results):
    """Write for each result what the monitor has found at the sites that are due, an hour later each time."""
    for hour, result in enumerate(results, 10):
        with at(f"{hour}:00:00"):
            taken = schedule.DUE.claim(api.store, Places(10, ()), timedelta(minutes=1))
            for due in taken:
                schedule.save_result(api.store, due, result)


def test_it_works(api):
    client = new(api, "/clients")
    sent = {
        "url": "https://shop.example/store?lang=de",
        "name": "Shop",
        "client_id": client,
        "project_id": new(api, "/projects", client_id=client),
        "environment": "staging",
        "platform": "woocommerce",
        "monitoring_enabled": False,
        "check_interval_seconds": 60,
        "expected_status": [200, 301],
        "keyword": "Warenkorb",
        "maintenance_until": "2027-03-01T12:00:00.000000Z",
        "wp_version": "6.9",
        "wp_update_version": "6.10",
        "php_version": "8.3.14",
        "external_id": "s-1",
        "tag_ids": [new(api, "/tags")],
    }
    akismet = {"slug": "akismet", "name": "Akismet", "version": "5.3", "status": "inactive"}
    woo = {"slug": "woocommerce", "name": "WooCommerce", "version": "9.9", "status": "must_use"}
    plugins = [
        akismet | {"update_version": "5.3.0", "auto_update": True},
        woo | {"update_version": "9.10", "auto_update": False},
    ]
    answer = api.post("/sites", sent | {"url": " HTTPS://Shop.Example:443/store?lang=de#cart ", "plugins": plugins})
    assert answer.status == 201
    site = answer.data
    made = dict.fromkeys(("created_at", "updated_at", "last_synced_at"), site["created_at"])
    counts = {"plugins_count": 2, "plugin_updates_count": 1, "core_update_available": True}
    row = {"id": site["id"], "status": "paused"} | sent | made | counts | dict.fromkeys(OBSERVED)
    updates = [plugins[0] | {"update_available": False}, plugins[1] | {"update_available": True}]
    assert site == row | {"plugins": updates}
    assert answer.headers["location"].endswith(f"/sites/{site['id']}")
    assert api.get(f"/sites/{site['id']}").data == site
    assert api.get("/sites").data == [row]


def test_a_url_is_enough(api):
    site = api.post("/sites", {"url": "https://shop.example"}).data
    assert (site["url"], site["name"], site["status"]) == ("https://shop.example/", "shop.example", "unknown")
    assert (site["environment"], site["platform"]) == ("production", "wordpress")
    assert (site["monitoring_enabled"], site["check_interval_seconds"]) == (True, 300)
    assert (site["plugins"], site["tag_ids"], site["core_update_available"]) == ([], [], False)
    assert (site["plugins_count"], site["plugin_updates_count"]) == (0, 0)
    asked = ("client_id", "project_id", "expected_status", "keyword", "maintenance_until", "external_id")
    pushed = ("wp_version", "wp_update_version", "php_version", "last_synced_at")
    assert {site[name] for name in (*asked, *pushed, *OBSERVED)} == {None}


@pytest.mark.parametrize(
    ("sent", "kept", "name"),
    [
        ("HTTPS://SHOP.Example", "https://shop.example/", "shop.example"),
        ("https://shop.example:443/", "https://shop.example/", "shop.example"),
        ("http://shop.example:80?a=B", "http://shop.example/?a=B", "shop.example"),
        ("http://shop.example:443", "http://shop.example:443/", "shop.example"),
        ("https://shop.example:8443/A/b/", "https://shop.example:8443/A/b/", "shop.example"),
        ("https://shop.example/a?b=C#d", "https://shop.example/a?b=C", "shop.example"),
        ("https://shop.example/#", "https://shop.example/", "shop.example"),
        ("https://BÜCHER.example/Über", "https://xn--bcher-kva.example/%C3%9Cber", "bücher.example"),
        ("https://straße.example", "https://xn--strae-oqa.example/", "straße.example"),
        ("https://xn--no-such-zz.example", "https://xn--no-such-zz.example/", "xn--no-such-zz.example"),
        ("https://sh_op.example", "https://sh_op.example/", "sh_op.example"),
        ("https://[2001:DB8:0:0::1]:443/x", "https://[2001:db8::1]/x", "2001:db8::1"),
        ("http://192.0.2.7:8080", "http://192.0.2.7:8080/", "192.0.2.7"),
        ("https://x.example/" + "a" * 2030, "https://x.example/" + "a" * 2030, "x.example"),  # 2048 characters
    ],
)
def test_an_address_is_kept_as_it_is_compared(api, other_tenant, sent, kept, name):
    site = api.post("/sites", {"url": sent}).data
    assert (site["url"], site["name"]) == (kept, name)
    taken = {"url": [f"Is already taken by site {site['id']}. Choose another."]}
    other = site_of(api)
    for url in (sent, kept):
        assert api.post("/sites", {"url": url}).errors == taken
        assert api.patch(other, {"url": url}).errors == taken
        assert api.patch(f"/sites/{site['id']}", {"url": url}).data["url"] == kept
    assert len(found(api)) == 2
    assert other_tenant.post("/sites", {"url": sent}).status == 201


def test_scheme_port_path_and_query_tell_sites_apart(api):
    rest = (
        "https://a.example",
        "http://a.example",
        "https://a.example:444",
        "https://a.example/b",
        "https://a.example?b",
    )
    assert {api.post("/sites", {"url": url}).status for url in rest} == {201}


@pytest.mark.parametrize(
    "url",
    [
        *("https://user@shop.example", "https://user:secret@shop.example", "https://:@shop.example"),
        *("https://@shop.example", "https://shop.example\\@other.example", "https://sh op.example"),
        *("ftp://shop.example", "file:///etc/passwd", "javascript:alert(1)", "//shop.example", "shop.example"),
        *("https://", "https:///shop", "https://:443/", "https://-a.example", "https://[::1"),
        *("https://shop.example:99999", "https://shop.example:0", "https://shop.example:x", None, "", 7),
        "https://x.example/" + "a" * 2031,
        "https://xx.example?" + "a" * 2029,  # 2048 characters as it is sent, one more as it is kept
    ],
)
def test_a_url_that_is_no_address_of_a_site_is_refused(api, url):
    site = api.make("/sites")
    for answer in (api.post("/sites", {"url": url}), api.patch(f"/sites/{site['id']}", {"url": url})):
        assert (list(answer.errors), answer.code) == (["url"], "validation_failed")
        assert answer.errors["url"][0].startswith((NO_URL, "Is required; this is null."))
    assert api.post("/sites").errors == {"url": ["Is required."]}
    assert api.get(f"/sites/{site['id']}").data == site
    assert len(found(api)) == 1


@pytest.mark.parametrize(
    ("member", "value", "field", "message"),
    [
        ("expected_status", [], "expected_status", "Must have 1 to 50 entries"),
        ("maintenance_until", "2027-03-01T12:00", "maintenance_until", "a timestamp with an offset"),
        ("plugins", [{"slug": "a"}, {"name": "B"}], "plugins.1.slug", "Is required."),
        ("plugins", [{"slug": "a", "verzion": "1"}], "plugins.0.verzion", "Did you mean version?"),
        ("plugins", [{"slug": "a"}, {"slug": "b"}, {"slug": " a "}], "plugins.2.slug", "Is sent twice: a."),
        ("plugin", [], "plugin", "Did you mean plugins?"),
    ],
)
def test_an_invalid_field_is_reported_at_its_path(api, member, value, field, message):
    site = api.make("/sites", plugins=[{"slug": "akismet"}])
    for answer in (api.create("/sites", **{member: value}), api.patch(f"/sites/{site['id']}", {member: value})):
        assert (list(answer.errors), answer.code) == ([field], "validation_failed")
        assert message in answer.errors[field][0]
    assert api.get(f"/sites/{site['id']}").data == site
    assert len(found(api)) == 1


@pytest.mark.parametrize(
    ("member", "values"),
    [
        ("check_interval_seconds", (60, 86400)),
        ("expected_status", ([200], [599, 204], list(range(200, 250)), None)),
        ("plugins", ([{"slug": f"p{n:03}"} for n in range(300)], [])),
    ],
)
def test_the_ends_of_every_range_are_accepted(api, member, values):
    path = site_of(api)
    for value in values:
        site = api.patch(path, {member: value}).data
        if member == "plugins":
            assert [plugin["slug"] for plugin in site["plugins"]] == [plugin["slug"] for plugin in value]
            assert site["plugins_count"] == len(value)
        else:
            assert site[member] == value


def test_a_name_that_is_omitted_or_null_is_the_host(api):
    path = site_of(api, url="https://shop.example", name=None)
    assert api.get(path).data["name"] == "shop.example"
    assert api.patch(path, {"name": "Shop", "url": "https://store.example"}).data["name"] == "Shop"
    assert api.patch(path, {"name": None}).data["name"] == "store.example"


def test_the_client_follows_from_the_project_and_contradictions_are_reported_on_it(api):
    a, b = (new(api, "/clients") for _ in range(2))
    of_a, of_b = (new(api, "/projects", client_id=client) for client in (a, b))
    site = api.make("/sites", project_id=of_a)
    path = f"/sites/{site['id']}"
    assert site["client_id"] == a
    assert api.create("/sites", project_id=of_a, client_id=b).errors == {"project_id": [BELONGS.format(a, b)]}
    assert api.patch(path, {"client_id": b}).errors == {"project_id": [BELONGS.format(a, b)]}
    assert api.get(path).data == site
    assert api.patch(path, {"project_id": of_b}).data["client_id"] == b
    assert api.patch(path, {"project_id": None}).data["client_id"] == b
    assert api.patch(path, {"client_id": None}).data["client_id"] is None


def test_observed_fields_are_not_taken_from_a_body(api):
    site = api.make("/sites", plugins=[WOO])
    sent = dict.fromkeys((*OBSERVED, "last_synced_at", "created_at"), "2020-01-01T00:00:00Z") | {"status": "up"}
    sent |= {"plugins_count": 9, "plugin_updates_count": 9, "core_update_available": True, "id": 9}
    assert api.put(f"/sites/{site['id']}", sent).data == site
    assert api.create("/sites", **sent).errors.keys() == sent.keys()


def test_a_site_that_is_sent_back_as_it_was_read_pushes_nothing(api):
    path = site_of(api, plugins=[WOO, {"slug": "akismet"}], wp_version="6.9")
    site = api.get(path).data
    with time_machine.travel("2030-01-01T00:00:00Z", tick=False):
        assert api.put(path, site).data == site
        assert api.put(path, site | {"plugins": site["plugins"][::-1]}).data == site
        named = api.put(path, site | {"name": "New"}).data
        assert (named["name"], named["last_synced_at"]) == ("New", site["last_synced_at"])
    for year, pushed in (
        ("2031", {"wp_version": "6.9"}),
        ("2032", {"plugins": site["plugins"]}),
        ("2033", site | {"wp_version": "7.0"}),
        ("2034", site | {"plugins": []}),
        ("2035", {"plugins": []}),
    ):
        with time_machine.travel(f"{year}-01-01T00:00:00Z", tick=False):
            moved = api.patch(path, pushed).data["last_synced_at"] == f"{year}-01-01T00:00:00.000000Z"
        assert moved == (year < "2035"), pushed


def test_a_site_stays_with_its_client_while_tickets_refer_to_it(api):
    client, other = api.make("/clients")["id"], api.make("/clients")["id"]
    site = site_of(api, client_id=client)
    project = api.make("/projects", client_id=other)["id"]
    tickets = [api.make("/tickets", site_id=int(site.split("/")[2]))["id"] for _ in range(2)]
    for sent, field in (({"client_id": other}, "client_id"), ({"client_id": None}, "client_id"),
                        ({"project_id": project}, "project_id")):  # fmt: skip
        refused = api.patch(site, sent)
        message = "Is fixed while 2 tickets refer to this record. Remove it from the tickets first."
        assert (refused.code, refused.errors) == ("in_use", {field: [message]})
    assert api.put(f"/tickets/{tickets[0]}", api.get(f"/tickets/{tickets[0]}").data).status == 200
    for ticket in tickets:
        assert api.patch(f"/tickets/{ticket}", {"site_id": None}).status == 200
    assert api.patch(site, {"client_id": other}).data["client_id"] == other


def test_a_check_of_a_site_refuses_no_change(api):
    path = site_of(api)
    seen = api.get(path).headers["etag"]
    api.sql("UPDATE sites SET last_checked_at = $1, response_time_ms = 80", "2026-03-31T10:00:00.000000Z")
    assert api.get(path, headers={"If-None-Match": seen}).status == 200
    assert api.patch(path, {"name": "New"}, headers={"If-Match": seen}).data["response_time_ms"] == 80


def test_pushed_plugins_replace_all_and_stay_when_omitted(api):
    path = site_of(api, plugins=[WOO, {"slug": "akismet"}])
    for call, sent, slugs in (
        (api.patch, {"plugins": [WOO, {"slug": "yoast", "version": "2"}]}, ["woocommerce", "yoast"]),
        (api.patch, {"name": "New"}, ["woocommerce", "yoast"]),
        (api.put, {"url": "https://new.example"}, ["woocommerce", "yoast"]),
        (api.put, {"plugins": [{"slug": "yoast"}]}, ["yoast"]),
        (api.patch, {"plugins": []}, []),
        (api.patch, {"plugins": [WOO]}, ["woocommerce"]),
        (api.patch, {"name": "Newer"}, ["woocommerce"]),
    ):
        site = call(path, sent).data
        assert ([plugin["slug"] for plugin in site["plugins"]], site["plugins_count"]) == (slugs, len(slugs)), sent
        assert api.get(path).data == site
    assert "send []" in api.patch(path, {"plugins": None}).errors["plugins"][0]
    (plugin,) = api.patch(path, {"plugins": [{"slug": " yoast "}]}).data["plugins"]
    unknown = {"version": None, "update_version": None, "auto_update": False, "update_available": False}
    assert plugin == unknown | {"slug": "yoast", "name": "yoast", "status": "active"}


@pytest.mark.parametrize(
    ("version", "update", "available"),
    [
        ("9.9", "9.10", True),
        ("9.10", "9.9", False),
        ("9.1", "9.1.0", False),
        ("9.1-beta.2", "9.1", True),
        ("9.1", "9.1-rc.1", False),
        ("9.1", None, False),
        (None, None, False),
        ("6.9", "6.10.1", True),
    ],
)
def test_an_update_is_available_when_it_is_newer_than_what_runs(api, version, update, available):
    both = {"version": version, "update_version": update}
    site = api.make(
        "/sites", wp_version=version, wp_update_version=update, plugins=[{"slug": "a"} | both, {"slug": "b"}]
    )
    assert site["core_update_available"] is available
    assert [plugin["update_available"] for plugin in site["plugins"]] == [available, False]
    (row,) = api.get("/sites").data
    assert (row["plugins_count"], row["plugin_updates_count"], row["core_update_available"]) == (
        2,
        available,
        available,
    )
    assert found(api, has_updates="true") == ([site["id"]] if available else [])
    assert found(api, has_updates="false") == ([] if available else [site["id"]])


def test_updates_of_the_core_or_of_a_plugin_are_updates(api):
    none, plugin, core = site_of(api), site_of(api, plugins=[WOO]), site_of(api, wp_version="6.8")
    assert api.patch(core, {"wp_update_version": "6.9"}).data["core_update_available"] is True
    of_both = {"has_updates": "true", "sort": "created_at"}
    assert [f"/sites/{site_id}" for site_id in found(api, **of_both)] == [plugin, core]
    api.patch(core, {"wp_version": "6.9"})
    api.patch(plugin, {"plugins": [WOO | {"version": "9.10"}]})
    assert found(api, **of_both) == []
    assert len(found(api, has_updates="false")) == len({none, plugin, core})


@pytest.mark.parametrize(
    "pushed", [{"wp_version": "6.9"}, {"wp_update_version": "6.9"}, {"php_version": "8.3"}, {"plugins": [WOO]}]
)
def test_the_last_push_is_when_versions_or_plugins_came(api, pushed):
    with at("10:00:00"):
        assert api.make("/sites", **pushed)["last_synced_at"] == "2027-03-01T10:00:00.000000Z"
        path = site_of(api)
        assert api.patch(path, {"name": "New", "maintenance_until": None}).data["last_synced_at"] is None
        api.patch(path, pushed)
    with at("11:00:00"):
        assert api.patch(path, {"name": "Newer"}).data["last_synced_at"] == "2027-03-01T10:00:00.000000Z"
        assert api.patch(path, pushed).data["last_synced_at"] == "2027-03-01T11:00:00.000000Z"


def test_a_push_that_changes_nothing_is_noted_and_is_no_change(api):
    pushed = {"wp_version": "6.9", "php_version": "8.3", "plugins": [WOO, {"slug": "akismet", "version": "5"}]}
    with at("10:00:00"):
        first = api.put("/sites/external:7", {"url": "https://x.example", **pushed}).data
        latest = api.get("/events").json["meta"]["latest"]
    with at("11:00:00"):
        again = api.put("/sites/external:7", pushed | {"plugins": pushed["plugins"][::-1]}).data
        assert again == first | {"last_synced_at": "2027-03-01T11:00:00.000000Z"}
        assert api.get("/events", {"after": latest}).data == []
        changed = api.put("/sites/external:7", pushed | {"php_version": "8.4"}).data
        assert changed["updated_at"] == changed["last_synced_at"] == "2027-03-01T11:00:00.000000Z"
        (event,) = api.get("/events", {"after": latest}).data
        assert (event["type"], event["fields"]) == ("site.updated", ["php_version"])


def test_an_older_version_is_one_with_a_number_of_one_plugin(api):
    needs = {"plugin_version_lt": ["Requires exactly one plugin: plugin=woocommerce&plugin_version_lt=9.1."]}
    assert api.get("/sites", {"plugin_version_lt": "9.1"}).errors == needs
    for no_version in ("abc", "latest", "", "9" * 51):
        refused = api.get("/sites", {"plugin": "woo", "plugin_version_lt": no_version})
        assert refused.errors == {"plugin_version_lt": ["Must be a version with a number, like 9.1."]}


def test_a_site_is_paused_without_monitoring_and_in_maintenance_until_its_end(api):
    until = {"maintenance_until": "2027-03-01T12:00:00+01:00"}
    plain, paused = site_of(api), site_of(api, monitoring_enabled=False, **until)
    excused = site_of(api, **until)
    with at("10:59:59"):
        states = {"unknown": plain, "paused": paused, "maintenance": excused}
        for status, path in states.items():
            assert api.get(path).data["status"] == status
            assert [f"/sites/{site_id}" for site_id in found(api, status=status)] == [path]
        assert found(api, status="up,down") == []
    with at("11:00:00"):
        assert api.get(excused).data["status"] == "unknown"
    assert api.patch(paused, {"monitoring_enabled": True, "maintenance_until": None}).data["status"] == "unknown"


def test_another_address_is_a_site_that_was_never_checked(api):
    path = site_of(api)
    bad = CheckResult(
        is_up=False, status_code=500, milliseconds=40, error="500", ssl_expires_at="2027-04-01T00:00:00.000000Z"
    )
    observe(api, bad, bad)
    down = api.get(path).data
    assert (down["status"], down["down_since"]) == ("down", "2027-03-01T10:00:00.000000Z")
    assert (down["last_status_code"], down["response_time_ms"], down["last_error"]) == (500, 40, "500")
    assert (down["ssl_expires_at"], down["uptime_percent_24h"]) == ("2027-04-01T00:00:00.000000Z", 0.0)
    for same in ({"name": "New"}, {"url": down["url"].upper()}, {"keyword": "Cart"}):
        assert api.patch(path, same).data["status"] == "down"
    moved = api.patch(path, {"url": "https://new.example"}).data
    assert moved["status"] == "unknown"
    assert {moved[name] for name in OBSERVED[:6]} == {None}


def test_a_site_only_changes_in_the_state_that_its_caller_knows(api):
    made = api.create("/sites")
    path, seen = f"/sites/{made.data['id']}", {"If-Match": made.headers["etag"]}
    assert api.patch(path, {"plugins": [WOO]}, headers=seen).status == 200
    again = api.get(path)
    for answer in (api.patch(path, {"name": "New"}, headers=seen), api.delete(path, headers=seen)):
        assert (answer.status, answer.code) == (412, "precondition_failed")
    assert api.get(path).data == again.data
    assert api.delete(path, headers={"If-Match": again.headers["etag"]}).status == 204


def test_a_deleted_site_leaves_its_tickets(api):
    client = new(api, "/clients")
    site = api.make("/sites", client_id=client, plugins=[WOO], tag_ids=[new(api, "/tags")])
    observe(api, CheckResult(is_up=True))
    ticket = api.make("/tickets", site_id=site["id"])
    assert api.delete(f"/sites/{site['id']}").status == 204
    assert (api.get(f"/sites/{site['id']}").status, found(api)) == (404, [])
    left = api.get(f"/tickets/{ticket['id']}").data
    assert left == ticket | {"site_id": None, "updated_at": left["updated_at"]}
    assert left["updated_at"] > ticket["updated_at"]
    assert api.post("/sites", {"url": site["url"]}).status == 201


def test_a_client_counts_its_sites_and_stays_while_it_has_sites_or_tickets(api):
    client = new(api, "/clients")
    sites = [site_of(api, client_id=client) for _ in range(2)]
    ticket = f"/tickets/{new(api, '/tickets', client_id=client)}"
    assert api.get(f"/clients/{client}").data["sites_count"] == 2
    blocked = api.delete(f"/clients/{client}")
    expected = {"sites": ["Move or delete 2 sites first."], "tickets": ["Move or delete 1 ticket first."]}
    assert (blocked.code, blocked.errors) == ("in_use", expected)
    api.patch(sites[0], {"client_id": None})
    api.delete(ticket)
    assert api.get("/clients", {"ids": client}).data[0]["sites_count"] == 1
    assert api.delete(f"/clients/{client}").errors == {"sites": ["Move or delete 1 site first."]}
    api.delete(sites[1])
    assert api.delete(f"/clients/{client}").status == 204


def test_a_project_with_sites_or_tickets_keeps_its_client(api):
    client, other = (new(api, "/clients") for _ in range(2))
    project = f"/projects/{new(api, '/projects', client_id=client)}"
    on = {"project_id": int(project.split("/")[2])}
    site, ticket = api.make("/sites", **on), api.make("/tickets", **on)
    fixed = {"client_id": ["Is fixed while tickets or sites refer to the project. Move them first."]}
    assert api.patch(project, {"client_id": other}).errors == fixed
    api.patch(f"/tickets/{ticket['id']}", {"project_id": None})
    assert api.patch(project, {"client_id": other}).errors == fixed  # the site alone holds it
    api.patch(f"/tickets/{ticket['id']}", on)
    assert api.delete(project).status == 204
    for path, former in ((f"/sites/{site['id']}", site), (f"/tickets/{ticket['id']}", ticket)):
        left = api.get(path).data
        assert left == former | {"project_id": None, "updated_at": left["updated_at"]}


def test_a_site_with_an_international_name_is_found_in_both_spellings(api):
    site = new(api, "/sites", url="http://münchen.example/")
    named = new(api, "/sites", url="http://shop.münchen.example/", name="The shop")
    for q in ("münchen", "MÜNCHEN.example", "xn--mnchen-3ya", "munchen"):
        assert found(api, q=q) == [site, named], q
    new(api, "/sites", url="http://faß.example/")
    assert found(api, q="faß.example") == found(api, q="xn--fa-hia") == [named + 1]
    kept = api.patch(f"/sites/{site}", {"name": "xn--mnchen-3ya.example"}).data
    assert kept["name"] == "xn--mnchen-3ya.example"


@pytest.mark.parametrize(
    "host",
    ["169.254.169.254", "[fe80::1]", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "0xa9fea9fe", "169.254.1.1."],
)
def test_an_address_that_no_setting_allows_is_refused_at_once(api, host):
    (message,) = api.post("/sites", {"url": f"http://{host}/latest"}).errors["url"]
    assert "is a link-local address or one of cloud metadata, which no server checks. Use another." in message
    site = site_of(api)
    assert [*api.patch(site, {"url": f"http://{host}/"}).errors] == ["url"]


def test_an_address_that_the_operator_may_allow_is_accepted(api):
    for url in ("http://10.0.0.5/", "http://intranet/", "http://metadata.example/"):
        assert api.post("/sites", {"url": url}).status == 201


def test_the_expiry_of_a_certificate_ends_with_the_next_success_without_one(api):
    site = site_of(api, check_interval_seconds=3600)
    expires = "2027-05-01T00:00:00.000000Z"
    observe(api, CheckResult(is_up=True, ssl_expires_at=expires))
    assert api.get(site).data["ssl_expires_at"] == expires
    with at("11:00:01"):
        (due,) = schedule.DUE.claim(api.store, Places(10, ()), timedelta(minutes=1))
        schedule.save_result(api.store, due, CheckResult(is_up=False, error="The site cannot be reached."))
    assert api.get(site).data["ssl_expires_at"] == expires, "a failure tells nothing about it"
    with at("12:00:01"):
        (due,) = schedule.DUE.claim(api.store, Places(10, ()), timedelta(minutes=1))
        schedule.save_result(api.store, due, CheckResult(is_up=True, status_code=200))
    assert api.get(site).data["ssl_expires_at"] is None
    assert found(api, ssl_expires_before="2028-01-01T00:00:00Z") == []
