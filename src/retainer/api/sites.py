"""Sites: the websites that the agency looks after, whether they are up, and what they run.

What the monitor observes is read-only; versions and plugins are pushed by the sites themselves (PUT or PATCH).
`expected_status` null means 200 to 399. A site is `down` after two failures in a row. Uptime is up / (up + down) of the
checks in that time, to the hour for weeks and months; maintenance and pauses count as neither.
`plugin=woocommerce&plugin_version_lt=9.1` finds the sites with an older version of a plugin.
"""

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta
from sqlalchemy import ColumnElement, Index, Table, bindparam, delete, insert, or_, select

from retainer.api.clients import clients
from retainer.api.projects import projects
from retainer.api.tags import TagFilter, TagIds, set_tags, tag_links
from retainer.domain import relations, uptime
from retainer.domain.filters import Where, truth
from retainer.domain.values import HttpStatus, Id, Instant, SiteUrl, Text20, Text50, Text191
from retainer.domain.versions import order
from retainer.errors import invalid
from retainer.kernel import etag
from retainer.kernel.body import Change, New
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.store.columns import embedded, flag, folded, instant, integer, ref, sortable, text, unique
from retainer.store.records import Derived, Record, Single, auto, ro, wo
from retainer.store.tables import ACCOUNT, keyed_table, tenant_table
from retainer.store.tx import Tx

sites = tenant_table(
    "sites",
    text("url"),
    text("name"),
    *ref("client_id", "clients", optional=True),
    *ref("project_id", "projects", optional=True, on_delete="detach"),
    text("environment"),
    text("platform"),
    flag("monitoring_enabled"),
    integer("check_interval_seconds"),
    embedded("expected_status", list[int], optional=True),
    text("keyword", optional=True),
    instant("maintenance_until", optional=True),
    *uptime.observed_columns(),
    text("wp_version", optional=True),
    text("wp_update_version", optional=True),
    text("php_version", optional=True),
    integer("plugins_count"),
    integer("plugin_updates_count"),
    flag("core_update_available"),
    instant("last_synced_at", optional=True),
    text("external_id", optional=True),
    sortable("name"),
    folded("name", "url", into="search"),
    unique("url"),
    unique("external_id"),
    Index(None, "account_id", "name_sort", "id"),
    Index(None, "account_id", "created_at", "id"),
    Index(None, "account_id", "updated_at", "id"),
    Index(None, "account_id", "client_id", "name_sort", "id"),
    Index(None, "account_id", "project_id"),
    Index("sites_due", "monitoring_enabled", "next_check_at"),
)
tag_links("sites")

site_plugins = keyed_table(
    "site_plugins",
    *ref("site_id", "sites", on_delete="cascade"),
    text("slug"),
    text("name"),
    text("version", optional=True),
    text("version_order", optional=True),
    text("status"),
    text("update_version", optional=True),
    flag("auto_update"),
    flag("update_available"),
    Index(None, "account_id", "slug", "version_order"),
    key=("site_id", "slug"),
)

Status = Literal["up", "down", "unknown", "paused", "maintenance"]
Environment = Literal["production", "staging", "development"]
Platform = Literal["wordpress", "woocommerce", "shopify", "drupal", "static", "other"]
PluginStatus = Literal["active", "inactive", "must_use"]
SYNCED = ("wp_version", "wp_update_version", "php_version", "plugins")
"""What a site pushes."""
ASKED = ("url", "monitoring_enabled", "check_interval_seconds", "expected_status", "keyword")
"""What the next check asks; when it changes, that check is due at once."""


class Plugin(msgspec.Struct):
    """A plugin of a site, and whether a newer version is there."""

    slug: Text191
    name: Text191 = auto
    version: Text50 | None = None
    status: PluginStatus = "active"
    update_version: Text50 | None = None
    auto_update: bool = False
    update_available: bool = ro


class Site(Record):
    """A website that the agency looks after."""

    url: SiteUrl
    name: Text191 = auto
    client_id: Id | None = None
    project_id: Id | None = None
    environment: Environment = "production"
    platform: Platform = "wordpress"
    monitoring_enabled: bool = True
    check_interval_seconds: Annotated[int, Meta(ge=60, le=86400)] = 300
    expected_status: Annotated[list[HttpStatus], Meta(min_length=1, max_length=50)] | None = None
    keyword: Text191 | None = None
    maintenance_until: Instant | None = None
    status: Annotated[Status, Derived(uptime.standing)] = ro
    last_checked_at: Instant | None = ro
    down_since: Instant | None = ro
    last_status_code: int | None = ro
    response_time_ms: int | None = ro
    last_error: Text191 | None = ro
    ssl_expires_at: Instant | None = ro
    uptime_percent_24h: Annotated[float | None, uptime.percent("uptime_24h")] = ro
    uptime_percent_7d: Annotated[float | None, uptime.percent("uptime_7d")] = ro
    uptime_percent_30d: Annotated[float | None, uptime.percent("uptime_30d")] = ro
    wp_version: Text20 | None = None
    wp_update_version: Text20 | None = None
    php_version: Text20 | None = None
    plugins_count: int = ro
    plugin_updates_count: int = ro
    core_update_available: bool = ro
    last_synced_at: Instant | None = ro
    external_id: Text191 | None = None
    tag_ids: TagIds = []
    plugins: Annotated[list[Plugin], Meta(max_length=300), Single()] = wo


def awaits_updates(table: Table) -> ColumnElement[bool]:
    """Whether something on a site should be updated."""
    return or_(table.c.plugin_updates_count > 0, table.c.core_update_available.is_(True))


def runs(table: Table, *limits: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether a site has a plugin, within limits."""
    return select(site_plugins.c.slug).where(site_plugins.c.site_id == table.c.id, *limits).exists()


def runs_older(table: Table, than: Any) -> ColumnElement[bool]:
    """Whether a site has an older version of the plugin that is asked for, which is one."""
    return runs(table, site_plugins.c.slug == bindparam("plugin__0"), site_plugins.c.version_order < than)


class SiteFilter(Filter):
    """Which sites."""

    sorts = ("name", "url", "status", "uptime_percent_30d", "plugin_updates_count", "created_at", "updated_at")
    client_id: OneOf[Id | None] | None = None
    project_id: OneOf[Id] | None = None
    status: Annotated[OneOf[Status] | None, Where(lambda table, its: uptime.standing(table).in_(its))] = None
    platform: OneOf[Platform] | None = None
    environment: OneOf[Environment] | None = None
    monitoring_enabled: bool | None = None
    has_updates: Annotated[bool | None, truth(awaits_updates)] = None
    plugin: Annotated[
        OneOf[Text191] | None, Where(lambda table, slugs: runs(table, site_plugins.c.slug.in_(slugs)))
    ] = None
    plugin_version_lt: Annotated[Text50 | None, Where(runs_older, order)] = None
    ssl_expires_before: Annotated[Instant | None, Where(lambda table, at: table.c.ssl_expires_at < at)] = None
    external_id: OneOf[Text191] | None = None
    tag_id: TagFilter = None

    def __post_init__(self) -> None:
        """Raise `validation_failed` for the version of no plugin, or of several."""
        if self.plugin_version_lt is not None and len(self.plugin or ()) != 1:
            raise invalid({"plugin_version_lt": ["Needs one plugin: plugin=woocommerce&plugin_version_lt=9.1."]})


PROJECT = select(projects.c.client_id).where(projects.c.id == bindparam("id"))
CLIENT = select(clients.c.status).where(clients.c.id == bindparam("id"))
PLUGINS = (
    select(*site_plugins.c[Plugin.__struct_fields__])
    .where(site_plugins.c.site_id == bindparam("site"))
    .order_by(site_plugins.c.slug)
)
RUNS = insert(site_plugins).values(
    account_id=ACCOUNT,
    site_id=bindparam("site"),
    **{name: bindparam(name) for name in (*Plugin.__struct_fields__, "version_order")},
)
NONE_LEFT = delete(site_plugins).where(site_plugins.c.site_id == bindparam("site"))


def settle(tx: Tx, it: Site, before: Site | None, given: relations.Given) -> Site:
    """Whose site it is, what it is called, and how many updates it waits for."""
    said = relations.said(before, given, "project_id", "client_id")
    row = tx.one(PROJECT, id=it.project_id) if said and it.project_id else None
    if row:
        relations.follow(tx, it, given, "project_id", "client_id", row[0])
    if it.client_id and (before is None or it.client_id != before.client_id):
        status = tx.value(CLIENT, id=it.client_id)
        on = relations.first(relations.named(it, given, "client_id", "project_id"), "client_id", "project_id")
        relations.open_for_more(tx, on, f"Client {it.client_id}", status)
    it.name = it.name or (urlsplit(it.url).hostname or it.url)[:191]
    it.core_update_available = newer(it.wp_update_version, it.wp_version)
    it.plugins = it.plugins or []
    for place, plugin in enumerate(it.plugins):
        plugin.name = plugin.name or plugin.slug
        plugin.update_available = newer(plugin.update_version, plugin.version)
        if plugin.slug in {other.slug for other in it.plugins[:place]}:
            tx.fault(f"plugins.{place}.slug", f"Stands twice: {plugin.slug}. Send each plugin once.")
    it.plugins_count = len(it.plugins)
    it.plugin_updates_count = sum(plugin.update_available for plugin in it.plugins)
    if any(name in given and getattr(it, name) for name in SYNCED):
        it.last_synced_at = tx.now
    return it


def newer(update: str | None, version: str | None) -> bool:
    """Whether an update is offered that is newer than what runs."""
    return update is not None and (version is None or order(update) > order(version))


def whole(tx: Tx, site: int) -> Site:
    """A site with its plugins. Raises `not_found`."""
    it = tx.get(sites, site, Site)
    found = tx.all(PLUGINS, site=site)
    it.plugins = [Plugin(*said, bool(auto), bool(new)) for *said, auto, new in found]  # type: ignore[call-arg]
    return it


def set_plugins(tx: Tx, site: int, plugins: list[Plugin]) -> None:
    """Write a set of plugins in place of the former."""
    tx.run(NONE_LEFT, site=site)
    for plugin in plugins:
        version_order = None if plugin.version is None else order(plugin.version)
        tx.run(RUNS, site=site, version_order=version_order, **msgspec.structs.asdict(plugin))


api = Resource("/sites", tag="Sites", scope="sites", table=sites)


@api.get()
def list_sites(tx: Tx, only: SiteFilter, page: Page) -> Paged[Site]:
    """List sites, by name; without their plugins."""
    return listing(tx, sites, Site, only, page)


@api.post()
def create_site(tx: Tx, body: New[Site]) -> Site:
    """Create a site; it is checked at once, unless monitoring_enabled is false."""
    it = settle(tx, body, None, relations.sent(body))
    site = tx.insert(sites, it)
    uptime.begin(tx, site)
    set_plugins(tx, site, it.plugins)
    set_tags(tx, sites, site, it.tag_ids, new=True)
    return whole(tx, site)


@api.get("/{site}")
def get_site(tx: Tx, site: Id) -> Site:
    """Read a site with its plugins."""
    tx.snapshot()
    return whole(tx, site)


@api.put("/{site}")
@api.patch("/{site}")
def update_site(tx: Tx, site: Id, change: Change[Site]) -> Site:
    """Change a site, or push its versions and plugins; `plugins` takes the place of the whole set."""
    before = whole(tx, site)
    it = settle(tx, change.onto(before), before, change.given)
    tx.update(sites, it)
    if sorted(it.plugins, key=lambda plugin: plugin.slug) != before.plugins:
        set_plugins(tx, site, it.plugins)
        tx.touch(sites, site)
    set_tags(tx, sites, site, it.tag_ids)
    if any(getattr(it, name) != getattr(before, name) for name in ASKED):
        uptime.begin(tx, site, anew=it.url != before.url)
    return whole(tx, site)


@api.delete("/{site}")
def delete_site(tx: Tx, site: Id) -> None:
    """Delete a site with what was observed of it; tickets stay, without a site."""
    tx.delete(sites, etag.unchanged(tx, whole(tx, site)).id)
