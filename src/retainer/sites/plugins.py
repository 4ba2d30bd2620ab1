"""Plugins: what runs on the sites, as they push it, and whether newer versions are there."""

from typing import Annotated, Any, Literal

import msgspec
from sqlalchemy import ColumnElement, Table, bindparam, delete, insert, select

from retainer.schema.sites import site_plugins
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.kinds import Text50, Text191
from retainer.values.records import READ_ONLY, SERVER_DEFAULT
from retainer.values.versions import newer, order

PluginStatus = Annotated[Literal["active", "inactive", "must_use"], "`must_use` cannot be switched off."]


class Plugin(msgspec.Struct):
    """A plugin of a site, and whether a newer version is there."""

    slug: Annotated[Text191, "What the plugin is known by, like woocommerce; once for each site."]
    name: Annotated[Text191, "What it is called; the slug when left out."] = SERVER_DEFAULT
    version: Annotated[Text50 | None, "What is installed; null: unknown."] = None
    status: PluginStatus = "active"
    update_version: Annotated[Text50 | None, "What it could be updated to; null: nothing newer is known."] = None
    auto_update: Annotated[bool, "Whether the site updates it by itself."] = False
    update_available: Annotated[bool, "True when `update_version` is newer than `version`."] = READ_ONLY


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


def runs(table: Table, slugs: Any) -> ColumnElement[bool]:
    """Whether a site has one of these plugins."""
    return _has(table, site_plugins.c.slug.in_(slugs))


def runs_older(table: Table, version: Any) -> ColumnElement[bool]:
    """Whether a site has an older version of the plugin that is asked for, which is one."""
    return _has(table, site_plugins.c.slug == bindparam("plugin__0"), site_plugins.c.version_order < version)


def _has(table: Table, *limits: ColumnElement[bool]) -> ColumnElement[bool]:
    return select(site_plugins.c.slug).where(site_plugins.c.site_id == table.c.id, *limits).exists()


def of_site(tx: Tx, site: int) -> list[Plugin]:
    """The plugins of a site, by slug."""
    found = tx.all(PLUGINS, site=site)
    return [Plugin(*said, bool(auto), bool(new)) for *said, auto, new in found]  # type: ignore[call-arg]


def prepare_plugins(tx: Tx, plugins: list[Plugin]) -> tuple[int, int]:
    """Fill in what plugins were not said to be; answers how many there are, and how many can be updated."""
    for place, plugin in enumerate(plugins):
        plugin.name = plugin.name or plugin.slug
        plugin.update_available = newer(plugin.update_version, plugin.version)
        if plugin.slug in {other.slug for other in plugins[:place]}:
            tx.error(f"plugins.{place}.slug", f"Stands twice: {plugin.slug}. Send each plugin once.")
    return len(plugins), sum(plugin.update_available for plugin in plugins)


def replace(tx: Tx, site: int, plugins: list[Plugin]) -> None:
    """Write a set of plugins in place of the former."""
    tx.run(NONE_LEFT, site=site)
    for plugin in plugins:
        version_order = None if plugin.version is None else order(plugin.version)
        tx.run(RUNS, site=site, version_order=version_order, **msgspec.structs.asdict(plugin))
