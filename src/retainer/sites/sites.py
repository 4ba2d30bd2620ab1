"""Sites: the websites that the agency looks after, whether they are up, and what they run.

What the monitor observes is read-only; versions and plugins are pushed by the sites themselves (PUT or PATCH).
`expected_status` null means 200 to 399. A site is `down` after two failures in a row. Uptime is up / (up + down) of the
checks in that time, to the hour for weeks and months; maintenance and pauses count as neither.
`plugin=woocommerce&plugin_version_lt=9.1` finds the sites with an older version of a plugin.
"""

from collections.abc import Collection
from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta
from sqlalchemy import ColumnElement, Table, bindparam, or_, select

from retainer.crm.tags import TagFilter, TagIds, set_tags
from retainer.errors import invalid
from retainer.kernel import etag
from retainer.kernel.body import New, Patch
from retainer.kernel.paging import Page, Paged, listing
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.rollups import changes
from retainer.rollups.sources import SITES
from retainer.schema.crm import clients
from retainer.schema.filters import Where, before, truth
from retainer.schema.sites import sites
from retainer.schema.support import tickets
from retainer.schema.work import projects
from retainer.shared import relations
from retainer.sites import plugins, uptime
from retainer.sites.plugins import Plugin
from retainer.store.records import Derived
from retainer.store.tx import Tx
from retainer.values.common import ExternalId
from retainer.values.kinds import HttpStatus, Id, Instant, SiteUrl, Text20, Text50, Text191
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, WRITE_ONLY, DetailOnly, Record
from retainer.values.versions import newer, order

Status = Annotated[
    Literal["up", "down", "unknown", "paused", "maintenance"],
    Meta(title="SiteStatus"),
    "`down` after two failures in a row; `unknown` before the first check; `paused` and `maintenance` as you set it.",
]
Environment = Annotated[
    Literal["production", "staging", "development"], Meta(title="SiteEnvironment"), "Monitoring is the same for each."
]
Platform = Annotated[
    Literal["wordpress", "woocommerce", "shopify", "drupal", "static", "other"],
    Meta(title="SitePlatform"),
    "What it runs; nothing follows from it.",
]
SYNCED_FIELDS = ("wp_version", "wp_update_version", "php_version", "plugins")
"""The fields that a site pushes itself."""
CHECKED_FIELDS = ("url", "monitoring_enabled", "check_interval_seconds", "expected_status", "keyword")
"""The fields that say how a site is checked; when one changes, the next check is due at once."""


class Site(Record):
    """A website that the agency looks after."""

    url: Annotated[SiteUrl, "Unique in the account; kept normalised: host in lower case, no usual port, no fragment."]
    name: Annotated[Text191, "What it is called; the host of `url` when left out."] = SERVER_DEFAULT
    client_id: Annotated[Id | None, "Follows from the project; null for the agency's own sites."] = None
    project_id: Annotated[Id | None, "A project of the client; null again when that is deleted."] = None
    environment: Environment = "production"
    platform: Platform = "wordpress"
    monitoring_enabled: Annotated[bool, "With false it is not checked, and its status is `paused`."] = True
    check_interval_seconds: Annotated[int, Meta(ge=60, le=86400), "Time from one check to the next, in seconds."] = 300
    expected_status: Annotated[
        Annotated[list[HttpStatus], Meta(min_length=1, max_length=50)] | None,
        "HTTP statuses that count as up; null: 200 to 399.",
    ] = None
    keyword: Annotated[Text191 | None, "Text that a page must contain to count as up."] = None
    maintenance_until: Annotated[Instant | None, "Until then, checks count neither as up nor as down."] = None
    status: Annotated[Status, Derived(uptime.effective_status)] = READ_ONLY
    last_checked_at: Annotated[Instant | None, "When the monitor last checked it; null before it has."] = READ_ONLY
    down_since: Annotated[Instant | None, "When it failed first, once it is `down`; else null."] = READ_ONLY
    last_status_code: Annotated[int | None, "HTTP status of the last check; null without an answer."] = READ_ONLY
    response_time_ms: Annotated[
        int | None, "Milliseconds until the last check was answered; null without an answer."
    ] = READ_ONLY
    last_error: Annotated[Text191 | None, "Why the last check failed; null when it did not."] = READ_ONLY
    ssl_expires_at: Annotated[Instant | None, "When its certificate expires, as last seen; null: none was seen."] = (
        READ_ONLY
    )
    uptime_percent_24h: Annotated[
        float | None,
        uptime.percent("uptime_24h"),
        "Checks of the last 24 hours that found it up, of those that count; null without any.",
    ] = READ_ONLY
    uptime_percent_7d: Annotated[
        float | None,
        uptime.percent("uptime_7d"),
        "Checks of the last 7 days that found it up, of those that count; null without any.",
    ] = READ_ONLY
    uptime_percent_30d: Annotated[
        float | None,
        uptime.percent("uptime_30d"),
        "Checks of the last 30 days that found it up, of those that count; null without any.",
    ] = READ_ONLY
    wp_version: Annotated[Text20 | None, "WordPress that runs there, as the site pushed it."] = None
    wp_update_version: Annotated[Text20 | None, "WordPress that it could be updated to, as the site pushed it."] = None
    php_version: Annotated[Text20 | None, "PHP that runs there, as the site pushed it."] = None
    plugins_count: Annotated[int, "How many are in `plugins`."] = READ_ONLY
    plugin_updates_count: Annotated[int, "How many `plugins` have an update available."] = READ_ONLY
    core_update_available: Annotated[bool, "True when `wp_update_version` is newer than `wp_version`."] = READ_ONLY
    last_synced_at: Annotated[Instant | None, "When versions or plugins were last pushed; null: never."] = READ_ONLY
    external_id: ExternalId = None
    tag_ids: TagIds = []
    plugins: Annotated[
        list[Plugin], Meta(max_length=300), DetailOnly(), "Sorted by slug; what is sent replaces the whole set."
    ] = WRITE_ONLY


def awaits_updates(table: Table) -> ColumnElement[bool]:
    """Whether a plugin or the core of a site should be updated."""
    return or_(table.c.plugin_updates_count > 0, table.c.core_update_available.is_(True))


class SiteFilter(Filter):
    """Which sites."""

    sorts = ("name", "url", "status", "uptime_percent_30d", "plugin_updates_count", "created_at", "updated_at")
    client_id: OneOf[Id | None] | None = None
    project_id: OneOf[Id] | None = None
    status: Annotated[
        OneOf[Status] | None,
        Where(lambda table, statuses: uptime.effective_status(table).in_(statuses)),
        "Records whose `status` is one of these, as it is answered.",
    ] = None
    platform: OneOf[Platform] | None = None
    environment: OneOf[Environment] | None = None
    monitoring_enabled: bool | None = None
    has_updates: Annotated[bool | None, truth(awaits_updates, "sites with a plugin or core to be updated")] = None
    plugin: Annotated[
        OneOf[Text191] | None, Where(plugins.has_plugin), "Sites that have one of the plugins with these slugs."
    ] = None
    plugin_version_lt: Annotated[
        Text50 | None,
        Where(plugins.has_older_version, order),
        "Of these, sites with an older version than this; needs one `plugin`.",
    ] = None
    ssl_expires_before: Annotated[Instant | None, before("ssl_expires_at")] = None
    external_id: OneOf[Text191] | None = None
    tag_id: TagFilter = None

    def __post_init__(self) -> None:
        """Raise `validation_failed` for the version of no plugin, or of several."""
        if self.plugin_version_lt is not None and len(self.plugin or ()) != 1:
            raise invalid({"plugin_version_lt": ["Needs one plugin: plugin=woocommerce&plugin_version_lt=9.1."]})


PROJECT = select(projects.c.client_id).where(projects.c.id == bindparam("id"))
CLIENT = select(clients.c.status).where(clients.c.id == bindparam("id"))
REFERRING = relations.counts_of("site_id", tickets)


def prepare(tx: Tx, site: Site, before: Site | None, sent: relations.SentFields) -> Site:
    """Fill in whose site it is, what it is called, and how many updates it waits for.

    `sent` holds the fields of the body, and gets those that followed from them. The client of a site is fixed while
    tickets refer to it.
    """
    sent_relations = relations.named_fields(site, sent, "client_id", "project_id")
    client_follows = relations.concerns(before, sent, "project_id", "client_id")
    row = tx.one(PROJECT, id=site.project_id) if client_follows and site.project_id else None
    if row:
        relations.derive_parent(tx, site, sent, "project_id", "client_id", row[0])
    if site.client_id and (before is None or site.client_id != before.client_id):
        status = tx.value(CLIENT, id=site.client_id)
        field = relations.first_named(sent_relations, "client_id", "project_id")
        relations.check_open(tx, field, f"Client {site.client_id}", status)
    if before is not None and site.client_id != before.client_id:
        field = relations.first_named(sent_relations, "client_id", "project_id")
        relations.check_unreferred(tx, REFERRING, before.id, field, "Take it off the tickets first.")
    site.name = site.name or (urlsplit(site.url).hostname or site.url)[:191]
    site.core_update_available = newer(site.wp_update_version, site.wp_version)
    site.plugins = site.plugins or []
    site.plugins_count, site.plugin_updates_count = plugins.prepare_plugins(tx, site.plugins)
    site.plugins = sorted(site.plugins, key=lambda plugin: plugin.slug or "")  # as they are read
    return site


def is_push(site: Site, before: Site | None, body: Collection[str]) -> bool:
    """Whether a body pushes what a site runs, new or not; a record that is sent back as it was read pushes nothing."""
    pushed = [name for name in SYNCED_FIELDS if name in body]
    if before is not None and any(getattr(site, name) != getattr(before, name) for name in pushed):
        return True
    return "last_synced_at" not in body and any(getattr(site, name) for name in pushed)


def load_site(tx: Tx, site_id: int) -> Site:
    """Return a site with its plugins. Raises `not_found`."""
    site = tx.get(sites, site_id, Site)
    site.plugins = plugins.load_plugins(tx, site_id)
    return site


api = Resource("/sites", tag="Sites", scope="sites", table=sites)
api.instead["plugins"] = "A site has its `plugins`; PATCH /sites/{site_id} with `plugins` replaces them."


@api.get()
def list_sites(tx: Tx, filters: SiteFilter, page: Page) -> Paged[Site]:
    """List sites, by name; without their plugins."""
    return listing(tx, sites, Site, filters, page)


@api.post()
def create_site(tx: Tx, body: New[Site]) -> Site:
    """Create a site; it is checked at once, unless monitoring_enabled is false."""
    site = prepare(tx, body, None, relations.sent_fields(body))
    site.last_synced_at = tx.now if is_push(site, None, SYNCED_FIELDS) else None
    site_id = changes.insert(tx, SITES, sites, site)
    uptime.check_now(tx, site_id)
    plugins.replace_plugins(tx, site_id, site.plugins)
    set_tags(tx, sites, site_id, site, site.tag_ids)
    return load_site(tx, site_id)


@api.get("/{site_id}")
def get_site(tx: Tx, site_id: Id) -> Site:
    """Read a site with its plugins."""
    tx.snapshot()
    return load_site(tx, site_id)


@api.put("/{site_id}")
@api.patch("/{site_id}")
def update_site(tx: Tx, site_id: Id, patch: Patch[Site]) -> Site:
    """Change a site, or push its versions and plugins; `plugins` takes the place of the whole set."""
    before = load_site(tx, site_id)
    after = prepare(tx, patch.apply_to(before), before, patch.given)
    if is_push(after, before, patch.body.fields):
        after.last_synced_at = tx.now
    changes.update(tx, SITES, sites, before, after)
    if sorted(after.plugins, key=lambda plugin: plugin.slug) != before.plugins:
        plugins.replace_plugins(tx, site_id, after.plugins)
        tx.touch(sites, site_id)
    set_tags(tx, sites, site_id, after, after.tag_ids, before.tag_ids)
    if any(getattr(after, name) != getattr(before, name) for name in CHECKED_FIELDS):
        uptime.check_now(tx, site_id, start_over=after.url != before.url)
    return load_site(tx, site_id)


@api.delete("/{site_id}")
def delete_site(tx: Tx, site_id: Id) -> None:
    """Delete a site with what was observed of it; tickets stay, without a site."""
    changes.delete(tx, sites, etag.check_unchanged(tx, sites, load_site(tx, site_id)))
