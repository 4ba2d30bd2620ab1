"""Plugins: what runs on the sites, as they push it, and whether newer versions are there."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from sqlalchemy import BindParameter, ColumnElement, Table, bindparam, delete, insert, select

from retainer.schema.sites import site_plugins
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.kinds import Text50, Text191
from retainer.values.records import READ_ONLY, SERVER_DEFAULT
from retainer.values.versions import newer, order

PluginStatus = Annotated[
    Literal["active", "inactive", "must_use"], Meta(title="PluginStatus"), "`must_use` cannot be switched off."
]


class Plugin(msgspec.Struct):
    """A plugin of a site, and whether a newer version is there."""

    slug: Annotated[Text191, "What the plugin is known by, like woocommerce; once for each site."]
    name: Annotated[Text191, "What it is called; the slug when left out."] = SERVER_DEFAULT
    version: Annotated[Text50 | None, "What is installed; null: unknown."] = None
    status: PluginStatus = "active"
    update_version: Annotated[Text50 | None, "What it could be updated to; null: nothing newer is known."] = None
    auto_update: Annotated[bool, "Whether the site updates it by itself."] = False
    update_available: Annotated[bool, "True when `update_version` is newer than `version`."] = READ_ONLY


PLUGINS_OF_SITE = (
    select(*site_plugins.c[Plugin.__struct_fields__])
    .where(site_plugins.c.site_id == bindparam("site"))
    .order_by(site_plugins.c.slug)
)
ADD_PLUGIN = insert(site_plugins).values(
    account_id=ACCOUNT,
    site_id=bindparam("site"),
    **{name: bindparam(name) for name in (*Plugin.__struct_fields__, "version_order")},
)
DELETE_PLUGINS = delete(site_plugins).where(site_plugins.c.site_id == bindparam("site"))


def has_plugin(table: Table, slugs: list[BindParameter[str]]) -> ColumnElement[bool]:
    """Whether a site has one of these plugins."""
    return _plugin_exists(table, site_plugins.c.slug.in_(slugs))


def has_older_version(table: Table, version: BindParameter[str]) -> ColumnElement[bool]:
    """Whether a site has an older version of the plugin that the filter `plugin` names, which is exactly one."""
    return _plugin_exists(table, site_plugins.c.slug == bindparam("plugin__0"), site_plugins.c.version_order < version)


def _plugin_exists(table: Table, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    return select(site_plugins.c.slug).where(site_plugins.c.site_id == table.c.id, *conditions).exists()


def load_plugins(tx: Tx, site_id: int) -> list[Plugin]:
    """Return the plugins of a site, by slug."""
    rows = tx.all(PLUGINS_OF_SITE, site=site_id)
    return [
        Plugin(*values, bool(auto_update), bool(update_available))  # type: ignore[call-arg]
        for *values, auto_update, update_available in rows
    ]


def prepare_plugins(tx: Tx, plugins: list[Plugin]) -> tuple[int, int]:
    """Fill in names and available updates; return how many plugins there are, and how many can be updated.

    A plugin that was sent twice is noted as an error.
    """
    for index, plugin in enumerate(plugins):
        plugin.name = plugin.name or plugin.slug
        plugin.update_available = newer(plugin.update_version, plugin.version)
        if plugin.slug in {other.slug for other in plugins[:index]}:
            tx.error(f"plugins.{index}.slug", f"Stands twice: {plugin.slug}. Send each plugin once.")
    return len(plugins), sum(plugin.update_available for plugin in plugins)


def replace_plugins(tx: Tx, site_id: int, plugins: list[Plugin]) -> None:
    """Write a set of plugins in place of those that a site has."""
    tx.run(DELETE_PLUGINS, site=site_id)
    for plugin in plugins:
        version_order = None if plugin.version is None else order(plugin.version)
        tx.run(ADD_PLUGIN, site=site_id, version_order=version_order, **msgspec.structs.asdict(plugin))
