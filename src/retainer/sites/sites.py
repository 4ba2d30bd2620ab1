"""Sites: the websites that the agency maintains, their uptime, and their software versions.

The monitor sets the read-only fields; sites push their versions and plugins themselves (PUT or PATCH). A null
`expected_status` means 200 to 399. A site is `down` after two failures in a row. Uptime is the share of checks that
found the site up, to the hour for weeks and months; maintenance and pauses do not count. They end an incident, as a
time without a running monitor does, and failures before them do not count with those after. After a first failure, the
next check follows after 30 seconds. `plugin=woocommerce&plugin_version_lt=9.1` finds the sites with an older version of
a plugin. `last_error` says what is wrong: the status, the fault of the certificate, a page that ended early, a missing
keyword, or where the site redirects to in vain. A host that does not exist or refuses, and an address that the operator
has not allowed, are told alike: they cannot be reached. Only public addresses are checked, unless the operator allows
others; a URL with a link-local address is refused. The operator sets how many sites an account may have, by default
1,000.
"""

from collections.abc import Collection, Sequence
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta
from sqlalchemy import BindParameter, ColumnElement, Table, bindparam, delete, insert, or_, select

from retainer.crm.tags import TagFilter, TagIds, save_tags
from retainer.errors import invalid
from retainer.identity.plans import find_excess
from retainer.kernel.body import New, Patch
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.outbound.guard import Address, is_allowed, is_never_allowed, spelled_address
from retainer.rollups import changes
from retainer.schema.filters import Where, before, truth
from retainer.schema.sites import site_plugins, sites
from retainer.schema.support import tickets
from retainer.schema.work import projects
from retainer.settings import Network
from retainer.shared import relations
from retainer.sites import uptime
from retainer.store.announcements import maintaining
from retainer.store.details import load_details
from retainer.store.row_mapper import Derived
from retainer.store.tables import ACCOUNT, NOW
from retainer.store.tx import Tx
from retainer.values.common import ExternalId, Milliseconds, Seconds, Share
from retainer.values.hosts import unicode_host
from retainer.values.kinds import Code191, HttpStatus, Id, Instant, Searched, SiteUrl, Text20, Text50, Text191
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, WRITE_ONLY, DetailOnly, Record
from retainer.values.versions import Version, newer, order

Status = Annotated[
    Literal["down", "unknown", "up", "maintenance", "paused"],
    Meta(title="SiteStatus"),
    "`down` after two failures in a row; `unknown` until checks show which; you set `paused` and `maintenance`.",
]
Environment = Annotated[
    Literal["production", "staging", "development"],
    Meta(title="SiteEnvironment"),
    "Kind of installation. It has no other effect.",
]
Platform = Annotated[
    Literal["wordpress", "woocommerce", "shopify", "drupal", "static", "other"],
    Meta(title="SitePlatform"),
    "Software of the site. It has no other effect.",
]
PluginStatus = Annotated[
    Literal["active", "inactive", "must_use"], Meta(title="PluginStatus"), "`must_use` plugins cannot be deactivated."
]
SYNCED_FIELDS = ("wp_version", "wp_update_version", "php_version", "plugins")
CHECKED_FIELDS = ("url", "monitoring_enabled", "check_interval_seconds", "expected_status", "keyword")
"""Fields that determine how a site is checked; if one changes, the next check is due immediately."""
NOT_CHECKED = (
    "This server does not check {}, which is not a public address. Use another, turn its monitoring off, or ask the "
    "operator, who can allow private networks with RETAINER_MONITOR_ALLOW."
)
NEVER_CHECKED = "{} is a link-local address or one of cloud metadata, which no server checks. Use another."
SUSPENDED = ("paused", "maintenance")  # statuses in which nothing is going on


class Plugin(msgspec.Struct):
    """A plugin of a site, and whether an update is available."""

    slug: Annotated[Code191, "Identifier of the plugin, like woocommerce. Unique in the site."]
    name: Annotated[Text191, "Name of the plugin. Default: the slug."] = SERVER_DEFAULT
    version: Annotated[Text50 | None, "Installed version; null: unknown."] = None
    status: PluginStatus = "active"
    update_version: Annotated[Text50 | None, "Available version; null: none known."] = None
    auto_update: Annotated[bool, "Whether the site updates the plugin automatically."] = False
    update_available: Annotated[bool, "True if `update_version` is newer than `version`."] = READ_ONLY


class Site(Record):
    """A website that the agency maintains."""

    url: Annotated[
        SiteUrl, "Unique in the account. Stored normalized: host in lower case, no default port, no fragment."
    ]
    name: Annotated[Text191, "Name of the site. Default: the host of `url`."] = SERVER_DEFAULT
    client_id: Annotated[Id | None, "Follows from the project. Null for the agency's own sites."] = None
    project_id: Annotated[Id | None, "A project of the client. Becomes null when it is deleted."] = None
    environment: Environment = "production"
    platform: Platform = "wordpress"
    monitoring_enabled: Annotated[bool, "If false, the site is not checked, and its status is `paused`."] = True
    check_interval_seconds: Annotated[Seconds, Meta(ge=60, le=86400), "Seconds from one check to the next."] = 300
    expected_status: Annotated[
        Annotated[list[HttpStatus], Meta(min_length=1, max_length=50)] | None,
        "HTTP statuses that count as up. Null: 200 to 399.",
    ] = None
    keyword: Annotated[
        Searched | None,
        "Text that the first MiB of the page must contain to count as up; case, spaces and line breaks do not matter.",
    ] = None
    maintenance_until: Annotated[Instant | None, "Until then, checks do not count."] = None
    status: Annotated[Status, Derived(uptime.effective_status)] = READ_ONLY
    last_checked_at: Annotated[Instant | None, "Time of the last check; null before the first."] = READ_ONLY
    down_since: Annotated[Instant | None, "Time of the first failure while the site is `down`, else null."] = READ_ONLY
    last_status_code: Annotated[
        int | None, "HTTP status of the last check, of a redirect that leads nowhere, too; null without a response."
    ] = READ_ONLY
    response_time_ms: Annotated[
        Milliseconds | None, "Response time of the last check, in milliseconds; null without a response."
    ] = READ_ONLY
    last_error: Annotated[Text191 | None, "Why the last check failed; null if it succeeded."] = READ_ONLY
    ssl_expires_at: Annotated[
        Instant | None, "Expiry of the last certificate seen. Null: none, or the last successful check was without TLS."
    ] = READ_ONLY
    uptime_percent_24h: Annotated[
        Share | None,
        uptime.percent("uptime_24h"),
        "Percentage of the last 24 hours' checks that found the site up; null without checks.",
    ] = READ_ONLY
    uptime_percent_7d: Annotated[
        Share | None,
        uptime.percent("uptime_7d"),
        "Percentage of the last 7 days' checks that found the site up; null without checks.",
    ] = READ_ONLY
    uptime_percent_30d: Annotated[
        Share | None,
        uptime.percent("uptime_30d"),
        "Percentage of the last 30 days' checks that found the site up; null without checks.",
    ] = READ_ONLY
    wp_version: Annotated[Text20 | None, "WordPress version, as the site pushed it."] = None
    wp_update_version: Annotated[Text20 | None, "Available WordPress version, as the site pushed it."] = None
    php_version: Annotated[Text20 | None, "PHP version, as the site pushed it."] = None
    plugins_count: Annotated[int, "Number of `plugins`."] = READ_ONLY
    plugin_updates_count: Annotated[int, "Number of `plugins` with an available update."] = READ_ONLY
    core_update_available: Annotated[bool, "True if `wp_update_version` is newer than `wp_version`."] = READ_ONLY
    last_synced_at: Annotated[
        Instant | None, "When versions or plugins were last pushed, even if nothing had changed. Null: never."
    ] = READ_ONLY
    external_id: ExternalId = None
    tag_ids: TagIds = []
    plugins: Annotated[
        list[Plugin],
        Meta(max_length=300),
        DetailOnly("site_plugins"),
        "Sorted by slug. A sent list replaces the whole set.",
    ] = WRITE_ONLY


def has_plugin(table: Table, slugs: list[BindParameter[str]], *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    of_site = (site_plugins.c.site_id == table.c.id, site_plugins.c.slug.in_(slugs))
    return select(site_plugins.c.slug).where(*of_site, *conditions).exists()


def has_older_version(
    table: Table, version: BindParameter[str], slugs: list[BindParameter[str]]
) -> ColumnElement[bool]:
    return has_plugin(table, slugs, site_plugins.c.version_order < version)


def awaits_updates(table: Table) -> ColumnElement[bool]:
    return or_(table.c.plugin_updates_count > 0, table.c.core_update_available.is_(True))


class SiteFilter(Filter):
    sorts = ("name", "url", "status", "uptime_percent_30d", "plugin_updates_count", "created_at", "updated_at")
    client_id: OneOf[Id | None] | None = None
    project_id: OneOf[Id] | None = None
    status: Annotated[
        OneOf[Status] | None,
        Where(lambda table, statuses: uptime.effective_status(table).in_(statuses)),
        "Records with one of these `status` values.",
    ] = None
    platform: OneOf[Platform] | None = None
    environment: OneOf[Environment] | None = None
    monitoring_enabled: bool | None = None
    has_updates: Annotated[
        bool | None, truth(awaits_updates, "sites with an available update of a plugin or the core")
    ] = None
    plugin: Annotated[
        OneOf[Code191] | None, Where(has_plugin), "Sites that have one of the plugins with these slugs."
    ] = None
    plugin_version_lt: Annotated[
        Version | None,
        Where(has_older_version, order, beside=("plugin",)),
        "Sites with an older version of the plugin than this. Requires exactly one `plugin`.",
    ] = None
    ssl_expires_before: Annotated[Instant | None, before("ssl_expires_at")] = None
    external_id: OneOf[Code191] | None = None
    tag_id: TagFilter = None

    def __post_init__(self) -> None:
        if self.plugin_version_lt is not None and len(self.plugin or ()) != 1:
            raise invalid(
                {"plugin_version_lt": ["Requires exactly one plugin: plugin=woocommerce&plugin_version_lt=9.1."]}
            )


ADD_PLUGIN = insert(site_plugins).values(
    account_id=ACCOUNT,
    site_id=bindparam("site"),
    **{name: bindparam(name) for name in (*Plugin.__struct_fields__, "version_order")},
)
NOTE_PUSH = maintaining(sites, sites.c.id == bindparam("site"), values={"last_synced_at": NOW})
"""A push says that the site is in contact. It is no change of the site, unless it brings other versions or plugins."""
DELETE_PLUGINS = delete(site_plugins).where(site_plugins.c.site_id == bindparam("site"))
RELATIONS = ("client_id", "project_id")


def build_plugins(tx: Tx, plugins: list[Plugin]) -> list[Plugin]:
    """Return the plugins of a site in the order of their slugs. Notes those that are sent twice."""
    slugs = [plugin.slug for plugin in plugins]
    for position, plugin in enumerate(plugins):
        if plugin.slug in slugs[:position]:
            tx.error(f"plugins.{position}.slug", f"Is sent twice: {plugin.slug}. Send each plugin once.")
        plugin.name = plugin.name or plugin.slug
        plugin.update_available = newer(plugin.update_version, plugin.version)
    return sorted(plugins, key=lambda plugin: plugin.slug or "")


def save_plugins(tx: Tx, site_id: int, plugins: list[Plugin]) -> None:
    tx.run(DELETE_PLUGINS, site=site_id)
    for plugin in plugins:
        version_order = None if plugin.version is None else order(plugin.version)
        tx.run(ADD_PLUGIN, site=site_id, version_order=version_order, **msgspec.structs.asdict(plugin))


def address_of(site: Site) -> Address | None:
    """Return the address that a URL spells. Names are not looked up, as for webhooks."""
    return spelled_address((urlsplit(site.url).hostname or "").rstrip("."))


def validate_address(tx: Tx, site: Site) -> None:
    """Note a URL that spells an address which is never contacted."""
    address = address_of(site)
    if address is not None and is_never_allowed(address):
        tx.error("url", NEVER_CHECKED.format(address))


def find_obstacle(site: Site, allowed: Sequence[Network]) -> str:
    """Return why each check of a site will fail, as its URL spells an address that the operator has not allowed."""
    address = address_of(site) if site.monitoring_enabled else None
    return "" if address is None or is_allowed(address, allowed) else NOT_CHECKED.format(address)


def build_site(tx: Tx, site: Site, before: Site | None, sent: relations.SentFields) -> Site:
    site.plugins = build_plugins(tx, site.plugins or [])
    if before is None or site.url != before.url:
        validate_address(tx, site)
    if relations.sets_any(before, sent, *RELATIONS):
        project = relations.load_row(tx, relations.Parent, projects, site.project_id)
        if project:
            relations.inherit(tx, site, sent, "project_id", "client_id", project.client_id)
    site.name = site.name or unicode_host(urlsplit(site.url).hostname or site.url)[:191]
    site.core_update_available = newer(site.wp_update_version, site.wp_version)
    site.plugins_count = len(site.plugins)
    site.plugin_updates_count = sum(plugin.update_available for plugin in site.plugins)
    field = relations.first_sent(site, sent, *RELATIONS)
    relations.validate_client_open(tx, field, site, before)
    if before is not None and site.client_id != before.client_id:
        relations.validate_unreferred(tx, "site_id", [tickets], before.id, field, "Remove it from the tickets first.")
    return site


def is_push(site: Site, before: Site | None, body: Collection[str]) -> bool:
    """Whether a body pushes versions or plugins; sending a record back unchanged pushes nothing."""
    pushed = [name for name in SYNCED_FIELDS if name in body]
    if before is not None and any(getattr(site, name) != getattr(before, name) for name in pushed):
        return True
    return "last_synced_at" not in body and any(getattr(site, name) for name in pushed)


def suspend_incident(tx: Tx, before: Site, after: Site) -> None:
    in_maintenance = after.maintenance_until is not None and after.maintenance_until > tx.now
    if before.status not in SUSPENDED and (in_maintenance or not after.monitoring_enabled):
        uptime.suspend(tx, after.id, tx.now)
        if before.down_since is not None:
            tx.touch(sites, after.id, "down_since")


def load_site(tx: Tx, site_id: int) -> Site:
    """Return a site with its plugins. Raises `not_found`."""
    site = tx.get(sites, site_id, Site)
    load_details(tx, sites, [site])
    return site


api = Resource("/sites", tag="Sites", scope="sites", table=sites)
api.lists(Site, SiteFilter, "List sites, by name; without their plugins.")


@api.post()
def create_site(tx: Tx, body: New[Site]) -> Site:
    """Create a site; it is checked immediately, unless `monitoring_enabled` is false."""
    if excess := find_excess(tx, "sites"):
        tx.error("url", excess)
    site = build_site(tx, body, None, relations.sent_fields(body))
    pushed_at = tx.now if is_push(site, None, SYNCED_FIELDS) else None
    site_id = changes.insert(tx, sites, site, last_synced_at=pushed_at)
    uptime.check_now(tx, site_id)
    save_plugins(tx, site_id, site.plugins)
    save_tags(tx, sites, site_id, site)
    return load_site(tx, site_id)


@api.get("/{site_id}")
def get_site(tx: Tx, site_id: Id) -> Site:
    """Read a site with its plugins."""
    tx.snapshot()
    return load_site(tx, site_id)


@api.put("/{site_id}")
@api.patch("/{site_id}")
def update_site(tx: Tx, site_id: Id, patch: Patch[Site]) -> Site:
    """Change a site, or push its versions and plugins; `plugins` replaces the whole set."""
    before = load_site(tx, site_id)
    after = build_site(tx, patch.apply_to(before), before, patch.given)
    if is_push(after, before, patch.body.fields):
        tx.run(NOTE_PUSH, site=site_id)
    changes.update(tx, sites, before, after)
    if after.plugins != before.plugins:
        save_plugins(tx, site_id, after.plugins)
        tx.touch(sites, site_id, "plugins")
    save_tags(tx, sites, site_id, after, before)
    suspend_incident(tx, before, after)
    if any(getattr(after, name) != getattr(before, name) for name in CHECKED_FIELDS):
        uptime.check_now(tx, site_id, reset=after.url != before.url)
    return load_site(tx, site_id)


@api.delete("/{site_id}")
def delete_site(tx: Tx, site_id: Id) -> None:
    """Delete a site with its checks and plugins; tickets stay, without a site."""
    changes.delete(tx, sites, load_site(tx, site_id))
