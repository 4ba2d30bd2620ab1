"""Plugins of sites, as the sites push them, and their available updates."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from sqlalchemy import BindParameter, ColumnElement, Table, bindparam, delete, insert, select

from retainer.schema.sites import site_plugins
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.kinds import Code191, Text50, Text191
from retainer.values.records import READ_ONLY, SERVER_DEFAULT
from retainer.values.versions import newer, order

PluginStatus = Annotated[
    Literal["active", "inactive", "must_use"], Meta(title="PluginStatus"), "`must_use` plugins cannot be deactivated."
]


class Plugin(msgspec.Struct):
    """A plugin of a site, and whether an update is available."""

    slug: Annotated[Code191, "Identifier of the plugin, like woocommerce. Unique in the site."]
    name: Annotated[Text191, "Name of the plugin. Default: the slug."] = SERVER_DEFAULT
    version: Annotated[Text50 | None, "Installed version; null: unknown."] = None
    status: PluginStatus = "active"
    update_version: Annotated[Text50 | None, "Available version; null: none known."] = None
    auto_update: Annotated[bool, "Whether the site updates the plugin automatically."] = False
    update_available: Annotated[bool, "True if `update_version` is newer than `version`."] = READ_ONLY


ADD_PLUGIN = insert(site_plugins).values(
    account_id=ACCOUNT,
    site_id=bindparam("site"),
    **{name: bindparam(name) for name in (*Plugin.__struct_fields__, "version_order")},
)
DELETE_PLUGINS = delete(site_plugins).where(site_plugins.c.site_id == bindparam("site"))


def has_plugin(table: Table, slugs: list[BindParameter[str]], *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    of_site = (site_plugins.c.site_id == table.c.id, site_plugins.c.slug.in_(slugs))
    return select(site_plugins.c.slug).where(*of_site, *conditions).exists()


def has_older_version(
    table: Table, version: BindParameter[str], slugs: list[BindParameter[str]]
) -> ColumnElement[bool]:
    return has_plugin(table, slugs, site_plugins.c.version_order < version)


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
