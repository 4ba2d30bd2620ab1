"""The data model: all tables, with one module for each area, and filters and expressions over them."""

from retainer.schema import (
    billing,
    crm,
    files,
    identity,
    jobs,
    links,
    mail,
    requests,
    rollups,
    sites,
    support,
    webhooks,
    work,
)
from retainer.store.tables import metadata

TAG_LINKS = {
    crm.clients: crm.clients_tags,
    crm.external_contacts: crm.external_contacts_tags,
    work.projects: work.projects_tags,
    work.tasks: work.tasks_tags,
    support.tickets: support.tickets_tags,
    sites.sites: sites.sites_tags,
}
"""The tables whose rows have tags, each with the table that links rows to tags."""

__all__ = [
    "TAG_LINKS",
    "billing",
    "files",
    "identity",
    "jobs",
    "links",
    "mail",
    "metadata",
    "requests",
    "rollups",
    "webhooks",
]
